"""The lead of an annotation team in a real Chromium: a project, three people, writing, validation, judging and export of four
questions, each in as few clicks and keys as stand here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import people
import pytest
from annotate_helpers import predict
from page_helpers import ROWS
from serving import MARKS, WAIT, quiet, serve, with_corpus

from storage.store import Store

pytestmark = [*MARKS, pytest.mark.slow]
QUESTIONS = [f"Who played Maria in show {n}?" for n in range(1, 5)]


class Person:
    """Somebody's browser."""

    def __init__(self, browser: Any, address: str) -> None:
        self.page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
        self.page.set_default_timeout(WAIT)
        self.open(address)

    def open(self, address: str) -> None:
        self.page.goto(address)
        quiet(self.page)

    def sign_in(self, name: str) -> None:
        form = self.form("Sign in")
        self.type("Name", name, form)
        self.type("Password", people.PASSWORD, form, key="Enter")
        self.page.get_by_test_id("stSidebar").get_by_text(name, exact=True).wait_for()
        self.starts()

    def starts(self) -> None:
        """Keys do something when the buttons are there."""
        self.page.get_by_role("button", name="Submit").wait_for()
        quiet(self.page)

    def form(self, button: str) -> Any:
        """The form with this button."""
        return self.page.get_by_test_id("stForm").filter(has=self.page.get_by_role("button", name=button, exact=True))

    def click(self, role: str, name: str, within: Any = None) -> None:
        self.page.get_by_role("listbox").wait_for(state="hidden")  # a list that is closing would take the click
        (within or self.page).get_by_role(role, name=name, exact=True).first.click()
        quiet(self.page)

    def type(self, label: str, text: str, within: Any = None, key: str = "Tab") -> None:
        field = (within or self.page).get_by_label(label, exact=True).first
        field.fill(text)
        field.press(key)
        quiet(self.page)

    def press(self, keys: str) -> None:
        for key in keys.split():
            self.page.keyboard.press(key)

    def sees(self, text: str) -> None:
        self.page.get_by_text(text).first.wait_for()
        quiet(self.page)

    def submit(self, following: int) -> None:
        """The next item opens by itself."""
        self.press("Control+Enter")
        after = QUESTIONS[following : following + 1]
        (self.page.locator("h3", has_text=after[0]) if after else self.page.get_by_text("nothing left for you")).wait_for()
        quiet(self.page)


def test_a_project_from_its_questions_to_the_export(browser: Any, tmp_path: Path) -> None:
    settings = with_corpus(tmp_path / "home", "small", ROWS)
    questions = tmp_path / "questions.jsonl"
    questions.write_text("".join(json.dumps({"question": q}) + "\n" for q in QUESTIONS))
    with Store(settings.url) as store, serve(settings.home, "small") as address:
        for question in QUESTIONS:
            store.predictions.save_prediction(predict(question, ("Natalie Wood", "Rachel Zegler"), probabilities=(0.9, 0.7)))
        lead = Person(browser, f"{address}manage")
        make_project(lead, questions)
        add_people(lead)
        (project,) = store.projects.projects()
        page = f"{address}annotate?project={project.id}&stage="

        ann, ben = Person(browser, f"{page}generation"), Person(browser, f"{page}generation")
        ann.sign_in("Ann")
        ben.sign_in("Ben")
        for number, writer in enumerate((ann, ben, ann, ben)):
            writer.press("e l" if writer is ann else "e a x")
            writer.sees("0 of 2 left")
            if writer is ben:
                writer.type("Answer", "Natalie Wood | Natasha Gurdin")
            writer.submit(number + 2)
        vera = Person(browser, f"{page}validation")
        vera.sign_in("Vera")
        vera.press("2 x")
        vera.sees("1 of 2 left")  # what was deleted is a suggestion again
        for number in range(len(QUESTIONS)):
            vera.submit(number + 1)
        for judge in (ann, ben):
            judge.open(f"{page}judging")
            judge.starts()
        for number, judge in enumerate((ann, ben, ann, ben)):
            judge.press("2 l" if number == 0 else "l")
            judge.sees("2 of 2 answers judged")
            judge.submit(number + 2)

        lead.click("radio", "Export")
        lead.click("button", "Take snapshot")
        with lead.page.expect_download() as download:
            lead.click("button", "ambignq")
        exported = json.loads(Path(download.value.path()).read_text())

        progress = store.items.progress(project.id, "Lea")
        assert {stage: p.submitted for stage, p in progress.items()} == {"generation": 4, "validation": 4, "judging": 4}
        assert len(exported) == 4
        roles = {person.name: person.role for person in store.people.people("Lea")}
        assert roles == {"Lea": "manager", "Ann": "annotator", "Ben": "annotator", "Vera": "validator"}


def make_project(lead: Person, questions: Path) -> None:
    lead.type("Name", "First round")
    lead.click("button", "Judging")
    lead.page.get_by_text("Upload a file", exact=True).click()
    lead.page.get_by_test_id("stFileUploader").first.wait_for()
    lead.page.locator("input[type=file]").first.set_input_files(questions)
    lead.sees(questions.name)
    lead.type("Systems (up to two)", "scripted", key="Enter")
    lead.press("Escape")
    lead.click("button", "Create project")
    lead.sees("4 questions added")


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
            form.get_by_test_id("stSelectbox").locator("input").click()
            lead.page.get_by_role("option", name=role).click()
        lead.click("button", "Add person", form)
        lead.sees(f"{name} was added")
