"""Questions over passages that do not answer them."""

from __future__ import annotations

from core.text import mentions
from core.training.data.absent import over_other_documents, with_another_name, without_support
from core.training.data.examples import MultiExample

FILLER = [("Hill", f"The hill number {n} is high.") for n in range(4)]


def example(question: str, answer: str, source: str = "practice", **extra: object) -> MultiExample:
    own = ("Film", f"{answer} played the part of Maria in the film of 1957.")
    also = ("Cast", f"Here {answer} is mentioned again.")
    return MultiExample(question, (own, also, *FILLER), ((answer,),), source, extra={"supporting": ["p1"], **extra})


def test_without_its_supporting_passages_a_question_has_no_answer_left() -> None:
    (absent,) = without_support([example("Who played Maria?", "Natalie Wood")])
    assert (absent.question, absent.gold, list(absent.passages)) == ("Who played Maria?", (), FILLER)


def test_an_example_that_does_not_know_its_supporting_passages_gives_nothing() -> None:
    assert without_support([MultiExample("Who?", tuple(FILLER), (("Ann",),), "multi")]) == []


def test_a_name_a_year_and_a_number_become_those_of_another_question() -> None:
    pairs = [
        ("Who played Maria in the film?", "Who played Tony Soprano in the film?"),
        ("Who won in 1957?", "Who won in 2022?"),
        ("Who has 12 points?", "Who has 7 points?"),
    ]
    for questions in pairs:
        examples = with_another_name([example(q, "Natalie Wood") for q in questions], 0)
        # a name that the passages mention is never the new one
        assert [e.question for e in examples] == [q for q in reversed(questions) if not mentions("Maria 1957", q.split())]
        assert all(e.gold == () and len(e.passages) == 6 for e in examples)


def test_a_question_that_names_nothing_is_left_out() -> None:
    assert with_another_name([example("who wrote it?", "Ann"), example("when?", "Ben")], 0) == []


def test_questions_about_a_product_are_asked_of_another_ones_documents() -> None:
    examples = [example(f"Where is the {n} cache?", answer, n) for n, answer in (("uv", "/a"), ("vite", "/b"))]
    made = over_other_documents(examples, 0)
    assert {e.source for e in made} == {"uv-absent", "vite-absent"}
    for e in made:
        own_answer = "/a" if "uv" in e.question else "/b"
        assert e.gold == ()
        assert not any(own_answer in text for _, text in e.passages)
    assert over_other_documents(examples[:1], 0) == []
