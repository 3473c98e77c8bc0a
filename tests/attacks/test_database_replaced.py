"""The database file is moved, removed or replaced while it is open: nothing is stored any more, whoever tries hears why, and an installation
that had accounts never becomes one without."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import people
import pytest
from page_helpers import Open
from storage_samples import prediction

from core.errors import StorageError
from core.settings import Settings
from storage.__main__ import main
from storage.exchange.backup import restore
from storage.schema.engine import ReplacedError
from storage.store import Store

Event = Callable[[Path], object]


def another(path: Path) -> Path:
    """The file of another installation."""
    file = path.parent.parent / "other" / "ambiscope.db"
    Store(f"sqlite:///{file}").close()
    return file


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


EVENTS: dict[str, Event] = {
    "moved": lambda path: path.rename(path.with_name("elsewhere.db")),
    "removed": Path.unlink,
    "replaced": lambda path: another(path).replace(path),
    "replaced by a copy": lambda path: Path(shutil.copyfile(path, path.with_name("copy.db"))).replace(path),
    "log moved": lambda path: log_of(path).rename(path.with_name("elsewhere-wal")),
    "log removed": lambda path: log_of(path).unlink(),
}


@pytest.fixture
def path(settings: Settings) -> Path:
    return settings.home / "ambiscope.db"


@pytest.mark.parametrize("event", EVENTS)
def test_nothing_is_acknowledged_any_more(store: Store, path: Path, tmp_path: Path, event: str) -> None:
    store.predictions.save_prediction(prediction())
    EVENTS[event](path)
    with pytest.raises(ReplacedError):
        store.predictions.save_prediction(prediction(id="q-2"))
    health = store.maintenance.health()
    assert str(path) in health.integrity
    with pytest.raises(ReplacedError):
        store.maintenance.backup(tmp_path / "backup.db")
    assert not (tmp_path / "backup.db").exists()


def test_no_file_is_made_where_one_was_removed(store: Store, path: Path) -> None:
    path.unlink()
    store.database.engine.dispose()  # new connections
    with pytest.raises(StorageError):
        store.people.accounts_in_use()
    assert not path.exists()


def test_what_is_put_back_is_used_again(store: Store, path: Path) -> None:
    store.predictions.save_prediction(prediction())
    away = path.rename(path.with_name("elsewhere.db"))
    with pytest.raises(ReplacedError):
        store.predictions.save_prediction(prediction(id="q-2"))
    away.rename(path)
    store.predictions.save_prediction(prediction(id="q-2"))
    assert len(store.predictions.recent_predictions(10)) == 2
    assert store.maintenance.health().ok


@pytest.mark.parametrize("event", ["removed", "replaced", "log moved"])
def test_health_says_so_once(open_app: Open, store: Store, path: Path, light: None, event: str) -> None:
    app = open_app("health")
    store.predictions.save_prediction(prediction())
    EVENTS[event](path)
    app = app.run()
    assert not app.exception
    assert ["ambiscope" in error.value for error in app.error] == [True]


# ---------------------------------------------------------------- accounts


@pytest.mark.parametrize("event", [*(EVENTS[name] for name in ("removed", "replaced")), lambda path: path.write_bytes(b"")])
def test_an_installation_with_accounts_does_not_start_without(
    open_app: Open, settings: Settings, path: Path, light: None, event: Event
) -> None:
    with Store(settings.url) as store:
        people.manager(store, "Mia")
    event(path)
    with pytest.raises(StorageError), Store(settings.url) as store:
        store.people.accounts_in_use()
    with pytest.raises(StorageError), Store(settings.url) as store:
        store.people.add_person("Eve", "Eve", "manager", people.PASSWORD)
    app = open_app("manage")
    assert len(app.error) == 1
    assert not app.text_input


def test_a_backup_from_before_the_accounts_does_not_open_the_installation(
    store: Store, settings: Settings, tmp_path: Path
) -> None:
    backup = store.maintenance.backup(tmp_path / "backup.db").file
    people.manager(store, "Mia")
    restore(settings.url, Path(backup))
    with pytest.raises(StorageError):
        store.people.accounts_in_use()
    assert store.database.accounts_file is not None
    store.database.accounts_file.unlink()  # what the message asks for
    assert not store.people.accounts_in_use()


def test_accounts_of_an_earlier_start_are_noted(settings: Settings) -> None:
    with Store(settings.url) as store:
        people.manager(store, "Mia")
        assert store.database.accounts_file is not None
        store.database.accounts_file.unlink()
        assert store.people.accounts_in_use()
        assert store.database.accounts_file.exists()


def test_no_backup_is_made_of_a_database_that_is_not_there(path: Path, tmp_path: Path) -> None:
    assert main(["backup", str(tmp_path / "backup.db")]) != 0
    assert not path.exists()
    assert not (tmp_path / "backup.db").exists()
