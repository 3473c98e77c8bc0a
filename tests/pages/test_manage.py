"""The manage page and signing in: what is shown and what is stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations
from typing import get_args

import pytest
from annotate_helpers import click, find, make_project
from page_helpers import QUESTION, TIMEOUT, button, texts
from streamlit.testing.v1 import AppTest

from core.engine import Engine
from core.errors import InputError
from core.settings import Settings
from pages._manage_guidelines import example_of, first_examples, template
from storage import Store
from storage.records_annotation import WorkStage

Open = Callable[..., AppTest]
PASSWORD = "a long password"


@pytest.fixture(autouse=True)
def light(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    """An engine without the libraries that only models need."""
    made = Engine(settings)
    monkeypatch.setattr("pages._shared.engine", lambda: made)
    monkeypatch.setattr("pages._shared.systems", lambda: [])


def fine(app: AppTest) -> None:
    assert not app.exception
    assert not app.error, [e.value for e in app.error]


def section(app: AppTest, name: str) -> AppTest:
    return app.segmented_control(key="manage.section").set_value(name).run()


def test_launches_and_makes_a_project_from_the_starter_questions(open_app: Open, store: Store) -> None:
    app = open_app("manage")
    fine(app)
    app.text_input(key="manage.new.name").set_value("First **round**").run()
    app.number_input(key="manage.new.number").set_value(2).run()
    click(app, "manage.new.make")
    fine(app)
    (project,) = store.projects()
    assert (project.name, project.annotators_per_item, project.stages) == ("First **round**", 2, ("generation", "validation"))
    assert store.progress(project.id, "me")["generation"].items > 100
    found = store.guidelines(project.id)
    assert found is not None
    assert "Search and read first" in found.text
    assert len(found.examples) == 3
    assert "First **round**" in app.success[0].value.replace("\\", "")


def test_an_upload_is_checked_whole(open_app: Open, store: Store) -> None:
    app = open_app("manage")
    app.text_input(key="manage.new.name").set_value("mine").run()
    app.radio(key="manage.new.source").set_value("Upload a file").run()
    click(app, "manage.new.make")
    assert "no file was chosen" in app.error[0].value
    lines = [
        json.dumps({"question": QUESTION, "answers": [["a"]]}),
        "{broken",
        json.dumps({"question": "", "answers": [["a"]]}),
    ]
    app.file_uploader(key="manage.new.file").set_value(("q.jsonl", "\n".join(lines).encode(), "application/json")).run()
    click(app, "manage.new.make")
    assert "2 rows were refused and nothing was stored" in app.error[0].value
    assert list(app.dataframe[0].value["line"]) == [2, 3]
    assert store.projects() == []
    app.file_uploader(key="manage.new.file").set_value(("q.jsonl", lines[0].encode(), "application/json")).run()
    click(app, "manage.new.make")
    fine(app)
    (project,) = store.projects()
    (item,) = store.items(project.id, "me", stage="generation")
    assert item.question == QUESTION


def test_guidelines_have_versions_and_examples(open_app: Open, store: Store) -> None:
    project = make_project(store)
    app = section(open_app("manage"), "Guidelines")
    fine(app)
    find(app.text_area, f"guide.{project.id}.0.text").set_value("Read **first**.").run()
    click(app, "save")
    fine(app)
    first = store.guidelines(project.id)
    assert first is not None
    assert (first.version, first.text) == (1, "Read **first**.")
    key = f"guide.{project.id}.1"
    app.text_input(key=f"{key}.prompt").set_value("When did it come out?")
    app.text_area(key=f"{key}.pairs").set_value(
        "When did the book come out? → 1997\nWhen did the film come out? -> 2001 | in 2001"
    )
    button(app, "Add").click().run()
    fine(app)
    second = store.guidelines(project.id)
    assert second is not None
    assert second.version == 2
    assert second.examples[0].annotation.pairs[1].answers == ("2001", "in 2001")
    assert "Earlier versions (1)" in [e.label for e in app.expander]
    find(app.text_area, f"guide.{project.id}.2.text").set_value("Typed, and not saved yet.").run()
    click(app, "drop.0")  # an example is deleted: what was typed above stays
    fine(app)
    third = store.guidelines(project.id)
    assert third is not None
    assert (third.version, third.text, third.examples) == (3, "Typed, and not saved yet.", ())


def test_guidelines_are_about_what_is_done(open_app: Open, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pages._manage_projects._names", lambda what: ["scripted"] if what == "systems" else ["small"])
    app = open_app("manage")
    app.text_input(key="manage.new.name").set_value("Verdicts")
    app.radio(key="manage.new.source").set_value("None yet")
    app.button_group(key="manage.new.stages").set_value(["judging"])
    app.multiselect(key="manage.new.systems").set_value(["scripted"]).run()
    click(app, "manage.new.make")
    fine(app)
    (project,) = store.projects()
    found = store.guidelines(project.id)
    assert found is not None
    assert "Duplicate" in found.text
    assert "Search and read first" not in found.text
    assert found.examples == ()


@pytest.mark.parametrize("stages", [c for n in (1, 2, 3) for c in combinations(get_args(WorkStage), n)])
def test_each_stage_has_its_part_of_the_guidelines(stages: tuple[WorkStage, ...]) -> None:
    text = template(stages)
    assert ("Search and read first" in text) is ("generation" in stages)
    assert ("Combine" in text) is ("validation" in stages)
    assert ("Unsupported" in text) is ("judging" in stages)
    assert ("Answers are short" in text) is (stages != ("judging",))
    assert bool(first_examples(stages)) is (stages != ("judging",))


def test_example_of() -> None:
    assert example_of(True, " q? ", "a | b", "").annotation.type == "single"
    assert example_of(False, "q?", "", "why").annotation.type == "none"
    with pytest.raises(InputError, match="no question"):
        example_of(True, " ", "a", "")
    with pytest.raises(InputError, match="line 2"):
        example_of(True, "q?", "Q? → a\nQ? → ", "")


def test_suggestions_in_the_background(corpus: str, open_app: Open, store: Store) -> None:
    from pages import _shared

    project = make_project(store, systems=("scripted",))
    app = section(open_app("manage"), "Suggestions")
    click(app, "manage.pre.go")
    run = _shared.preannotations()[project.id]
    assert run.wait(TIMEOUT)
    app.run()
    fine(app)
    assert "2 questions answered by scripted; 2 predictions linked" in app.success[0].value
    items = store.items(project.id, "me", stage="generation")
    assert all(store.get_item(i.id, "me").predictions for i in items)
    assert len(store.suggestions(items[0].id, "me")) == 3
    assert store.progress(project.id, "me")["generation"].submitted == 0
    click(app, "manage.pre.close")
    click(app, "manage.pre.go")  # nothing is left to answer
    again = _shared.preannotations()[project.id]
    assert again.wait(TIMEOUT)
    assert (again.total, again.answered, again.error) == (0, 0, None)


def test_suggestions_without_disambiguated_questions(corpus: str, open_app: Open, store: Store) -> None:
    from pages import _shared

    project = make_project(store, systems=("scripted",))
    app = section(open_app("manage"), "Suggestions")
    assert app.checkbox(key="manage.pre.clarify").value is True
    app.checkbox(key="manage.pre.clarify").set_value(False).run()
    click(app, "manage.pre.go")
    run = _shared.preannotations()[project.id]
    assert run.wait(TIMEOUT)
    assert (run.answered, run.linked, run.error) == (2, 2, None)
    for item in store.items(project.id, "me", stage="generation"):
        (linked,) = store.get_item(item.id, "me").predictions
        found = store.get_prediction(linked.prediction_id).prediction
        assert found.answers
        assert not found.clarifications


def test_settings_close_and_conflict(open_app: Open, store: Store) -> None:
    project = make_project(store)
    app = section(open_app("manage"), "Settings")
    fine(app)
    key = f"manage.set.{project.id}.1"
    app.number_input(key=f"{key}.number").set_value(3)
    app.text_input(key=f"{key}.name").set_value("Other")
    click(app, f"{key}.save")
    fine(app)
    changed = store.get_project(project.id)
    assert (changed.name, changed.annotators_per_item, changed.version) == ("Other", 3, 2)
    store.update_project("me", project.id, 2, name="Third")
    click(app, f"manage.set.{project.id}.2.state")
    assert "changed by somebody else" in app.error[0].value
    click(app, f"manage.set.{project.id}.3.state")
    assert store.get_project(project.id).state == "closed"


def test_items_filters_and_activity(open_app: Open, store: Store) -> None:
    make_project(store)
    app = open_app("manage")
    fine(app)
    tables = [d.value for d in app.dataframe]
    assert next(iter(tables[1]["question"])) == QUESTION
    app.text_input(key="manage.text").set_value("opened nowhere").run()
    assert "No item fits" in texts(app)
    section(app, "Activity")
    fine(app)
    assert "items added" in list(app.dataframe[1].value["what"])


# ---------------------------------------------------------------- people and signing in


def test_people_and_signing_in(open_app: Open, store: Store) -> None:
    make_project(store)
    app = section(open_app("manage"), "People")
    assert "Nobody has a password" in texts(app)
    app.text_input(key="people.new.name").set_value("Mia")
    app.selectbox(key="people.new.role").set_value("manager")
    app.text_input(key="people.new.password").set_value(PASSWORD)
    button(app, "Add").click().run()
    assert store.accounts_in_use()
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
    visitor.switch_page("pages/manage.py").run()
    fine(visitor)

    store.add_person("Mia", "Ann", "annotator", password=PASSWORD)
    button(visitor, "Sign out").click().run()
    visitor.text_input(key="signin.typed").set_value("Ann")
    visitor.text_input(key="signin.password").set_value(PASSWORD)
    button(visitor, "Sign in").click().run()
    visitor.switch_page("pages/manage.py").run()
    assert "manager" in visitor.error[0].value  # an annotator does not manage
    visitor.switch_page("pages/annotate.py").run()
    fine(visitor)
    assert QUESTION in texts(visitor)


def test_open_id_connect(open_app: Open, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from pages import _signin

    store.add_person("me", "Mia", "manager", subject="https://id.example abc")
    monkeypatch.setattr(_signin, "provider", lambda: True)
    known = {"who": ""}
    monkeypatch.setattr(_signin, "subject", lambda: known["who"])
    app = open_app("explore")
    assert "Sign in with your organisation" in [b.label for b in app.button]
    known["who"] = "https://id.example stranger"
    app = open_app("explore")
    assert "have no account here" in app.warning[0].value
    known["who"] = "https://id.example abc"
    app = open_app("manage")
    fine(app)
    assert "**Mia**" in texts(app)
