"""One person with two tabs: what both change is never lost without a word."""

from __future__ import annotations

from typing import Any

import people
import pytest
from annotate_helpers import QUESTION, click, find, make_project, write
from page_helpers import Open, button, texts
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import NumberInput

from storage.records.annotation import GenerationWork
from storage.records.projects import Project
from storage.store import Store

pytestmark = pytest.mark.usefixtures("light")


@pytest.fixture
def project(store: Store, corpus: str) -> Project:
    return make_project(store, people.anyone(store), questions=(QUESTION,), thresholds={"must_read": 0})


def answered(app: AppTest, answer: str) -> AppTest:
    """Chooses a single answer and types it."""
    if "A single answer" in [b.label for b in app.button if b.proto.type != "primary"]:
        click(app, "kind", "single")
    return write(app, answer, "answers", "0")


def submitted(store: Store, project: Project) -> list[str]:
    """The answers of all versions that were submitted."""
    (item,) = store.items.items(project.id, "me", stage="generation")
    history = store.submissions.submission_history(item.id, "me", "generation", "me")
    return [s.content.annotation.pairs[0].answers[0] for s in history if isinstance(s.content, GenerationWork)]


def open_section(open_app: Open, name: str) -> AppTest:
    return open_app("manage").segmented_control(key="manage.section").set_value(name).run()


def guidelines(app: AppTest) -> Any:
    return find(app.text_area, "text")


def people_field(app: AppTest) -> NumberInput:
    return next(n for n in app.number_input if (n.key or "").startswith("manage.set.") and n.label == "People per item")


def test_a_submission_in_one_tab_is_not_undone_by_the_other(annotate: Open, store: Store, project: Project) -> None:
    first = answered(annotate(), "Natalie Wood")
    second = annotate()
    click(first, "submit")
    assert submitted(store, project) == ["Natalie Wood"]
    second = answered(second, "Rachel Zegler")
    assert "changed in another window" in texts(second)
    assert "Natalie Wood" in texts(second)  # both sides are there to choose from
    second = click(second, "submit")
    assert submitted(store, project) == ["Natalie Wood"]
    assert second.warning or second.error


def test_guidelines_typed_in_two_tabs(open_app: Open, store: Store, project: Project) -> None:
    def versions() -> list[str]:
        return [version.text for version in store.projects.guideline_versions(project.id)]

    first, second = open_section(open_app, "Guidelines"), open_section(open_app, "Guidelines")
    for app, text in ((first, "The first tab's."), (second, "The second tab's.")):
        guidelines(app).set_value(text).run()
    for app in (first, second):
        button(app, "Save as a new version").click().run()
    assert versions() == ["The first tab's."]
    assert second.error  # says that somebody else saved in between
    assert "changed in another window" in texts(second)
    second.run()
    assert guidelines(second).value == "The second tab's."
    button(second, "Save mine").click().run()
    assert versions() == ["The second tab's.", "The first tab's."]
    assert "changed in another window" not in texts(second)
    assert guidelines(second).value == "The second tab's."
    assert guidelines(first.run()).value == "The second tab's."  # nothing was typed there since
    guidelines(first).set_value("Half a sentence").run()
    store.projects.save_guidelines(people.anyone(store), project.id, "Of the other tab.", expected_version=2)
    assert guidelines(first.run()).value == "Half a sentence"  # the next drawing alone must not replace it
    button(first, "Use the other version").click().run()
    assert guidelines(first).value == "Of the other tab."


def test_settings_changed_in_two_tabs(open_app: Open, store: Store, project: Project) -> None:
    first, second = open_section(open_app, "Settings"), open_section(open_app, "Settings")
    for app, number in ((first, 3), (second, 5)):
        people_field(app).set_value(number).run()
    for app in (first, second):
        button(app, "Save").click().run()
        assert not app.exception
    assert store.projects.get_project(project.id).annotators_per_item == 3
    assert second.error
    second.run()
    assert people_field(second).value == 5
    button(second, "Save mine").click().run()
    assert store.projects.get_project(project.id).annotators_per_item == 5
    assert people_field(first.run()).value == 5
    assert not first.warning


def test_a_project_closed_in_one_tab_stops_the_other_with_a_word(annotate: Open, store: Store, project: Project) -> None:
    tab = annotate()
    click(tab, "kind", "single")
    store.projects.update_project(people.anyone(store), project.id, project.version, state="closed")
    tab = write(tab, "Natalie Wood", "answers", "0")
    assert not tab.exception
    (item,) = store.items.items(project.id, "me", stage="generation")
    draft = store.drafts.find_draft(item.id, "me", "generation")
    assert draft is not None
    assert "Natalie Wood" in str(draft.body)
    assert "no open project" in texts(tab)
