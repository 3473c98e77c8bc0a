"""Agreement: known values, the same as other people's libraries, symmetric, and undefined rather than a wrong number."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from core.metrics.agreement import tables
from core.metrics.agreement.answer_sets import masi_distance, matched, question_likeness, set_f1, set_of
from core.metrics.agreement.chance import alpha_masi, cohen_kappa, fleiss_kappa, mean_figure
from core.metrics.agreement.tables import (
    Effort,
    Opinion,
    PersonLabel,
    day_rows,
    figures,
    guideline_rows,
    item_rows,
    label_figure,
    label_pairs,
    pair_rows,
    period_rows,
)
from core.types import Annotation, QAPair

EARLY = datetime(2026, 3, 2, 12, tzinfo=UTC)  # a Monday
LABELS = "abcd"
label_sets = st.frozensets(st.sampled_from(LABELS), max_size=4)
units = st.lists(st.lists(label_sets, min_size=2, max_size=4), min_size=1, max_size=6)
answers = st.lists(st.lists(st.sampled_from("uvwxyz"), min_size=1, max_size=3), max_size=4)


def sets(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    # the letter itself: "a" would be dropped as an article
    return [[set_of([[f"answer {label}"] for label in labels]) for labels in row] for row in rows]


def nltk_masi(a: frozenset[str], b: frozenset[str]) -> float:
    from nltk.metrics.distance import masi_distance as theirs

    return float(theirs(a, b)) if a or b else 0.0  # nltk divides by zero there


@given(units)
def test_alpha_is_nltks(rows: list[list[frozenset[str]]]) -> None:
    from nltk.metrics.agreement import AnnotationTask

    assume(len({s for row in rows for s in row}) > 1)
    data = [(f"person {j}", f"item {i}", s) for i, row in enumerate(rows) for j, s in enumerate(row)]
    theirs = AnnotationTask(data, distance=nltk_masi).alpha()
    assert alpha_masi(sets(rows), samples=2).value == pytest.approx(theirs)


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("xyz")), min_size=1, max_size=20))
def test_cohens_kappa_is_scikit_learns(pairs: list[tuple[str, str]]) -> None:
    from sklearn.metrics import cohen_kappa_score

    first, second = zip(*pairs, strict=True)
    ours = cohen_kappa(pairs, samples=2)
    if len(set(first + second)) == 1:
        assert ours.value is None
        assert "chance" in ours.why
    else:
        assert ours.value == pytest.approx(float(cohen_kappa_score(first, second)))


@given(
    st.integers(2, 4).flatmap(
        lambda k: st.lists(st.lists(st.sampled_from("xyz"), min_size=k, max_size=k), min_size=1, max_size=8)
    )
)
def test_fleiss_kappa_is_nltks_multi_pi(rows: list[list[str]]) -> None:
    from nltk.metrics.agreement import AnnotationTask

    assume(len({label for row in rows for label in row}) > 1)
    data = [(f"person {j}", f"item {i}", label) for i, row in enumerate(rows) for j, label in enumerate(row)]
    assert fleiss_kappa(rows, samples=2).value == pytest.approx(float(AnnotationTask(data).pi()))


def test_undefined_is_none_with_its_reason() -> None:
    alone = alpha_masi(sets([[frozenset("x")], []]))
    assert (alone.value, alone.interval, alone.n) == (None, None, 0)
    assert "two annotations" in alone.why
    nobody = alpha_masi(sets([[frozenset(), frozenset()]] * 3))  # "no answer" throughout: nltk divides by zero
    assert (nobody.value, nobody.n) == (None, 3)
    assert "the same label" in nobody.why
    assert (cohen_kappa([]).value, fleiss_kappa([["a"]]).value) == (None, None)
    assert fleiss_kappa([["a", "a"], ["a", "a"]]).why
    assert mean_figure("x", [None], "nothing").why == "nothing"


def test_intervals_hold_the_value_and_are_repeatable() -> None:
    rows = sets([[frozenset("x"), frozenset("xy")], [frozenset("z"), frozenset("z")], [frozenset("x"), frozenset("y")]] * 8)
    alpha = alpha_masi(rows, samples=300)
    assert alpha.interval[0] < alpha.value < alpha.interval[1] <= 1
    assert alpha == alpha_masi(rows, samples=300)
    assert alpha_masi(rows[:1], samples=300).interval is None  # one item says nothing of the spread


def test_answers_that_share_an_alias_are_one_answer() -> None:
    mine, theirs = set_of([["New York City", "NYC"], ["Boston"]]), set_of([["the nyc"], ["boston."]])
    assert (set_f1(mine, theirs), masi_distance(mine, theirs)) == (1.0, 0.0)
    # a greedy matching would find only one
    assert len(matched(set_of([["x"], ["w", "x"]]), set_of([["x"], ["w"]]))) == 2
    assert set_of([["The"]]) != set_of([["?!"]])  # normalisation leaves nothing of either
    for one, other in ("O\u2019Rourke", "O'Rourke"), ("1914\u20131918", "1914-1918"), ("Jose\u0301", "Jos\u00e9"):
        assert set_f1(set_of([[one]]), set_of([[other]])) == 1.0


def test_questions_are_compared_where_answers_meet() -> None:
    mine = [QAPair("Who won in 2010?|Who was the winner of 2010?", ("Ann",)), QAPair("Who won in 2011?", ("Bob",))]
    theirs = [QAPair("who was winner of 2010", ("ann",)), QAPair("Who won in 1999?", ("Cid",))]
    assert question_likeness("Who won?", mine, theirs) == question_likeness("Who won?", theirs, mine) == 1.0
    assert question_likeness("Who won?", mine, [QAPair("Who?", ("Dan",))]) is None
    assert question_likeness("Who won?", mine, [QAPair(" ", ("Ann",))]) is None


def single(answer: str) -> Annotation:
    return Annotation("single", (QAPair("Q?", (answer,)),))


def several(*names: str) -> Annotation:
    return Annotation("multiple", tuple(QAPair(f"Q {a}?", (a,)) for a in names))


def opinion(item: str, person: str, annotation: Annotation, day: int = 0) -> Opinion:
    return Opinion(item, person, "Q?", annotation, EARLY + timedelta(days=day))


OPINIONS = [
    opinion("1", "Ada", several("x", "y")),
    opinion("1", "Bob", several("x", "z"), 1),
    opinion("2", "Ada", single("x")),
    opinion("2", "Bob", single("x"), 8),
    opinion("3", "Ada", Annotation("none")),
    opinion("3", "Bob", single("k"), 8),
    opinion("3", "Cid", Annotation("none"), 8),
    opinion("4", "Cid", single("alone")),
]


def test_items_are_listed_from_the_least_agreed() -> None:
    third, first, second = item_rows(OPINIONS)
    assert (third.item, third.people, third.types) == ("3", ("Ada", "Bob", "Cid"), ("none", "single", "none"))
    assert third.f1 == pytest.approx(1 / 3)
    assert (first.item, first.f1, first.questions) == ("1", 0.5, 1.0)
    assert (second.item, second.questions) == ("2", None)  # single answers have no question of their own


def test_figures_are_over_common_items() -> None:
    alpha, f1, types, likeness = figures(OPINIONS, samples=50)
    assert (alpha.n, f1.n, types.n, types.name) == (3, 3, 3, "kappa of types")
    assert (f1.value, likeness.value, likeness.n) == (pytest.approx((1 / 3 + 0.5 + 1) / 3), 1.0, 1)
    nothing = figures([OPINIONS[0]], samples=5)
    assert [f.value for f in nothing] == [None] * 4
    assert all(f.why for f in nothing)


def test_figures_of_pairs_and_weeks() -> None:
    rows = pair_rows(OPINIONS, samples=5)
    assert [(r.first, r.second, r.n) for r in rows] == [("Ada", "Bob", 3), ("Ada", "Cid", 1), ("Bob", "Cid", 1)]
    assert rows[1].figures[0].value is None  # both said "none", nothing else: chance is certain
    assert rows[1].figures[1].value == 1.0
    assert [(p.start, p.n) for p in period_rows(OPINIONS, samples=5)] == [("2026-03-02", 1), ("2026-03-09", 2)]
    assert pair_rows([], samples=5) == period_rows([], samples=5) == []


def test_a_later_opinion_of_one_person_replaces_the_earlier() -> None:
    changed = [*OPINIONS[:2], opinion("1", "Bob", several("x", "y"), 5)]
    assert figures(changed, samples=5)[1].value == 1.0
    assert figures(changed[::-1], samples=5)[1].value == 1.0


def test_types_that_drift_from_ambignq_are_marked() -> None:
    (row,) = [r for r in tables.type_rows({"multiple": 80, "single": 20}) if r.type == "multiple"]
    assert (row.count, row.share, row.expected, row.drifted) == (80, 0.8, 0.35, True)
    usual = {r.type: r for r in tables.type_rows({"multiple": 35, "single": 60, "none": 5})}
    assert not usual["single"].drifted
    assert tables.type_rows({}) == []
    assert tables.wilson(0, 0) == (0.0, 1.0)
    assert tables.wilson(10, 10)[1] == pytest.approx(1.0)


def test_times_are_by_person() -> None:
    ada, bob = tables.time_rows([("Ada", 60), ("Bob", 100), ("Ada", 120), ("Ada", 3420)])
    assert (ada.person, ada.n, ada.median_seconds, ada.hours) == ("Ada", 3, 120.0, 1.0)
    assert bob.median_seconds == 100


def test_of_labels_the_latest_counts() -> None:
    labels = {"a": "cwcc", "b": "cwwc"}
    marks = [PersonLabel(str(i), person, label, EARLY) for person in labels for i, label in enumerate(labels[person])]
    figure = label_figure(marks, samples=20)
    assert figure.value == pytest.approx(0.5)
    (row,) = label_pairs(marks, samples=20)
    assert (row.n, row.figures[0].value, row.figures[1].value) == (4, figure.value, 0.75)
    changed = [*marks, PersonLabel("2", "b", "c", EARLY + timedelta(hours=1))]
    assert label_figure(changed, samples=20).value == 1.0
    assert label_figure([], samples=20).why
    three = [*marks, PersonLabel("0", "c", "c", EARLY)]
    assert label_figure(three, samples=20).n == 4


def test_a_judge_against_people() -> None:
    decisions = [(True, True)] * 6 + [(True, False)] * 2 + [(False, True)] + [(False, False)] * 3
    row = tables.judge_row("round trip", decisions, samples=50)
    assert (row.table, row.precision, row.recall) == ((6, 2, 1, 3), 6 / 8, 6 / 7)
    assert (row.accuracy.value, row.kappa.value) == pytest.approx((9 / 12, 0.4705882))
    empty = tables.judge_row("round trip", [])
    assert (empty.accuracy.value, empty.kappa.value, empty.precision, empty.recall) == (None, None, None, None)
    assert "no answer was judged" in empty.kappa.why


def test_a_system_against_people() -> None:
    x, y = set_of([["x"]]), set_of([["y"]])
    labels = {"1": ["correct", "wrong"], "2": ["correct"], "3": []}
    row = tables.system_row("fid", labels, [(x, [x, x]), (y, [x]), (x, [])], samples=20)
    assert dict(row.labels) == {"correct": 2, "wrong": 1}
    assert [(figure.value, figure.n) for figure in (row.correct, row.f1)] == [(0.75, 2), (0.5, 2)]
    assert row.alpha.n == 2
    nothing = tables.system_row("fid", {}, [])
    assert (nothing.correct.value, nothing.f1.value, nothing.alpha.value) == (None, None, None)
    assert tables.majority([]) is None


def test_days_and_guidelines() -> None:
    monday, tuesday = datetime(2026, 1, 5, 23, 59, tzinfo=UTC), datetime(2026, 1, 6, 0, 1, tzinfo=UTC)
    efforts = [
        Effort("Ann", 60.0, True, monday),
        Effort("Ann", 30.0, False, monday),
        Effort("Ann", 90.0, True, tuesday),
        Effort("Bob", 30.0, True, tuesday),
    ]

    opinions = [
        Opinion("q", "Ann", "Q?", single("Rome"), monday),
        Opinion("q", "Bob", "Q?", several("Rome", "Oslo"), tuesday),
        Opinion("alone", "Ann", "Q?", single("Rome"), tuesday),
    ]
    rows = day_rows(efforts, opinions)
    assert [(r.day, r.person, r.items, r.minutes) for r in rows] == [
        ("2026-01-05", "Ann", 1, 1.5),
        ("2026-01-06", "Ann", 1, 1.5),
        ("2026-01-06", "Bob", 1, 0.5),
    ]
    assert [r.agreement for r in rows] == [pytest.approx(2 / 3), None, pytest.approx(2 / 3)]
    first, second = guideline_rows([(1, opinions[0]), (1, opinions[1]), (2, opinions[2])], samples=5)
    assert (first.version, first.n, first.figures[1].value) == (1, 1, pytest.approx(2 / 3))
    assert (second.version, second.n, second.figures[1].value) == (2, 0, None)
