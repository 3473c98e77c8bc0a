"""Everything but leases, failed sign-ins and the logs of files, as JSON lines of a kind each: moving, merging and keeping a database.

What refers to something comes after it, by its public name and never by a row's number, so that two databases can be joined.  Passwords
and OpenID Connect subjects never leave the database.  The tables of the workbench are written and read by one rule, from KINDS.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Text, select, type_coerce
from sqlalchemy.orm import Session, aliased, undefer

from core.json_io import dumps
from core.types import Annotation
from storage.exchange.votes import Filters, Names
from storage.results.annotations import pairs_of
from storage.results.evaluation_rows import report_of
from storage.schema import tables, workbench
from storage.tasks.jobs import hidden

LAYOUT = 2  # 2: the workbench's tables; 1 is read too
READS = (1, 2)
Row = dict[str, Any]

# what a reference is called in a file: the target's column
NATURAL: Mapping[str, Any] = {
    "annotator": tables.Annotator.name,
    "question": tables.Question.public_id,
    "prediction": tables.Prediction.public_id,
    "project": workbench.Project.public_id,
    "item": workbench.ProjectItem.public_id,
}


@dataclass(frozen=True, slots=True)
class Kind:
    """One table in the file.  `refs`: column -> what it refers to (the name of the field too).  `unique`: fields that name a row."""

    table: Any
    unique: tuple[str, ...]
    refs: Mapping[str, str] = field(default_factory=dict)
    never: tuple[str, ...] = ()  # columns that stay in the database

    def columns(self) -> tuple[str, ...]:
        """The plain columns, in the table's order."""
        skip = {"id", *self.refs, *self.never}
        return tuple(c.key for c in self.table.__table__.columns if c.key not in skip)


_WHO = {"annotator_id": "annotator"}
_WORK = {"item_id": "item", "annotator_id": "annotator"}
KINDS: Mapping[str, Kind] = {
    "account": Kind(workbench.Account, ("annotator",), _WHO, ("password", "subject")),
    "project": Kind(workbench.Project, ("public_id",)),
    "guideline": Kind(workbench.Guideline, ("project", "version"), {"project_id": "project", **_WHO}),
    "item": Kind(workbench.ProjectItem, ("public_id",), {"project_id": "project", "question_id": "question"}),
    "item_prediction": Kind(workbench.ItemPrediction, ("item", "side"), {"item_id": "item", "prediction_id": "prediction"}),
    "item_stage": Kind(workbench.ItemStage, ("item", "stage"), {"project_id": "project", "item_id": "item"}),
    "task": Kind(workbench.Task, ("item", "stage", "annotator"), {"project_id": "project", **_WORK}),
    "draft": Kind(workbench.Draft, ("item", "stage", "annotator"), _WORK),
    "submission": Kind(workbench.Submission, ("item", "stage", "annotator", "version"), {"project_id": "project", **_WORK}),
    "interaction": Kind(workbench.Interaction, ("item", "stage", "annotator", "kind", "query", "passage_id", "created"), _WORK),
    "admission": Kind(workbench.Admission, ("project", "annotator"), {"project_id": "project", **_WHO}),
    "activity": Kind(
        workbench.Activity,
        ("annotator", "action", "project", "item", "details", "created"),
        {"annotator_id": "annotator", "project_id": "project", "item_id": "item"},
    ),
}
COUNTED = (
    "annotator",
    "question",
    "annotation",
    "annotation_revision",
    "prediction",
    "judgment",
    "judgment_revision",
    *KINDS,
    "evaluation",
)


def everything(session: Session, filters: Filters, names: Names, counts: Counter[str]) -> Iterator[str]:
    """The lines of a dump.  Of `filters` only the pseudonyms count; with them, unfinished drafts are left out."""
    yield dumps({"kind": "ambiscope", "layout": LAYOUT})
    for line in _lines(session, names):
        counts[line["kind"]] += 1
        if (
            line["kind"] == "prediction"
        ):  # the trace is the larger part of most databases: as it is stored, not read and written again
            trace = line.pop("prediction")
            yield f'{dumps(line)[:-1]},"prediction":{trace}}}'
        else:
            yield dumps(line)


def _stream(session: Session, query: Any, size: int = 500) -> Any:
    return session.execute(query.execution_options(yield_per=size))


def _lines(session: Session, names: Names) -> Iterator[Row]:
    m = tables
    for (a,) in _stream(session, select(m.Annotator).order_by(m.Annotator.id)):
        yield {"kind": "annotator", "name": names(a.name), "created": a.created.isoformat()}
    for (q,) in _stream(session, select(m.Question).order_by(m.Question.id)):
        created = q.created.isoformat()
        yield {"kind": "question", "id": q.public_id, "source_id": q.source_id, "text": q.text, "created": created}
    yield from _annotations(session, names)
    p = m.Prediction
    query = select(p.public_id, p.key, p.created, type_coerce(p.trace, Text())).order_by(p.id)
    for public_id, key, created, trace in _stream(session, query, 20):
        yield {"kind": "prediction", "id": public_id, "key": key, "created": created.isoformat(), "prediction": trace}
    yield from _judgments(session, names)
    for kind, spec in KINDS.items():
        if kind == "draft" and names.pseudonyms:  # whatever a page put there, names too
            continue
        yield from _table(session, kind, spec, names)
    for (e,) in _stream(session, select(m.Evaluation).order_by(m.Evaluation.id).options(undefer(m.Evaluation.report)), 20):
        yield {
            "kind": "evaluation",
            "id": e.public_id,
            "system": e.system,
            "corpus": e.corpus,
            "questions": e.questions,
            "metrics": e.metrics,
            "report": report_of(session, e),
            "label": e.label,
            "finished": e.finished.isoformat() if e.finished else None,
            "created": e.created.isoformat(),
        }


def _annotations(session: Session, names: Names) -> Iterator[Row]:
    m = tables
    who = (m.Annotator, m.Annotator.id == m.Annotation.annotator_id)
    query = select(m.Annotation, m.Annotator.name, m.Question.public_id).join(*who)
    query = query.join(m.Question, m.Question.id == m.Annotation.question_id).order_by(m.Annotation.id)
    for rows in _stream(session, query).partitions():
        pairs = pairs_of(session, [row.id for row, _, _ in rows])
        for row, name, question in rows:
            yield {
                "kind": "annotation",
                "question": question,
                "annotator": names(name),
                "stage": row.stage,
                "state": row.state,
                "annotation": _annotation(Annotation(row.type, pairs.get(row.id, ()))),
                "version": row.version,
                "created": row.created.isoformat(),
                "updated": row.updated.isoformat(),
            }
    history = (
        select(m.AnnotationRevision, m.Annotator.name, m.Question.public_id)
        .join(m.Annotator, m.Annotator.id == m.AnnotationRevision.annotator_id)
        .join(m.Question, m.Question.id == m.AnnotationRevision.question_id)
        .order_by(m.AnnotationRevision.id)
    )
    for row, name, question in _stream(session, history):
        yield {
            "kind": "annotation_revision",
            "question": question,
            "annotator": names(name),
            "stage": row.stage,
            "state": row.state,
            "annotation": row.body,
            "version": row.version,
            "saved": row.saved.isoformat(),
            "replaced": row.replaced.isoformat(),
        }


def _judgments(session: Session, names: Names) -> Iterator[Row]:
    m = tables
    for table, kind in ((m.Judgment, "judgment"), (m.JudgmentRevision, "judgment_revision")):
        words = (
            select(table, m.PredictedAnswer.position, m.Annotator.name, m.Prediction.public_id)
            .join(m.PredictedAnswer, m.PredictedAnswer.id == table.predicted_answer_id)
            .join(m.Prediction, m.Prediction.id == m.PredictedAnswer.prediction_id)
            .join(m.Annotator, m.Annotator.id == table.annotator_id)
            .order_by(table.id)
        )
        times = ("created", "updated") if kind == "judgment" else ("saved", "replaced")
        for row, position, name, prediction in _stream(session, words):
            yield {
                "kind": kind,
                "prediction": prediction,
                "position": position,
                "annotator": names(name),
                "verdict": row.verdict,
                "note": row.note,
                "state": row.state,
                "version": row.version,
                **{t: getattr(row, t).isoformat() for t in times},
                **({} if kind == "judgment" else {"cleared": row.cleared}),
            }


def _table(session: Session, kind: str, spec: Kind, names: Names) -> Iterator[Row]:
    """The rows of a workbench table in the order in which they came."""
    columns = spec.columns()
    query = select(*(getattr(spec.table, name) for name in columns))
    for column, target in spec.refs.items():
        other = aliased(NATURAL[target].class_)
        query = query.outerjoin(other, other.id == getattr(spec.table, column))
        query = query.add_columns(getattr(other, NATURAL[target].key))
    if kind == "item":
        query = query.where(~hidden(spec.table.project_id, spec.table.id))
    elif kind in ("item_stage", "item_prediction"):
        i = aliased(workbench.ProjectItem)
        query = query.join(i, i.id == spec.table.item_id).where(~hidden(i.project_id, i.id))
    for values in _stream(session, query.order_by(spec.table.id)):
        row: Row = {"kind": kind}
        for target, value in zip(spec.refs.values(), values[len(columns) :], strict=True):
            row[target] = names(value) if target == "annotator" and value is not None else value
        for name, value in zip(columns, values, strict=False):
            # a table's column `kind` would hide the line's
            row["what" if name == "kind" else name] = value.isoformat() if isinstance(value, datetime) else value
        yield _renamed(row, kind, names)


def _renamed(row: Row, kind: str, names: Names) -> Row:
    """People's names in places other than `annotator`."""
    if kind == "submission" and "sources" in row["body"]:
        row["body"] = {**row["body"], "sources": [[names(n), version] for n, version in row["body"]["sources"]]}
    if kind == "activity":
        row["details"] = names.inside(row["details"])
    return row


def _annotation(annotation: Annotation) -> Row:
    return {
        "type": annotation.type,
        "pairs": [
            {"question": p.question, "answers": list(p.answers), "passage_ids": list(p.passage_ids)} for p in annotation.pairs
        ],
    }
