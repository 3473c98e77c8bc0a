"""When two annotations agree, as a table of cases; and that merging agreeing ones loses no alias."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.annotating.agreement import agree, merged
from core.types import Annotation, QAPair


def several(*pairs: tuple[str, str]) -> Annotation:
    """(question, aliases with `|` between them) pairs."""
    return Annotation("multiple", tuple(QAPair(q, tuple(a.split("|"))) for q, a in pairs))


def single(aliases: str) -> Annotation:
    return Annotation("single", (QAPair("", tuple(aliases.split("|"))),))


NONE = Annotation("none")
FILM = several(("Who in the 1961 film?", "Natalie Wood|Natasha Gurdin"), ("Who in the 2021 film?", "Rachel Zegler"))
FILM_SPELLED_OTHERWISE = several(("who in the 1961 film", "Natalie Wood"), ("Who in the 2021 film", "rachel zegler"))
ANOTHER_QUESTION = several(("Who in the film?", "Natalie Wood"), ("Who in the 2021 film?", "Rachel Zegler"))
XY = several(("Q1?", "x"), ("Q2?", "y"))

CASES = [
    ("nobody found an answer", NONE, NONE, True),
    ("of another kind", NONE, single("Wood"), False),
    ("one answer, equal after normalisation", single("The Beatles"), single("beatles!"), True),
    ("one answer, one common alias", single("Natalie Wood"), single("Natasha Gurdin|natalie wood"), True),
    ("one answer, no common alias", single("Natalie Wood"), single("Natasha Gurdin"), False),
    ("an alias that normalises to nothing", single("The"), single("the"), True),
    ("the same pairs in another order", FILM, Annotation("multiple", FILM.pairs[::-1]), True),
    ("one answer more", FILM, replace(FILM, pairs=(*FILM.pairs, QAPair("Who on stage?", ("Carol Lawrence",)))), False),
    ("questions equal after normalisation", FILM, FILM_SPELLED_OTHERWISE, True),
    ("another question for the same answer", FILM, ANOTHER_QUESTION, False),
    ("questions of the answers exchanged", XY, several(("Q2?", "x"), ("Q1?", "y")), False),
    ("two answers here are aliases of one there", XY, several(("Q1?", "x|y"), ("Q2?", "z")), False),
    ("an alias is a third answer's too", several(("Q1?", "x"), ("Q2?", "x|y")), XY, False),
    (
        "a common alias beside a third answer's",
        several(("Q1?", "w|x"), ("Q2?", "x|y")),
        several(("Q1?", "w"), ("Q2?", "y")),
        True,
    ),
]


@pytest.mark.parametrize(("one", "two", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_annotations_agree_or_not_either_way_round(one: Annotation, two: Annotation, expected: bool) -> None:
    assert agree([one, two]) is expected
    assert agree([two, one]) is expected


def test_one_annotation_alone_agrees_with_nobody() -> None:
    assert not agree([])
    assert not agree([FILM])


def test_each_of_several_must_agree_with_every_other_one() -> None:
    """The middle one agrees with both, the outer ones share no alias."""
    first, second, third = single("Wood"), single("Wood|Gurdin"), single("Gurdin")
    assert (agree([first, second]), agree([second, third]), agree([first, second, third])) == (True, True, False)
    assert agree([first, second, single("wood|Natalie Wood")])


def test_merged_keeps_the_aliases_and_passages_of_all() -> None:
    one = Annotation("single", (QAPair("", ("Natalie Wood",), ("p1",)),))
    two = Annotation("single", (QAPair("", ("natalie wood", "Natasha Gurdin"), ("p2", "p1")),))
    assert merged([one, two]) == Annotation(
        "single", (QAPair("", ("Natalie Wood", "natalie wood", "Natasha Gurdin"), ("p1", "p2")),)
    )
    with pytest.raises(ValueError, match="do not agree"):
        merged([one, NONE])
