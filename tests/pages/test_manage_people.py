"""People, and signing in: with a password, or with the organisation's provider."""

from __future__ import annotations

import people
import pytest
from annotate_helpers import find, fine, make_project
from page_helpers import Open, button, texts
from people import PASSWORD
from streamlit.testing.v1 import AppTest
from test_manage import section

from pages.manage import people as manage_people
from storage.store import Store

pytestmark = pytest.mark.usefixtures("light")


def test_people_and_signing_in(open_app: Open, store: Store) -> None:
    make_project(store)
    app = section(open_app("manage"), "People")
    assert "Nobody has a password" in texts(app)
    app.text_input(key="people:first.name").set_value("Mia")
    app.text_input(key="people:first.password").set_value("short")
    button(app, "Create the manager account").click().run()
    assert not store.people.accounts_in_use()
    assert app.text_input(key="people:first.name").value == "Mia"  # nothing typed is lost by an error
    app.text_input(key="people:first.password").set_value(PASSWORD)
    button(app, "Create the manager account").click().run()
    fine(app)
    assert store.people.accounts_in_use()
    assert app.session_state["annotator"] == "Mia"  # signed in by it
    assert [p.name for p in store.people.people("Mia")] == ["Mia"]  # the person who was here without an account is this one now

    visitor = open_app("explore")
    assert not visitor.exception
    assert [t.key for t in visitor.text_input] == ["signin.typed", "signin.password"]
    people.sign_in(visitor, "Mia", "wrong one")
    assert "wrong" in visitor.error[0].value
    assert "signin.password" not in visitor.session_state or not visitor.session_state["signin.password"]
    people.sign_in(visitor, "Mia")
    assert not visitor.exception
    assert "**Mia**" in texts(visitor)
    assert visitor.session_state["annotator"] == "Mia"


@pytest.mark.parametrize("name", ["add", "new"])
def test_a_person_may_have_any_name(open_app: Open, store: Store, name: str) -> None:
    """Keys of the form that adds people were keys of somebody's fields."""
    people.add(store, people.manager(store), name, "validator")
    app = fine(open_app("manage", store.people.sign_in("Mia", PASSWORD)))
    find(app.text_input, "people:new", "name").set_value("Ada")
    find(app.text_input, "people:new", "password").set_value(PASSWORD)
    fine(button(app, "Add person").click().run())
    assert find(app.selectbox, name, "role").value == "validator"
    assert {p.name: p.role for p in store.people.people("Mia")}["Ada"] == "annotator"


def test_people_are_listed_by_the_page(open_app: Open, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manage_people, "LINES_PER_PAGE", 2)
    people.manager(store)
    for name in ("Ann", "Ben"):
        people.add(store, "Mia", name, "annotator")
    app = fine(open_app("manage", store.people.sign_in("Mia", PASSWORD)))
    assert listed(app) == ["Mia", "Ann"]
    app.session_state["people:page"] = 2
    fine(app.run())
    assert listed(app) == ["Ben"]


def listed(app: AppTest) -> list[str]:
    return [name for e in app.expander if (name := e.label.split(":")[0]) in {"Mia", "Ann", "Ben"}]
