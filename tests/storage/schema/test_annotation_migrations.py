"""The workbench's tables: reached from older files, left again, and made on PostgreSQL as on SQLite."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from annotation_samples import do, fill_workbench, project
from postgres_databases import database
from schema_files import schemas, unpack
from sqlalchemy import text
from storage_samples import fill, raw

from core.errors import NewerDatabaseError, StorageError
from storage.schema import workbench
from storage.schema.engine import make_engine, parse_url
from storage.schema.upgrade import head, migrate
from storage.store import Store

OWN = [t.__tablename__ for t in vars(workbench).values() if isinstance(t, type) and t.__module__ == workbench.__name__]


def test_a_file_of_the_first_schema_gets_a_workbench(path: Path, url: str) -> None:
    unpack("0001", path)
    before = raw(path, "SELECT * FROM annotation ORDER BY id")
    with Store(url) as store:
        assert store.upgraded_from is not None
        assert raw(path, "SELECT * FROM annotation ORDER BY id") == before
        assert not store.people.accounts_in_use()  # nobody is locked out
        do(store, project(store, 1), "Ada", "x")
        with pytest.raises(StorageError, match="never changed or deleted"), store.database.writing() as session:
            session.execute(text("DELETE FROM activity"))
        assert store.maintenance.health(full=True).ok


def test_the_workbench_can_be_left_and_reached_again(url: str, store: Store) -> None:
    fill(store)
    fill_workbench(store)
    counts = store.maintenance.counts()
    assert all(counts[name] for name in OWN if name not in ("sign_in_wait", "project_job")), counts
    store.close()
    migrate(parse_url(url), target="0002")
    engine = make_engine(parse_url(url))
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM judgment")).scalar() == counts["judgment"]
        with pytest.raises(Exception, match=r"(?i)no such table|does not exist"):
            connection.execute(text("SELECT 1 FROM project"))
    engine.dispose()
    if store.database.accounts_file is not None:
        store.database.accounts_file.unlink()  # the accounts went on purpose
    with Store(url) as again:
        assert again.maintenance.counts()["judgment"] == counts["judgment"]
        assert again.maintenance.counts()["activity"] == 0
        do(again, project(again, 1), "Ada", "x")


def test_many_starts_at_once_make_one_postgresql_database(postgres_server: str) -> None:
    errors: list[BaseException] = []

    def start(url: str, number: int) -> None:
        try:
            with Store(url) as store:
                store.people.annotator(f"a{number}")
        except BaseException as e:
            errors.append(e)

    with database(postgres_server, current=False) as url:
        threads = [threading.Thread(target=start, args=(url, n)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        with Store(url) as store:
            assert store.maintenance.counts()["annotator"] == 4
            health = store.maintenance.health(full=True)
            assert (health.ok, health.revision, health.sqlite) == (True, head(), "")
            assert health.bytes > 0
            with store.database.writing() as session:
                session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        with pytest.raises(NewerDatabaseError, match="9999"):
            Store(url)


def test_a_postgresql_server_that_is_not_there(postgres_server: str) -> None:
    with pytest.raises(StorageError):
        Store("postgresql://nobody:secret@127.0.0.1:1/nothing")


@pytest.mark.parametrize("revision", [r for r in schemas() if r > "0003"])
def test_files_with_a_workbench_keep_it(revision: str, path: Path, url: str) -> None:
    unpack(revision, path)
    with Store(url) as store:
        assert store.people.require(store.people.sign_in("Mia", "a long password").name).role == "manager"
        [made] = store.projects.projects()
        guidelines = store.projects.guidelines(made.id)
        assert guidelines is not None
        assert (guidelines.text, len(guidelines.examples)) == ("# Read", 1)
        [sent] = store.submissions.submissions(made.id, "Mia")
        assert (sent.annotator, sent.gold, sent.log.used_queries, sent.log.viewed_passage_ids) == (
            "Ada",
            True,
            ("bridge",),
            ("p1",),
        )
        assert {a.action for a in store.people.activity("Mia", project=made.id)} >= {
            "project created",
            "item submitted",
            "person admitted",
        }
        with pytest.raises(StorageError, match="never changed or deleted"), store.database.writing() as session:
            session.execute(text("DELETE FROM submission"))
