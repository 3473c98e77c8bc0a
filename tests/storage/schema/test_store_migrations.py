"""Schemas: files of every released one open; the next one is reached behind a backup; a newer one is refused."""

from __future__ import annotations

import hashlib
import shutil
import stat
import threading
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from schema_files import schemas, unpack
from storage_samples import fill, prediction, raw

from core.errors import InputError, NewerDatabaseError, StorageError
from storage.schema import tables as models
from storage.schema.engine import make_engine, parse_url
from storage.schema.upgrade import MIGRATIONS, copy_database, ensure_current, head, migrate
from storage.store import Store

SECOND = """
from alembic import op
import sqlalchemy as sa
revision = "9999"
down_revision = "{head}"
branch_labels = depends_on = None

def upgrade() -> None:
    with op.batch_alter_table("annotator") as batch:
        batch.add_column(sa.Column("email", sa.Text(), nullable=True))
        batch.create_check_constraint("email", "length(email) > 2")
    {more}

def downgrade() -> None:
    with op.batch_alter_table("annotator") as batch:
        batch.drop_constraint(op.f("ck_annotator_email"), type_="check")
        batch.drop_column("email")
"""


def digest(path: Path) -> dict[str, str]:
    """Of every file beside the database, so that nothing is written unnoticed."""
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(path.parent.iterdir()) if p.is_file()}


@pytest.fixture
def next_scripts(tmp_path: Path) -> Path:
    """The migrations with one more after them."""
    folder = tmp_path / "migrations 100%"  # a folder name that configuration parsers trip over
    shutil.copytree(MIGRATIONS, folder)
    (folder / "versions" / "9999_next.py").write_text(SECOND.replace("{head}", head()).replace("{more}", ""))
    return folder


def test_the_migrations_make_exactly_the_models(store: Store) -> None:
    with store.database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, models.Base.metadata) == []


def test_every_table_is_strict_and_every_constraint_named(store: Store, path: Path) -> None:
    tables = dict(raw(path, "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name <> 'alembic_version'"))
    assert set(tables) == set(models.Base.metadata.tables)
    for name, sql in tables.items():
        assert sql.rstrip().endswith("STRICT"), name
        assert sql.count("CHECK (") == sql.count("CONSTRAINT ck_"), name
        assert sql.count("FOREIGN KEY") == sql.count("CONSTRAINT fk_"), name


def test_checks_and_foreign_keys_hold_below_the_store(store: Store) -> None:
    saved = store.predictions.save_prediction(prediction())
    store.labels.judge(saved, 0, "Ada", "wrong")
    for statement in (
        "UPDATE judgment SET verdict = 'nice'",
        "UPDATE judgment SET verdict = NULL",
        "UPDATE judgment SET version = 'two'",
        "UPDATE judgment SET annotator_id = 99",
        "UPDATE predicted_answer SET probability = 2.0",
        "DELETE FROM prediction",
    ):
        with pytest.raises(StorageError, match="refused a row"), store.database.writing() as session:
            session.connection().exec_driver_sql(statement)
    assert store.labels.judgments(saved)[0].verdict == "wrong"


def test_a_new_database_is_the_owners_only(store: Store, path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(Path(store.maintenance.backup().file).stat().st_mode) == 0o600


@pytest.mark.parametrize("revision", schemas())
def test_files_of_every_released_schema_open_with_all_their_rows(revision: str, path: Path, url: str) -> None:
    unpack(revision, path)
    before = dict(raw(path, "SELECT public_id, trace FROM prediction"))
    with Store(url) as store:
        counts = store.maintenance.counts()
        assert (counts["question"], counts["prediction"], counts["judgment"], counts["annotation"]) == (2, 2, 6, 2)
        assert (counts["judgment_revision"], counts["annotation_revision"], counts["evaluation"]) == (2, 1, 1)
        newest, oldest = store.predictions.recent_predictions(10)
        assert set(before) == {newest.id, oldest.id}
        assert store.predictions.get_prediction(oldest.id).prediction == prediction(id="q-1")
        assert [(j.annotator, j.verdict) for j in store.labels.judgments(oldest.id)] == [
            ("Ada", "correct"),
            ("Bob", "correct"),
            ("Ada", "correct"),
            ("Bob", "unsupported"),
        ]
        assert store.maintenance.health(full=True).ok
        store.labels.judge(oldest.id, 0, "Ada", "wrong")
    assert (store.upgraded_from is None) == (revision == head())


def test_there_is_a_file_of_the_present_schema() -> None:
    assert head() in schemas()


def test_an_upgrade_makes_a_backup_first_and_keeps_every_row(path: Path, url: str, next_scripts: Path) -> None:
    with Store(url) as store:
        fill(store)
        counts = store.maintenance.counts()
    rows = raw(path, "SELECT * FROM judgment ORDER BY id")
    backup = ensure_current(url, next_scripts)
    assert backup is not None
    assert backup.parent == path.parent / "backups"
    assert raw(backup, "SELECT version_num FROM alembic_version") == [(head(),)]
    assert raw(backup, "SELECT * FROM judgment ORDER BY id") == rows
    assert raw(path, "SELECT version_num FROM alembic_version") == [("9999",)]
    assert raw(path, "SELECT * FROM judgment ORDER BY id") == rows
    assert raw(path, "SELECT name, email FROM annotator") == [("Ada", None), ("Bob", None), ("Cleo", None)]
    assert ensure_current(url, next_scripts) is None  # nothing left to do
    migrate(parse_url(url), next_scripts, head())  # and back, on data
    with Store(url) as store:
        assert store.maintenance.counts() == counts
        assert store.maintenance.health(full=True).ok


def test_a_failed_upgrade_changes_nothing(path: Path, url: str, next_scripts: Path) -> None:
    with Store(url) as store:
        fill(store)
    broken = SECOND.replace("{head}", head()).replace("{more}", "op.execute('INSERT INTO judgment (id) VALUES (77)')")
    (next_scripts / "versions" / "9999_next.py").write_text(broken)
    before = raw(path, "SELECT sql FROM sqlite_master ORDER BY name")
    with pytest.raises(StorageError):
        ensure_current(url, next_scripts)
    assert raw(path, "SELECT sql FROM sqlite_master ORDER BY name") == before
    with Store(url) as store:
        assert store.maintenance.health(full=True).ok


def test_a_newer_database_is_refused_before_anything_is_written(path: Path, url: str, next_scripts: Path) -> None:
    ensure_current(url, next_scripts)
    before = digest(path)
    with pytest.raises(NewerDatabaseError, match=r"schema 9999.*update Ambiscope"):
        Store(url)
    assert digest(path) == before


def test_many_starts_at_once_make_one_database(url: str) -> None:
    errors: list[BaseException] = []

    def start(number: int) -> None:
        try:
            with Store(url) as store:
                store.people.annotator(f"a{number}")
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=start, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    with Store(url) as store:
        assert store.maintenance.counts()["annotator"] == 6


def test_another_programs_database_is_left_alone(path: Path, url: str) -> None:
    path.parent.mkdir()
    raw(path, "CREATE TABLE notes (id INTEGER)")
    before = digest(path)
    with pytest.raises(StorageError, match="not Ambiscope's"):
        Store(url)
    assert digest(path) == before


@pytest.mark.parametrize("bad", ["", "nonsense", "sqlite://", "sqlite:///:memory:", "sqlite:///file:x?uri=true", "nosuch://x"])
def test_wrong_urls(bad: str) -> None:
    with pytest.raises(InputError, match=r"database|driver"):
        Store(bad)


def test_a_copy_is_complete_while_the_database_is_in_use(store: Store, path: Path, tmp_path: Path) -> None:
    fill(store)
    copy_database(path, tmp_path / "copy.db")
    assert {p.name for p in tmp_path.iterdir()} == {"home", "copy.db"}  # one file, no log beside it
    with Store(f"sqlite:///{tmp_path / 'copy.db'}") as copy:
        assert copy.maintenance.counts() == store.maintenance.counts()


def test_the_url_of_an_engine_does_not_show_its_password() -> None:
    with pytest.raises(InputError) as caught:
        make_engine(parse_url("postgresql+nosuchdriver://ada:secret@host/db"))
    assert "secret" not in str(caught.value)
