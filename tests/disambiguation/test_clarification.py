from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from core.disambiguation.edits import edit_size
from core.disambiguation.round_trip import AskAgain, ask_each_passage, ask_with, clarify
from core.types import Answer, Candidate, Evidence, Job, Passage, Proposal

WOOD = Passage("a", "West Side Story (1961 film)", "Natalie Wood played Maria in Hollywood in 1961.")
LAWRENCE = Passage("b", "West Side Story (musical)", "Carol Lawrence played Maria on Broadway in 1957.")
NOISE = Passage("c", "Basalt", "Basalt is a rock.")
QUESTION = "Who played Maria in West Side Story?"


def answer(text: str, passage: Passage | None) -> Answer:
    if passage is None:
        return Answer(text, 0.5)
    start = passage.text.index(text)
    return Answer(text, 0.5, (Evidence("gone", 0, 1, "x"), Evidence(passage.id, start, start + len(text), text)))


ANSWERS = [answer("Natalie Wood", WOOD), answer("Carol Lawrence", LAWRENCE)]
PASSAGES = [WOOD, LAWRENCE, NOISE]


def reader(rule: Callable[[str, Passage], str | None], log: list[tuple[str, str]] | None = None) -> AskAgain:
    def read(pairs: Sequence[tuple[str, Passage]]) -> list[tuple[str | None, float]]:
        if log is not None:
            log.extend((q, p.id) for q, p in pairs)
        return [(rule(q, p), 0.9) for q, p in pairs]

    return ask_each_passage(read)


def careful(question: str, passage: Passage) -> str | None:
    """Answers from the passage that the question's added words name."""
    if passage is WOOD and ("1961" in question or "Hollywood" in question):
        return "Natalie Wood"
    return "Carol Lawrence" if passage is LAWRENCE and ("musical" in question or "Broadway" in question) else None


def test_the_edit_that_passes_is_kept() -> None:
    first, second = clarify(QUESTION, ANSWERS, PASSAGES, reader(careful))
    assert (first.answer, first.passed, first.why) == ("Natalie Wood", True, "")
    assert first.question == "Who played Maria in the 1961 film West Side Story?"
    assert first.returned == ("Natalie Wood",)
    assert first.tried == 1
    assert (second.passed, second.question) == (True, "Who played Maria in the musical West Side Story?")


def test_among_those_that_pass_the_smallest_is_taken() -> None:
    """A reader that passes every edit: then only the size counts."""
    always = reader(lambda q, p: {"a": "Natalie Wood"}.get(p.id))
    (first, *_) = clarify(QUESTION, ANSWERS, PASSAGES, always)
    assert edit_size(QUESTION, first.question) == 3
    only = reader(lambda q, p: "Natalie Wood" if p is WOOD and "Hollywood" in q else None)
    (first, *_) = clarify(QUESTION, ANSWERS, PASSAGES, only)
    assert (first.passed, first.question) == (True, "Who played Maria in West Side Story in Hollywood?")


def test_no_edit_passes_when_another_passage_gives_the_other_answer() -> None:
    both = reader(lambda q, p: {"a": "Natalie Wood", "c": "Carol Lawrence"}.get(p.id))
    (first, *_) = clarify(QUESTION, ANSWERS, PASSAGES, both)
    assert not first.passed
    assert first.returned == ("Natalie Wood", "Carol Lawrence")
    assert first.why == "over all passages, another answer is returned as well or instead"
    assert first.question != QUESTION


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        (lambda q, p: None, "for this question, the reader does not return the answer"),
        (
            lambda q, p: {"a": "Natalie Wood", "b": "Carol Lawrence"}.get(p.id),
            "for this question, the reader also returns another answer",
        ),
    ],
)
def test_when_none_passes_the_best_is_shown_with_the_reason(rule: Callable[[str, Passage], str | None], why: str) -> None:
    (first, *_) = clarify(QUESTION, ANSWERS, PASSAGES, reader(rule))
    assert (first.passed, first.why) == (False, why)
    assert first.question == "Who played Maria in the 1961 film West Side Story?"
    assert first.tried > 0


def test_an_answer_read_longer_or_shorter_is_the_same() -> None:
    longer = reader(lambda q, p: "the young Natalie Wood" if p is WOOD else None)
    (first, *_) = clarify(QUESTION, ANSWERS, PASSAGES, longer)
    assert first.passed


def test_one_answer_leaves_the_question() -> None:
    (only,) = clarify(QUESTION, ANSWERS[:1], PASSAGES, reader(lambda q, p: "Natalie Wood" if p is WOOD else None))
    assert (only.question, only.passed, only.tried) == (QUESTION, True, 0)
    (only,) = clarify(QUESTION, ANSWERS[:1], PASSAGES, reader(lambda q, p: None))
    assert not only.passed


def test_no_answers_and_no_evidence() -> None:
    assert list(clarify(QUESTION, [], PASSAGES, reader(careful))) == []
    first, second = clarify(QUESTION, [answer("Ann Reinking", None), ANSWERS[1]], PASSAGES, reader(careful))
    assert (first.question, first.passed) == (QUESTION, False)
    assert "no passage contains this answer" in first.why
    assert second.passed


def test_no_word_tells_the_answers_apart() -> None:
    same = Passage("a", "Basalt", "Red or blue.")
    answers = [answer("Red", same), answer("blue", same)]
    for clarification in clarify("What colour is basalt?", answers, [same], reader(lambda q, p: "Red")):
        assert (clarification.question, clarification.passed) == ("What colour is basalt?", False)
        assert "nothing in the evidence distinguishes" in clarification.why


def test_the_reader_is_asked_about_the_deciding_passages_first() -> None:
    log: list[tuple[str, str]] = []
    (first, *_) = list(clarify(QUESTION, ANSWERS, PASSAGES, reader(careful, log)))[:1]
    edits = {q for q, _ in log}
    assert QUESTION not in edits
    assert [p for q, p in log if q == first.question] == ["a", "b", "a", "b", "c"]  # those that decide, then all
    assert sum(p == "c" for q, p in log) <= 4  # only those that survived are asked of the rest


class Chooses:
    """An answering model that knows which answers a question has."""

    def __init__(self, rule: Callable[[str], list[str]]) -> None:
        self.rule = rule

    def propose_many(self, jobs: Sequence[Job]) -> list[Proposal]:
        out = []
        for question, _, previous in jobs:
            left = [a for a in self.rule(question) if a not in previous]
            out.append(Proposal(tuple(Candidate(a, 0.6) for a in left), 0.3 if left else 0.9))
        return out


def test_an_answering_model_is_asked_until_eoi() -> None:
    ask = ask_with(Chooses(lambda q: ["Natalie Wood"] if "1961" in q else ["Natalie Wood", "Carol Lawrence", "Rita Moreno"]))
    assert ask([("Who in 1961?", PASSAGES), ("Who?", PASSAGES)]) == [
        ["Natalie Wood"],
        ["Natalie Wood", "Carol Lawrence", "Rita Moreno"],
    ]
    assert ask([]) == []
    first, second = clarify(QUESTION, ANSWERS, PASSAGES, ask)
    assert (first.passed, first.question) == (True, "Who played Maria in the 1961 film West Side Story?")
    assert not second.passed


def test_nothing_is_asked_after_another_answer_was_returned() -> None:
    asked: list[tuple[str, int]] = []

    class Counts(Chooses):
        def propose_many(self, jobs: Sequence[Job]) -> list[Proposal]:
            asked.extend((question, len(previous)) for question, _, previous in jobs)
            return super().propose_many(jobs)

    model = Counts(lambda q: ["Natalie Wood", "Carol Lawrence", "Rita Moreno"])
    (first, *_) = clarify(QUESTION, ANSWERS, PASSAGES, ask_with(model))
    assert first.why == "over all passages, another answer is returned as well or instead"
    assert max(given for _, given in asked) == 1, "after Carol Lawrence it is decided"


def test_a_word_that_is_no_other_answer_may_come_first() -> None:
    model = Chooses(lambda q: ["Hollywood", "Natalie Wood"] if "1961" in q else ["Carol Lawrence", "Natalie Wood"])
    first, second = clarify(QUESTION, ANSWERS, PASSAGES, ask_with(model))
    assert (first.passed, first.returned) == (True, ("Hollywood", "Natalie Wood"))
    assert not second.passed
    never = Chooses(lambda q: ["Carol Lawrence", "Natalie Wood"])
    (first, *_) = clarify(QUESTION, ANSWERS, PASSAGES, ask_with(never))
    assert first.why == "for this question, the reader also returns another answer"


def test_where_all_passages_decide_they_are_asked_once() -> None:
    log: list[tuple[str, str]] = []
    (first, *_) = list(clarify(QUESTION, ANSWERS, [WOOD, LAWRENCE], reader(careful, log)))[:1]
    assert first.passed
    assert [p for q, p in log if q == first.question] == ["a", "b"]


@pytest.mark.parametrize(
    ("where", "expected"),
    [("", "Where is The Hay Wain kept?"), ("John Constable", "Who painted The Hay Wain and where is it kept?")],
)
def test_a_half_that_asks_for_the_other_answer_is_not_offered(where: str, expected: str) -> None:
    """`where`: what the reader says of the place."""
    text = "John Constable painted The Hay Wain in Suffolk; it is kept in London."
    passage = Passage("w", "The Hay Wain", text)
    both = [answer("John Constable", passage), answer("London", passage)]
    says = reader(lambda q, p: "John Constable" if q.startswith("Who painted") else where or None)
    _, second = clarify("Who painted The Hay Wain and where is it kept?", both, [passage], says)
    assert (second.question, second.passed) == (expected, False)
