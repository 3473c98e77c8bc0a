"""A database survives damage, a full disk, two writers, and a kill.  Nothing acknowledged is lost."""

from __future__ import annotations

import multiprocessing
import random
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from storage_helpers import at_once, digest
from storage_samples import earlier_labels, fill, prediction, raw, write_until_killed

from core.errors import InputError, StorageError
from storage.exchange.backup import restore
from storage.schema.creation import CHECKSUM_BYTES, checksum
from storage.store import Store


@pytest.fixture
def filled(url: str) -> str:
    """A closed database with rows; its first prediction, which has four labels."""
    with Store(url) as store:
        return fill(store)[0]


# ---------------------------------------------------------------- damage


@pytest.mark.parametrize("share", [0.999, 0.5, 0.05])
def test_a_truncated_file_is_refused_and_left_as_it_is(path: Path, url: str, filled: str, share: float) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    before = digest(path)
    with pytest.raises(StorageError, match="storage restore"):
        Store(url)
    assert digest(path) == before


def test_a_file_that_is_no_database_is_refused(path: Path, url: str) -> None:
    path.parent.mkdir()
    path.write_text("id\ttext\ttitle\n" * 1000)
    before = digest(path)
    with pytest.raises(StorageError, match=r"ambiscope\.db.*no SQLite database"):
        Store(url)
    assert digest(path) == before


@pytest.mark.parametrize("seed", range(12))
def test_scribbled_bytes_never_crash_and_never_change_the_file_at_opening(path: Path, url: str, filled: str, seed: int) -> None:
    rng = random.Random(seed)
    body = bytearray(path.read_bytes())
    start = rng.randrange(100, len(body) - 4096)
    body[start : start + 4096] = rng.randbytes(4096)
    path.write_bytes(body)
    message = ""
    try:
        with Store(url) as store:  # opens where a free page or text inside a row was hit
            for summary in store.predictions.recent_predictions(10):
                store.predictions.find_prediction(summary.id)
    except StorageError as e:
        message = str(e)
    assert not message or str(path) in message or "trace" in message
    assert path.read_bytes() == body


def test_damage_that_appears_later_is_a_storage_error(store: Store, path: Path, filled: str) -> None:
    store.close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))
    with pytest.raises(StorageError, match="damaged"):
        store.predictions.get_prediction(filled)
    assert not store.maintenance.health().ok


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be"):
        Store(f"sqlite:///{tmp_path / 'file' / 'ambiscope.db'}")


# ---------------------------------------------------------------- backup and restore


def test_a_backup_is_put_back_while_the_database_is_open(path: Path, url: str, tmp_path: Path) -> None:
    with Store(url) as store:
        first, _ = fill(store)
        manifest = store.maintenance.backup(tmp_path / "kept.db")
        assert manifest.counts["judgment"] == 6
        with pytest.raises(InputError, match="never overwrites"):
            store.maintenance.backup(tmp_path / "kept.db")
        store.labels.judge(first, 0, "Ada", "duplicate")
        replaced = restore(url, tmp_path / "kept.db")  # while the store is open
        assert store.labels.judgments(first, "Ada")[0].verdict == "correct"
        assert store.maintenance.health(full=True).ok
    assert ("duplicate",) in raw(replaced, "SELECT verdict FROM judgment")  # what was there is kept


def test_a_backup_replaces_a_damaged_database(path: Path, url: str, tmp_path: Path) -> None:
    with Store(url) as store:
        fill(store)
        store.maintenance.backup(tmp_path / "kept.db")
        counts = store.maintenance.counts()
    damaged = path.read_bytes()[:9000]
    path.write_bytes(damaged)
    path.with_name("ambiscope.db-wal").write_bytes(b"stale log")
    assert restore(url, tmp_path / "kept.db").read_bytes() == damaged
    with Store(url) as store:
        restored = store.maintenance.counts()
        assert restored | {"export": 0} == counts | {"export": 0}
        assert store.maintenance.health(full=True).ok


def test_restore_refuses_what_is_no_good_backup(path: Path, url: str, filled: str, tmp_path: Path) -> None:
    cut, empty = tmp_path / "cut.db", tmp_path / "empty.db"
    cut.write_bytes(path.read_bytes()[:9000])
    empty.touch()
    before = digest(path)
    for file, kind in ((cut, StorageError), (empty, StorageError), (tmp_path / "missing.db", InputError), (path, InputError)):
        with pytest.raises(kind):
            restore(url, file)
    assert digest(path) == before


PLANTED = {
    "trigger": "CREATE TRIGGER planted AFTER INSERT ON judgment BEGIN DELETE FROM annotator; END",
    "a trigger of an old name, changed": "DROP TRIGGER {trigger}; CREATE TRIGGER {trigger} AFTER INSERT ON judgment BEGIN SELECT 1; END",
    "no trigger": "DROP TRIGGER {trigger}",
    "column": "ALTER TABLE question ADD COLUMN planted TEXT",
    "no column": "ALTER TABLE judgment DROP COLUMN note",
    "table": "CREATE TABLE planted (x TEXT)",
    "table of a name like SQLite's own": "CREATE TABLE sqliteXplanted (x TEXT)",
    "no index": "DROP INDEX {index}",
    "view": "CREATE VIEW planted AS SELECT * FROM annotator",
}


@pytest.mark.parametrize("sealed", [True, False])
@pytest.mark.parametrize("name", PLANTED)
def test_restore_refuses_another_schema(path: Path, url: str, filled: str, tmp_path: Path, name: str, sealed: bool) -> None:
    """Also where the checksum says that the file is as it was made."""
    file = tmp_path / "planted.db"
    with Store(url) as store:
        store.maintenance.backup(file)
    with closing(sqlite3.connect(file)) as connection, connection:
        query = "SELECT type, min(name) FROM sqlite_master WHERE type IN ('trigger', 'index') AND sql > '' GROUP BY type"
        connection.executescript(PLANTED[name].format(**dict(connection.execute(query).fetchall())))
    body = bytearray(file.read_bytes())
    body[CHECKSUM_BYTES] = checksum(file) if sealed else bytes(4)
    file.write_bytes(body)
    before = digest(path)
    with pytest.raises(StorageError, match=r"schema|damaged"):
        restore(url, file)
    assert digest(path) == before


@pytest.mark.parametrize("seed", range(6))
def test_restore_refuses_a_backup_with_3000_overwritten_bytes(
    path: Path, url: str, filled: str, tmp_path: Path, seed: int
) -> None:
    """Wherever they are: SQLite does not notice those within a value, the checksum does."""
    file, rng = tmp_path / "b.db", random.Random(seed)
    with Store(url) as store:
        store.predictions.save_prediction(prediction("Big?", [rng.randbytes(500).hex() for _ in range(40)]))
        store.maintenance.backup(file)
    body = bytearray(file.read_bytes())
    start = rng.randrange(len(body) - 3000)
    body[start : start + 3000] = rng.choice([rng.randbytes(3000), b"\0" * 3000, b"A" * 3000])
    file.write_bytes(body)
    before = digest(path)
    with pytest.raises(StorageError):
        restore(url, file)
    assert digest(path) == before


def test_a_restored_database_is_no_backup_any_more(path: Path, url: str, filled: str, tmp_path: Path) -> None:
    """A plain copy of it may be restored, whatever was written since."""
    with Store(url) as store:
        store.maintenance.backup(tmp_path / "b.db")
    path.unlink()
    restore(url, tmp_path / "b.db")
    copy = tmp_path / "copy.db"
    copy.write_bytes(path.read_bytes())
    restore(url, copy)
    assert raw(path, "PRAGMA application_id") == [(0,)]


# ---------------------------------------------------------------- a full disk


def test_a_full_disk_loses_nothing_that_was_stored(store: Store, path: Path, filled: str) -> None:
    pages = raw(path, "PRAGMA page_count")[0][0]

    def limit(connection: Any, _record: Any) -> None:
        connection.execute(f"PRAGMA max_page_count = {pages + 4}")

    event.listen(store.database.engine, "connect", limit)
    store.close()  # open connections have no limit
    before = store.maintenance.counts()
    big = prediction("Big?", [f"answer {n} " + "x" * 2000 for n in range(40)])
    with pytest.raises(StorageError, match=r"disk is full.*nothing was changed.*free some space"):
        store.predictions.save_prediction(big)
    assert store.maintenance.counts() == before
    assert store.predictions.get_prediction(filled).prediction == prediction(id="q-1")
    event.remove(store.database.engine, "connect", limit)
    store.close()
    assert store.predictions.save_prediction(big)
    assert store.maintenance.health(full=True).ok


# ---------------------------------------------------------------- writers at once, and kills


def test_threads_that_write_at_once_lose_nothing(store: Store) -> None:
    saved = store.predictions.save_prediction(prediction())

    def work(number: int) -> None:
        for turn in range(15):
            store.labels.judge(saved, 0, "shared", "wrong", note=f"{number}/{turn}")
            store.labels.judge(saved, 1, f"own {number}", "correct", note=str(turn))

    at_once(work, range(6))
    history = earlier_labels(store, saved, 0, "shared")
    assert [h.version for h in history] == list(range(1, 90))  # 90 saves: 89 earlier values and the present one
    notes = {h.note for h in history} | {j.note for j in store.labels.judgments(saved, "shared")}
    assert notes == {f"{n}/{t}" for n in range(6) for t in range(15)}
    assert all(len(earlier_labels(store, saved, 1, f"own {n}")) == 14 for n in range(6))


@pytest.mark.sqlite
def test_a_kill_in_the_middle_of_a_save_loses_nothing_acknowledged(url: str) -> None:
    rng = random.Random(7)
    acknowledged: set[str] = set()
    processes = multiprocessing.get_context("forkserver")  # workers fork from a process that has imported the store once
    processes.set_forkserver_preload(["storage.store", "storage_samples"])
    Store(url).close()
    for _ in range(20):
        receiver, sender = processes.Pipe(duplex=False)
        worker = processes.Process(target=write_until_killed, args=(url, sender))
        worker.start()
        sender.close()
        acknowledged.add(receiver.recv())  # it has begun
        time.sleep(rng.uniform(0, 0.06))
        worker.kill()
        worker.join()
        with suppress(EOFError, OSError):
            while True:
                acknowledged.add(receiver.recv())
        receiver.close()
    with Store(url) as store:
        assert store.maintenance.health(full=True).ok
        stored = [p.id for offset in range(0, 100_000, 500) for p in store.predictions.recent_predictions(500, offset)]
        assert acknowledged <= set(stored)
        assert len(stored) - len(acknowledged) <= 20  # at most the one that each kill interrupted between save and answer
        assert all(len(store.labels.judgments(saved)) == 1 for saved in acknowledged)
        assert all(len(store.predictions.get_prediction(saved).prediction.answers) == 2 for saved in stored[:50])
