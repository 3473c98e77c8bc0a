"""The tables of a dump, one record each: what a row is called, what it refers to, which columns stay behind.

storage.exchange.dump writes every table by its record, and storage.exchange.imports.rows reads it.  A column that is added to a table
goes out and comes in by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session, undefer

from core.errors import FormatError
from core.text import stored_name
from core.trace import prediction_from_json, to_json
from core.types import Annotation, Prediction, QAPair
from storage.annotation import contents
from storage.annotation.jobs import hidden
from storage.exchange.filters import Names
from storage.records.answer_sets import annotation_from_json, check_annotation
from storage.records.checks import MAX_ID_CHARS, MAX_QUESTION_CHARS, check_annotator, check_text
from storage.records.results import check_judgment
from storage.results.evaluation_rows import MAX_LABEL_CHARS, add_evaluation, digest_of, report_of, sound_rows
from storage.results.predictions import insert_prediction, plain_trace
from storage.results.standing import pairs_of
from storage.schema import tables, workbench

MAX_TEXT_CHARS = 1_000_000
Row = dict[str, Any]
Reader = Callable[[Row], Any]


@dataclass(frozen=True, slots=True)
class Nested:
    """A field that is made of rows of other tables: `values` gives one for each id of the table's rows, in their order."""

    field: str
    values: Callable[[Session, list[int]], Iterator[Any]]


@dataclass(frozen=True, slots=True)
class Kind:
    """One table in the file.

    `unique`: columns that name a row; `equal`: others of which equal values mean the same row.  `refs`: column -> what it refers to
    (see TARGETS).  `fields`: column -> its field in the file, where that has another name.  `never`: columns that stay in the database;
    `made`: those that `store` makes from the others.  `free`: where a row that is there already may differ; the stored value stays.
    `readers`: field -> what reads it; raises for what could not be read back, and returns what two values are compared by.
    """

    table: Any
    unique: tuple[str, ...]
    refs: Mapping[str, str] = field(default_factory=dict)
    never: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    equal: tuple[str, ...] = ()
    free: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    nested: Nested | None = None
    raw: str = ""  # a column of JSON that goes out as it is stored: it is the larger part of most databases
    hidden: Callable[[Any], ColumnElement[bool]] | None = None  # rows that are not there yet
    renamed: Callable[[Row, Names], Row] = lambda row, names: row  # people's names elsewhere than in `annotator`
    readers: Mapping[str, Reader] = field(default_factory=dict)
    made_of: Callable[[Row], Row] = lambda values: {}  # columns made from the others without the database
    store: Callable[[Session, Any, Row], Any] | None = None  # (session, table, values); by itself, a row of the values

    def columns(self) -> tuple[str, ...]:
        """Those that go out by the rule, in the table's order."""
        left = {"id", *self.refs, *self.never, *self.made}
        return tuple(c.key for c in self.table.__table__.columns if c.key not in left)

    def called(self, column: str) -> str:
        """What a column is called in the file; a column `kind` would hide the line's."""
        return self.fields.get(column, "what" if column == "kind" else column)


# ---------------------------------------------------------------- values that need more than the rule


def _text(name: str, limit: int, *, empty: bool = False) -> dict[str, Reader]:
    return {name: lambda row: check_text(row[name], "the value", limit=limit, empty=empty)}


def _texts(name: str) -> dict[str, Reader]:
    def read(row: Row) -> Any:
        if not all(isinstance(v, str) for v in row[name]):
            raise FormatError("expected a list of texts")
        return row[name]

    return {name: read}


def _version(row: Row) -> int:
    if row["version"] < 1:
        raise FormatError("expected a whole number from 1")
    return int(row["version"])


def _name(row: Row) -> str:
    check_annotator(row["name"])
    return str(row["name"])


def _judged(row: Row) -> str:
    check_judgment(row.get("verdict"), row["note"], row["state"])
    return str(row["state"])


def _annotation(row: Row) -> Annotation:
    found = annotation_from_json(row["annotation"])
    check_annotation(found, complete=row["state"] == "submitted")
    return found


def _annotations(session: Session, ids: list[int]) -> Iterator[Row]:
    table = tables.Annotation
    types = {row.id: row.type for row in session.execute(select(table.id, table.type).where(table.id.in_(ids)))}
    pairs = pairs_of(session, ids)
    return (to_json(Annotation(types[key], pairs.get(key, ()))) for key in ids)


def _store_annotation(session: Session, table: Any, values: Row) -> Any:
    found = annotation_from_json(values.pop("annotation"))
    row = table(**values, type=found.type)
    session.add(row)
    session.flush()
    write_pairs(session, row, found.pairs)
    return row


def _prediction(row: Row) -> Prediction:
    found = prediction_from_json(row["prediction"])
    check_text(found.question.text, "the question", limit=MAX_QUESTION_CHARS, empty=False)
    plain_trace(found)
    return found


def _store_prediction(session: Session, table: Any, values: Row) -> Any:
    return insert_prediction(session, prediction_from_json(values["trace"]), **values)


def _report(row: Row) -> Row:
    report = row["report"]
    if not isinstance(report, dict):
        raise FormatError("expected an object")
    sound_rows(report.get("rows"))
    return report


def _reports(session: Session, ids: Iterable[int]) -> Iterator[Row]:
    for key in ids:
        row = session.get_one(tables.Evaluation, key, options=[undefer(tables.Evaluation.report)])
        yield report_of(session, row)
        session.expunge(row)


def _thresholds(row: Row) -> Row:
    if not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in row["thresholds"].values()):
        raise FormatError("expected numbers")
    return dict(row["thresholds"])


def _gold(row: Row) -> Any:
    found = contents.gold_from_json(row["gold"])
    contents.check_gold(found)
    return found


def _passages(row: Row) -> Any:
    found = contents.passages_from_json(row["passages"])
    for passage in found or ():
        for text in (passage.id, passage.title, passage.text):
            check_text(text, "a passage", limit=MAX_TEXT_CHARS)
    return found


def _content(row: Row) -> Any:
    found = contents.content_from_json(row["body"], row["stage"])
    contents.check_content(found, row["stage"])
    return found


def _sources(row: Row, names: Names) -> Row:
    if "sources" not in row["body"]:
        return row
    return {**row, "body": {**row["body"], "sources": [[names(name), version] for name, version in row["body"]["sources"]]}}


def _of_hidden_item(table: Any) -> ColumnElement[bool]:
    item = workbench.ProjectItem
    return hidden(select(item.project_id).where(item.id == table.item_id).correlate(table).scalar_subquery(), table.item_id)


# ---------------------------------------------------------------- the tables

# what a reference is called in the file: the fields of the row that it means
TARGETS: Mapping[str, Any] = {
    "annotator": select(tables.Annotator.id, tables.Annotator.name.label("annotator")),
    "question": select(tables.Question.id, tables.Question.public_id.label("question")),
    "prediction": select(tables.Prediction.id, tables.Prediction.public_id.label("prediction")),
    "answer": select(
        tables.PredictedAnswer.id, tables.Prediction.public_id.label("prediction"), tables.PredictedAnswer.position
    ).join(tables.Prediction, tables.Prediction.id == tables.PredictedAnswer.prediction_id),
    "evaluation": select(tables.Evaluation.id, tables.Evaluation.public_id.label("evaluation")),
    "project": select(workbench.Project.id, workbench.Project.public_id.label("project")),
    "item": select(workbench.ProjectItem.id, workbench.ProjectItem.public_id.label("item")),
}

_ID = {"public_id": "id"}
_WHO = {"annotator_id": "annotator"}
_SAID = {"question_id": "question", **_WHO}
_JUDGED = {"predicted_answer_id": "answer", **_WHO}
_WORK = {"item_id": "item", **_WHO}
_PROJECT = {"project_id": "project"}
_JUDGMENT: Mapping[str, Reader] = {
    "state": _judged,
    "version": _version,
}
_RUN = ("tags", "checkpoint", "checkpoint_digest", "code_commit", "seed", "n", "failed", "parameters")
_TIMINGS = ("peak_memory_mb", "seconds_median", "seconds_p95")

# in an order in which what is referred to comes first
KINDS: Mapping[str, Kind] = {
    "annotator": Kind(
        tables.Annotator,
        ("name",),
        free=("created",),
        renamed=lambda row, names: {**row, "name": names(row["name"])},
        readers={"name": _name},
        made_of=lambda values: {"name": stored_name(values["name"])},
    ),
    "question": Kind(
        tables.Question,
        ("text", "source_id"),
        made=("folded",),
        free=("public_id", "created"),
        fields=_ID,
        readers={
            **_text("id", MAX_ID_CHARS),
            **_text("source_id", MAX_ID_CHARS, empty=True),
            **_text("text", MAX_QUESTION_CHARS),
        },
        made_of=lambda values: {"folded": values["text"].casefold()},
    ),
    "annotation": Kind(
        tables.Annotation,
        ("question_id", "annotator_id", "stage"),
        _SAID,
        made=("type",),
        free=("version", "created", "updated"),
        nested=Nested("annotation", _annotations),
        readers={"annotation": _annotation, "version": _version},
        store=_store_annotation,
    ),
    "annotation_revision": Kind(
        tables.AnnotationRevision,
        ("question_id", "annotator_id", "stage", "version"),
        _SAID,
        free=("saved", "replaced"),
        fields={"body": "annotation"},
        readers={"annotation": _annotation, "version": _version},
    ),
    "prediction": Kind(
        tables.Prediction,
        ("public_id",),
        made=("question_id", "system", "settings", "corpus", "corpus_digest", "checkpoint", "checkpoint_digest", "seconds"),
        free=("key", "created"),
        fields={**_ID, "trace": "prediction"},
        raw="trace",
        readers={**_text("id", MAX_ID_CHARS), **_text("key", MAX_ID_CHARS), "prediction": _prediction},
        store=_store_prediction,
    ),
    "judgment": Kind(
        tables.Judgment,
        ("predicted_answer_id", "annotator_id"),
        _JUDGED,
        free=("created", "updated"),
        readers=_JUDGMENT,
    ),
    "judgment_revision": Kind(
        tables.JudgmentRevision,
        ("predicted_answer_id", "annotator_id", "version"),
        _JUDGED,
        free=("saved", "replaced", "cleared"),
        readers=_JUDGMENT,
    ),
    "account": Kind(workbench.Account, ("annotator_id",), _WHO, never=("password", "subject")),
    "project": Kind(
        workbench.Project,
        ("public_id",),
        readers={**_texts("stages"), **_texts("systems"), "thresholds": _thresholds},
        made_of=lambda values: {"name": stored_name(values["name"])},
    ),
    "guideline": Kind(
        workbench.Guideline,
        ("project_id", "version"),
        {**_PROJECT, **_WHO},
        readers={"examples": lambda row: contents.examples_from_json(row["examples"])},
    ),
    "item": Kind(
        workbench.ProjectItem,
        ("public_id",),
        {**_PROJECT, "question_id": "question"},
        hidden=lambda table: hidden(table.project_id, table.id),
        readers={
            "gold": _gold,
            "references": lambda row: contents.annotations_from_json(row["references"]),
            "passages": _passages,
        },
    ),
    "item_prediction": Kind(
        workbench.ItemPrediction,
        ("item_id", "side"),
        {"item_id": "item", "prediction_id": "prediction"},
        hidden=_of_hidden_item,
    ),
    "item_stage": Kind(workbench.ItemStage, ("item_id", "stage"), {**_PROJECT, "item_id": "item"}, hidden=_of_hidden_item),
    "task": Kind(workbench.Task, ("item_id", "stage", "annotator_id"), {**_PROJECT, **_WORK}),
    "draft": Kind(workbench.Draft, ("item_id", "stage", "annotator_id"), _WORK),
    "submission": Kind(
        workbench.Submission,
        ("item_id", "stage", "annotator_id", "version"),
        {**_PROJECT, **_WORK},
        renamed=_sources,
        readers={"body": _content},
    ),
    "interaction": Kind(
        workbench.Interaction, ("item_id", "stage", "annotator_id", "kind", "query", "passage_id", "created"), _WORK
    ),
    "admission": Kind(workbench.Admission, ("project_id", "annotator_id"), {**_PROJECT, **_WHO}),
    "activity": Kind(
        workbench.Activity,
        ("annotator_id", "action", "project_id", "item_id", "details", "created"),
        {**_WHO, **_PROJECT, "item_id": "item"},
        renamed=lambda row, names: {**row, "details": names.inside(row["details"])},
    ),
    "evaluation": Kind(
        tables.Evaluation,
        ("public_id",),
        made=("report", "digest", *_RUN, *_TIMINGS),
        equal=("digest",),
        free=("label", "finished", "created"),
        fields=_ID,
        nested=Nested("report", _reports),
        readers={
            **_text("id", MAX_ID_CHARS),
            **_text("system", 4 * MAX_ID_CHARS, empty=True),
            **_text("corpus", 4 * MAX_ID_CHARS, empty=True),
            **_text("questions", 4 * MAX_ID_CHARS, empty=True),
            **_text("label", MAX_LABEL_CHARS, empty=True),
            "report": _report,
        },
        made_of=lambda values: {"digest": digest_of(values)},
        store=lambda session, table, values: add_evaluation(session, **values),
    ),
    "evaluation_trace": Kind(tables.EvaluationTrace, ("evaluation_id", "position"), {"evaluation_id": "evaluation"}),
}
# of the tables that are no kind of their own: what goes with another, and what stays
WITHIN = ("predicted_answer", "qa_pair", "evaluation_row", "evaluation_value", "evaluation_score")
LEFT_OUT = ("sign_in_wait", "project_job", "export", "snapshot", "last_commit")


def write_pairs(session: Session, row: tables.Annotation, pairs: Sequence[QAPair]) -> None:
    """The pairs of an annotation that has none yet."""
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
