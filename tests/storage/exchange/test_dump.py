"""A dump holds every table: each kept database goes out, comes into an empty one, and goes out equal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from annotation_samples import fill_workbench
from sqlalchemy import select
from storage_samples import annotations, ask, fill

from core.errors import InputError
from storage.exchange.kinds import KINDS, LEFT_OUT, TARGETS, WITHIN
from storage.schema.base import Base
from storage.store import Store

MOMENT = "2026-01-31T12:00:00+00:00"


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def put(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def kept(store: Store) -> dict[str, int]:
    return {name: n for name, n in store.maintenance.counts().items() if name not in LEFT_OUT}


def test_a_database_goes_out_comes_in_and_goes_out_equal(store: Store, tmp_path: Path) -> None:
    fill(store)
    fill_workbench(store)
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    with Store(f"sqlite:///{tmp_path / 'other' / 'x.db'}") as other:
        counts = {kind: n for kind, n in store.exports.export("jsonl", first).counts.items() if n}
        assert counts["prediction"]
        assert other.imports.import_file(first).stored == counts
        other.exports.export("jsonl", second)
        assert lines(second) == lines(first)
        assert kept(other) == kept(store)
        assert other.imports.import_file(first).known == counts
        assert store.imports.import_file(second).known == counts
        assert other.maintenance.health(full=True).ok


def test_every_table_goes_out_or_is_left_out_on_purpose() -> None:
    own = [spec.table.__tablename__ for spec in KINDS.values()]
    assert sorted([*own, *WITHIN, *LEFT_OUT]) == sorted(Base.metadata.tables)
    for kind, spec in KINDS.items():
        known = set(spec.table.__table__.columns.keys())
        assert {*spec.unique, *spec.refs, *spec.never, *spec.made, *spec.free, *spec.fields, *spec.equal} <= known, kind
        shown = [spec.called(name) for name in spec.columns()]
        shown += [c.key for target in spec.refs.values() for c in TARGETS[target].selected_columns if c.key != "id"]
        shown += [spec.nested.field] if spec.nested else []
        assert len(set(shown)) == len(shown), kind  # no field hides another
        assert "kind" not in shown, kind
        assert set(spec.readers) <= set(shown), kind


def test_every_column_is_written(store: Store, tmp_path: Path) -> None:
    fill(store)
    fill_workbench(store)
    store.exports.export("jsonl", tmp_path / "a.jsonl")
    fields = {row["kind"]: set(row) for row in lines(tmp_path / "a.jsonl")[1:]}
    for kind, spec in KINDS.items():
        assert {spec.called(name) for name in spec.columns()} <= fields[kind], kind


def test_a_question_that_bears_another_id_here_is_the_same_question(store: Store, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"kind": "ambiscope", "layout": 3},
        {"kind": "question", "id": "there", "source_id": "1", "text": "Who?", "created": MOMENT},
        {"kind": "annotator", "name": "Ada", "created": MOMENT},
        {
            "kind": "annotation",
            "question": "there",
            "annotator": "Ada",
            "stage": "generation",
            "state": "submitted",
            "annotation": {"type": "none", "pairs": []},
            "version": 1,
            "created": MOMENT,
            "updated": MOMENT,
        },
    ]
    here = ask(store, "Who?", "1")
    report = store.imports.import_file(put(tmp_path / "a.jsonl", rows))
    assert (report.known, report.stored) == ({"question": 1}, {"annotator": 1, "annotation": 1})
    assert [who for who, _, _, _ in annotations(store, here)] == ["Ada"]


def test_an_id_that_belongs_to_another_row_is_refused_in_words(store: Store, tmp_path: Path) -> None:
    question = {"kind": "question", "id": "1", "source_id": "1", "text": "Who?", "created": MOMENT}
    head = {"kind": "ambiscope", "layout": 3}
    store.imports.import_file(put(tmp_path / "a.jsonl", [head, question]))
    with pytest.raises(InputError, match=r"line 2: the id '1' belongs to another stored question"):
        store.imports.import_file(put(tmp_path / "b.jsonl", [head, {**question, "text": "When?"}]))


def test_pairs_that_differ_are_a_contradiction(store: Store, tmp_path: Path) -> None:
    """A shorter answer set is another one, and a longer one is not merged into what is stored."""
    fill(store)
    store.exports.export("jsonl", tmp_path / "a.jsonl")
    rows = lines(tmp_path / "a.jsonl")
    at = next(i for i, row in enumerate(rows) if row["kind"] == "annotation" and row["annotation"]["type"] == "multiple")
    pair = rows[at]["annotation"]["pairs"][0]
    rows[at]["annotation"]["pairs"].append({**pair, "answers": ["else"]})
    with pytest.raises(InputError, match=rf"line {at + 1}: '\w+' has another annotation stored: 'annotation' differs"):
        store.imports.import_file(put(tmp_path / "b.jsonl", rows))


def test_a_row_that_refers_to_another_one_is_a_contradiction(store: Store, tmp_path: Path) -> None:
    fill(store)
    fill_workbench(store)
    ask(store, "Another?", "another")
    store.exports.export("jsonl", tmp_path / "a.jsonl")
    rows = lines(tmp_path / "a.jsonl")
    at = next(i for i, row in enumerate(rows) if row["kind"] == "item")
    rows[at]["question"] = "another"
    with pytest.raises(InputError, match=rf"line {at + 1}: this item has another content stored: 'question' differs"):
        store.imports.import_file(put(tmp_path / "b.jsonl", rows))


@pytest.mark.parametrize("kind", ["item_prediction", "item_stage"])
def test_whether_an_item_is_hidden_is_asked_of_each_row(kind: str) -> None:
    """The project was looked up for all rows at once: PostgreSQL refused it, SQLite took the first row's project for all."""
    table, hidden = KINDS[kind].table, KINDS[kind].hidden
    assert hidden is not None
    said = " ".join(str(select(table.id).where(~hidden(table))).split())
    assert f"FROM project_item WHERE project_item.id = {table.__tablename__}.item_id" in said
