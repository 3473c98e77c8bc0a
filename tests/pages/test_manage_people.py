"""People, and signing in: with a password, or with the organisation's provider."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from annotate_helpers import make_project
from page_helpers import QUESTION, button, texts
from streamlit.testing.v1 import AppTest
from test_manage import PASSWORD, fine, section

from storage.store import Store

Open = Callable[..., AppTest]
pytestmark = pytest.mark.usefixtures("light")


def test_people_and_signing_in(open_app: Open, store: Store) -> None:
    make_project(store)
    app = section(open_app("manage"), "People")
    assert "Nobody has a password" in texts(app)
    app.text_input(key="people.new.name").set_value("Mia")
    app.selectbox(key="people.new.role").set_value("manager")
    app.text_input(key="people.new.password").set_value(PASSWORD)
    button(app, "Add person").click().run()
    assert store.people.accounts_in_use()
    assert "Sign in" in texts(app)  # from now on, everybody has to
    assert "Manage" not in texts(app)

    visitor = open_app("explore")
    assert not visitor.exception
    assert [t.key for t in visitor.text_input] == ["signin.typed", "signin.password"]
    visitor.text_input(key="signin.typed").set_value("Mia")
    visitor.text_input(key="signin.password").set_value("wrong one")
    button(visitor, "Sign in").click().run()
    assert "wrong" in visitor.error[0].value
    assert "signin.password" not in visitor.session_state or not visitor.session_state["signin.password"]
    visitor.text_input(key="signin.typed").set_value("Mia")
    visitor.text_input(key="signin.password").set_value(PASSWORD)
    button(visitor, "Sign in").click().run()
    assert not visitor.exception
    assert "**Mia**" in texts(visitor)
    assert visitor.session_state["annotator"] == "Mia"
    visitor.switch_page("pages/manage/page.py").run()
    fine(visitor)

    store.people.add_person("Mia", "Ann", "annotator", password=PASSWORD)
    button(visitor, "Sign out").click().run()
    visitor.text_input(key="signin.typed").set_value("Ann")
    visitor.text_input(key="signin.password").set_value(PASSWORD)
    button(visitor, "Sign in").click().run()
    visitor.switch_page("pages/manage/page.py").run()
    assert "manager" in visitor.error[0].value  # an annotator does not manage
    visitor.switch_page("pages/annotate/page.py").run()
    fine(visitor)
    assert QUESTION in texts(visitor)


def test_open_id_connect(open_app: Open, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from pages.session import connection

    store.people.add_person("me", "Mia", "manager", subject="https://id.example abc")
    monkeypatch.setattr(connection, "provider", lambda: True)
    known = {"who": ""}
    monkeypatch.setattr(connection, "subject", lambda: known["who"])
    app = open_app("explore")
    assert "Sign in with your organisation" in [b.label for b in app.button]
    known["who"] = "https://id.example stranger"
    app = open_app("explore")
    assert "have no account here" in app.warning[0].value
    known["who"] = "https://id.example abc"
    app = open_app("manage")
    fine(app)
    assert "**Mia**" in texts(app)
