"""Stored evaluations: rows, values, means by the database, pairs, filters; stored once, exported and imported whole."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from storage_samples import evaluation_report, evaluation_row, raw

from core.errors import InputError, NotFoundError
from storage.records.results import EvaluationFilter
from storage.results.evaluation_rows import BUCKETS
from storage.store import Store

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
VALUES = (1.0, 0.5, None, 0.0, 0.25)


def save(
    store: Store,
    values: tuple[float | None, ...] = VALUES,
    *,
    system: str = "ambigprompt",
    label: str = "",
    **provenance: object,
) -> str:
    report = evaluation_report(values, **provenance)
    return store.evaluations.save_evaluation(
        system=system,
        corpus="starter",
        questions="dev.json",
        metrics=report["scores"],
        report=report,
        label=label,
        finished=MOMENT,
        traces=[("q0", {"answers": ["Rome"], "events": []})],
    )


def test_a_run_comes_back_whole_and_its_trace_apart(store: Store) -> None:
    save(store, label=" my run ")
    (run,) = store.evaluations.evaluations()
    rows = [store.evaluations.evaluation_row(run.id, f"q{number}").body for number in range(5)]
    assert {**store.evaluations.evaluation_report(run.id), "rows": rows} == evaluation_report(VALUES)
    assert (run.label, run.n, run.failed, run.seed, run.commit, run.finished) == ("my run", 5, 1, 7, "abc123", MOMENT)
    assert (run.parameters, run.peak_memory_mb, run.seconds_median, run.seconds_p95) == (3_000_000_000, 512.5, 0.2, 0.4)
    assert (run.checkpoint, run.checkpoint_digest, run.tags) == ("default", "d0", {"training questions": 100})
    score = run.scores["F1 answer"]
    assert (score["all"].n, score["all"].mean, score["all"].low, score["all"].high) == (4, 0.4375, 0.1, 0.9)
    assert (score["multi"].n, score["multi"].mean, score["multi"].low) == (2, 0.625, None)
    assert (run.mean("F1 answer", "multi"), run.mean("recall")) == (0.625, None)
    assert store.evaluations.find_evaluation_trace(run.id, "q0") == {"answers": ["Rome"], "events": []}
    assert store.evaluations.find_evaluation_trace(run.id, "q1") is None


def test_an_equal_run_is_stored_once(store: Store) -> None:
    first = save(store)
    assert save(store) == first
    assert save(store, seed=8) != first
    assert store.evaluations.count_evaluations() == 2


def test_filters_choose_the_runs(store: Store) -> None:
    one = save(store, label="Low resource 10%")
    two = save(store, (1.0, 1.0), system="fid", seed=3, commit="ffee")
    three = save(store, (0.0,), system="one-pass")

    def ids(**fields: object) -> set[str]:
        filters = EvaluationFilter(**fields)
        matching = {e.id for e in store.evaluations.evaluations(filters=filters)}
        assert store.evaluations.count_evaluations(filters) == len(matching)
        return matching

    assert ids() == {one, two, three}
    assert ids(text="low RESOURCE 10%") == {one}
    assert ids(text="_") == set()  # SQL's wildcards are taken as they stand
    assert ids(systems=("fid", "one-pass")) == {two, three}
    assert ids(corpora=("other",)) == set()
    assert ids(questions=("dev.json",)) == {one, two, three}
    assert ids(text="ffe") == {two}
    assert store.evaluations.evaluation_choices() == {
        "system": ["ambigprompt", "fid", "one-pass"],
        "corpus": ["starter"],
        "questions": ["dev.json"],
    }


def test_rows_by_page_order_bucket_and_failure(store: Store) -> None:
    saved = save(store)

    def ids(**options: Any) -> list[str]:
        return [row.question_id for row in store.evaluations.evaluation_rows(saved, **options)]

    rows = store.evaluations.evaluation_rows(saved)
    assert (rows[0].answers, rows[0].references, rows[0].ambiguous, rows[0].body) == (1, 2, True, {})
    assert (rows[2].error, rows[2].answers, rows[2].errors["missed"]) == ("no passage matches", None, None)
    assert ids() == ["q0", "q1", "q2", "q3", "q4"]
    assert ids(limit=2, offset=1) == ["q1", "q2"]
    assert ids(order="f1") == ["q3", "q4", "q1", "q0", "q2"]
    assert (ids(order="slowest")[0], ids(order="errors")[-1]) == ("q4", "q2")
    assert ids(failed=True) == ["q2"]
    assert store.evaluations.count_evaluation_rows(saved, bucket="missed") == 4
    assert store.evaluations.count_evaluation_rows(saved, bucket="spurious") == 0
    assert store.evaluations.evaluation_row(saved, "q3").body == evaluation_row(3, 0.0)
    for options in ({"bucket": "nonsense"}, {"order": "nonsense"}, {"limit": 0}):
        with pytest.raises(InputError):
            ids(**options)
    with pytest.raises(NotFoundError):
        store.evaluations.evaluation_row(saved, "q99")
    with pytest.raises(NotFoundError):
        store.evaluations.evaluation_rows("nope")


def test_error_counts_are_sums(store: Store) -> None:
    saved, bare = save(store), save(store, (None,))
    counts = store.evaluations.error_counts([saved, bare])
    assert counts[saved]["missed"] == 4
    assert (counts[saved].keys(), counts[bare]) == (set(BUCKETS), {})
    assert store.evaluations.error_counts([saved], multi=True)[saved]["missed"] == 2


def test_means_are_by_group(store: Store) -> None:
    saved = save(store)
    groups = {g.group: (g.n, g.mean) for g in store.evaluations.group_means([saved], "F1 answer", "source")}
    assert groups == {"asqa": (2, 0.375), "quotesum": (2, 0.5)}
    assert store.evaluations.group_means([saved], "F1 answer", "ambiguity") == []


def test_pairs_are_the_common_questions_the_largest_difference_first(store: Store) -> None:
    a = save(store, (1.0, 0.5, None, 0.0, 0.25))
    b = save(store, (0.75, 0.5, 1.0, 1.0), system="fid")
    rows = store.evaluations.paired_rows(a, b, "F1 answer")
    assert [(r.id, r.difference) for r in rows] == [("q3", -1.0), ("q0", 0.25), ("q1", 0.0)]
    assert store.evaluations.paired_values(a, b, "F1 answer") == ([1.0, 0.5, 0.0], [0.75, 0.5, 1.0])
    assert store.evaluations.paired_values(a, b, "F1 answer", multi=True) == ([1.0], [0.75])
    assert store.evaluations.paired_values(a, b, "nonsense") == ([], [])
    assert store.evaluations.paired_rows(a, b, "F1 answer", 1, 1)[0].id == "q0"


@pytest.mark.parametrize(("field", "value"), [("question", "Another one?"), ("references", [[["Another answer"]]])])
def test_a_question_that_changed_is_not_paired(store: Store, field: str, value: Any) -> None:
    a = save(store, (1.0,))
    report = evaluation_report((1.0,))
    report["rows"][0][field] = value
    b = store.evaluations.save_evaluation(system="fid", corpus="c", questions="q", metrics={}, report=report)
    assert store.evaluations.paired_rows(a, b, "F1 answer") == []


def test_a_run_is_renamed_and_deleted(store: Store, path: Path) -> None:
    saved, other = save(store), save(store, (1.0,))
    store.evaluations.label_evaluation(saved, "  the best ")
    assert [e.label for e in store.evaluations.evaluations() if e.id == saved] == ["the best"]
    with pytest.raises(InputError, match="121"):
        store.evaluations.label_evaluation(saved, "x" * 121)
    store.evaluations.delete_evaluation(saved)
    with pytest.raises(NotFoundError):
        store.evaluations.delete_evaluation(saved)
    for table in ("evaluation_row", "evaluation_value", "evaluation_score", "evaluation_trace"):
        (left,) = {key for (key,) in raw(path, f"SELECT evaluation_id FROM {table}")}
        assert left
    assert [e.id for e in store.evaluations.evaluations()] == [other]


def test_rows_with_equal_ids_are_refused_and_nothing_is_stored(store: Store) -> None:
    report = evaluation_report((1.0, 1.0))
    report["rows"][1]["id"] = "q0"
    with pytest.raises(InputError, match="'q0'"):
        store.evaluations.save_evaluation(system="s", corpus="c", questions="q", metrics={}, report=report)
    assert store.maintenance.counts()["evaluation"] == 0
