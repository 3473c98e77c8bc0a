"""A pilot in a real Chromium, as an annotation lead would run it, with every action counted by stage: two annotators, a validator, gold
items, blind judging of two systems, and an export.

An action is a click, a key pressed for its effect, or a field filled in (however long its text).  `TEST_PILOT_QUESTIONS=12 pytest -s`
runs it at its full size, some ten minutes, and prints the counts.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import people
import pytest
from annotate_helpers import predict
from page_helpers import ROWS
from serving import MARKS, WAIT, quiet, serve, until, with_corpus

from storage.records.projects import Project
from storage.store import Store

pytestmark = [*MARKS, pytest.mark.slow]
COUNT = int(os.environ.get("TEST_PILOT_QUESTIONS", "3"))
QUESTIONS = [f"Who played Maria in show {n}?" for n in range(1, COUNT + 1)]
GOLD = {"What forms when lava cools quickly?": "Basalt", "Who directed the first film?": "Robert Wise"}
BOTH = ("Natalie Wood", "Rachel Zegler")
EQUAL = COUNT // 3  # questions to which both systems give the same answers
DIFFERENT = COUNT // 3  # questions that the two annotators answer differently
MOST_ACTIONS, MOST_BY_THE_TEAM = 380, 300  # for twelve questions


class Person:
    """Somebody's browser, and how much they do in it."""

    def __init__(self, browser: Any, address: str, counts: Counter[str], stage: str) -> None:
        self.page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
        self.page.set_default_timeout(WAIT)
        self.counts, self.stage = counts, stage
        self.open(address)

    def did(self, actions: int = 1) -> None:
        self.counts[self.stage] += actions

    def open(self, address: str) -> None:
        self.page.goto(address)
        quiet(self.page)

    def sign_in(self, name: str) -> None:
        form = self.form("Sign in")
        self.type("Name", name, form)
        self.type("Password", people.PASSWORD, form, key="Enter")
        self.page.get_by_test_id("stSidebar").get_by_text(name, exact=True).wait_for()
        quiet(self.page)

    def form(self, button: str) -> Any:
        """The form with this button."""
        return self.page.get_by_test_id("stForm").filter(has=self.page.get_by_role("button", name=button, exact=True))

    def click(self, role: str, name: Any, within: Any = None, exact: bool = True) -> None:
        self.did()
        self.page.get_by_role("listbox").wait_for(state="hidden")  # a list that is closing would take the click
        (within or self.page).get_by_role(role, name=name, exact=exact).first.click()
        quiet(self.page)

    def type(self, label: str, text: str, within: Any = None, key: str = "Tab") -> None:
        """A field; Enter in it is an action of its own."""
        self.did(1 + (key == "Enter"))
        field = (within or self.page).get_by_label(label, exact=True).first
        field.fill(text)
        if key == "Enter" and field.get_attribute("role") == "combobox":
            until(lambda: self.offers(field, text), every=1)  # else nothing would be chosen
        field.press(key)
        quiet(self.page)

    def offers(self, field: Any, text: str) -> bool:
        """Whether the list of a field has this option; a page that runs again meanwhile closes the list."""
        option = self.page.get_by_role("option").filter(has_text=text)
        if not option.count():
            field.fill("")
            field.fill(text)
        return bool(option.count())

    def press(self, keys: str) -> None:
        for key in keys.split():
            self.did()
            self.page.keyboard.press(key)

    def sees(self, text: Any) -> None:
        self.page.get_by_text(text).first.wait_for()
        quiet(self.page)

    def question(self) -> str:
        """On the screen; empty where nothing is left at this stage."""
        self.page.locator("h3, .st-key-annotate-again").first.wait_for()
        quiet(self.page)
        heading = self.page.locator("h3")
        return str(heading.first.inner_text()) if heading.count() else ""

    def submit(self) -> str:
        """The next item opens by itself; returns its question."""
        before = self.question()
        self.press("Control+Enter")
        self.page.wait_for_function(
            "(before) => document.querySelector('.st-key-annotate-again') || ![...document.querySelectorAll('h3')].some((h) => h.innerText === before)",
            arg=before,
        )
        return self.question()


def test_a_pilot_from_its_questions_to_the_export(browser: Any, tmp_path: Path) -> None:
    settings = with_corpus(tmp_path / "home", "small", ROWS)
    questions = tmp_path / "questions.jsonl"
    questions.write_text("".join(json.dumps({"question": q}) + "\n" for q in QUESTIONS))
    counts: Counter[str] = Counter()
    with Store(settings.url) as store, serve(settings.home, "small") as address:
        for number, question in enumerate(QUESTIONS):
            store.predictions.save_prediction(predict(question, BOTH, probabilities=(0.9, 0.7)))
            other = BOTH if number < EQUAL else ("Natalie Wood", "Basalt")
            store.predictions.save_prediction(predict(question, other, system="other", probabilities=(0.9, 0.4)))
        lead = Person(browser, f"{address}manage", counts, "setting up")
        make_project(lead, questions)
        (project,) = store.projects.projects()
        # a second system that is ready would be chosen in the same field, as the first one was
        lead.did(2)
        store.projects.update_project("me", project.id, 1, systems=("scripted", "other"))
        lead.click("radio", "Suggestions")
        lead.click("button", "Link predictions already stored")
        lead.sees("predictions linked")
        lead.click("radio", "Items")
        for question, answer in GOLD.items():
            add_gold(lead, question, answer)
        add_people(lead)

        page = f"{address}annotate"
        ann, ben = Person(browser, page, counts, "writing"), Person(browser, page, counts, "writing")
        ann.sign_in("Ann")
        ben.sign_in("Ben")
        write(ann, rejects_the_last=False)
        write(ben, rejects_the_last=True)

        vera = Person(browser, page, counts, "validating")
        vera.sign_in("Vera")
        validate(vera)
        # Ann finds what was sent back by the notice in the sidebar
        ann.open(page)
        ann.stage = "writing"
        ann.click("link", "1 sent back in First round")
        assert ann.question()
        ann.press("Control+Enter")
        ann.page.locator(".st-key-annotate-following").wait_for()
        quiet(ann.page)
        vera.open(page)
        validate(vera, sends_back=False)

        for judge in (ann, ben):
            judge.stage = "judging"
            if judge is ben:
                judge.open(page)
            judge.press("Control+Enter")  # "Go to Judging"
            judge_all(judge)

        lead.stage = "export"
        lead.click("radio", "Export")
        lead.click("button", "Take snapshot")
        with lead.page.expect_download() as download:
            lead.click("button", "ambignq")
        exported = json.loads(Path(download.value.path()).read_text())
        check(store, project, exported)
    team = sum(counts[stage] for stage in ("writing", "validating", "judging"))
    print(f"\n{sum(counts.values())} actions, {team} by the team:", dict(counts))
    assert team <= MOST_BY_THE_TEAM
    assert sum(counts.values()) <= MOST_ACTIONS


def check(store: Store, project: Project, exported: Any) -> None:
    progress = store.items.progress(project.id, "Lea")
    assert {stage: (p.done, p.items) for stage, p in progress.items()} == dict.fromkeys(progress, (COUNT, COUNT))
    assert {question["question"] for question in exported} == set(QUESTIONS)
    roles = {person.name: person.role for person in store.people.people("Lea")}
    assert roles == {"Lea": "manager", "Ann": "annotator", "Ben": "annotator", "Vera": "validator"}
    judged = [s.content for s in store.submissions.submissions(project.id, "Lea", stage="judging", limit=500)]
    assert Counter(content.preference == "tie" for content in judged) == {True: 2 * EQUAL, False: 2 * (COUNT - EQUAL)}  # type: ignore[union-attr]


def make_project(lead: Person, questions: Path) -> None:
    lead.type("Name", "First round")
    lead.click("button", "Judging")
    lead.did(2)
    lead.page.get_by_text("Upload a file", exact=True).click()
    lead.page.get_by_test_id("stFileUploader").first.wait_for()
    lead.page.locator("input[type=file]").first.set_input_files(questions)
    lead.sees(questions.name)
    lead.type("Systems (up to two)", "scripted", key="Enter")
    lead.press("Escape")
    lead.type("People per item", "2")
    lead.did(2)
    lead.page.get_by_text("More: gold items, error labels and time limits").click()
    slider = lead.page.get_by_role("slider", name="Gold items among the work (%)")
    slider.focus()
    slider.press("End")  # 50%
    quiet(lead.page)
    lead.click("button", "Create project")
    lead.sees(f"{COUNT} questions added")


def add_gold(lead: Person, question: str, answer: str) -> None:
    """By hand."""
    field = lead.page.get_by_label("Right answers, one per line (none: the question has no answer)", exact=True)
    if not field.is_visible():
        lead.did()
        lead.page.get_by_text("Add a gold item", exact=True).click()
    field.wait_for()
    quiet(lead.page)
    lead.type("Question", question)
    lead.type("Right answers, one per line (none: the question has no answer)", answer)
    lead.click("button", "Add gold item")
    lead.sees("Gold item added")


def add_people(lead: Person) -> None:
    """The first account is the lead's own: from then on, everybody signs in."""
    lead.click("radio", "People")
    form = lead.form("Create the manager account")
    lead.type("Name", "Lea", form)
    lead.type("Password", people.PASSWORD, form)
    lead.click("button", "Create the manager account", form)
    for name, role in (("Ann", ""), ("Ben", ""), ("Vera", "Validator")):
        form = lead.form("Add person")
        lead.type("Name", name, form)
        lead.type("Password", people.PASSWORD, form)
        if role:
            lead.did(2)
            form.get_by_test_id("stSelectbox").locator("input").click()
            lead.page.get_by_role("option", name=role).click()
        lead.click("button", "Add person", form)
        lead.sees(f"{name} was added")


def write(writer: Person, rejects_the_last: bool) -> None:
    """Everything there is: by the suggestions, where there are some; of some questions one of the two annotators keeps one answer only."""
    kept = 0
    question = writer.question()
    while question:
        if question in GOLD:
            writer.press("/")
            writer.did(2)  # the words, and Enter
            writer.page.keyboard.type(GOLD[question])
            writer.page.keyboard.press("Enter")
            writer.page.wait_for_function("() => /^Open/.test(document.activeElement.textContent)")
            writer.press("Enter 2")
            writer.page.get_by_label("Answer", exact=True).wait_for()
            quiet(writer.page)
            writer.type("Answer", GOLD[question])
        else:
            number = QUESTIONS.index(question)
            rejected = [] if number < EQUAL else ["x"]  # what the other system says beside
            if rejects_the_last and kept < DIFFERENT and number >= EQUAL:
                kept, rejected = kept + 1, ["x", "x"]
            writer.press("e")
            writer.press("l" if not rejected else " ".join(["a"] * (3 - len(rejected)) + rejected))
            writer.sees(f"0 of {2 if number < EQUAL else 3} left")
        question = writer.submit()


def validate(validator: Person, sends_back: bool = True) -> None:
    """One annotation is sent back with a reason; the others are settled by taking what is there."""
    question = validator.question()
    while question:
        if sends_back:
            sends_back = False
            validator.click("button", "Send an annotation back")
            validator.type("What should they change?", "Look again, please.")
            validator.click("button", "Send back")
            validator.page.wait_for_function(
                "(q) => ![...document.querySelectorAll('h3')].some((h) => h.innerText === q)", arg=question
            )
            question = validator.question()
        else:
            question = validator.submit()


def judge_all(judge: Person) -> None:
    """Labels the wrong answers, and all others as correct."""
    question = judge.question()
    while question:
        if QUESTIONS.index(question) >= EQUAL:
            judge.click(
                "button",
                "Wrong for answer",
                judge.page.locator("[class*='-card-']").filter(has_text="Basalt is a dark"),
                exact=False,
            )
        judge.press("l")
        judge.sees(" judged")
        judge.page.wait_for_function(
            "() => { const m = /(\\d+) of (\\d+) answers? judged/.exec(document.body.innerText); return m && m[1] === m[2]; }"
        )
        if QUESTIONS.index(question) >= EQUAL:
            judge.press("a")
            quiet(judge.page)
        question = judge.submit()
