"""Submitted work has one home: old files come to it, with the same exports, and lose nothing that was no echo."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter
from datetime import datetime
from pathlib import Path

import pytest
from postgres_databases import database
from schema_files import DATA
from sqlalchemy import MetaData, create_engine, insert, select, text
from storage_samples import raw
from submitted_samples import exports, fill_submitted

from storage.schema.engine import parse_url
from storage.schema.upgrade import migrate
from storage.store import Store

FILE = DATA / "submitted-0006.db.gz"  # fill_submitted, stored by the last version with echoes
EXPORTS = json.loads(gzip.decompress((DATA / "submitted-0006.exports.json.gz").read_bytes()))  # what that version made of it
TABLES = ("annotation", "annotation_revision", "judgment", "judgment_revision", "qa_pair", "submission")
# a version and its times are now the submission's: the writing of the echo counted once more, some milliseconds later
COUNTED = ("version", "created", "updated")


def unpacked(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.decompress(FILE.read_bytes()))


def rows(table: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(table.removeprefix("\ufeff"))))


def same_exports(found: dict[str, str]) -> None:
    assert found.keys() == EXPORTS.keys()
    for name, before in EXPORTS.items():
        if not name.endswith(" csv"):
            assert found[name] == before, name
            continue
        old, new = rows(before), rows(found[name])
        assert [{k: v for k, v in row.items() if k not in COUNTED} for row in new] == [
            {k: v for k, v in row.items() if k not in COUNTED} for row in old
        ], name
        for was, now in zip(old, new, strict=True):
            apart = datetime.fromisoformat(was["updated"]) - datetime.fromisoformat(now["updated"])
            assert abs(apart.total_seconds()) < 1, (was, now)


@pytest.mark.parametrize("revision", ["0003", "0004", "0005", "0006"])
def test_exports_of_an_old_file_are_the_same(revision: str, path: Path, url: str, tmp_path: Path) -> None:
    unpacked(path)
    if revision != "0006":
        migrate(parse_url(url), target=revision)
    before = {name: raw(path, f"SELECT count(*) FROM {name}")[0][0] for name in TABLES}
    with Store(url) as store:
        assert store.upgraded_from is not None
        same_exports(exports(store, tmp_path))
        counts = store.maintenance.counts()
        assert store.maintenance.health(full=True).ok
        assert counts["submission"] == before["submission"] == 27
    assert {name: before[name] - counts[name] for name in TABLES} == {
        "annotation": 15,
        "annotation_revision": 9,
        "judgment": 19,
        "judgment_revision": 8,
        "qa_pair": 22,
        "submission": 0,
    }


def test_what_is_no_echo_stays(path: Path, url: str) -> None:
    unpacked(path)
    Store(url).close()
    kept = raw(
        path,
        "SELECT a.name, p.system, w.position, j.verdict, j.note, j.state FROM judgment j JOIN annotator a ON a.id = j.annotator_id "
        "JOIN predicted_answer w ON w.id = j.predicted_answer_id JOIN prediction p ON p.id = w.prediction_id "
        "ORDER BY a.name, p.system, w.position",
    )
    assert kept == [
        ("Ada", "ambigprompt", 1, "duplicate", "", "submitted"),  # said on Explore after the judging
        ("Ada", "fid", 1, "correct", "", "submitted"),  # before it, and the same
        ("Ada", "fid", 2, "wrong", "after", "submitted"),
        ("Ada", "fid", 3, None, "not sure any more", "draft"),
        ("Dan", "ambigprompt", 0, "unsupported", "only here", "submitted"),
    ]
    history = raw(path, "SELECT verdict, note, cleared FROM judgment_revision ORDER BY id")
    assert Counter(history) == Counter([("wrong", "before", 0), ("correct", "", 1), ("correct", "", 1)])
    filed = raw(path, "SELECT n.name, a.state FROM annotation a JOIN annotator n ON n.id = a.annotator_id ORDER BY n.name")
    assert filed == [("Eve 1", "submitted")]
    bodies = [json.loads(body) for (body,) in raw(path, "SELECT body FROM annotation_revision")]
    assert [body["pairs"][0]["answers"] for body in bodies] == [["Filed"], ["Kept"]]  # read from a file, then annotated by hand


def test_on_postgresql_too(postgres_server: str, path: Path, tmp_path: Path) -> None:
    unpacked(path)
    old = create_engine(f"sqlite:///{path}")
    with database(postgres_server, current=False) as url:
        migrate(parse_url(url), target="0006")
        new = create_engine(parse_url(url).set(drivername="postgresql+pg8000"))
        tables = MetaData()
        tables.reflect(new)
        with old.connect() as source, new.begin() as target:
            target.execute(text("SET session_replication_role = replica"))
            for table in tables.sorted_tables:
                found = [dict(row._mapping) for row in source.execute(select(text("*")).select_from(text(table.name)))]
                if found and table.name != "alembic_version":
                    target.execute(insert(table), [_typed(table, row) for row in found])
                if "id" in table.c and found:
                    target.execute(
                        text(f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), (SELECT max(id) FROM {table.name}))")
                    )
        new.dispose()
        old.dispose()
        with Store(url) as store:
            same_exports(exports(store, tmp_path))


def _typed(table: object, row: dict[str, object]) -> dict[str, object]:
    times = {c.name for c in table.c if "TIMESTAMP" in str(c.type)}  # type: ignore[attr-defined]
    return {k: datetime.fromisoformat(str(v)) if k in times and v is not None else v for k, v in row.items()}


def test_new_work_leaves_no_echo(store: Store, tmp_path: Path) -> None:
    """The same deeds in a new database: the same exports, but for ids and times, and nothing twice."""
    fill_submitted(store, tmp_path)
    found, counts = exports(store, tmp_path), store.maintenance.counts()
    for name in EXPORTS:
        if name.split()[1] in ("ambignq", "ambignq-full", "fid", "training"):
            assert found[name] == EXPORTS[name], name
    assert (counts["annotation"], counts["annotation_revision"], counts["qa_pair"]) == (3, 0, 3)  # out of the file
    assert (counts["judgment"], counts["judgment_revision"]) == (6, 2)


def test_a_dump_of_before_is_read_into_one_home(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "old.jsonl"
    file.write_bytes(gzip.decompress((DATA / "submitted-0006.jsonl.gz").read_bytes()))
    report = store.imports.import_file(file)
    assert (report.stored["annotation"], report.known["annotation"]) == (1, 15)
    assert (report.stored["judgment"], report.stored["submission"]) == (5, 27)
    found = exports(store, tmp_path)
    same_exports(found)
    counts = store.maintenance.counts()
    again = store.imports.import_file(file)
    assert not again.stored
    assert store.maintenance.counts() == counts
