"""The annotate page in a real Chromium: everything by keyboard, drafts after closing the tab."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from annotate_helpers import predict
from page_helpers import QUESTION, ROWS
from serving import MARKS, WAIT, quiet, serve, until, with_corpus

from core import types as t
from core.settings import Settings
from storage.records.projects import Project
from storage.store import Store

pytestmark = MARKS
ANSWERS = ("Natalie Wood", "Rachel Zegler")


def project(store: Store, name: str, questions: list[str], **changes: Any) -> Project:
    made = store.projects.create_project("me", name, corpus="small", **changes)
    store.intake.add_items("me", made.id, [t.ReferenceQuestion("", q, ()) for q in questions])
    return made


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return with_corpus(tmp_path_factory.mktemp("annotate") / "home", "small", ROWS)


@pytest.fixture(scope="module")
def store(settings: Settings) -> Iterator[Store]:
    with Store(settings.url) as opened:
        yield opened


@pytest.fixture(scope="module")
def server(settings: Settings, store: Store) -> Iterator[str]:
    with serve(settings.home, "small") as address:
        yield address


@pytest.fixture
def person(browser: Any, server: str) -> Iterator[Any]:
    """person(name, project, stage): somebody's own browser at the annotate page."""
    with ExitStack() as contexts:

        def open_it(name: str, made: Project, stage: str = "generation") -> Any:
            page = contexts.enter_context(browser.new_context(viewport={"width": 1280, "height": 900})).new_page()
            page.set_default_timeout(WAIT)
            # the name in the address: under one that is typed the page has come once already, and "me" has an item
            page.goto(f"{server}annotate?project={made.id}&stage={stage}&me={name}", timeout=WAIT)
            quiet(page)
            return page

        yield open_it


def press(page: Any, keys: str) -> None:
    page.keyboard.press(keys)
    quiet(page)


def tab_to(page: Any, label: str) -> None:
    """Moves the focus with the Tab key alone to the field with this label."""
    for _ in range(120):
        if page.evaluate("document.activeElement.getAttribute('aria-label')") == label:
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"no field '{label}' can be reached with Tab")


def value(page: Any, label: str) -> str:
    return str(page.get_by_label(label, exact=True).input_value())


def test_all_three_stages_by_keyboard(person: Any, store: Store) -> None:
    store.predictions.save_prediction(predict(QUESTION, ANSWERS))
    made = project(store, "keyboard", [QUESTION], stages=("generation", "validation", "judging"), systems=("scripted",))
    page = person("me", made)
    page.get_by_role("button", name="Submit").wait_for()
    quiet(page)
    page.locator("h3").first.click()  # the page has the focus, not the address line
    press(page, "e")  # reads the evidence of the first suggestion
    page.get_by_role("button", name="the passage for Natalie Wood").wait_for(state="hidden")  # it is shown whole
    for left in (1, 0):
        press(page, "a")
        page.get_by_text(f"{left} of 2 left").wait_for()
    page.get_by_label("Answer 2", exact=True).wait_for()
    tab_to(page, "Answer 2")
    page.keyboard.press("End")
    page.keyboard.type(" | Rachel 1a3ux")  # letters and digits of shortcuts, in a field
    page.get_by_text("accepted, then edited").wait_for()
    assert value(page, "Answer 2") == "Rachel Zegler | Rachel 1a3ux"
    page.keyboard.press("Control+Enter")
    page.get_by_text("There is nothing left for you").wait_for()
    (sent,) = store.submissions.submissions(made.id, "me", stage="generation")
    assert [p.answers for p in sent.content.annotation.pairs] == [("Natalie Wood",), ("Rachel Zegler", "Rachel 1a3ux")]  # type: ignore[union-attr]
    assert [u.action for u in sent.content.suggestions] == ["accepted", "edited"]  # type: ignore[union-attr]
    assert sent.log.viewed_passage_ids == ("p1",)

    page = person("me", made, "validation")
    page.get_by_role("button", name="Answer 1").first.wait_for()  # shortcuts are there when the buttons are
    quiet(page)
    page.locator("h3").first.click()
    second = page.get_by_role("button", name="Answer 2").first
    press(page, "1")
    press(page, "2")
    page.locator("button:not([disabled])", has_text="Combine").wait_for()
    press(page, "m")
    second.wait_for(state="hidden")
    press(page, "u")
    second.wait_for()
    page.keyboard.press("Control+Enter")
    page.get_by_text("There is nothing left for you").wait_for()
    (final,) = store.submissions.submissions(made.id, "me", stage="validation")
    assert len(final.content.annotation.pairs) == 2  # type: ignore[union-attr]

    page = person("me", made, "judging")
    page.get_by_text("0 of 2 answers judged").wait_for()
    page.get_by_role("button", name="Correct").first.wait_for()
    quiet(page)
    page.locator("h3").first.click()
    for key, judged in (("1", 0), ("7", 1), ("2", 1), ("8", 2)):
        press(page, key)
        page.get_by_text(f"{judged} of 2 answers judged").wait_for()
    page.keyboard.press("Control+Enter")
    page.get_by_text("There is nothing left for you").wait_for()
    (judgment,) = store.submissions.submissions(made.id, "me", stage="judging")
    assert {(a.verdict, a.question) for a in judgment.content.answers} == {("correct", "fits"), ("wrong", "ambiguous_still")}  # type: ignore[union-attr]


def test_a_draft_is_saved_while_typing_and_there_after_closing_the_tab(person: Any, store: Store) -> None:
    made = project(store, "drafts", [QUESTION])
    page = person("Dora", made)
    page.get_by_role("button", name="A single answer").click()
    field = page.get_by_label("Answer", exact=True)
    field.wait_for()
    quiet(page)
    field.click()
    page.keyboard.type("Natalie W", delay=30)
    item = store.items.items(made.id, "me", stage="generation")[0].id

    def saved() -> bool:
        draft = store.drafts.find_draft(item, "Dora", "generation")
        return draft is not None and draft.body["form"]["pairs"][0]["answers"] == "Natalie W"

    until(saved)  # never left the field: typing alone saves
    page.close()
    again = person("Dora", made)
    again.get_by_label("Answer", exact=True).wait_for()
    assert value(again, "Answer") == "Natalie W"
