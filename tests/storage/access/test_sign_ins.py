"""Sign-ins that last: the code of a sign-in, the token of its cookie, and what ends both."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from annotation_samples import Clock
from storage_samples import known

from core.errors import NotAllowedError
from storage.access.sign_ins import CODE_LASTS, SIGN_IN_LASTS, Visitor
from storage.exchange.backup import restore
from storage.records.annotation import FieldError, SignedOutError
from storage.store import SessionStore, Store

PASSWORD, BROWSER = "a good password", "browser of Mia"


@pytest.fixture
def mia(store: Store, clock: Clock, quick_hashes: None) -> Visitor:
    store.people.add_person("Mia", "Mia", "manager", PASSWORD)
    store.people.add_person("Mia", "Ann", "annotator", PASSWORD)
    return store.people.sign_in("Mia", PASSWORD, browser=BROWSER)


def through(store: Store, visitor: Visitor) -> SessionStore:
    return SessionStore(store, lambda: visitor)


def token_of(store: Store, visitor: Visitor) -> str:
    token = store.people.exchange(visitor.code, BROWSER)
    assert token
    return token


def test_a_code_counts_once_soon_and_in_its_browser(store: Store, mia: Visitor, clock: Clock) -> None:
    assert store.people.exchange(mia.code, "another browser") is None
    assert store.people.exchange("forged", BROWSER) is None
    token_of(store, mia)
    assert store.people.exchange(mia.code, BROWSER) is None
    second = store.people.sign_in("Mia", PASSWORD, browser=BROWSER)
    clock.time += CODE_LASTS + timedelta(seconds=1)
    assert store.people.exchange(second.code, BROWSER) is None


def test_no_other_text_is_a_token(store: Store, mia: Visitor) -> None:
    for token in ("", "forged", "0" * 64, mia.code, mia.key):
        assert store.people.resume(token) is None


@pytest.mark.parametrize("passed", [SIGN_IN_LASTS + timedelta(seconds=1), timedelta(days=-1)], ids=["over", "set back"])
def test_a_sign_in_ends_when_its_time_is_over_or_the_clock_was_set_back(
    store: Store, mia: Visitor, clock: Clock, passed: timedelta
) -> None:
    token = token_of(store, mia)
    clock.time += passed
    assert store.people.resume(token) is None
    with pytest.raises(SignedOutError):
        through(store, mia).people.people("Mia")


def test_a_backup_that_is_put_back_signs_nobody_in(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    with Store(url) as store:
        token = token_of(store, store.people.create_manager("me", "Mia", PASSWORD, browser=BROWSER))
        store.maintenance.backup(tmp_path / "copy.db")
    restore(url, tmp_path / "copy.db")
    with Store(url) as store:
        assert store.people.resume(token) is None


COPIES: dict[str, Callable[[Store, Path, Path], object]] = {
    "backup": lambda store, path, copy: store.maintenance.backup(copy),
    "plain copy": lambda store, path, copy: (store.close(), shutil.copyfile(path, copy)),
}


@pytest.mark.parametrize("is_moved", [True, False])
@pytest.mark.parametrize("made", COPIES)
def test_a_copy_put_back_by_hand_revives_no_sign_in_that_has_ended(tmp_path: Path, made: str, is_moved: bool) -> None:
    path, copy = tmp_path / "a.db", tmp_path / "copy.db"
    with Store(f"sqlite:///{path}") as store:
        mia = store.people.create_manager("me", "Mia", PASSWORD, browser=BROWSER)
        token = token_of(store, mia)
        COPIES[made](store, path, copy)
        store.people.sign_out(mia)
        newer = token_of(store, store.people.sign_in("Mia", PASSWORD, browser=BROWSER))
    with Store(f"sqlite:///{path}") as store:  # a restart ends nothing
        assert store.people.resume(newer) is not None
    copy.replace(path) if is_moved else shutil.copyfile(copy, path)
    with Store(f"sqlite:///{path}") as store:
        assert store.people.resume(token) is None
        token = token_of(store, store.people.sign_in("Mia", PASSWORD, browser=BROWSER))
    with Store(f"sqlite:///{path}") as store:
        assert store.people.resume(token) is not None


@pytest.mark.parametrize(
    "end",
    [
        lambda store, mia: store.people.sign_out(mia),
        lambda store, mia: store.people.sign_out_everywhere("Mia"),
        lambda store, mia: store.people.set_password("Ann", "Mia", "another password"),
        lambda store, mia: store.people.set_active("Ann", "Mia", False),
        lambda store, mia: store.people.set_role("Ann", "Mia", "annotator"),
    ],
    ids=["sign out", "everywhere", "new password", "deactivated", "another role"],
)
def test_what_ends_a_sign_in(store: Store, mia: Visitor, end: Callable[[Store, Visitor], object]) -> None:
    store.people.set_role("Mia", "Ann", "manager")
    token = token_of(store, mia)
    end(store, mia)
    assert store.people.resume(token) is None
    with pytest.raises((SignedOutError, NotAllowedError)):
        through(store, mia).people.people("Mia")


def test_signing_out_ends_one_sign_in_and_everywhere_all(store: Store, mia: Visitor) -> None:
    at_home = store.people.sign_in("Mia", PASSWORD, browser=BROWSER)
    here, there = token_of(store, mia), token_of(store, at_home)
    store.people.sign_out(mia)
    assert (store.people.resume(here), store.people.resume(there)) == (None, at_home)
    store.people.sign_out_everywhere("Mia")
    assert store.people.resume(there) is None


def test_another_person_in_the_same_browser_ends_the_first_ones_sign_in(store: Store, mia: Visitor) -> None:
    held = token_of(store, mia)
    ann = store.people.sign_in("Ann", PASSWORD, browser=BROWSER)
    token = store.people.exchange(ann.code, BROWSER, held) or ""
    assert (store.people.resume(held), store.people.resume(token)) == (None, ann)


def test_the_first_manager_keeps_the_work_of_the_person_before(store: Store) -> None:
    project = store.projects.create_project("me", "mine").id
    visitor = store.people.create_manager("me", "Mia", PASSWORD, browser=BROWSER)
    assert visitor.name == "Mia"
    assert through(store, visitor).projects.get_project(project).id == project
    assert [(p.name, p.role) for p in store.people.people("Mia")] == [("Mia", "manager")]
    store.intake.link_predictions("me", project)  # a job that had begun goes on
    with pytest.raises(NotAllowedError):
        store.people.create_manager("Mia", "Eve", PASSWORD)


@pytest.mark.parametrize(
    ("name", "password", "field"),
    [("", PASSWORD, "name"), ("Bob", PASSWORD, "name"), ("bob", PASSWORD, "name"), ("Mia", "x", "password")],
)
def test_what_is_wrong_with_the_first_manager_says_where(store: Store, name: str, password: str, field: str) -> None:
    known(store, "Bob")
    with pytest.raises(FieldError) as caught:
        store.people.create_manager("me", name, password)
    assert caught.value.field == field
    assert not store.people.accounts_in_use()
