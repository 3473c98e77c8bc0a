"""A new database has the schema of the tables, and one of another schema is refused."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from annotation_samples import fill_workbench
from postgres_databases import database
from sqlalchemy import text
from storage_helpers import at_once, digest
from storage_samples import fill, known, prediction, raw

from core.errors import InputError, NewerDatabaseError, StorageError
from core.settings import ROOT
from storage.exchange.backup import restore
from storage.schema import tables as models
from storage.schema.creation import copy_database, head
from storage.store import Store


def test_every_table_is_strict_and_every_constraint_named(store: Store, path: Path) -> None:
    tables = dict(raw(path, "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name <> 'alembic_version'"))
    assert set(tables) == set(models.Base.metadata.tables)
    for name, sql in tables.items():
        assert sql.rstrip().endswith("STRICT"), name
        assert sql.count("CHECK (") == sql.count("CONSTRAINT ck_"), name
        assert sql.count("FOREIGN KEY") == sql.count("CONSTRAINT fk_"), name


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE judgment SET verdict = 'nice'",
        "UPDATE judgment SET verdict = NULL",
        "UPDATE judgment SET version = 'two'",
        "UPDATE judgment SET annotator_id = 99",
        "UPDATE predicted_answer SET probability = 2.0",
        "DELETE FROM prediction",
    ],
)
def test_checks_and_foreign_keys_hold_below_the_store(store: Store, statement: str) -> None:
    store.labels.judge(store.predictions.save_prediction(prediction()), 0, "Ada", "wrong")
    with pytest.raises(StorageError, match="refused a row"), store.database.writing() as session:
        session.connection().exec_driver_sql(statement)


def test_a_new_database_and_its_backup_are_the_owners_only(store: Store, path: Path) -> None:
    backup = Path(store.maintenance.backup().file)
    assert [stat.S_IMODE(file.stat().st_mode) for file in (path, backup)] == [0o600, 0o600]
    assert list(backup.parent.iterdir()) == [backup]  # no log beside it


def test_another_schema_is_refused_before_anything_is_written(store: Store, path: Path, url: str, tmp_path: Path) -> None:
    """An earlier one in one line that names the script, which converts all of it into a new database."""
    fill(store)
    fill_workbench(store)
    counts = store.maintenance.counts()
    store.close()
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    for revision, kind in (("9999", NewerDatabaseError), ("0009", StorageError), ("1001", StorageError)):
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(f"UPDATE alembic_version SET version_num = '{revision}'")
        before = digest(path)
        with pytest.raises(kind, match=f"schema {revision}") as refused:
            Store(url)
        assert digest(path) == before
        copy_database(path, old)
        with pytest.raises(kind, match=f"schema {revision}"):
            restore(f"sqlite:///{new}", old)
    assert "docs/convert_database.py" in str(refused.value)
    assert "\n" not in str(refused.value)
    command = [sys.executable, "docs/convert_database.py", str(old), str(new)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    with Store(f"sqlite:///{new}") as converted:
        assert converted.maintenance.counts() == counts
        assert converted.maintenance.health(full=True).ok


def _start_at_once(url: str, starts: int) -> None:
    def start(number: int) -> None:
        with Store(url) as store:
            known(store, f"a{number}")

    at_once(start, range(starts))
    with Store(url) as store:
        assert store.maintenance.counts()["annotator"] == starts
        health = store.maintenance.health(full=True)
        assert (health.ok, health.revision) == (True, head())


@pytest.mark.sqlite
def test_many_starts_at_once_make_one_database(url: str) -> None:
    _start_at_once(url, 6)


def test_many_starts_at_once_make_one_postgresql_database(postgres_server: str) -> None:
    with database(postgres_server, current=False) as url:
        _start_at_once(url, 4)
        with Store(url) as store, store.database.writing() as session:
            session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        with pytest.raises(NewerDatabaseError, match="9999"):
            Store(url)


def test_a_postgresql_server_that_is_not_there(postgres_server: str) -> None:
    with pytest.raises(StorageError):
        Store("postgresql://nobody:secret@127.0.0.1:1/nothing")


def test_another_programs_database_is_left_alone(path: Path, url: str) -> None:
    path.parent.mkdir()
    raw(path, "CREATE TABLE notes (id INTEGER)")
    before = digest(path)
    with pytest.raises(StorageError, match="not Ambiscope's"):
        Store(url)
    assert digest(path) == before


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "nonsense",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///file:x?uri=true",
        "nosuch://x",
        "postgresql+nosuchdriver://ada:secret@host/db",
    ],
)
def test_wrong_urls_are_refused_and_no_password_is_shown(bad: str) -> None:
    with pytest.raises(InputError, match=r"database|driver") as refused:
        Store(bad)
    assert "secret" not in str(refused.value)
