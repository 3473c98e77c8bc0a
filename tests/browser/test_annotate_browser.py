"""The annotate page in a real Chromium: keys faster than the page can follow; drafts after closing the tab."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from annotate_helpers import make_project, predict
from page_helpers import QUESTION, ROWS
from serving import MARKS, WAIT, quiet, serve, until, with_corpus

from core.settings import Settings
from storage.records.enumerations import WorkStage
from storage.records.projects import Project
from storage.store import Store

pytestmark = MARKS


WORDS = " ".join(["The musical was played again and again in many towns."] * 8)
PEOPLE = tuple(f"Person {n}" for n in range(1, 7))
LONG = [(f"p{n}", f"Title {n}", f"{name} played Maria. {WORDS} {name} won with it.") for n, name in enumerate(PEOPLE, 1)]


def long_project(store: Store, stage: WorkStage, *questions: str) -> Project:
    """Each question has six answers from passages that fill more than a screen."""
    for question in questions:
        prediction = predict(question, PEOPLE, rows=LONG, probabilities=(0.9, 0.8, 0.7, 0.6, 0.5, 0.4))
        store.predictions.save_prediction(prediction)
    return make_project(store, name=f"{stage} fast", questions=questions, stages=(stage,), systems=("scripted",))


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

        def open_it(name: str, project: Project, stage: str = "generation") -> Any:
            page = contexts.enter_context(browser.new_context(viewport={"width": 1280, "height": 900})).new_page()
            page.set_default_timeout(WAIT)
            # the name in the address: under one that is typed the page has come once already, and "me" has an item
            page.goto(f"{server}annotate?project={project.id}&stage={stage}&me={name}")
            page.get_by_role("button", name="Submit").wait_for()  # shortcuts are there when the buttons are
            quiet(page)
            page.locator("h3").first.click()  # the page has the focus, not the address line
            return page

        yield open_it


def test_a_draft_is_saved_while_typing_and_there_after_closing_the_tab(person: Any, store: Store) -> None:
    project = make_project(store, name="drafts", questions=(QUESTION,))
    page = person("Dora", project)
    page.get_by_role("button", name="A single answer").click()
    field = page.get_by_label("Answer", exact=True)
    field.wait_for()
    quiet(page)
    field.click()
    page.keyboard.type("Natalie 1a3ux", delay=30)  # letters and digits of shortcuts
    item = store.items.items(project.id, "me", stage="generation")[0].id

    def saved() -> bool:
        draft = store.drafts.find_draft(item, "Dora", "generation")
        return draft is not None and draft.body["form"]["pairs"][0]["answers"] == "Natalie 1a3ux"

    until(saved)  # never left the field: typing alone saves
    page.close()
    field = person("Dora", project).get_by_label("Answer", exact=True)
    field.wait_for()
    assert field.input_value() == "Natalie 1a3ux"


def test_fast_verdicts_reach_the_answers_in_turn_and_the_next_question_is_seen(person: Any, store: Store) -> None:
    questions = {"Who played Maria?", "Who was Maria?"}
    project = long_project(store, "judging", *questions)
    page = person("me", project, "judging")
    (following,) = questions - {page.locator("h3").first.inner_text()}
    for key in "121233":
        page.keyboard.press(key)
    page.get_by_text("6 of 6 answers judged").wait_for()
    quiet(page)
    page.keyboard.press("Control+Enter")
    page.keyboard.press("1")  # nobody has seen the next item yet
    page.get_by_text("0 of 6 answers judged").wait_for()
    quiet(page)
    assert 0 < page.locator("h3", has_text=following).first.bounding_box()["y"] < 700
    assert page.get_by_text("0 of 6 answers judged").is_visible()
    (judgment,) = store.submissions.submissions(project.id, "me", stage="judging")
    verdicts = {a.position: a.verdict for a in judgment.content.answers}  # type: ignore[union-attr]
    order = [a.position for side in store.reviews.judging_sheet(judgment.item, "me").sides for a in side.answers]
    assert [verdicts[p] for p in order] == ["correct", "wrong", "correct", "wrong", "unsupported", "unsupported"]


def test_accept_and_reject_in_quick_succession_are_of_two_suggestions(person: Any, store: Store) -> None:
    project = long_project(store, "generation", "Who sang Maria?")
    page = person("me", project)
    for key in "axa":
        page.keyboard.press(key)
    page.get_by_text("3 of 6 left").wait_for()
    quiet(page)
    (item,) = store.items.items(project.id, "me", stage="generation")
    draft = store.drafts.find_draft(item.id, "me", "generation")
    assert draft is not None
    assert [pair["answers"] for pair in draft.body["form"]["pairs"] if pair["answers"]] == ["Person 1", "Person 3"]


def test_keys_lead_to_the_search_the_first_result_and_back_to_the_form(person: Any, store: Store) -> None:
    project = make_project(store, name="search", questions=(QUESTION,))
    page = person("Sue", project)
    page.keyboard.press("2")  # a single answer
    answer = page.get_by_label("Answer", exact=True)
    answer.wait_for()
    quiet(page)
    page.keyboard.press("/")
    page.keyboard.type("musical maria 1 p")  # letters and digits of shortcuts, and no "/"
    page.keyboard.press("Enter")
    page.wait_for_function("() => /^Open/.test(document.activeElement.textContent)")
    field = page.get_by_label("Search the passages")
    assert field.input_value() == "musical maria 1 p"
    page.keyboard.press("Enter")  # opens it
    page.get_by_text("Back to the search results").wait_for()
    quiet(page)
    page.keyboard.press("b")
    field.wait_for()
    quiet(page)
    page.keyboard.press("/")
    page.keyboard.press("Escape")
    page.wait_for_function("() => document.activeElement.getAttribute('aria-label') === 'Answer'")
    page.keyboard.type("Natalie p")
    page.keyboard.press("Escape")
    page.wait_for_function("() => document.activeElement === document.body")
    quiet(page)
    assert answer.input_value() == "Natalie p"
    page.keyboard.press("3")  # a key again
    page.get_by_label("Answer 2", exact=True).wait_for()


def test_a_letter_typed_after_a_field_went_away_is_no_shortcut(person: Any, store: Store) -> None:
    project = make_project(store, name="lost field", questions=(QUESTION,))
    page = person("Lou", project)
    page.keyboard.press("2")
    page.get_by_label("Answer", exact=True).click()
    page.keyboard.type("Nat")
    page.evaluate("() => document.activeElement.blur()")  # what a rerun does that takes the field away
    page.keyboard.type("3")
    quiet(page, rest=600)
    assert page.get_by_label("Answer 2", exact=True).count() == 0
    page.locator("h3").first.click()  # left on purpose
    page.keyboard.press("3")
    page.get_by_label("Answer 2", exact=True).wait_for()
