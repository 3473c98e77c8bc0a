"""Predictions for the storage tests, and a worker that runs in another process."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import delete, select

from core import types as t
from core.metrics.errors import BUCKETS
from storage.access.actors import annotator_row
from storage.exchange.imports.importing import write_pairs
from storage.results.standing import pairs_of
from storage.schema import tables
from storage.schema.engine import now
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
    read = tuple(passages if passages is not None else (passage(1), passage(2)))
    first = read[0].passage if read else None
    evidence = (t.Evidence(first.id, 0, 7, first.text[:7]),) if first else ()
    returned = tuple(t.Answer(a, max(0.0, 0.9 - 0.1 * i), evidence, step=i + 1) for i, a in enumerate(answers))
    clear = tuple(t.Clarification(a, f"{question[:-1]} ({a})?", i == 0, 3, (a,), "") for i, a in enumerate(answers)) * clarified
    chosen = [t.Candidate(a, 0.8) for a in answers]
    steps = tuple(
        t.Step(i + 1, tuple(answers[:i]), f"{question} so far: {i}", (c,), c, 0.1, 0.25) for i, c in enumerate(chosen)
    )
    events: tuple[t.Event, ...] = (
        t.PassagesRetrieved(read, 0.01, question),
        t.QuestionRelaxed(question.lower()),
        *(t.StepStarted(s.number, s.previous, s.prompt) for s in steps),
        *(t.StepFinished(s, a) for s, a in zip(steps, returned, strict=True)),
        t.AnswerRejected("Nobody", "not in the passage"),
        *(t.QuestionClarified(c, 0.1) for c in clear),
        t.InterpretationProposed(t.Interpretation("p1", abstained="says nothing")),
        t.InterpretationsClustered((t.InterpretationPlaced(0, 0.5, -0.5, -1, True),)),
        t.Finished(1.5, "eoi"),
    )
    info = t.SystemInfo(system, {"top_k": 10, "nested": {"list": [1, 2.5, None, True]}}, "starter", "c0", "default", "d0")
    asked = t.Question(question, id=id, pinned=("Natalie Wood",), banned=("Nobody",), passages=None)
    return t.Prediction(asked, info, returned, clear, steps, read, 1.5, events)


def known(store: Store, name: str) -> tables.Annotator:
    """The row of a person's name, made if need be."""
    with store.database.writing() as session:
        return annotator_row(session, name)


def fill(store: Store) -> tuple[str, str]:
    """Two questions, two predictions, three annotators, every kind of row.  Returns the predictions' ids."""
    first = store.predictions.save_prediction(prediction(id="q-1"), key="run-1")
    second = store.predictions.save_prediction(
        prediction("When was the bridge opened? Ünïcode “quotes”", ["1932", "1937", "1883"])
    )
    store.labels.judge(first, 0, "Ada", "correct", "see the cast list")
    store.labels.judge(first, 1, "Ada", "wrong")
    store.labels.judge(first, 1, "Ada", "correct", "the film of 2021")
    store.labels.judge(first, 0, "Bob", "correct")
    store.labels.judge(first, 1, "Bob", "unsupported")
    store.labels.judge(second, 0, "Bob", "wrong", state="draft")
    store.labels.judge(second, 1, "Bob", "wrong")
    store.labels.judge(second, 2, "Bob", None, state="skipped")
    store.labels.clear_judgment(second, 1, "Bob")
    question = store.predictions.get_prediction(second).question_id
    pairs = (
        t.QAPair("When was Sydney's opened?", ("1932", "19 March 1932"), ("p1",)),
        t.QAPair("When was the Gate?", ("1937",)),
    )
    annotate(store, question, "Cleo", t.Annotation("single", pairs[:1]), state="draft")
    annotate(store, question, "Cleo", t.Annotation("multiple", pairs))
    annotate(store, question, "Bob", t.Annotation("none"), stage="validation")
    report, traces = evaluation_report(), [("q0", {"answers": ["Rome"], "events": []})]
    origin = {"system": "ambigprompt", "corpus": "starter", "questions": "dev", "label": "first"}
    store.evaluations.save_evaluation(**origin, metrics=report["scores"], report=report, traces=traces)
    return first, second


def annotate(
    store: Store,
    question_id: str,
    annotator: str,
    annotation: t.Annotation,
    stage: str = "generation",
    state: str = "submitted",
) -> None:
    """Stores an annotation as an import does; one that is there is replaced."""
    with store.database.writing() as session:
        question = session.scalars(select(tables.Question.id).filter_by(public_id=question_id)).one()
        same = {"question_id": question, "annotator_id": annotator_row(session, annotator).id, "stage": stage}
        row, moment = session.scalar(select(tables.Annotation).filter_by(**same)), now()
        if row is None:
            row = tables.Annotation(**same, version=0, created=moment)
        row.type, row.state, row.version, row.updated = annotation.type, state, row.version + 1, moment
        session.add(row)
        session.flush()
        session.execute(delete(tables.QaPair).where(tables.QaPair.annotation_id == row.id))
        write_pairs(session, row, annotation.pairs)


def annotations(store: Store, question_id: str) -> list[tuple[str, str, str, t.Annotation]]:
    """(annotator, stage, state, annotation) as they stand in the table of annotations out of files, by annotator."""
    a = tables.Annotation
    query = (
        select(a, tables.Annotator.name)
        .join(tables.Annotator, tables.Annotator.id == a.annotator_id)
        .join(tables.Question, tables.Question.id == a.question_id)
        .where(tables.Question.public_id == question_id)
        .order_by(a.annotator_id, a.stage)
    )
    with store.database.reading() as session:
        rows = session.execute(query).all()
        pairs = pairs_of(session, [row.id for row, _ in rows])
        return [(name, row.stage, row.state, t.Annotation(row.type, pairs.get(row.id, ()))) for row, name in rows]


def earlier_labels(store: Store, prediction_id: str, position: int, annotator: str) -> list[tables.JudgmentRevision]:
    """The earlier labels that somebody gave an answer on Explore, the oldest first."""
    revision, answer = tables.JudgmentRevision, tables.PredictedAnswer
    query = (
        select(revision)
        .join(answer, answer.id == revision.predicted_answer_id)
        .join(tables.Prediction, tables.Prediction.id == answer.prediction_id)
        .join(tables.Annotator, tables.Annotator.id == revision.annotator_id)
        .where(tables.Prediction.public_id == prediction_id, answer.position == position)
        .where(tables.Annotator.name == annotator)
        .order_by(revision.version)
    )
    with store.database.reading() as session:
        return list(session.scalars(query))


def evaluation_row(number: int, f1: float | None, **more: Any) -> dict[str, Any]:
    """A row as core.evaluation.run writes it; `f1` None: the question failed.  Every second question is ambiguous."""
    row: dict[str, Any] = {
        "id": f"q{number}",
        "question": f"Question {number}?",
        "source": "asqa" if number % 3 else "quotesum",
        "ambiguity": None,
        "ambiguous": number % 2 == 0,
        "references": [[["Rome"], ["Oslo"]]],
        "error": None,
        "seconds": 0.1 * (number + 1),
    }
    if f1 is None:
        return row | {"error": "no passage matches"} | more
    answered = {
        "answers": [{"text": "Rome", "probability": 0.9, "passages": ["p1"], "question": None, "passed": None}],
        "metrics": {"F1 answer": f1, "recall": f1 / 2, "clarified": f1, "RAMDocs": None},
        "weights": {"clarified": float(number)},
        "errors": {**dict.fromkeys(BUCKETS, 0), "missed": 1, "stopped_early": 1},
    }
    return row | answered | more


def evaluation_report(values: Sequence[float | None] = (1.0, 0.5, None, 0.0), **provenance: Any) -> dict[str, Any]:
    """A report as core.evaluation.report writes it, as far as the store reads it."""
    rows = [evaluation_row(number, value) for number, value in enumerate(values)]
    answered = [(row["ambiguous"], value) for row, value in zip(rows, values, strict=True) if value is not None]
    means = {
        scope: sum(v for _, v in part) / len(part) if part else None
        for scope, part in (("all", answered), ("multi", [k for k in answered if k[0]]))
    }
    system = {"name": "ambigprompt", "checkpoint": "default", "checkpoint_digest": "d0", "settings": {"top_k": 10}}
    tags = {"training questions": 100}
    origin = {"system": system, "commit": "abc123", "seed": 7, "parameters": 3_000_000_000, "tags": tags}
    return {
        "n": len(rows),
        "failed": len(rows) - len(answered),
        "rows": rows,
        "scores": {"F1 answer": means},
        "intervals": {"F1 answer": {"all": [0.1, 0.9], "multi": None}},
        "timings": {"seconds_median": 0.2, "seconds_p95": 0.4, "peak_memory_mb": 512.5},
        "provenance": origin | provenance,
    }


def save_report(store: Store, report: dict[str, Any], **run: Any) -> str:
    """Saves a run with this report."""
    values = {"system": "scripted", "corpus": "small", "questions": "dev.json", "metrics": report["scores"], **run}
    return store.evaluations.save_evaluation(report=report, **values)


def raw(path: Path, query: str) -> list[tuple[Any, ...]]:
    """Rows of the file, read without SQLAlchemy."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def write_until_killed(url: str, pipe: Any) -> None:
    """Saves and judges for ever; sends each id after its save was acknowledged."""
    with Store(url) as store:
        number = 0
        while True:
            saved = store.predictions.save_prediction(prediction(f"Question {os.getpid()}-{number}?"))
            store.labels.judge(saved, 0, "Ada", "correct")
            pipe.send(saved)
            number += 1


def noted_exports(store: Store) -> list[tables.Export]:
    """The exports and backups that the database has noted."""
    with store.database.reading() as session:
        return list(session.scalars(select(tables.Export).order_by(tables.Export.id.desc())))
