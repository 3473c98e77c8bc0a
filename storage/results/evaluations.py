"""Evaluations: runs with their rows, values, means and traces; the database lists, filters and averages them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeVar

from sqlalchemy import ColumnElement, Select, delete, func, literal, or_, select, update
from sqlalchemy.orm import Session, aliased, undefer

from core.errors import InputError, NotFoundError
from core.metrics.significance.compare import QuestionDifference
from storage.access.permissions import allowed_to
from storage.records.checks import MAX_ID_CHARS, check_page, check_text, plain_problem
from storage.records.results import EvaluationFilter, EvaluationRow, GroupMean, Score, StoredEvaluation
from storage.records.rows import record_of
from storage.results.evaluation_rows import BUCKETS, MAX_LABEL_CHARS, add_evaluation, digest_of, store_traces
from storage.schema import tables
from storage.schema.engine import Part, now

_RUN, _ROW, _VALUE, _SCORE = tables.Evaluation, tables.EvaluationRow, tables.EvaluationValue, tables.EvaluationScore
RowOrder = Literal["position", "f1", "slowest", "errors"]
Grouping = Literal["source", "ambiguity"]
_Query = TypeVar("_Query", bound=Select[Any])


class Evaluations(Part):
    """The part of the Store about evaluations."""

    @allowed_to("run evaluations")
    def save_evaluation(
        self,
        *,
        system: str,
        corpus: str,
        questions: str,
        metrics: Mapping[str, Any],
        report: Mapping[str, Any],
        label: str = "",
        finished: datetime | None = None,
        traces: Iterable[tuple[str, Mapping[str, Any]]] = (),
    ) -> str:
        """Stores a run's report (core.evaluation.report.Report as plain JSON) and returns its id; an equal one is not stored
        again.  `traces`: (question id, core.trace.to_json of its prediction), of equal ids the last one counts.

        Rows with `id` and `error` become rows of their own with their values and error counts; other rows stay in the report.
        Raises InputError.
        """
        names = {"system": system, "corpus": corpus, "questions": questions}
        content: dict[str, Any] = {**names, "metrics": dict(metrics), "report": dict(report)}
        for name, text in names.items():
            check_text(text, name, limit=4 * MAX_ID_CHARS)
        check_text(label, "the label", limit=MAX_LABEL_CHARS, line=True)
        for name in ("metrics", "report"):
            if problem := plain_problem(content[name]):
                raise InputError(f"the evaluation's {name} cannot be stored: {problem}")
        with self.writing() as session:
            digest = digest_of(content)
            existing = session.scalar(select(_RUN.public_id).filter_by(digest=digest))
            if existing is not None:
                return existing
            content |= {"public_id": uuid.uuid4().hex, "label": label, "digest": digest, "created": now(), "finished": finished}
            run = add_evaluation(session, **content)
            store_traces(session, run.public_id, traces)
            return run.public_id

    @allowed_to("see evaluations")
    def evaluation_report(self, evaluation_id: str) -> dict[str, Any]:
        """The report without its rows: intervals, groups, timings, summary, provenance.  Raises NotFoundError."""
        with self.reading() as session:
            report = session.scalar(select(_RUN.report).filter_by(id=_key(session, evaluation_id))) or {}
            return {name: value for name, value in report.items() if name != "rows"}

    @allowed_to("see evaluations")
    def evaluations(self, limit: int = 50, offset: int = 0, filters: EvaluationFilter | None = None) -> list[StoredEvaluation]:
        """The evaluations, newest first, with their means and without their reports.  Raises InputError for a limit outside
        1..500."""
        check_page(limit, offset)
        with self.reading() as session:
            query = _filtered(select(_RUN), filters).order_by(_RUN.created.desc(), _RUN.id.desc())
            rows = list(session.scalars(query.limit(limit).offset(offset)))
            scores = _scores(session, [row.id for row in rows])
            return [_record(row, scores.get(row.id, {})) for row in rows]

    @allowed_to("see evaluations")
    def count_evaluations(self, filters: EvaluationFilter | None = None) -> int:
        with self.reading() as session:
            return session.scalar(_filtered(select(func.count()).select_from(_RUN), filters)) or 0

    @allowed_to("see evaluations")
    def evaluation_choices(self) -> dict[str, list[str]]:
        """The values to filter by: `system`, `corpus` and `questions`, each in alphabetical order."""
        with self.reading() as session:
            columns = {"system": _RUN.system, "corpus": _RUN.corpus, "questions": _RUN.questions}
            return {name: list(session.scalars(select(column).distinct().order_by(column))) for name, column in columns.items()}

    @allowed_to("change evaluations")
    def label_evaluation(self, evaluation_id: str, label: str) -> None:
        """Gives a run a name.  Raises NotFoundError, InputError."""
        check_text(label, "the label", limit=MAX_LABEL_CHARS, line=True)
        with self.writing() as session:
            session.execute(update(_RUN).where(_RUN.id == _key(session, evaluation_id)).values(label=label.strip()))

    @allowed_to("change evaluations")
    def delete_evaluation(self, evaluation_id: str) -> None:
        """Deletes a run with its rows and traces.  Raises NotFoundError."""
        with self.writing() as session:
            session.execute(delete(_RUN).where(_RUN.id == _key(session, evaluation_id)))

    # ------------------------------------------------------------ rows of one run

    @allowed_to("see evaluations")
    def evaluation_rows(
        self,
        evaluation_id: str,
        limit: int = 50,
        offset: int = 0,
        *,
        order: RowOrder = "position",
        bucket: str = "",
        failed: bool | None = None,
    ) -> list[EvaluationRow]:
        """A page of a run's questions.  `bucket`: only those with such an error.  `failed`: only those that failed, or only
        those that didn't.

        Raises NotFoundError; InputError for an unknown order or bucket or a limit outside 1..500.
        """
        check_page(limit, offset)
        with self.reading() as session:
            query = _of_bucket(select(_ROW).filter_by(evaluation_id=_key(session, evaluation_id)), bucket, failed)
            rows = session.scalars(_ordered(query, order).limit(limit).offset(offset))
            return [_row_record(row, {}) for row in rows]

    @allowed_to("see evaluations")
    def count_evaluation_rows(self, evaluation_id: str, *, bucket: str = "", failed: bool | None = None) -> int:
        with self.reading() as session:
            query = select(func.count()).select_from(_ROW).filter_by(evaluation_id=_key(session, evaluation_id))
            return session.scalar(_of_bucket(query, bucket, failed)) or 0

    @allowed_to("see evaluations")
    def evaluation_row(self, evaluation_id: str, question_id: str) -> EvaluationRow:
        """One question with the whole row.  Raises NotFoundError."""
        with self.reading() as session:
            query = select(_ROW).filter_by(evaluation_id=_key(session, evaluation_id), question_id=question_id)
            row = session.scalar(query.options(undefer(_ROW.body)))
            if row is None:
                raise NotFoundError(f"the evaluation has no question '{question_id[:80]}'")
            return _row_record(row, row.body)

    @allowed_to("see evaluations")
    def find_evaluation_trace(self, evaluation_id: str, question_id: str) -> dict[str, Any] | None:
        """The prediction of one question (core.trace.to_json), or None if the run kept no traces.  Raises NotFoundError."""
        trace = tables.EvaluationTrace
        with self.reading() as session:
            return session.scalar(
                select(trace.trace)
                .join(_ROW, (_ROW.evaluation_id == trace.evaluation_id) & (_ROW.position == trace.position))
                .where(_ROW.evaluation_id == _key(session, evaluation_id), _ROW.question_id == question_id)
            )

    @allowed_to("see evaluations")
    def error_counts(self, evaluation_ids: Sequence[str], *, multi: bool = False) -> dict[str, dict[str, int]]:
        """Sums of each error bucket over each run's questions; a bucket without a count is left out."""
        with self.reading() as session:
            sums = [func.sum(getattr(_ROW, name)) for name in BUCKETS]
            query = select(_RUN.public_id, *sums).join(_ROW, _ROW.evaluation_id == _RUN.id)
            query = query.where(_RUN.public_id.in_(evaluation_ids)).group_by(_RUN.public_id)
            if multi:
                query = query.where(_ROW.ambiguous == True)  # noqa: E712  IS 1 is SQLite only
            return {
                row[0]: {name: int(value) for name, value in zip(BUCKETS, row[1:], strict=True) if value is not None}
                for row in session.execute(query)
            }

    @allowed_to("see evaluations")
    def group_means(self, evaluation_ids: Sequence[str], metric: str, grouping: Grouping) -> list[GroupMean]:
        """Means of a metric for each source or kind of ambiguity; questions without one are left out.

        Weighted, as by core.metrics.base.aggregate: values without weight do not count.
        """
        column = {"source": _ROW.source, "ambiguity": _ROW.ambiguity}[grouping]
        mean = func.sum(_VALUE.value * _VALUE.weight) / func.nullif(func.sum(_VALUE.weight), 0.0)
        query = (
            select(_RUN.public_id, column, func.count(), mean)
            .join(_VALUE, _VALUE.evaluation_id == _RUN.id)
            .join(_ROW, (_ROW.evaluation_id == _VALUE.evaluation_id) & (_ROW.position == _VALUE.position))
            .where(_RUN.public_id.in_(evaluation_ids), _VALUE.metric == metric, column.is_not(None))
            .group_by(_RUN.public_id, column)
            .having(func.sum(_VALUE.weight) > 0)
            .order_by(column)
        )
        with self.reading() as session:
            return [GroupMean(run, str(group), count, mean) for run, group, count, mean in session.execute(query)]

    # ------------------------------------------------------------ two runs

    @allowed_to("see evaluations")
    def paired_rows(self, a: str, b: str, metric: str, limit: int = 50, offset: int = 0) -> list[QuestionDifference]:
        """The questions that both runs answered and the metric defines, those with the largest difference first.

        Raises NotFoundError; InputError for a limit outside 1..500.
        """
        check_page(limit, offset)
        with self.reading() as session:
            query, difference, position = _paired(session, a, b, metric)
            query = query.order_by(func.abs(difference).desc(), position).limit(limit).offset(offset)
            return [QuestionDifference(*row) for row in session.execute(query)]

    @allowed_to("see evaluations")
    def paired_values(self, a: str, b: str, metric: str, *, multi: bool = False) -> tuple[list[float], list[float]]:
        """The values of both runs on their common questions, in the order of the first one's file."""
        with self.reading() as session:
            query, _, position = _paired(session, a, b, metric)
            rows = [row for row in session.execute(query.order_by(position)) if row.ambiguous or not multi]
            return [row[3] for row in rows], [row[4] for row in rows]


# ---------------------------------------------------------------- queries


def _key(session: Session, evaluation_id: str) -> int:
    key = session.scalar(select(_RUN.id).filter_by(public_id=evaluation_id))
    if key is None:
        raise NotFoundError(f"there is no evaluation '{evaluation_id[:80]}'")
    return key


def _filtered(query: _Query, filters: EvaluationFilter | None) -> _Query:
    if filters is None:
        return query
    if filters.text.strip():
        columns = (_RUN.label, _RUN.system, _RUN.corpus, _RUN.questions, _RUN.checkpoint, _RUN.code_commit)
        query = query.where(or_(*(column.icontains(filters.text.strip(), autoescape=True) for column in columns)))
    for column, values in ((_RUN.system, filters.systems), (_RUN.corpus, filters.corpora), (_RUN.questions, filters.questions)):
        if values:
            query = query.where(column.in_(values))
    return query


def _of_bucket(query: _Query, bucket: str, failed: bool | None) -> _Query:
    if bucket:
        if bucket not in BUCKETS:
            raise InputError(f"'{bucket[:40]}' is no kind of error; use one of {', '.join(BUCKETS)}")
        query = query.where(getattr(_ROW, bucket) > 0)
    if failed is not None:
        query = query.where(_ROW.error.is_not(None) if failed else _ROW.error.is_(None))
    return query


def _ordered(query: _Query, order: RowOrder) -> _Query:
    if order == "position":
        return query.order_by(_ROW.position)
    if order == "slowest":
        return query.order_by(_ROW.seconds.desc(), _ROW.position)
    if order == "errors":
        wrong = sum((func.coalesce(getattr(_ROW, name), 0) for name in BUCKETS), literal(0))
        return query.order_by(wrong.desc(), _ROW.position)
    if order != "f1":
        raise InputError(f"'{str(order)[:40]}' is no order; use position, f1, slowest or errors")
    value = (_VALUE.evaluation_id == _ROW.evaluation_id) & (_VALUE.position == _ROW.position) & (_VALUE.metric == "F1 answer")
    return query.outerjoin(_VALUE, value).order_by(func.coalesce(_VALUE.value, 2.0), _ROW.position)


def _paired(
    session: Session, run_a: str, run_b: str, metric: str
) -> tuple[Select[*tuple[Any, ...]], ColumnElement[float], ColumnElement[int]]:
    """(id, question, ambiguous and both values of each question that has the same text and references in both runs; difference; position)."""
    a, b = _key(session, run_a), _key(session, run_b)
    row_a, row_b = aliased(_ROW), aliased(_ROW)
    value_a, value_b = aliased(_VALUE), aliased(_VALUE)
    query = (
        select(row_a.question_id, row_a.question, row_a.ambiguous, value_a.value, value_b.value)
        .join(row_b, (row_b.question_id == row_a.question_id) & (row_b.question == row_a.question))
        .join(value_a, (value_a.evaluation_id == row_a.evaluation_id) & (value_a.position == row_a.position))
        .join(value_b, (value_b.evaluation_id == row_b.evaluation_id) & (value_b.position == row_b.position))
        .where(row_a.evaluation_id == a, row_b.evaluation_id == b, value_a.metric == metric, value_b.metric == metric)
        .where(row_a.question_id.not_in(_with_other_references(session, a, b)))
    )
    return query, value_a.value.expression - value_b.value.expression, row_a.position.expression


def _with_other_references(session: Session, a: int, b: int) -> list[str]:
    """The ids of the questions whose references differ between two runs, as after a correction of the question file."""
    reports = session.scalars(select(_RUN.report).where(_RUN.id.in_((a, b)))).all()
    digests = {(report.get("provenance") or {}).get("questions_digest") for report in reports}
    if len(digests) == 1 and None not in digests:
        return []
    references: dict[int, dict[str, Any]] = {a: {}, b: {}}
    columns = select(_ROW.evaluation_id, _ROW.question_id, _ROW.body)
    for key, name, body in session.execute(columns.where(_ROW.evaluation_id.in_((a, b)))):
        references[key][name] = body.get("references")
    return [name for name, value in references[a].items() if references[b].get(name, value) != value]


def _scores(session: Session, keys: Sequence[int]) -> dict[int, dict[str, dict[str, Score]]]:
    scores: dict[int, dict[str, dict[str, Score]]] = {}
    columns = select(_SCORE.evaluation_id, _SCORE.metric, _SCORE.scope, _SCORE.n, _SCORE.mean, _SCORE.low, _SCORE.high)
    for key, metric, scope, n, mean, low, high in session.execute(columns.where(_SCORE.evaluation_id.in_(keys))):
        scores.setdefault(key, {}).setdefault(metric, {})[scope] = Score(n, mean, low, high)
    return scores


def _record(row: tables.Evaluation, scores: Mapping[str, Mapping[str, Score]]) -> StoredEvaluation:
    return record_of(StoredEvaluation, row, id=row.public_id, tags=row.tags or {}, commit=row.code_commit, scores=scores)


def _row_record(row: tables.EvaluationRow, body: Mapping[str, Any]) -> EvaluationRow:
    errors = {name: getattr(row, name) for name in BUCKETS}
    return record_of(EvaluationRow, row, answers=row.answer_count, references=row.reference_count, errors=errors, body=body)
