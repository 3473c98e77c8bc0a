"""The lead of an annotation team in a real Chromium: a project, three people, writing, validation, judging and export of twelve
questions.  Every click, typed field, key and opened link counts as one action."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import people
import pytest
from serving import MARKS, WAIT, quiet, serve, with_corpus

from core import types as t
from storage.store import Store

pytestmark = [*MARKS, pytest.mark.slow]
QUESTIONS = [f"Who played Maria in show {n}?" for n in range(1, 13)]
FILMS = {"Natalie Wood": "1961", "Rachel Zegler": "2021"}
ROWS = [(f"p{year}", f"Film of {year}", f"{name} played Maria in the film of {year}.") for name, year in FILMS.items()]
MAX_ACTIONS = 250


def predict(question: str) -> t.Prediction:
    passages = tuple(t.RetrievedPassage(t.Passage(i, title, text), n, 1.0 / n) for n, (i, title, text) in enumerate(ROWS, 1))
    answers = tuple(t.Answer(name, 0.9 - n / 5, (t.Evidence(ROWS[n][0], 0, len(name), name),)) for n, name in enumerate(FILMS))
    clear = tuple(t.Clarification(name, question.replace("?", f", the film of {year}?"), True) for name, year in FILMS.items())
    return t.Prediction(t.Question(question), t.SystemInfo("scripted"), answers, clear, (), passages, 0.1, ())


class Person:
    """Somebody's browser, with what they did in it counted by all together."""

    actions = 0

    def __init__(self, browser: Any, address: str) -> None:
        self.page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
        self.page.set_default_timeout(WAIT)
        self.open(address)

    def open(self, address: str) -> None:
        Person.actions += 1
        self.page.goto(address, timeout=WAIT)
        quiet(self.page, 500)

    def sign_in(self, name: str) -> None:
        form = self.form("Sign in")
        self.type("Name", name, form)
        self.type("Password", people.PASSWORD, form, key="Enter")
        self.page.get_by_test_id("stSidebar").get_by_text(name, exact=True).wait_for()
        self.starts()

    def starts(self) -> None:
        """Keys do something when the buttons are there."""
        self.page.get_by_role("button", name="Submit").wait_for()
        quiet(self.page, 500)

    def form(self, button: str) -> Any:
        """The form with this button."""
        return self.page.get_by_test_id("stForm").filter(has=self.page.get_by_role("button", name=button, exact=True))

    def click(self, role: str, name: str, within: Any = None) -> None:
        Person.actions += 1
        (within or self.page).get_by_role(role, name=name, exact=True).first.click()
        quiet(self.page)

    def type(self, label: str, text: str, within: Any = None, key: str = "Tab") -> None:
        Person.actions += 1 + (key != "Tab")  # to leave a field is no action of its own
        field = (within or self.page).get_by_label(label, exact=True).first
        field.fill(text)
        field.press(key)
        quiet(self.page)

    def press(self, keys: str) -> None:
        for key in keys.split():
            Person.actions += 1
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


def test_a_project_of_twelve_questions_takes_few_actions(browser: Any, tmp_path: Path) -> None:
    settings = with_corpus(tmp_path / "home", "small", ROWS)
    questions = tmp_path / "questions.jsonl"
    questions.write_text("".join(json.dumps({"question": q}) + "\n" for q in QUESTIONS))
    with Store(settings.url) as store, serve(settings.home, "small") as address:
        for question in QUESTIONS:
            store.predictions.save_prediction(predict(question))
        lead = Person(browser, f"{address}manage")
        make_project(lead, questions)
        add_people(lead)
        (project,) = store.projects.projects()
        place = f"{address}annotate?project={project.id}&stage="

        writers = [Person(browser, f"{place}generation") for _ in range(2)]
        for writer, name in zip(writers, ("Ann", "Ben"), strict=True):
            writer.sign_in(name)
        for number in range(12):
            writer = writers[number % 2]
            writer.press("e a x" if number % 2 else "e l")
            writer.sees("0 of 2 left")
            if number % 2:
                writer.type("Answer", "Natalie Wood | Natasha Gurdin")
            writer.submit(number + 2)
        vera = Person(browser, f"{place}validation")
        vera.sign_in("Vera")
        for number in range(12):
            if number % 4 == 0:
                vera.press("2 x")
                vera.sees("1 of 2 left")  # what was deleted is a suggestion again
            vera.submit(number + 1)
        for writer in writers:
            writer.open(f"{place}judging")
            writer.starts()
        for number in range(12):
            writer = writers[number % 2]
            writer.press("2 l" if number % 3 == 0 else "l")
            writer.sees("2 of 2 answers judged")
            writer.submit(number + 2)

        lead.click("radio", "Export")
        lead.click("button", "Take snapshot")
        with lead.page.expect_download() as download:
            lead.click("button", "ambignq")
        exported = json.loads(Path(download.value.path()).read_text())

        done = {name: p.submitted for name, p in store.items.progress(project.id, "Lea").items()}
        assert done == {"generation": 12, "validation": 12, "judging": 12}
        assert len(exported) == 12
        assert {"Ann", "Ben", "Vera"} <= {p.name for p in store.people.people("Lea")}
        print(f"{Person.actions} actions")
        assert Person.actions <= MAX_ACTIONS


def make_project(lead: Person, questions: Path) -> None:
    lead.type("Name", "First round")
    lead.click("button", "Judging")
    Person.actions += 1
    lead.page.get_by_text("Upload a file", exact=True).click()
    lead.page.get_by_test_id("stFileUploader").first.wait_for()
    Person.actions += 1
    lead.page.locator("input[type=file]").first.set_input_files(questions)
    lead.sees(questions.name)
    lead.type("Systems (up to two)", "scripted", key="Enter")
    lead.press("Escape")
    lead.click("button", "Create project")
    lead.sees("12 questions added")


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
            Person.actions += 2
            form.get_by_test_id("stSelectbox").locator("input").click()
            lead.page.get_by_role("option", name=role).click()
        lead.click("button", "Add person", form)
        lead.sees(f"{name} was added")
