"""Predictions for the storage tests, and workers that run in other processes."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core import types as t
from storage.store import Store


def passage(number: int, text: str = "") -> t.RetrievedPassage:
    body = text or f"Passage {number} names Natalie Wood and Rachel Zegler."
    return t.RetrievedPassage(t.Passage(f"p{number}", f"Title {number}", body), rank=number, score=1.0 / number, similarity=0.5)


def prediction(
    question: str = "Who played Maria in West Side Story?",
    answers: Sequence[str] = ("Natalie Wood", "Rachel Zegler"),
    *,
    id: str = "",
    system: str = "ambigprompt",
    clarified: bool = True,
    passages: Sequence[t.RetrievedPassage] | None = None,
) -> t.Prediction:
    """A prediction as a real run folds it, every kind of event among its events."""
    found = tuple(passages if passages is not None else (passage(1), passage(2)))
    first = found[0].passage if found else None
    evidence = (t.Evidence(first.id, 0, 7, first.text[:7]),) if first else ()
    made = tuple(t.Answer(a, max(0.0, 0.9 - 0.1 * i), evidence, step=i + 1) for i, a in enumerate(answers))
    clear = tuple(t.Clarification(a, f"{question[:-1]} ({a})?", i == 0, 3, (a,), "") for i, a in enumerate(answers)) * clarified
    steps = tuple(
        t.Step(
            i + 1, tuple(answers[:i]), f"{question} so far: {i}", (t.Candidate(a, 0.8),), t.Candidate(a, 0.8, None), 0.1, 0.25
        )
        for i, a in enumerate(answers)
    )
    events: tuple[t.Event, ...] = (
        t.PassagesRetrieved(found, 0.01, question),
        t.QuestionRelaxed(question.lower()),
        *(t.StepStarted(s.number, s.previous, s.prompt) for s in steps),
        *(t.StepFinished(s, a) for s, a in zip(steps, made, strict=True)),
        t.AnswerRejected("Nobody", "not in the passage"),
        *(t.QuestionClarified(c, 0.1) for c in clear),
        t.InterpretationProposed(t.Interpretation("p1", abstained="says nothing")),
        t.InterpretationsClustered((t.InterpretationPlaced(0, 0.5, -0.5, -1, True),)),
        t.Finished(1.5, "eoi"),
    )
    info = t.SystemInfo(system, {"top_k": 10, "nested": {"list": [1, 2.5, None, True]}}, "starter", "c0", "default", "d0")
    asked = t.Question(question, id=id, pinned=("Natalie Wood",), banned=("Nobody",), passages=None)
    return t.Prediction(asked, info, made, clear, steps, found, 1.5, events)


def fill(store: Store) -> tuple[str, str]:
    """Two questions, two predictions, three annotators, every kind of row.  Returns the predictions' ids."""
    first = store.save_prediction(prediction(id="q-1"), key="run-1")
    second = store.save_prediction(prediction("When was the bridge opened? Ünïcode “quotes”", ["1932", "1937", "1883"]))
    store.judge(first, 0, "Ada", "correct", "see the cast list")
    store.judge(first, 1, "Ada", "wrong")
    store.judge(first, 1, "Ada", "correct", "the film of 2021")
    store.judge(first, 0, "Bob", "correct")
    store.judge(first, 1, "Bob", "unsupported")
    store.judge(second, 0, "Bob", "wrong", state="draft")
    store.judge(second, 1, "Bob", "wrong")
    store.judge(second, 2, "Bob", None, state="skipped")
    store.clear_judgment(second, 1, "Bob")
    question = store.get_prediction(second).question_id
    pairs = (
        t.QAPair("When was Sydney's opened?", ("1932", "19 March 1932"), ("p1",)),
        t.QAPair("When was the Gate?", ("1937",)),
    )
    store.save_annotation(question, "Cleo", t.Annotation("single", pairs[:1]), state="draft")
    store.save_annotation(question, "Cleo", t.Annotation("multiple", pairs))
    store.save_annotation(question, "Bob", t.Annotation("none"), stage="validation")
    store.claim("question", question, "Ada")
    store.save_evaluation(system="ambigprompt", corpus="starter", questions="dev", metrics={"F1": 0.5}, report={"rows": [1]})
    return first, second


def raw(path: Path, query: str) -> list[tuple[Any, ...]]:
    """What stands in the file, past SQLAlchemy."""
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def write_until_killed(url: str, pipe: Any) -> None:
    """Saves and judges for ever; sends each id after its save was acknowledged."""
    with Store(url) as store:
        number = 0
        while True:
            saved = store.save_prediction(prediction(f"Question {os.getpid()}-{number}?"))
            store.judge(saved, 0, "Ada", "correct")
            pipe.send(saved)
            number += 1


def write_some(url: str, name: str, count: int) -> None:
    """`count` predictions, each judged twice by one shared annotator's name and one of its own."""
    with Store(url) as store:
        for number in range(count):
            saved = store.save_prediction(prediction(f"{name} {number}?"))
            store.judge(saved, 0, "shared", "correct")
            store.judge(saved, 0, name, "wrong", note=str(number))
