"""The keys of the annotate page in a real Chromium, pressed faster than the page can follow; and what is seen of the next item."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from annotate_helpers import predict
from serving import MARKS, WAIT, chromium, quiet, serve, with_corpus

from core import types as t
from core.settings import Settings
from storage.store import Store

pytestmark = MARKS
WORDS = " ".join(["The musical was played again and again in many towns."] * 8)
ROWS = [(f"p{n}", f"Title {n}", f"Person {n} played Maria. {WORDS} Person {n} won with it.") for n in range(1, 7)]
ANSWERS = tuple(f"Person {n}" for n in range(1, 7))


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return with_corpus(tmp_path_factory.mktemp("keys") / "home", "small", ROWS)


@pytest.fixture(scope="module")
def page(settings: Settings) -> Iterator[Any]:
    with serve(settings.home, "small") as address, chromium() as browser:
        page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        page.set_default_timeout(WAIT)
        page.address = address
        yield page


@pytest.fixture(scope="module")
def store(settings: Settings) -> Iterator[Store]:
    with Store(settings.url) as opened:
        yield opened


def opened(page: Any, store: Store, stage: str, questions: list[str]) -> str:
    for question in questions:
        store.predictions.save_prediction(predict(question, ANSWERS, rows=ROWS, probabilities=(0.9, 0.8, 0.7, 0.6, 0.5, 0.4)))
    made = store.projects.create_project("me", f"{stage} fast", corpus="small", stages=(stage,), systems=("scripted",))
    store.intake.add_items("me", made.id, [t.ReferenceQuestion("", q, ()) for q in questions])
    page.goto(f"{page.address}annotate?project={made.id}&stage={stage}", timeout=WAIT)
    page.get_by_text("submit", exact=False).last.wait_for()
    quiet(page, 400)
    return made.id


def in_view(page: Any, question: str) -> bool:
    box = page.locator("h3", has_text=question).first.bounding_box()
    return bool(box and 0 < box["y"] < 700)


def test_fast_verdicts_reach_the_answers_in_turn_and_the_next_question_is_seen(page: Any, store: Store) -> None:
    project = opened(page, store, "judging", ["Who played Maria?", "Who was Maria?"])
    first = page.locator("h3").first.inner_text()
    for key in "121233":
        page.keyboard.press(key)
    page.get_by_text("6 of 6 answers judged").wait_for()
    quiet(page, 400)
    page.keyboard.press("Control+Enter")
    page.keyboard.press("1")  # nobody has seen the next item yet
    page.get_by_text("0 of 6 answers judged").wait_for()
    quiet(page, 400)
    second = ({"Who played Maria?", "Who was Maria?"} - {first}).pop()
    assert in_view(page, second)
    assert page.get_by_text("0 of 6 answers judged").is_visible()
    (sent,) = store.submissions.submissions(project, "me", stage="judging")
    sheet = store.reviews.judging_sheet(sent.item, "me")
    order = [a.position for side in sheet.sides for a in side.answers]
    verdicts = {a.position: a.verdict for a in sent.content.answers}  # type: ignore[union-attr]
    assert [verdicts[p] for p in order] == ["correct", "wrong", "correct", "wrong", "unsupported", "unsupported"]


def test_accept_and_reject_in_quick_succession_are_of_two_suggestions(page: Any, store: Store) -> None:
    project = opened(page, store, "generation", ["Who sang Maria?"])
    page.locator("h3").first.click()
    for key in "axa":
        page.keyboard.press(key)
    page.get_by_text("3 of 6 left").wait_for()
    quiet(page, 400)
    (item,) = store.items.items(project, "me", stage="generation")
    draft = store.drafts.find_draft(item.id, "me", "generation")
    assert draft is not None
    assert [pair["answers"] for pair in draft.body["form"]["pairs"] if pair["answers"]] == ["Person 1", "Person 3"]
