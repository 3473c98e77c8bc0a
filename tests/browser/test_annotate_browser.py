"""The annotate page in a real Chromium: everything by keyboard, also faster than the page can follow; drafts after closing the tab."""

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
ANSWERS = ("Natalie Wood", "Rachel Zegler")
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


def press(page: Any, keys: str) -> None:
    page.keyboard.press(keys)
    quiet(page)


def submit_the_last(page: Any) -> None:
    page.keyboard.press("Control+Enter")
    page.get_by_text("There is nothing left for you").wait_for()


def tab_to(page: Any, label: str) -> None:
    """Moves the focus with the Tab key alone to the field with this label."""
    for _ in range(120):
        if page.evaluate("document.activeElement.getAttribute('aria-label')") == label:
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"no field '{label}' can be reached with Tab")


def test_all_three_stages_by_keyboard(person: Any, store: Store) -> None:
    store.predictions.save_prediction(predict(QUESTION, ANSWERS))
    stages = ("generation", "validation", "judging")
    project = make_project(store, name="keyboard", questions=(QUESTION,), stages=stages, systems=("scripted",))
    page = person("me", project)
    press(page, "e")  # reads the evidence of the first suggestion
    page.get_by_role("button", name="the passage for Natalie Wood").wait_for(state="hidden")  # it is shown whole
    for left in (1, 0):
        press(page, "a")
        page.get_by_text(f"{left} of 2 left").wait_for()
    answer = page.get_by_label("Answer 2", exact=True)
    answer.wait_for()
    tab_to(page, "Answer 2")
    page.keyboard.press("End")
    page.keyboard.type(" | Rachel 1a3ux")  # letters and digits of shortcuts, in a field
    page.get_by_text("accepted, then edited").wait_for()
    assert answer.input_value() == "Rachel Zegler | Rachel 1a3ux"
    submit_the_last(page)
    (written,) = store.submissions.submissions(project.id, "me", stage="generation")
    assert [p.answers for p in written.content.annotation.pairs] == [("Natalie Wood",), ("Rachel Zegler", "Rachel 1a3ux")]  # type: ignore[union-attr]
    assert [u.action for u in written.content.suggestions] == ["accepted", "edited"]  # type: ignore[union-attr]
    assert written.log.viewed_passage_ids == ("p1",)

    page = person("me", project, "validation")
    second = page.get_by_role("button", name="Answer 2").first
    press(page, "1")
    press(page, "2")
    page.locator("button:not([disabled])", has_text="Combine").wait_for()
    press(page, "m")
    second.wait_for(state="hidden")
    press(page, "u")
    second.wait_for()
    submit_the_last(page)
    (final,) = store.submissions.submissions(project.id, "me", stage="validation")
    assert len(final.content.annotation.pairs) == 2  # type: ignore[union-attr]

    page = person("me", project, "judging")
    for key, judged in (("1", 0), ("7", 1), ("2", 1), ("8", 2)):
        press(page, key)
        page.get_by_text(f"{judged} of 2 answers judged").wait_for()
    submit_the_last(page)
    (judgment,) = store.submissions.submissions(project.id, "me", stage="judging")
    assert {(a.verdict, a.question) for a in judgment.content.answers} == {("correct", "fits"), ("wrong", "ambiguous_still")}  # type: ignore[union-attr]


def test_a_draft_is_saved_while_typing_and_there_after_closing_the_tab(person: Any, store: Store) -> None:
    project = make_project(store, name="drafts", questions=(QUESTION,))
    page = person("Dora", project)
    page.get_by_role("button", name="A single answer").click()
    field = page.get_by_label("Answer", exact=True)
    field.wait_for()
    quiet(page)
    field.click()
    page.keyboard.type("Natalie W", delay=30)
    item = store.items.items(project.id, "me", stage="generation")[0].id

    def saved() -> bool:
        draft = store.drafts.find_draft(item, "Dora", "generation")
        return draft is not None and draft.body["form"]["pairs"][0]["answers"] == "Natalie W"

    until(saved)  # never left the field: typing alone saves
    page.close()
    field = person("Dora", project).get_by_label("Answer", exact=True)
    field.wait_for()
    assert field.input_value() == "Natalie W"


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
