"""The database file is moved, removed, replaced or written over while it is open: nothing is stored any more, everybody hears why, and an
installation that had accounts never becomes one without."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import people
import pytest
from storage_samples import prediction
from streamlit.testing.v1 import AppTest

from core.errors import StorageError
from core.settings import Settings
from storage.__main__ import main
from storage.exchange.backup import restore
from storage.schema import engine
from storage.schema.engine import ReplacedError
from storage.store import Store

Open = Callable[..., AppTest]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second between two looks is over."""
    monkeypatch.setattr(engine, "CHECK_SECONDS", 0.0)


def another(settings: Settings, accounts: bool = False) -> Path:
    """The file of another installation."""
    file = settings.home.parent / "other" / "ambiscope.db"
    with Store(f"sqlite:///{file}") as store:
        if accounts:
            people.manager(store, "Eve")
    return file


def moved(path: Path, settings: Settings) -> None:
    path.rename(path.with_name("elsewhere.db"))


def removed(path: Path, settings: Settings) -> None:
    path.unlink()


def replaced(path: Path, settings: Settings) -> None:
    another(settings).replace(path)


def replaced_by_a_copy(path: Path, settings: Settings) -> None:
    draft = path.with_name("copy.db")
    shutil.copyfile(path, draft)
    draft.replace(path)


def written_over(path: Path, settings: Settings) -> None:
    shutil.copyfile(another(settings), path)


def log_moved(path: Path, settings: Settings) -> None:
    log = path.with_name(f"{path.name}-wal")
    log.rename(log.with_name("elsewhere-wal"))


def log_removed(path: Path, settings: Settings) -> None:
    path.with_name(f"{path.name}-wal").unlink()


EVENTS = (moved, removed, replaced, replaced_by_a_copy, written_over, log_moved, log_removed)


def file_of(settings: Settings) -> Path:
    return settings.home / "ambiscope.db"


@pytest.mark.parametrize("event", EVENTS)
def test_nothing_is_acknowledged_any_more(store: Store, settings: Settings, tmp_path: Path, event: Callable[..., None]) -> None:
    store.predictions.save_prediction(prediction())
    event(file_of(settings), settings)
    with pytest.raises(ReplacedError):
        store.predictions.save_prediction(prediction(id="q-2"))
    with pytest.raises(ReplacedError):
        store.predictions.recent_predictions(10)
    health = store.maintenance.health()
    assert health.replaced
    assert not health.ok
    with pytest.raises(ReplacedError):
        store.maintenance.backup(tmp_path / "backup.db")
    assert not (tmp_path / "backup.db").exists()


def test_a_write_that_had_begun_is_not_acknowledged_either(
    store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "CHECK_SECONDS", 3600.0)
    with pytest.raises(ReplacedError), store.database.writing():
        file_of(settings).unlink()


def test_no_file_is_made_where_one_was_removed(store: Store, settings: Settings) -> None:
    file_of(settings).unlink()
    store.database.engine.dispose()  # new connections
    with pytest.raises(ReplacedError):
        store.people.accounts_in_use()
    assert not file_of(settings).exists()


def test_what_is_put_back_is_used_again(store: Store, settings: Settings) -> None:
    path = file_of(settings)
    store.predictions.save_prediction(prediction())
    away = path.rename(path.with_name("elsewhere.db"))
    with pytest.raises(ReplacedError):
        store.predictions.recent_predictions(10)
    away.rename(path)
    assert len(store.predictions.recent_predictions(10)) == 1
    assert store.maintenance.health().ok


def test_a_restored_backup_is_no_other_file(store: Store, settings: Settings, tmp_path: Path) -> None:
    people.manager(store, "Mia")
    made = store.maintenance.backup(tmp_path / "backup.db")
    restore(settings.url, Path(made.file))
    assert store.people.accounts_in_use()
    assert store.maintenance.health().ok


@pytest.mark.parametrize("event", [removed, replaced, log_moved])
@pytest.mark.parametrize("accounts", [False, True])
def test_every_page_says_so_once(
    open_app: Open, store: Store, settings: Settings, light: None, event: Callable[..., None], accounts: bool
) -> None:
    app = open_app("explore")
    if accounts:
        people.manager(store, "Mia")
    event(file_of(settings), settings)
    for page in ("explore", "annotate", "health"):
        app = app.switch_page(f"pages/{page}/page.py").run()
        assert not app.exception
        assert ["ambiscope" in error.value for error in app.error] == [True], page
        assert not app.text_input


# ---------------------------------------------------------------- accounts


def lose(settings: Settings, how: str) -> None:
    path = file_of(settings)
    if how == "empty":
        path.write_bytes(b"")
    elif how == "removed":
        path.unlink()
    else:
        another(settings).replace(path)


@pytest.mark.parametrize("how", ["removed", "empty", "replaced"])
def test_an_installation_with_accounts_does_not_start_without(
    open_app: Open, settings: Settings, light: None, how: str
) -> None:
    with Store(settings.url) as store:
        people.manager(store, "Mia")
    lose(settings, how)
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
    made = store.maintenance.backup(tmp_path / "backup.db")
    people.manager(store, "Mia")
    restore(settings.url, Path(made.file))
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


def test_no_backup_is_made_of_a_database_that_is_not_there(settings: Settings, tmp_path: Path) -> None:
    assert main(["backup", str(tmp_path / "backup.db")]) != 0
    assert not file_of(settings).exists()
    assert not (tmp_path / "backup.db").exists()
