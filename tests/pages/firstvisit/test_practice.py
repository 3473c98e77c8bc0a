"""Practising on Annotate: begun, compared, left and removed; a person's real work is never touched, and nothing practised counts."""

from __future__ import annotations

import pytest
from annotate_helpers import click, fine, make_project
from page_helpers import Open, button, texts
from streamlit.testing.v1 import AppTest

from core.settings import Settings
from pages.session import place
from storage.shipped import practice
from storage.store import Store

pytestmark = pytest.mark.usefixtures("light")


def counts(store: Store) -> dict[str, int]:
    """Rows of people's work; the log of who was there aside."""
    return {name: n for name, n in store.maintenance.counts().items() if n and name not in ("alembic_version", "annotator")}


@pytest.fixture
def practising(annotate: Open) -> AppTest:
    return fine(button(annotate(), "Start the practice project").click().run())


def test_practice_is_offered_where_no_project_is_open(practising: AppTest, store: Store) -> None:
    assert "Practice" in texts(practising)
    assert "8 of 24" not in texts(practising)
    assert practising.query_params["practice"] in ("on", ["on"])
    assert practising.session_state["annotate.work"].task.question in {q.question for q in practice.questions()}
    assert counts(store) == {}


def test_submitted_work_is_compared_and_counts_nowhere(practising: AppTest, store: Store) -> None:
    click(practising, "read", 0)
    click(practising, "kind", "none")
    click(practising, "submit")
    assert not practising.exception
    shown = texts(practising)
    assert "agreement with the reference" in shown
    assert "**Reference**" in shown
    button(practising, "Continue").click().run()
    assert "agreement with the reference" not in texts(practising)
    assert counts(store) == {}


def test_leaving_keeps_it_and_removing_removes_it_alone(practising: AppTest, store: Store, settings: Settings) -> None:
    app = practising
    project = make_project(store, corpus="small")
    button(app, "Leave the practice project").click().run()
    assert not app.exception
    assert project.name in str(app.selectbox(key="annotate.project").options)
    assert app.session_state["annotate.work"].project.id == project.id
    button(app, "Continue practising").click().run()
    assert app.session_state["annotate.work"].project.name == practice.PRACTICE
    before = counts(store)
    button(app, "Remove it").click().run()
    assert not app.exception
    assert not list((settings.home / "practice").iterdir())
    assert counts(store) == before
    assert [p.id for p in store.projects.projects()] == [project.id]
    assert app.session_state["annotate.work"].project.id == project.id


def test_each_person_practises_alone(annotate: Open, settings: Settings) -> None:
    for who in ("Ada", "Ben"):
        button(annotate(who), "Start the practice project").click().run()
    assert len(list((settings.home / "practice").glob("*.db"))) == 2


def test_a_project_that_was_removed_in_another_tab_is_told(practising: AppTest, annotate: Open, settings: Settings) -> None:
    other = annotate(practice="on")
    assert "Practice" in texts(other)
    button(other, "Remove it").click().run()
    practising.run()
    assert not practising.exception
    assert "was removed" in " ".join(e.value for e in practising.error)
    button(practising, "Leave the practice project").click().run()
    assert not practising.error


def test_where_people_sign_in_practice_asks_first(practising: AppTest, store: Store) -> None:
    store.people.add_person("me", "Mia", "manager", "a long password")
    practising.run()
    assert "signin.typed" in [t.key for t in practising.text_input]
    assert place.ADDRESS not in practising.session_state
