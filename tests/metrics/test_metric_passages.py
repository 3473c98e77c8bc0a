"""R@k, MRecall@k, RAMDocs' measure and the share of clarified answers."""

from __future__ import annotations

from core.metrics import metric, weights_of
from core.metrics.base import Example, mean
from core.types import Annotation, QAPair

THREE = Annotation("multiple", tuple(QAPair("q", a) for a in (("Rome", "Roma"), ("Oslo",), ("New York",))))


def retrieved(*passages: str, k: int | None = None) -> Example:
    return Example("Which city?", (THREE,), (), passages=passages, k=k if k is not None else len(passages))


def value(name: str, example: Example) -> float | None:
    return metric(name)(example)


def test_r_at_k_wants_one_answer_and_mrecall_all_or_k() -> None:
    both = retrieved("Roma is old.", "Oslo is cold.", "Nothing here.", "In New  York, today")
    assert (value("R@k", both), value("MRecall@k", both)) == (1.0, 1.0)
    two = retrieved("Roma is old. Oslo is cold.", "Nothing here.")
    assert (value("R@k", two), value("MRecall@k", two)) == (1.0, 1.0)  # k = 2 of n = 3 answers
    one = retrieved("Roma is old.", "Nothing here.")
    assert (value("R@k", one), value("MRecall@k", one)) == (1.0, 0.0)


def test_only_the_top_k_count_and_words_are_whole() -> None:
    assert value("R@k", retrieved("Nothing.", "Rome", k=1)) == 0.0
    assert value("R@k", retrieved("Romeo of York")) == 0.0


def test_fewer_passages_than_asked_for_do_not_lower_the_bar() -> None:
    assert value("MRecall@k", retrieved("Rome Oslo", k=10)) == 0.0


def test_answers_in_scripts_without_spaces_count() -> None:
    answers = Annotation("multiple", (QAPair("q", ("東京",)), QAPair("q", ("กรุงเทพ", "กรุงเทพมหานคร"))))
    found = Example("q", (answers,), (), passages=("日本の首都は東京です。", "กรุงเทพเป็นเมืองหลวง"), k=2)
    assert (value("R@k", found), value("MRecall@k", found)) == (1.0, 1.0)
    other = Example("q", (answers,), (), passages=("京都は古い都です。", "東の京"), k=2)
    assert value("R@k", other) == 0.0


def test_nothing_retrieved_is_undefined() -> None:
    assert value("R@k", Example("q", (THREE,), ())) is None


def judged(answers: tuple[str, ...], wrong: tuple[str, ...] | None, name: str = "RAMDocs") -> float | None:
    gold = Annotation("multiple", (QAPair("", ("Rome",)), QAPair("", ("Oslo",))))
    return value(name, Example("q", (gold,), answers, wrong_answers=wrong))


def test_ramdocs_wants_all_gold_and_no_wrong_answer() -> None:
    assert judged(("rome", "The OSLO!"), ("Bonn",)) == 1.0
    assert judged(("Rome", "Oslo", "bonn"), ("Bonn",)) == 0.0
    assert judged(("Rome",), ("Bonn",)) == 0.0
    assert judged(("Rome", "Oslo", "Kiel"), ()) == 1.0  # neither gold nor listed as wrong
    assert judged(("Rome", "Oslo"), None) is None  # a set without such a list


def test_ramdocs_in_text_finds_answers_in_longer_ones_and_wrong_ones_too() -> None:
    assert judged(("Trastevere, Rome", "Oslo"), ("Bonn",)) == 0.0
    assert judged(("Trastevere, Rome", "the OSLO!"), ("Bonn",), "RAMDocs in text") == 1.0
    assert judged(("Rome", "Oslo", "near Bonn"), ("Bonn",), "RAMDocs in text") == 0.0
    assert judged(("Romeo", "Oslo"), (), "RAMDocs in text") == 0.0  # whole words
    assert judged(("Rome", "Oslo"), None, "RAMDocs in text") is None


def test_the_clarified_share_is_of_right_answers() -> None:
    gold = Annotation("multiple", (QAPair("", ("Rome",)), QAPair("", ("Oslo",))))
    record = metric("clarified")
    two = Example("q", (gold,), ("Bonn", "Rome", "Oslo"), passed=(True, True, False))
    one = Example("q", (gold,), ("Rome",), passed=(True,))
    none_right = Example("q", (gold,), ("Bonn",), passed=(True,))
    unclarified = Example("q", (gold,), ("Rome",), passed=(None,))
    values = [record(e) for e in (two, one, none_right, unclarified)]
    assert values == [0.5, 1.0, None, None]
    # two of three right answers, not the mean of the questions' shares
    assert mean(values, [weights_of(e)["clarified"] for e in (two, one, none_right, unclarified)]) == 2 / 3
