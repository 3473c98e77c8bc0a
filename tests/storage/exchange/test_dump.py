"""A dump is a backup: it holds every table, and comes back equal into an empty database and into no other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from annotation_samples import fill_workbench
from storage_helpers import put_lines, read_lines
from storage_samples import fill, prediction

from core.errors import InputError
from storage.exchange.dump import EXCLUDED_TABLES, READERS, SECRET_COLUMNS, TABLES
from storage.store import Store


def dumped(store: Store, path: Path) -> list[dict[str, Any]]:
    """The dump of a database with rows in every table that a dump holds."""
    fill(store)
    fill_workbench(store)
    counts = store.exports.export("jsonl", path).counts
    assert all(counts[kind] for kind in TABLES), counts
    return read_lines(path)


def test_a_database_goes_out_comes_in_and_goes_out_equal(store: Store, other: Store, tmp_path: Path) -> None:
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    rows = dumped(store, first)
    for kind, table in TABLES.items():
        row = next(line["row"] for line in rows if line["kind"] == kind)
        assert set(row) == set(table.columns.keys()) - set(SECRET_COLUMNS.get(kind, ())), kind
        assert set(READERS.get(kind, ())) <= set(row), kind
    report = other.imports.import_file(first)
    assert report.stored == store.exports.export("jsonl", second).counts
    assert not report.known
    with pytest.raises(InputError, match="empty database only"):
        other.imports.import_file(first)
    other.exports.export("jsonl", second)
    assert second.read_bytes() == first.read_bytes()
    counts = [{k: n for k, n in s.maintenance.counts().items() if k not in EXCLUDED_TABLES} for s in (store, other)]
    assert counts[0] == counts[1]
    assert other.maintenance.health(full=True).ok
    assert other.predictions.save_prediction(prediction("A new one?"))  # ids go on after those of the file


WRONG: dict[str, tuple[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "a number of slots that only the foreign key knows": ("task", lambda r: r | {"slots": 99}),
    "a row that is not there": ("project_item", lambda r: r | {"question_id": 4711}),
    "an id that is taken": ("predicted_answer", lambda r: r | {"id": r["id"] + 1}),
    "a submission of another layout": ("submission", lambda r: r | {"body": {"annotation": {}}}),
    "a trace of another layout": ("prediction", lambda r: r | {"trace": {"events": 1}}),
    "another choice": ("project", lambda r: r | {"ordering": "by mood"}),
    "texts that are none": ("project", lambda r: r | {"systems": [1]}),
    "an object for a list": ("qa_pair", lambda r: r | {"answers": {}}),
    "examples of another layout": ("guideline", lambda r: r | {"examples": [1]}),
    "no time": ("interaction", lambda r: r | {"created": "yesterday"}),
    "no time zone": ("interaction", lambda r: r | {"created": "2026-01-31T12:00:00"}),
    "no truth value": ("draft", lambda r: r | {"open": 1}),
    "no whole number": ("task", lambda r: r | {"version": 1.5}),
    "no number": ("task", lambda r: r | {"seconds": "1"}),
    "no text": ("question", lambda r: r | {"text": 1}),
    "an empty text": ("question", lambda r: r | {"text": " "}),
    "a name with a control character": ("annotator", lambda r: r | {"name": "Ada\n"}),
    "a judgment without its label": ("judgment", lambda r: r | {"verdict": None, "state": "submitted"}),
    "nothing where something has to be": ("judgment", lambda r: r | {"note": None}),
    "a column that the table has not": ("annotator", lambda r: r | {"email": "a@b"}),
    "a password": ("account", lambda r: r | {"password": "secret"}),
    "no row": ("annotator", lambda r: [r]),
}


def test_a_wrong_row_is_named_and_nothing_is_stored(store: Store, other: Store, tmp_path: Path) -> None:
    rows = dumped(store, tmp_path / "a.jsonl")
    for name, (kind, change) in WRONG.items():
        place = next(i for i, line in enumerate(rows) if line["kind"] == kind)
        bad = [*rows[:place], {"kind": kind, "row": change(rows[place]["row"])}, *rows[place + 1 :]]
        with pytest.raises(InputError, match=rf"line {place + 1 + (name == 'an id that is taken')}: "):
            other.imports.import_file(put_lines(tmp_path / "b.jsonl", *bad))
        assert not any(other.maintenance.counts().values()), name
