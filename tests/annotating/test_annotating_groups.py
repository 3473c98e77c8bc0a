"""Validation as pure functions: when two annotations agree, as a table of cases; and the answers of several people on one sheet, of which
nothing is lost except by delete and correct."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from core.annotating import groups
from core.annotating.agreement import agree, merged
from core.annotating.groups import Variant
from core.errors import InputError
from core.trace import from_json, to_json
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
    ("a decimal point", single("1.5 million"), single("15 million"), False),
    ("signs after a letter", single("C++"), single("C"), False),
    ("a minus", single("-40"), single("\u221240"), True),
    ("a minus on one side", single("-40"), single("40"), False),
    ("an exponent", single("10\u00b2 km"), single("102 km"), False),
    ("thousands in groups", single("10,000"), single("10000"), True),
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


PROMPT = "Who played Maria in West Side Story?"


def annotation(*pairs: tuple[str, tuple[str, ...]]) -> Annotation:
    kind = {0: "none", 1: "single"}.get(len(pairs), "multiple")
    return Annotation(kind, tuple(QAPair(q, a, (f"p-{a[0]}",)) for q, a in pairs))


ANNA = annotation(("Who in the film?", ("Natalie Wood",)), ("Who on stage?", ("Carol Lawrence", "Lawrence")))
BEN = annotation(("Who in the 1961 film?", ("natalie wood", "Natasha Gurdin")), ("Who in 2021?", ("Rachel Zegler",)))
ONE = annotation(("", ("Natalie Wood",)))
SHEET = groups.union(PROMPT, [("Anna", ANNA), ("Ben", BEN), ("Cem", annotation())])
STRUCK = groups.exclude(SHEET, 0, "Who in the film?")


def test_union_combines_what_shares_an_alias() -> None:
    assert [g.annotators for g in SHEET.groups] == [("Anna", "Ben"), ("Anna",), ("Ben",)]
    first = SHEET.groups[0]
    assert first.aliases == ("Natalie Wood", "natalie wood", "Natasha Gurdin")
    assert first.included == ("Who in the film?", "Who in the 1961 film?")
    assert first.passage_ids == ("p-Natalie Wood", "p-natalie wood")
    assert SHEET.none_by == ("Cem",)


def test_union_joins_two_groups_through_a_third_pair() -> None:
    bridge = annotation(("Q1?", ("Natalie Wood", "Rachel Zegler")), ("Q2?", ("other",)))
    sheet = groups.union(PROMPT, [("Anna", ANNA), ("Ben", BEN), ("Dora", bridge)])
    assert [g.annotators for g in sheet.groups] == [("Anna", "Ben", "Dora"), ("Anna",), ("Dora",)]


def test_separate_combine_delete_correct_add() -> None:
    apart = groups.separate(SHEET, 0)
    assert [g.aliases for g in apart.groups[:2]] == [("Natalie Wood",), ("natalie wood", "Natasha Gurdin")]
    assert groups.delete(SHEET, [0, 2]).groups == SHEET.groups[1:2]
    assert groups.correct(SHEET, 1, 0, ["Carol  Lawrence "]).groups[1].aliases == ("Carol Lawrence",)
    combined = groups.combine(SHEET, [1, 2])
    assert [g.aliases for g in combined.groups[1:]] == [("Carol Lawrence", "Lawrence", "Rachel Zegler")]
    assert groups.separate(combined, 1).groups[1:] == SHEET.groups[1:]
    added = groups.add(SHEET, ["Isabella Boylston"], " Who danced? ").groups[-1]
    assert (added.aliases, added.annotators, added.included) == (("Isabella Boylston",), (), ("Who danced?",))


def test_questions_are_excluded_edited_and_never_all() -> None:
    assert STRUCK.groups[0].included == ("Who in the 1961 film?",)
    assert groups.include(STRUCK, 0, "Who in the film?") == SHEET
    edited = groups.edit(SHEET, 0, "Who in the film?", "Who sang?")
    assert edited.groups[0].questions == (Variant("Who sang?"), Variant("Who in the 1961 film?"))
    assert groups.ask(STRUCK, 0, "Who acted?").groups[0].included == ("Who in the 1961 film?", "Who acted?")
    assert groups.ask(STRUCK, 0, "Who in the film?") == SHEET


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda: groups.separate(SHEET, 1), "only one part"),
        (lambda: groups.combine(SHEET, [1]), "two answers"),
        (lambda: groups.combine(SHEET, [0, 8]), "no answer 9"),
        (lambda: groups.delete(SHEET, []), "to delete"),
        (lambda: groups.correct(SHEET, 1, 0, [" "]), "empty"),
        (lambda: groups.correct(SHEET, 1, 1, ["x"]), "part 2"),
        (lambda: groups.exclude(STRUCK, 0, "Who in the 1961 film?"), "would have no question"),
        (lambda: groups.exclude(SHEET, 0, "x"), "has no question 'x'"),
        (lambda: groups.edit(SHEET, 0, "Who in the film?", " "), "exclude it"),
    ],
)
def test_what_would_lose_or_miss_something_is_refused(action: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        action()


def test_a_sheet_becomes_an_annotation_of_what_is_included() -> None:
    final = groups.to_annotation(SHEET)
    assert final.type == "multiple"
    assert final.pairs[0] == QAPair("Who in the film?", SHEET.groups[0].aliases, SHEET.groups[0].passage_ids)
    assert groups.to_annotation(groups.delete(SHEET, [1, 2])).type == "single"
    assert groups.to_annotation(groups.delete(SHEET, [0, 1, 2])) == Annotation("none")
    single = groups.union(PROMPT, [("Anna", ONE), ("Ben", ANNA)])
    assert single.groups[0].included == ("Who in the film?",)


def test_drafts_round_trip() -> None:
    assert from_json(groups.Sheet, to_json(SHEET)) == SHEET
