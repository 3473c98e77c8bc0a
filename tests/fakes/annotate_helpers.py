"""A project with items and predictions, as a manager would have made it, and how tests read the annotate page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

from page_helpers import ANSWERS, QUESTION, ROWS
from streamlit.testing.v1 import AppTest

from core import types as t
from storage.records.projects import Project
from storage.store import Store

SECOND = "Where did the musical open?"
QUESTIONS = {
    "Natalie Wood": "Who played Maria in the 1961 film West Side Story?",
    "Rachel Zegler": "Who played Maria in the 2021 film West Side Story?",
    "Carol Lawrence": "Who played Maria in West Side Story on Broadway?",
}


def predict(
    question: str,
    answers: tuple[str, ...] = ANSWERS,
    system: str = "scripted",
    rows: Sequence[tuple[str, str, str]] = ROWS,
    probabilities: Sequence[float] = (),
) -> t.Prediction:
    """A prediction over these passages, with evidence and disambiguated questions."""
    passages = tuple(
        t.RetrievedPassage(t.Passage(i, title, text), rank, 1.0 / rank) for rank, (i, title, text) in enumerate(rows, 1)
    )
    returned, clarified = [], []
    for answer in answers:
        evidence = tuple(
            t.Evidence(p.passage.id, p.passage.text.index(answer), p.passage.text.index(answer) + len(answer), answer)
            for p in passages
            if answer in p.passage.text
        )
        returned.append(t.Answer(answer, probabilities[len(returned)] if probabilities else 0.3, evidence))
        if answer in QUESTIONS:
            clarified.append(t.Clarification(answer, QUESTIONS[answer], True))
    return t.Prediction(t.Question(question), t.SystemInfo(system), tuple(returned), tuple(clarified), (), passages, 0.1, ())


def make_project(store: Store, by: str = "me", questions: tuple[str, ...] = (QUESTION, SECOND), **changes: Any) -> Project:
    values: dict[str, Any] = {"corpus": "small", "reference_date": date(2024, 12, 31), **changes}
    project = store.projects.create_project(by, values.pop("name", "Musicals"), **values)
    store.intake.add_items(by, project.id, [t.ReferenceQuestion("", q, ()) for q in questions])
    return project


def click(app: AppTest, *parts: object) -> AppTest:
    """The one button whose key ends with these parts."""
    return find(app.button, *parts).click().run()


def write(app: AppTest, text: str, *parts: object) -> AppTest:
    return find(app.text_input, *parts).set_value(text).run()


def fine(app: AppTest) -> AppTest:
    assert not app.exception
    assert not app.error, [e.value for e in app.error]
    return app


def find(elements: Any, *parts: object) -> Any:
    ending = "." + ".".join(map(str, parts))
    matches = [e for e in elements if e.key and ("." + e.key).endswith(ending)]
    assert len(matches) == 1, f"{len(matches)} with key *{ending} among {[e.key for e in elements]}"
    return matches[0]


def read_something(app: AppTest) -> AppTest:
    write(app, "Maria West Side Story", "query")
    opened = [b for b in app.button if b.key and ".open." in b.key]
    return opened[0].click().run()
