"""Twelve starter questions to practise on, with the work of three invented people: a project to work in, and an example of agreement.

Both are separate databases.  Real work is in neither, and nothing of them enters exports or figures.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from core.annotating.aliases import parse_aliases
from core.annotating.labels import Label, QuestionLabel
from core.datasets.ambignq import load
from core.settings import ROOT
from core.text import answer_keys
from core.types import Annotation, QAPair, ReferenceQuestion
from storage.records.annotation import (
    Content,
    GenerationWork,
    JudgedAnswer,
    JudgingSheet,
    JudgingWork,
)
from storage.records.contents import gold_score
from storage.records.enumerations import WorkStage
from storage.records.projects import Project
from storage.schema.creation import head
from storage.shipped.traces import expand, passages, read
from storage.store import Store, StoreParts

SHIPPED, STARTER = ROOT / "data" / "shipped", ROOT / "data" / "starter"
PEOPLE, PREDICTIONS = SHIPPED / "people.json", SHIPPED / "predictions.jsonl.xz"
COMMAND = "python -m benchmarks.shipped_practice"
MANAGER_NAME = "Ambiscope"  # of the project; nobody works under this name
PRACTICE, EXAMPLE = "Practice: twelve starter questions", "Example: three invented people on twelve starter questions"
RIGHT_FROM = 0.8  # agreement with the reference
ANSWERED_QUESTIONS = 4  # questions of the practice project that two people have answered already: they wait for validation


def digest() -> str:
    """Identifies what is made of the shipped files in this version's schema."""
    return hashlib.sha256(head().encode() + PEOPLE.read_bytes() + PREDICTIONS.read_bytes()).hexdigest()[:12]


@cache
def _people() -> Mapping[str, Any]:
    people: Mapping[str, Any] = json.loads(PEOPLE.read_text(encoding="utf-8"))
    return people


def questions() -> list[ReferenceQuestion]:
    """The practice questions with their references, in the order of the file."""
    ids = _people()["questions"]
    return [q for q in load(STARTER / "questions.json") if q.id in ids]


def display_name(person: str) -> str:
    return f"{person} (invented)"


def annotation_of(question: str, person: str) -> Annotation:
    """The annotation that a person wrote for the question with this id."""
    pairs = tuple(QAPair(text, parse_aliases(answer)) for text, answer in _people()["questions"][question][person])
    return Annotation("single" if len(pairs) == 1 and not pairs[0].question else "multiple", pairs)


def practice(store: Store) -> Project:
    """Makes the project to practise in: to write, to validate and to judge.  Raises StorageError."""
    project, items = _project(store, PRACTICE, 2)
    _write(store, items, ("Ada",))
    _write(store, items[:ANSWERED_QUESTIONS], ("Ben",))
    return project


def example(store: Store) -> Project:
    """Makes the example of agreement.  Raises StorageError."""
    criteria: Mapping[str, str] = _people()["judges"]
    project, items = _project(store, EXAMPLE, len(criteria))
    _write(store, items, criteria)
    for item, question in items:
        for person, criterion in criteria.items():
            name = display_name(person)
            store.queue.claim_item(item, name, "judging")
            annotation = annotation_of(question.id, person)
            references = (annotation,) if criterion == "own" else (*question.annotations, annotation)
            content = judged_by(store.reviews.judging_sheet(item, name), references)
            store.submissions.submit(item, name, "judging", content, seconds=60.0)
    return project


def _project(store: Store, name: str, people: int) -> tuple[Project, list[tuple[str, ReferenceQuestion]]]:
    """A project over the starter questions, and the id of each item with its question."""
    starter_passages = passages(STARTER)
    predictions = [expand(row, starter_passages) for row in read(PREDICTIONS)]
    for prediction in predictions:
        store.predictions.save_prediction(prediction, key=f"{name}: {prediction.question.id}: {prediction.system.name}")
    systems = tuple(dict.fromkeys(p.system.name for p in predictions))
    project = store.projects.create_project(
        MANAGER_NAME,
        name,
        stages=("generation", "validation", "judging"),
        corpus="starter",
        systems=systems,
        annotators_per_item=people,
    )
    starter_questions = questions()
    store.intake.add_items(MANAGER_NAME, project.id, starter_questions)
    items = store.items.items(project.id, MANAGER_NAME, stage="generation", limit=100)
    return project, list(zip((item.id for item in items), starter_questions, strict=True))


def _write(store: Store, items: Sequence[tuple[str, ReferenceQuestion]], people: Iterable[str]) -> None:
    for item, question in items:
        for person in people:
            name = display_name(person)
            store.queue.claim_item(item, name, "generation")
            store.drafts.log_view(item, name, "generation", question.annotations[0].pairs[0].passage_ids[0], "")
            store.submissions.submit(item, name, "generation", GenerationWork(annotation_of(question.id, person)), seconds=60.0)


def judged_by(sheet: JudgingSheet, references: Sequence[Annotation]) -> JudgingWork:
    """Judges answers by an annotation: those that it has are correct, others wrong, and the question of a correct answer
    fits."""
    keys = answer_keys(alias for annotation in references for pair in annotation.pairs for alias in pair.answers)
    answers = []
    for answer in (a for side in sheet.sides for a in side.answers):
        right = bool(answer_keys([answer.text]) & keys)
        label: Label = "correct" if right else "wrong"
        question_label: QuestionLabel | None = None if answer.question is None else "fits" if right else "changes_meaning"
        answers.append(JudgedAnswer(answer.prediction_id, answer.position, label, question_label))
    return JudgingWork(tuple(answers))


@dataclass(frozen=True, slots=True)
class PracticeFeedback:
    """`score`: see storage.records.contents.gold_score."""

    score: float
    right: bool
    references: tuple[Annotation, ...]


def feedback(store: StoreParts, item: str, annotator: str, stage: WorkStage, content: Content) -> PracticeFeedback:
    """Compares somebody's work with the references of a practice question.  Raises as the store's methods."""
    references = store.items.get_item(item, annotator).references
    sides = store.reviews.judging_sheet(item, annotator).sides if stage == "judging" else ()
    score = gold_score(references, content, {(a.prediction_id, a.position): a.text for side in sides for a in side.answers})
    return PracticeFeedback(score, score >= RIGHT_FROM, references)
