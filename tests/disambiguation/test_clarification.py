"""Written questions: their form, the round trip, the score, and the labels that come from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from core.disambiguation.drafts import AnswerExcerpt, QuestionDraft, WriteDrafts, excerpt_of
from core.disambiguation.labels import labels_of
from core.disambiguation.outcome import result_of
from core.disambiguation.round_trip import Read, clarify
from core.disambiguation.scoring import Features, well_formed
from core.models.span.reader import Readout
from core.types import Answer, Candidate, Clarification, Evidence, Passage, Prediction, Question, SystemInfo

WOOD = Passage("a", "West Side Story (1961 film)", "Natalie Wood played Maria in Hollywood in 1961.")
LAWRENCE = Passage("b", "West Side Story (musical)", "Carol Lawrence played Maria on Broadway in 1957.")
NOISE = Passage("c", "Basalt", "Basalt is a rock.")
QUESTION = "Who played Maria in West Side Story?"
FILM, MUSICAL = (f"Who played Maria in the {kind} West Side Story?" for kind in ("1961 film", "musical"))


def answer(text: str, passage: Passage | None) -> Answer:
    if passage is None:
        return Answer(text, 0.5)
    start = passage.text.index(text)
    return Answer(text, 0.5, (Evidence("gone", 0, 1, "x"), Evidence(passage.id, start, start + len(text), text)))


ANSWERS = [answer("Natalie Wood", WOOD), answer("Carol Lawrence", LAWRENCE)]
PASSAGES = [WOOD, LAWRENCE, NOISE]
Rule = Callable[[str, Passage], str | None]


def writer(drafts: Mapping[str, Sequence[str]]) -> WriteDrafts:
    """Drafts by answer, each less likely than the one before."""

    def write(question: str, answers: Sequence[AnswerExcerpt]) -> list[list[QuestionDraft]]:
        return [[QuestionDraft(q, -0.02 * n) for n, q in enumerate(drafts.get(a.answer, ()), 1)] for a in answers]

    return write


def reader(rule: Rule, log: list[tuple[str, str]] | None = None) -> Read:
    """Gives the rule's answer to a question in a passage, and abstains where there is none."""

    def read(pairs: Sequence[tuple[str, Passage]]) -> list[Readout]:
        out = []
        for question, passage in pairs:
            if log is not None:
                log.append((question, passage.id))
            text = rule(question, passage)
            start = passage.text.index(text) if text else 0
            candidates = (Candidate(text, 0.98, Evidence(passage.id, start, start + len(text), text)),) if text else ()
            out.append(Readout(passage, candidates, 0.02 if candidates else 0.99))
        return out

    return read


def careful(question: str, passage: Passage) -> str | None:
    """Answers from the passage that the question's added words name."""
    if passage is WOOD and "1961" in question:
        return "Natalie Wood"
    return "Carol Lawrence" if passage is LAWRENCE and "musical" in question else None


WRITE = writer({"Natalie Wood": [FILM], "Carol Lawrence": [MUSICAL]})


def test_questions_that_return_their_answer_alone() -> None:
    first, second = clarify(QUESTION, ANSWERS, PASSAGES, WRITE, reader(careful))
    assert (first.question, first.passed, first.returned, first.why) == (FILM, True, ("Natalie Wood",), "")
    assert (second.question, second.passed) == (MUSICAL, True)
    assert (first.label, second.label) == ("1961 film", "musical")


@pytest.mark.parametrize(
    "rule",
    [
        lambda q, p: {"a": "Natalie Wood", "b": "Carol Lawrence"}.get(p.id),  # another answer too
        lambda q, p: None,  # not this answer
    ],
)
def test_a_question_that_does_not_return_its_answer_alone_has_not_passed(rule: Rule) -> None:
    (first, *_) = clarify(QUESTION, ANSWERS, PASSAGES, WRITE, reader(rule))
    assert (first.question, first.passed) == ("", False)
    assert first.why
    assert first.label == ""


@pytest.mark.parametrize(
    ("drafts", "shown"),
    [
        ([QUESTION, FILM], FILM),  # the question unchanged
        (["Who played Maria before Natalie Wood?", FILM], FILM),  # the answer given away
        (["Who played Maria in Hollywood in 1961", FILM], FILM),  # no question
        (["Who? Where in 1961?", FILM], FILM),  # two questions
        ([MUSICAL, FILM], FILM),  # another answer's, which has it with a higher probability
        ([], ""),
    ],
)
def test_the_form_of_a_question(drafts: list[str], shown: str) -> None:
    write = writer({"Natalie Wood": drafts, "Carol Lawrence": [MUSICAL]})
    reordered: WriteDrafts = lambda q, answers: [  # noqa: E731
        [replace(d, log_probability=d.log_probability - (a.answer == "Natalie Wood") / 10) for d in options]
        for a, options in zip(answers, write(q, answers))
    ]
    (first, second) = clarify(QUESTION, ANSWERS, PASSAGES, reordered, reader(careful))
    assert (first.question, second.question) == (shown, MUSICAL)


def test_where_no_form_is_right_the_answer_keeps_its_passage() -> None:
    for prompt in ("Mariaを演じたのは誰?", "whoplayedmariainwestsidestory?"):
        write = writer(
            {"Natalie Wood": ["Who played her in the 1961 film?"], "Carol Lawrence": ["Who played her in the musical?"]}
        )
        written = list(clarify(prompt, ANSWERS, PASSAGES, write, reader(careful)))
        assert [(c.answer, c.question, c.passed) for c in written] == [(a.text, "", False) for a in ANSWERS]


def test_the_draft_that_passes_is_preferred() -> None:
    other = "Who played Maria in the famous West Side Story?"
    write = writer({"Natalie Wood": [other, FILM], "Carol Lawrence": [MUSICAL]})
    (first, _) = clarify(QUESTION, ANSWERS, PASSAGES, write, reader(careful))
    assert first.question == FILM


def test_one_answer_leaves_the_question_and_without_evidence_there_is_none() -> None:
    log: list[tuple[str, str]] = []
    (only,) = clarify(QUESTION, ANSWERS[:1], PASSAGES, WRITE, reader(careful, log))
    assert (only.question, only.passed, log) == ("", True, [])
    assert list(clarify(QUESTION, [], PASSAGES, WRITE, reader(careful))) == []
    first, second = clarify(QUESTION, [answer("Natalie Wood", None), ANSWERS[1]], PASSAGES, WRITE, reader(careful))
    assert (first.question, first.passed) == ("", False)
    assert second.passed


def test_drafts_are_asked_over_the_passages_of_all_answers() -> None:
    log: list[tuple[str, str]] = []
    list(clarify(QUESTION, ANSWERS, PASSAGES, WRITE, reader(careful, log)))
    assert log == [(q, p.id) for q in (FILM, MUSICAL) for p in (WOOD, LAWRENCE)]


def test_what_the_writer_is_given() -> None:
    assert excerpt_of(ANSWERS[0], {p.id: p for p in PASSAGES}) == AnswerExcerpt("Natalie Wood", WOOD.title, WOOD.text)
    assert excerpt_of(ANSWERS[0], {}) == AnswerExcerpt("Natalie Wood")
    long = Passage("long", "T", f"{'before ' * 60}Ann Ek{' after' * 60}")
    words = excerpt_of(answer("Ann Ek", long), {"long": long}).excerpt.split()
    assert (len(words), words.index("Ann")) == (36, 17)


def test_a_better_round_trip_is_never_a_lower_score() -> None:
    base = Features(-0.5, 0.0)
    assert replace(base, own=3.0).probability > base.probability
    assert replace(base, log_probability=-0.1).probability > base.probability


@pytest.mark.parametrize(
    ("prompt", "question", "expected"),
    [
        ("timeout", "timeout (Celery)", True),  # a search query stays one
        ("timeout", "timeout (Redis)", False),
        ("timeout", "timeout", False),
        (QUESTION, QUESTION.upper(), False),
        ("Is it Redis?", "Is it Redis 7?", True),  # what the prompt names anyway is not given away
        ("待ち時間は?", "What is the timeout of Celery?", False),  # another language
        ("whatisthetimeout?", "What is the timeout of Celery?", False),  # without spaces
        ("<b>What</b> is the timeout?", "What is the timeout of Celery?", True),
    ],
)
def test_well_formed(prompt: str, question: str, expected: bool) -> None:
    assert well_formed(prompt, question, "Redis") is expected


@pytest.mark.parametrize(
    ("prompt", "questions", "expected"),
    [
        ("who discovered bromine?", ["Who obtained it from a spring at Bad Kreuznach?", "Who found it in salt marsh water?"], ["obtained it from a spring at Bad Kreuznach", "found it in salt marsh water"]),
        ("cost of a seat", ["cost of a seat on Sunday", "cost of a seat on Monday"], ["Sunday", "Monday"]),
        ("cost of a seat?", ["What is the cost of a seat on Sunday?", "What is the cost of a seat on Sunday?"], ["", ""]),
        ("cost of a seat?", ["", "What does a seat cost in the stalls?"], ["", "stalls"]),
        ("cost?", [f"What is the cost of {'very ' * 20}much?", ""], ["", ""]),  # too long for a chip
    ],
)  # fmt: skip
def test_labels(prompt: str, questions: list[str], expected: list[str]) -> None:
    assert labels_of(prompt, questions) == expected


def prediction(*labels: str) -> Prediction:
    answers = tuple(Answer(f"answer {n}", 0.5) for n in range(len(labels)))
    clarifications = tuple(Clarification(a.text, "", False, label=label) for a, label in zip(answers, labels))
    return Prediction(Question(QUESTION), SystemInfo("ambiscope"), answers, clarifications, (), (), 0.0, ())


def test_only_meanings_are_asked_about() -> None:
    asked_back = result_of(prediction("1961 film", "musical", "")).clarification
    assert asked_back is not None
    assert [o.label for o in asked_back.options] == ["1961 film", "musical", "answer 2"]
    for alike in prediction("", "", ""), prediction("1961 film", "", ""):  # nothing distinguishes the answers: a list
        assert (result_of(alike).outcome, result_of(alike).clarification) == ("answered", None)
    unwritten = replace(prediction("", ""), clarifications=())  # no questions were wanted
    assert result_of(unwritten).outcome == "ambiguous"
