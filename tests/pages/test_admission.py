"""Whom the sign-in has let in, for the server; and what every page says while nobody has to sign in."""

from __future__ import annotations

from unittest.mock import Mock

import people
import pytest
from page_helpers import Open, button, texts

from core.errors import StorageError
from core.settings import Settings
from pages.server import admission
from storage.store import Store

SESSION = "test session id"  # of every AppTest
pytestmark = pytest.mark.usefixtures("light")


@pytest.fixture(autouse=True)
def nobody_is_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "ADMITTED", {})


def test_a_session_is_in_from_sign_in_to_sign_out(open_app: Open, store: Store) -> None:
    assert not admission.is_admitted(SESSION)
    app = open_app()
    assert admission.is_admitted(SESSION)  # nobody has an account
    assert not admission.is_admitted("another")
    people.manager(store)
    assert not admission.is_admitted(SESSION)  # at once, without another run
    app.run()
    assert not admission.is_admitted(SESSION)
    people.sign_in(app, "Mia", "wrong")
    assert not admission.is_admitted(SESSION)
    people.sign_in(app, "Mia")
    assert admission.is_admitted(SESSION)
    button(app, "Sign out").click().run()
    assert not admission.is_admitted(SESSION)


def test_a_database_that_fails_lets_nobody_in(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    open_app()
    assert admission.is_admitted(SESSION)
    with monkeypatch.context() as changed:
        changed.setattr("pages.session.shared.servers_store", Mock(side_effect=StorageError("the disk is gone")))
        assert not admission.is_admitted(SESSION)
        open_app()
    assert not admission.is_admitted(SESSION)


def test_every_page_warns_while_other_machines_get_in_without_an_account(
    open_app: Open, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "AMBISCOPE_OPEN_TO_ALL" not in texts(open_app())
    monkeypatch.setattr("pages.session.shared.settings", Settings.from_env)
    monkeypatch.setenv("AMBISCOPE_OPEN_TO_ALL", "1")
    for page in ("explore", "annotate", "health"):
        (warning,) = [w.value for w in open_app(page).warning if "AMBISCOPE_OPEN_TO_ALL" in w.value]
        assert "can read, change and delete everything" in warning
    people.manager(store)
    assert not [w for w in open_app().warning if "AMBISCOPE_OPEN_TO_ALL" in w.value]
