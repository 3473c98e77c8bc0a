"""People's own answer sets, in AmbigNQ's form: one an annotator, question and stage; every earlier one is kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, get_args

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from core.errors import FormatError, InputError
from core.trace import to_json
from core.types import Annotation, AnnotationType, QAPair
from storage.records.checks import check_choice, plain_problem
from storage.records.results import AnnotationConflictError, AnnotationRevision, Stage, State, StoredAnnotation
from storage.records.rows import record_of
from storage.results.labels import annotator_row
from storage.results.predictions import require_question
from storage.schema import tables
from storage.schema.engine import Database, now

MAX_PAIRS = 200


def check_annotation(annotation: Annotation, *, complete: bool) -> None:
    """Raises InputError for text that cannot be stored and, where it is `complete`, for what AmbigNQ's union type does
    not allow.
    """
    problem = plain_problem(to_json(annotation))
    if problem:
        raise InputError(f"the annotation cannot be stored: {problem}")
    if annotation.type not in get_args(AnnotationType):
        raise InputError(f"the annotation's type is {annotation.type!r}; use one of {', '.join(get_args(AnnotationType))}")
    count = len(annotation.pairs)
    if count > MAX_PAIRS:
        raise InputError(f"the annotation has {count} pairs; at most {MAX_PAIRS} are allowed")
    if not complete:
        return
    wrong = {"none": count != 0, "single": count != 1, "multiple": count < 2}[annotation.type]
    if wrong:
        needs = {"none": "no pair", "single": "one pair", "multiple": "two pairs or more"}[annotation.type]
        raise InputError(f"an annotation of type '{annotation.type}' has {needs}; this one has {count}")
    for number, pair in enumerate(annotation.pairs, 1):
        if not pair.answers or not all(alias.strip() for alias in pair.answers):
            raise InputError(f"pair {number} has no answer, or an empty one")
        if annotation.type == "multiple" and not pair.question.strip():
            raise InputError(f"pair {number} has no question: say which question has only the answer '{pair.answers[0][:80]}'")


def annotation_from_json(body: Any) -> Annotation:
    """The inverse of `to_json(annotation)`.  Raises FormatError for another layout."""

    def texts(value: Any, what: str) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise FormatError("expected a list of texts", field=what)
        return tuple(value)

    if (
        not isinstance(body, dict)
        or body.get("type") not in get_args(AnnotationType)
        or not isinstance(body.get("pairs"), list)
    ):
        raise FormatError(f"expected an annotation: a type ({', '.join(get_args(AnnotationType))}) and a list of pairs")
    pairs = []
    for i, pair in enumerate(body["pairs"]):
        if not isinstance(pair, dict) or not isinstance(pair.get("question"), str):
            raise FormatError("expected a question and its answers", field=f"pairs[{i}]")
        answers = texts(pair.get("answers"), f"pairs[{i}].answers")
        pairs.append(QAPair(pair["question"], answers, texts(pair.get("passage_ids", []), f"pairs[{i}].passage_ids")))
    return Annotation(body["type"], tuple(pairs))


def pairs_of(session: Session, ids: Iterable[int]) -> dict[int, tuple[QAPair, ...]]:
    """The pairs of these annotation rows, in order."""
    found: dict[int, list[QAPair]] = {}
    query = select(tables.QaPair).where(tables.QaPair.annotation_id.in_(list(ids))).order_by(tables.QaPair.position)
    for row in session.scalars(query):
        pair = QAPair(row.question, tuple(row.answers), tuple(row.passage_ids))
        found.setdefault(row.annotation_id, []).append(pair)
    return {key: tuple(value) for key, value in found.items()}


def write_pairs(session: Session, row: tables.Annotation, pairs: Sequence[QAPair]) -> None:
    session.execute(delete(tables.QaPair).where(tables.QaPair.annotation_id == row.id))
    for position, pair in enumerate(pairs):
        session.add(
            tables.QaPair(
                annotation_id=row.id,
                position=position,
                question=pair.question,
                answers=list(pair.answers),
                passage_ids=list(pair.passage_ids),
            )
        )
    session.flush()


def annotation_record(row: tables.Annotation, pairs: tuple[QAPair, ...], question_id: str, annotator: str) -> StoredAnnotation:
    made = Annotation(row.type, pairs)
    return record_of(StoredAnnotation, row, question_id=question_id, annotator=annotator, annotation=made)


def put_annotation(
    session: Session,
    question: tables.Question,
    who: tables.Annotator,
    annotation: Annotation,
    stage: Stage,
    state: State,
    expected_version: int | None = None,
) -> StoredAnnotation:
    """`Annotations.save_annotation` inside a write transaction, of what was checked already."""
    row = session.scalar(select(tables.Annotation).filter_by(question_id=question.id, annotator_id=who.id, stage=stage))
    theirs = None
    if row is not None:
        theirs = annotation_record(row, pairs_of(session, [row.id]).get(row.id, ()), question.public_id, who.name)
        if (theirs.annotation, theirs.state) == (annotation, state):
            return theirs
    if expected_version is not None and expected_version != (theirs.version if theirs else 0):
        raise AnnotationConflictError(annotation, theirs, expected_version)
    moment = now()
    if row is None or theirs is None:
        row = tables.Annotation(
            question_id=question.id,
            annotator_id=who.id,
            stage=stage,
            type=annotation.type,
            state=state,
            version=1,
            created=moment,
            updated=moment,
        )
        session.add(row)
    else:
        session.add(
            tables.AnnotationRevision(
                question_id=question.id,
                annotator_id=who.id,
                stage=stage,
                state=theirs.state,
                body=to_json(theirs.annotation),
                version=theirs.version,
                saved=theirs.updated,
                replaced=moment,
            )
        )
        row.type, row.state, row.updated = annotation.type, state, moment
        row.version += 1
    session.flush()
    write_pairs(session, row, annotation.pairs)
    return annotation_record(row, annotation.pairs, question.public_id, who.name)


class Annotations(Database):
    """The part of the Store about annotations."""

    def save_annotation(
        self,
        question_id: str,
        annotator: str,
        annotation: Annotation,
        stage: Stage = "generation",
        state: State = "submitted",
        expected_version: int | None = None,
    ) -> StoredAnnotation:
        """Saves a person's answer set for a stored question (`add_question`, `StoredPrediction.question_id`).

        Equal content changes nothing; versions and history as in `judge`.  A submitted annotation must be complete (see
        `check_annotation`).  Raises InputError, NotFoundError, AnnotationConflictError.
        """
        check_choice(stage, Stage, "the stage")
        check_choice(state, State, "the state")
        check_annotation(annotation, complete=state == "submitted")
        with self.writing() as session:
            question = require_question(session, question_id)
            who = annotator_row(session, annotator)
            return put_annotation(session, question, who, annotation, stage, state, expected_version)

    def annotations(self, question_id: str) -> list[StoredAnnotation]:
        """All annotations of a question, by annotator, then stage.  Raises NotFoundError for an unknown question."""
        with self.reading() as session:
            question = require_question(session, question_id)
            rows = session.execute(
                select(tables.Annotation, tables.Annotator.name)
                .join(tables.Annotator, tables.Annotator.id == tables.Annotation.annotator_id)
                .where(tables.Annotation.question_id == question.id)
                .order_by(tables.Annotator.id, tables.Annotation.stage)
            ).all()
            pairs = pairs_of(session, [row.id for row, _ in rows])
            return [annotation_record(row, pairs.get(row.id, ()), question_id, name) for row, name in rows]

    def annotation_history(self, question_id: str, annotator: str, stage: Stage = "generation") -> list[AnnotationRevision]:
        """Earlier values, the oldest first.  Raises NotFoundError for an unknown question."""
        with self.reading() as session:
            question = require_question(session, question_id)
            rows = session.scalars(
                select(tables.AnnotationRevision)
                .join(tables.Annotator, tables.Annotator.id == tables.AnnotationRevision.annotator_id)
                .where(
                    tables.AnnotationRevision.question_id == question.id,
                    tables.AnnotationRevision.stage == stage,
                    tables.Annotator.name == annotator,
                )
                .order_by(tables.AnnotationRevision.version)
            )
            return [record_of(AnnotationRevision, row, annotation=annotation_from_json(row.body)) for row in rows]
