"""The validation step as pure functions: nothing is lost except by delete and correct."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.annotating import groups
from core.annotating.groups import Sheet, Variant
from core.annotating.history import History
from core.errors import FormatError, InputError
from core.types import Annotation, QAPair

PROMPT = "Who played Maria in West Side Story?"


def annotation(*pairs: tuple[str, tuple[str, ...]]) -> Annotation:
    kind = {0: "none", 1: "single"}.get(len(pairs), "multiple")
    return Annotation(kind, tuple(QAPair(q, a, (f"p-{a[0]}",)) for q, a in pairs))  # type: ignore[arg-type]


ANNA = annotation(("Who in the film?", ("Natalie Wood",)), ("Who on stage?", ("Carol Lawrence", "Lawrence")))
BEN = annotation(("Who in the 1961 film?", ("natalie wood", "Natasha Gurdin")), ("Who in 2021?", ("Rachel Zegler",)))
ONE = annotation(("", ("Natalie Wood",)))
SHEET = groups.union(PROMPT, [("Anna", ANNA), ("Ben", BEN), ("Cem", annotation())])


def aliases(sheet: Sheet) -> Counter[tuple[str, str]]:
    return Counter((part.by, alias) for group in sheet.groups for part in group.parts for alias in part.aliases)


def test_union_combines_what_shares_an_alias() -> None:
    assert [g.by for g in SHEET.groups] == [("Anna", "Ben"), ("Anna",), ("Ben",)]
    assert SHEET.groups[0].aliases == ("Natalie Wood", "natalie wood", "Natasha Gurdin")
    assert [v.text for v in SHEET.groups[0].questions] == ["Who in the film?", "Who in the 1961 film?"]
    assert SHEET.groups[0].passage_ids == ("p-Natalie Wood", "p-natalie wood")
    assert SHEET.none_by == ("Cem",)


def test_union_joins_two_groups_through_a_third_pair() -> None:
    bridge = annotation(("Q1?", ("Natalie Wood", "Rachel Zegler")), ("Q2?", ("other",)))
    sheet = groups.union(PROMPT, [("Anna", ANNA), ("Ben", BEN), ("Dora", bridge)])
    assert [g.by for g in sheet.groups] == [("Anna", "Ben", "Dora"), ("Anna",), ("Dora",)]


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
    more = groups.add(SHEET, ["Isabella Boylston"], " Who danced? ")
    assert (more.groups[-1].aliases, more.groups[-1].by, more.groups[-1].included) == (
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


def test_a_broken_draft_is_said() -> None:
    with pytest.raises(FormatError, match="another layout"):
        groups.from_json({"groups": [[{}]]})


# ---------------------------------------------------------------- properties

WORD = st.sampled_from(["Ann", "ann", "Bob", "the Bob", "Cid", "Dee", "Eve"])
PAIR = st.tuples(st.sampled_from(["Q1?", "Q2?", "Q3?"]), st.lists(WORD, min_size=1, max_size=3).map(tuple))
SHEETS = st.lists(st.lists(PAIR, max_size=4), max_size=4).map(
    lambda people: groups.union(PROMPT, [(f"n{i}", annotation(*pairs)) for i, pairs in enumerate(people)])
)


@settings(max_examples=80, deadline=None)
@given(SHEETS, st.data())
def test_combine_and_separate_conserve(sheet: Sheet, data: st.DataObject) -> None:
    if len(sheet.groups) < 2:
        return
    places = data.draw(st.sets(st.integers(0, len(sheet.groups) - 1), min_size=2))
    combined = groups.combine(sheet, places)
    assert aliases(combined) == aliases(sheet)
    assert len(combined.groups) == len(sheet.groups) - len(places) + 1
    apart = groups.separate(combined, min(places))
    assert aliases(apart) == aliases(sheet)
    assert all(len(g.parts) == 1 for g in apart.groups[min(places) : min(places) + len(combined.groups[min(places)].parts)])


@settings(max_examples=80, deadline=None)
@given(SHEETS)
def test_drafts_round_trip(sheet: Sheet) -> None:
    assert groups.from_json(groups.to_json(sheet)) == sheet


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["combine", "separate", "delete", "correct", "exclude", "include", "edit", "ask", "add"]),
        st.integers(0, 5),
        st.integers(0, 5),
    ),
    max_size=8,
)


@settings(max_examples=150, deadline=None)
@given(SHEETS, STEPS)
def test_any_steps(sheet: Sheet, steps: list[tuple[str, int, int]]) -> None:
    """Aliases go only by delete and correct; an answer that had a question keeps one; undo goes back step by step."""
    history, values = History(sheet), [sheet]
    for name, at, other in steps:
        before = history.now
        try:
            after = apply(before, name, at, other)
        except InputError:
            assert history.now is before
            continue
        if name not in ("delete", "correct"):
            assert not aliases(before) - aliases(after)
        if name in ("exclude", "include", "edit", "ask"):
            assert all(g.included for g, old in zip(after.groups, before.groups) if old.included)
        if history.change(after):
            values.append(after)
    while len(values) > 1:
        assert history.now == values.pop()
        assert history.undo()
    assert history.now == values[0]
    assert not history.undo()


def apply(sheet: Sheet, name: str, at: int, other: int) -> Sheet:
    texts = [v.text for v in sheet.groups[at].questions] if at < len(sheet.groups) else []
    text = texts[other % len(texts)] if texts else "none"
    match name:
        case "combine":
            return groups.combine(sheet, {at, other})
        case "separate":
            return groups.separate(sheet, at)
        case "delete":
            return groups.delete(sheet, {at})
        case "correct":
            return groups.correct(sheet, at, 0, [f"new {other}"])
        case "exclude":
            return groups.exclude(sheet, at, text)
        case "include":
            return groups.include(sheet, at, text)
        case "edit":
            return groups.edit(sheet, at, text, f"Q{other}?")
        case "ask":
            return groups.ask(sheet, at, f"Q{other}?")
        case _:
            return groups.add(sheet, [f"added {other}"])
