"""Errors and doubts of an annotation: the rules of AmbigQA's interface, each with pair and field."""

from __future__ import annotations

from datetime import date

import pytest

from core.annotating.aliases import parse_aliases
from core.annotating.checks import doubts, errors
from core.types import Annotation, QAPair

PROMPT = "Who played Maria in West Side Story?"
FILM, STAGE = "Who played Maria in the 1961 film West Side Story?", "Who played Maria in West Side Story on Broadway?"
REFERENCE = date(2017, 12, 31)


def several(*pairs: tuple[str, str]) -> Annotation:
    return Annotation("multiple", tuple(QAPair(q, parse_aliases(a)) for q, a in pairs))


GOOD = several((FILM, "Natalie Wood | Natasha Gurdin"), (STAGE, "Carol Lawrence"))


def codes(annotation: Annotation, opened: int | None = 1) -> list[tuple[str, int | None, str]]:
    return [(f.code, f.pair, f.field) for f in errors(annotation, PROMPT, opened_count=opened)]


def doubt_codes(annotation: Annotation, reference: date | None = REFERENCE) -> list[tuple[str, int | None]]:
    return [(f.code, f.pair) for f in doubts(annotation, PROMPT, reference_date=reference)]


def test_a_good_annotation_has_no_finding() -> None:
    assert codes(GOOD) == []
    assert doubt_codes(GOOD) == []
    assert codes(Annotation("none")) == []
    assert codes(Annotation("single", (QAPair("", ("Natalie Wood",)),))) == []


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (several((FILM, "Natalie Wood")), [("few-pairs", None, "")]),
        (several((FILM, "Natalie Wood"), ("", "Carol Lawrence")), [("empty-question", 1, "question")]),
        (several((FILM, " | "), (STAGE, "Carol Lawrence")), [("empty-answer", 0, "answers")]),
        (several((FILM, "a"), (FILM.upper(), "b")), [("duplicate-question", 1, "question")]),
        (several((PROMPT, "a"), (STAGE, "b")), [("same-as-prompt", 0, "question")]),
        (several((f" {PROMPT[:-1]}  ?", "a"), (STAGE, "b")), [("same-as-prompt", 0, "question")]),
        (several((FILM[:-1], "a"), (STAGE, "b")), [("no-question-mark", 0, "question")]),
        (Annotation("single", (QAPair("", ()),)), [("empty-answer", 0, "answers")]),
        (Annotation("single"), [("empty-answer", 0, "answers")]),
    ],
)
def test_errors_name_pair_and_field(annotation: Annotation, expected: list[tuple[str, int | None, str]]) -> None:
    assert codes(annotation) == expected


def test_something_must_be_read() -> None:
    assert codes(Annotation("none"), opened=0) == [("nothing-read", None, "")]
    assert codes(Annotation("none"), opened=None) == []
    assert [f.code for f in errors(GOOD, PROMPT, opened_count=2, must_read=3)] == ["nothing-read"]


@pytest.mark.parametrize(
    ("question", "answer", "expected"),
    [
        (FILM, "the one that played her in the film", "long-alias"),
        (FILM, "Natalie Wood/Natasha Gurdin", "slash"),
        ("Who last played Maria in West Side Story?", "a", "time-dependent"),
        ("Who is playing Maria in West Side Story this year?", "a", "time-dependent"),
        ("Who will play Maria in West Side Story in 2019?", "a", "time-dependent"),
        ("Which actress played Maria in West Side Story?", "a", "question-word"),
        ("Who played Maria in another West Side Story?", "a", "other"),
        (FILM, "Carol Lawrence", "shared-answer"),
    ],
)
def test_doubts_name_their_pair(question: str, answer: str, expected: str) -> None:
    (doubt,) = doubts(several((STAGE, "Carol Lawrence"), (question, answer)), PROMPT, reference_date=REFERENCE)
    assert (doubt.code, doubt.pair, str(doubt)[:8]) == (expected, 1, "Pair 2: ")


def test_what_is_no_doubt() -> None:
    assert doubt_codes(several((FILM, "1/2"), (STAGE, "3 / 4 of it"))) == []
    for question in ("Whom did Maria play in 1961?", "Whose Maria was it in 1961?", "Name the Maria of 1961."):
        assert doubt_codes(several((question, "a"), (STAGE, "b"))) == []
    assert doubt_codes(several(("Who played Maria last?", "a"), (STAGE, "b")), reference=None) == []


def test_a_list_of_years_is_a_doubt() -> None:
    pairs = [(f"Who played Maria in West Side Story in {year}?", f"p{year}") for year in range(2013, 2018)]
    assert doubt_codes(several(*pairs)) == [("time-dependent", None)]
    assert doubt_codes(several(*pairs[-3:])) == []
