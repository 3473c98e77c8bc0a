"""Grounded metrics against values worked out by hand, the three judges, and judgments that are kept by content."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from core import types as t
from core.errors import InputError, StorageError
from core.evaluation.judge import ModelJudge, ReferenceJudge, annotated, interpretations_of, load_judge, pairs_of
from core.evaluation.judge_cache import Judgments
from core.evaluation.judges import JUDGES
from core.metrics import metric
from core.metrics.base import Example
from core.metrics.grounding import harmonic
from core.metrics.judged import Grounding
from core.metrics.score.scoring import table
from core.metrics.significance.bootstrap import harmonic_interval
from core.models.language.prompted import PromptedGenerator
from core.models.language.roles import Claim, Run
from core.models.language.scripted import ScriptedLanguageModel
from core.settings import Settings

TEXTS = {"p1": "Ada won in 1990.", "p2": "Bo won in 2000.", "p3": "Cy lost."}
PASSAGES = tuple(t.RetrievedPassage(t.Passage(i, f"Title {i}", text), n, 1.0) for n, (i, text) in enumerate(TEXTS.items(), 1))
PAIRS = (
    t.QAPair("Who won in 1990?", ("Ada", "Ada A."), ("p1",)),
    t.QAPair("Who won in 2000?", ("Bo",), ("p2",)),
    t.QAPair("Who won in 2010?", ("Di",), ("p9",)),
    t.QAPair("Who won at sea?", ("Ed",), ()),
)
REFERENCE = t.ReferenceQuestion("q", "Who won?", (t.Annotation("multiple", PAIRS),))
RIGHT = t.Interpretation("p1", "Who won in 1990?", "ada", 0.9)
WRONG_PASSAGE = t.Interpretation("p3", "Who won in 2000?", "Bo", 0.8)
WRONG_ANSWER = t.Interpretation("p2", "Which year was it?", "2000", 0.8)


def prediction(*chosen: t.Interpretation) -> t.Prediction:
    events = (t.PassagesRetrieved(PASSAGES, 0.1, "Who won?"), t.InterpretationsChosen(chosen), t.Finished(1.0, ""))
    return t.Prediction(t.Question("Who won?"), t.SystemInfo("verdict"), (), (), (), PASSAGES, 1.0, events, chosen)


def values(grounding: Grounding | None) -> dict[str, Any]:
    names = ("interpretations", "Sufficient%", "ungrounded precision", "ungrounded recall", "G-precision", "G-recall", "G-F1")
    example = Example("Who won?", REFERENCE.annotations, (), grounding=grounding)
    return {name: metric(name)(example) for name in names}


def test_the_references_judge_by_passages_and_words() -> None:
    grounding = ReferenceJudge().judge(REFERENCE, prediction(RIGHT, WRONG_PASSAGE, WRONG_ANSWER))
    assert [(i.supported, i.matched) for i in grounding.interpretations] == [(True, True), (False, True), (False, False)]
    assert [(i.relevant, i.answerable, i.right) for i in grounding.interpretations] == [
        (True, True, True),
        (True, False, True),
        (True, True, False),
    ]
    assert grounding.recalled == (True, False, False)  # the meaning that no passage supports is not in the grounded gold set
    expected = {"interpretations": 3.0, "Sufficient%": 0.0, "ungrounded precision": 2 / 3, "ungrounded recall": 0.5}
    assert values(grounding) == pytest.approx(expected | dict.fromkeys(("G-precision", "G-recall", "G-F1"), 1 / 3))


def test_near_duplicates_count_once_and_can_be_sufficient() -> None:
    several = [t.Interpretation("p1", f"Who won in {y}?", "Ada", 0.5) for y in (1990, 1991, 1992, 1993, 1994)]
    again = t.Interpretation("p1", "In 1990, who won?", "Ada", 0.5)
    for count, sufficient in ((4, 0.0), (5, 1.0)):  # as many as the references have are not enough
        figures = values(ReferenceJudge().judge(REFERENCE, prediction(*several[:count], again)))
        assert (figures["interpretations"], figures["Sufficient%"]) == (count, sufficient)


def test_nothing_said_has_no_precision_and_recall_0() -> None:
    figures = values(ReferenceJudge().judge(REFERENCE, prediction()))
    assert (figures["G-precision"], figures["G-recall"], figures["G-F1"]) == (None, 0.0, 0.0)


def test_without_a_judge_or_passages_of_the_references_nothing_is_defined() -> None:
    assert set(values(None).values()) == {None}
    bare = t.ReferenceQuestion("q", "Who?", (t.Annotation("single", (t.QAPair("Who?", ("Ada",)),)),))
    assert ReferenceJudge().judge(bare, prediction(RIGHT)) is None
    assert not annotated([bare])
    assert annotated([bare, REFERENCE])
    assert pairs_of(t.ReferenceQuestion("q", "Who?", (t.Annotation("none"),))) == ()


def test_g_f1_of_a_report_is_the_harmonic_mean_of_the_means() -> None:
    rows = [{"G-precision": 1.0, "G-recall": 0.5, "G-F1": 2 / 3}, {"G-precision": None, "G-recall": 0.0, "G-F1": 0.0}]
    means = table(rows, [True, False], ["G-precision", "G-recall", "G-F1"])["G-F1"]
    assert means == {"all": pytest.approx(harmonic(1.0, 0.25)), "multi": pytest.approx(2 / 3)}
    assert table([{"G-F1": 0.0, "G-recall": 0.0}], [True], ["G-F1"])["G-F1"]["all"] is None


def test_the_interval_of_the_harmonic_mean_holds_it() -> None:
    ends = harmonic_interval([1.0, 0.5, None, 1.0] * 10, [0.5, 0.5, 0.0, 1.0] * 10, samples=200, seed=1)
    assert ends[0] < harmonic(5 / 6, 0.5) < ends[1]
    assert harmonic_interval([0.6] * 5, [0.6] * 5) == pytest.approx((0.6, 0.6))
    assert harmonic_interval([1.0], [1.0]) is None


class Believes:
    """A generator whose `verify` believes what stands in the passage; counts what it was asked."""

    name, about = "believer", {"model": "believer", "prompts": {"verify": "1"}}

    def __init__(self, broken: bool = False) -> None:
        self.broken, self.asked = broken, 0

    def verify(self, claims: Sequence[Claim], run: Run) -> list[bool | None]:
        self.asked += len(claims)
        return [None if self.broken else any(c.answer.lower() in p.text.lower() for p in c.passages) for c in claims]


def judged_by(generator: Any, folder: Path, *interpretations: t.Interpretation) -> Grounding:
    return ModelJudge("reader", generator, Judgments(folder / "j.sqlite")).judge(REFERENCE, prediction(*interpretations))


def test_a_model_judges_and_its_judgments_are_kept(tmp_path: Path) -> None:
    generator, file, judged = Believes(), tmp_path / "deep" / "judgments.sqlite", prediction(RIGHT, WRONG_PASSAGE)
    judge = ModelJudge("reader", generator, Judgments(file))
    grounding = judge.judge(REFERENCE, judged)
    assert [i.supported for i in grounding.interpretations] == [True, False]
    # the passages hold the meanings of Ada and Bo; those cited are p1 and p3
    assert grounding.recalled == (True, False)
    assert judge.about == {"judge": "reader", "model": "believer", "prompts": {"verify": "1"}}
    before = generator.asked
    assert before > 0
    assert ModelJudge("reader", generator, Judgments(file)).judge(REFERENCE, judged) == grounding
    assert generator.asked == before
    other = Believes()
    other.about = {"model": "another"}
    ModelJudge("reader", other, Judgments(file)).judge(REFERENCE, judged)
    assert other.asked > 0


def test_a_language_model_judges_which_questions_match_and_which_are_one(tmp_path: Path) -> None:
    covered = iter(('{"covered": [true, false]}', '{"covered": [true, false, false, true]}'))
    rules: dict[str, Any] = {"verify": '{"supported": true}', "match": lambda _: next(covered), "deduplicate": '{"keep": [1]}'}
    model = ScriptedLanguageModel(rules)
    grounding = judged_by(PromptedGenerator(model), tmp_path, RIGHT, WRONG_PASSAGE)
    assert [i.matched for i in grounding.interpretations] == [True, False]
    assert (grounding.covered, grounding.distinct) == ((True, False, False, True), 1)
    ours, theirs = (r.messages[-1].text for r in model.requests if r.purpose == "match")
    assert REFERENCE.question in ours
    # each is asked whether the first list covers the second: ours by the references, then the references by ours
    at_sea = pairs_of(REFERENCE)[3].question
    assert ours.index(at_sea) < ours.rindex(RIGHT.question)
    assert theirs.index(RIGHT.question) < theirs.index(at_sea)


class Half(Believes):
    """Decides the first of several claims."""

    def verify(self, claims: Sequence[Claim], run: Run) -> list[bool | None]:
        return [True, *[None] * (len(claims) - 1)]


def test_half_a_judgment_is_none(tmp_path: Path) -> None:
    grounding = judged_by(Half(), tmp_path, RIGHT, WRONG_PASSAGE)
    assert [i.supported for i in grounding.interpretations] == [True, None]
    assert grounding.error
    assert values(grounding)["G-precision"] is None
    assert values(grounding)["ungrounded precision"] == 1.0  # decided by words


def test_half_a_reply_on_which_questions_match_is_none(tmp_path: Path) -> None:
    rules: dict[str, Any] = {"verify": '{"supported": true}', "match": '{"covered": [true]}', "deduplicate": '{"keep": [1, 2]}'}
    grounding = judged_by(PromptedGenerator(ScriptedLanguageModel(rules)), tmp_path, RIGHT, WRONG_PASSAGE)
    assert (grounding.failed_calls, grounding.error.partition(":")[0]) == (2, "match")
    figures = values(grounding)
    assert (figures["ungrounded precision"], figures["ungrounded recall"], figures["G-recall"]) == (None, None, None)
    assert figures["G-precision"] == 1.0


def test_our_own_meanings_that_the_references_lack_join_the_grounded_gold_set(tmp_path: Path) -> None:
    extra = t.Interpretation("p3", "Whose ship was last of all in the long regatta?", "Cy", 0.5)
    assert judged_by(Believes(), tmp_path, RIGHT, extra).recalled == (True, False, True)


def test_a_judge_that_fails_decides_nothing_and_nothing_is_kept(tmp_path: Path) -> None:
    grounding = judged_by(Believes(broken=True), tmp_path, RIGHT)
    assert (grounding.interpretations[0].supported, values(grounding)["G-precision"]) == (None, None)
    assert not (tmp_path / "j.sqlite").exists()


def test_a_damaged_file_of_judgments_is_told(tmp_path: Path) -> None:
    (tmp_path / "j.sqlite").write_bytes(b"no database" * 100)
    with pytest.raises(StorageError, match="move the file away"):
        Judgments(tmp_path / "j.sqlite").get("k")


def test_an_unknown_judge_is_refused() -> None:
    with pytest.raises(InputError, match="references, reader, language-model"):
        load_judge("jury", Settings())
    assert load_judge("references", Settings()).name == JUDGES[0]


def test_any_system_has_interpretations() -> None:
    answers = (t.Answer("Ada", 0.9, (t.Evidence("p1", 0, 3, "Ada"),)), t.Answer("Bo", 0.4))
    clarified = (t.Clarification("Ada", "Who won in 1990?", True),)
    plain = t.Prediction(t.Question("Who won?"), t.SystemInfo("x"), answers, clarified, (), (), 1.0, ())
    assert [(i.passage_id, i.question, i.answer) for i in interpretations_of(plain)] == [
        ("p1", "Who won in 1990?", "Ada"),
        ("", "Who won?", "Bo"),
    ]


def test_long_answers_are_compared_with_meanings_and_references() -> None:
    questions, long_answers = ("Who won in 1990?", "Who won in 2000?"), ("In 1990 Ada won, and in 2000 Bo.", "nothing like it")
    example = Example("Who won?", REFERENCE.annotations, ("Ada", "Bo"), questions, long_answers=long_answers)
    assert metric("STR-EM")(example) == 0.5  # Ada and Bo of four meanings
    assert 0.3 < metric("ROUGE-L")(example) < 1
    bare = Example("Who won?", REFERENCE.annotations, ("Ada",))
    assert (metric("STR-EM")(bare), metric("ROUGE-L")(bare)) == (None, None)
