"""The validation step as pure functions: nothing is lost except by delete and correct."""

from __future__ import annotations

import pytest

from core.annotating import groups
from core.annotating.groups import Variant
from core.errors import InputError
from core.trace import from_json, to_json
from core.types import Annotation, QAPair

PROMPT = "Who played Maria in West Side Story?"


def annotation(*pairs: tuple[str, tuple[str, ...]]) -> Annotation:
    kind = {0: "none", 1: "single"}.get(len(pairs), "multiple")
    return Annotation(kind, tuple(QAPair(q, a, (f"p-{a[0]}",)) for q, a in pairs))  # type: ignore[arg-type]


ANNA = annotation(("Who in the film?", ("Natalie Wood",)), ("Who on stage?", ("Carol Lawrence", "Lawrence")))
BEN = annotation(("Who in the 1961 film?", ("natalie wood", "Natasha Gurdin")), ("Who in 2021?", ("Rachel Zegler",)))
ONE = annotation(("", ("Natalie Wood",)))
SHEET = groups.union(PROMPT, [("Anna", ANNA), ("Ben", BEN), ("Cem", annotation())])


def test_union_combines_what_shares_an_alias() -> None:
    assert [g.annotators for g in SHEET.groups] == [("Anna", "Ben"), ("Anna",), ("Ben",)]
    assert SHEET.groups[0].aliases == ("Natalie Wood", "natalie wood", "Natasha Gurdin")
    assert [v.text for v in SHEET.groups[0].questions] == ["Who in the film?", "Who in the 1961 film?"]
    assert SHEET.groups[0].passage_ids == ("p-Natalie Wood", "p-natalie wood")
    assert SHEET.none_by == ("Cem",)


def test_union_joins_two_groups_through_a_third_pair() -> None:
    bridge = annotation(("Q1?", ("Natalie Wood", "Rachel Zegler")), ("Q2?", ("other",)))
    sheet = groups.union(PROMPT, [("Anna", ANNA), ("Ben", BEN), ("Dora", bridge)])
    assert [g.annotators for g in sheet.groups] == [("Anna", "Ben", "Dora"), ("Anna",), ("Dora",)]


def test_separate_combine_delete_correct_add() -> None:
    apart = groups.separate(SHEET, 0)
    assert [g.aliases for g in apart.groups[:2]] == [("Natalie Wood",), ("natalie wood", "Natasha Gurdin")]
    with pytest.raises(InputError, match="only one part"):
        groups.separate(apart, 0)
    with pytest.raises(InputError, match="two answers"):
        groups.combine(SHEET, [1])
    with pytest.raises(InputError, match="no answer 9"):
        groups.combine(SHEET, [0, 8])
    with pytest.raises(InputError, match="to delete"):
        groups.delete(SHEET, [])
    assert len(groups.delete(SHEET, [0, 2]).groups) == 1
    mended = groups.correct(SHEET, 1, 0, ["Carol  Lawrence "])
    assert mended.groups[1].aliases == ("Carol Lawrence",)
    with pytest.raises(InputError, match="empty"):
        groups.correct(SHEET, 1, 0, [" "])
    with pytest.raises(InputError, match="part 2"):
        groups.correct(SHEET, 1, 1, ["x"])
    combined = groups.combine(SHEET, [1, 2])
    assert [g.aliases for g in combined.groups[1:]] == [("Carol Lawrence", "Lawrence", "Rachel Zegler")]
    assert groups.separate(combined, 1).groups[1:] == SHEET.groups[1:]
    more = groups.add(SHEET, ["Isabella Boylston"], " Who danced? ")
    assert (more.groups[-1].aliases, more.groups[-1].annotators, more.groups[-1].included) == (
        ("Isabella Boylston",),
        (),
        ("Who danced?",),
    )


def test_questions_are_excluded_edited_and_never_all() -> None:
    struck = groups.exclude(SHEET, 0, "Who in the film?")
    assert struck.groups[0].included == ("Who in the 1961 film?",)
    with pytest.raises(InputError, match="no question"):
        groups.exclude(struck, 0, "Who in the 1961 film?")
    with pytest.raises(InputError, match="has no question 'x'"):
        groups.exclude(SHEET, 0, "x")
    assert groups.include(struck, 0, "Who in the film?") == SHEET
    edited = groups.edit(SHEET, 0, "Who in the film?", "Who sang?")
    assert edited.groups[0].questions == (Variant("Who sang?"), Variant("Who in the 1961 film?"))
    with pytest.raises(InputError, match="exclude it"):
        groups.edit(SHEET, 0, "Who in the film?", " ")
    asked = groups.ask(struck, 0, "Who acted?")
    assert asked.groups[0].included == ("Who in the 1961 film?", "Who acted?")
    assert groups.ask(struck, 0, "Who in the film?").groups[0].questions[0].included


def test_to_annotation() -> None:
    final = groups.to_annotation(SHEET)
    assert final.type == "multiple"
    assert final.pairs[0] == QAPair("Who in the film?", SHEET.groups[0].aliases, SHEET.groups[0].passage_ids)
    assert groups.to_annotation(groups.delete(SHEET, [1, 2])).type == "single"
    assert groups.to_annotation(groups.delete(SHEET, [0, 1, 2])) == Annotation("none")
    single = groups.union(PROMPT, [("Anna", ONE), ("Ben", ANNA)])
    assert single.groups[0].included == ("Who in the film?",)


def test_drafts_round_trip() -> None:
    assert from_json(groups.Sheet, to_json(SHEET)) == SHEET
