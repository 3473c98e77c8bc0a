"""Everything that people said as one long table, a row a statement: CSV for spreadsheets, Parquet for everything else.

CSV is safe to open: a physical line of a cell that a spreadsheet would take for a formula begins with an apostrophe (OWASP, "CSV
Injection": = + - @, tab and carriage return; also their full-width forms, and behind blanks of any kind, which programs skip).  Parquet
holds the texts as they are.  Its schema is written down here and not guessed from rows: an empty file is a valid one with all columns.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, get_args

from sqlalchemy import select
from sqlalchemy.orm import Session

from storage.exchange.exports.files import HashedWriter
from storage.exchange.votes import Filters, Names, chunks, dated, said
from storage.records.results import Stage
from storage.results.annotations import pairs_of
from storage.schema import tables

ROWS = 5_000  # of a Parquet row group
COLUMNS = (
    ("question_id", "text"),
    ("question", "text"),
    ("stage", "text"),  # generation, validation, judging
    ("annotator", "text"),
    ("type", "text"),  # of the annotation; empty for a judgment
    ("position", "number"),  # of the pair or the answer, from 0; empty for an annotation without a pair
    ("answers", "texts"),  # aliases of one answer
    ("disambiguated_question", "text"),
    ("passage_ids", "texts"),
    ("verdict", "text"),  # of a judgment
    ("note", "text"),
    ("system", "text"),
    ("prediction_id", "text"),
    ("probability", "share"),
    ("version", "number"),
    ("created", "time"),
    ("updated", "time"),
)
_FORMULA = re.compile(r"[\s\u200b\u2060\ufeff\x00-\x20]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r]")
_LINES = re.compile(r"(\r\n|\r|\n|\x0b|\x0c|\x1c|\x1d|\x1e|\x85|\u2028|\u2029)")


def safe_cell(text: str) -> str:
    """The text with an apostrophe before each physical line that could be read as a formula.

    >>> safe_cell("=1+1"), safe_cell("1932"), safe_cell("a\\n -b")
    ("'=1+1", '1932', "a\\n' -b")
    """
    parts = _LINES.split(text)
    return "".join(f"'{p}" if i % 2 == 0 and _FORMULA.match(p) else p for i, p in enumerate(parts))


def statements(session: Session, filters: Filters, names: Names) -> Iterator[dict[str, Any]]:
    """Rows of COLUMNS: pairs of submitted annotations, then verdicts, question by question."""
    agreeing = None
    if filters.minimum_agreement is not None:
        agreeing = {one.id for one in said(session, filters)}
    for chunk in chunks(session, filters):
        if agreeing is not None:
            chunk = {key: one for key, one in chunk.items() if key in agreeing}
        rows: dict[int, list[dict[str, Any]]] = {key: [] for key in chunk}
        heads = {key: {"question_id": one.public_id, "question": one.text} for key, one in chunk.items()}
        _annotation_rows(session, filters, names, rows)
        if not filters.stages or "judging" in filters.stages:
            _verdict_rows(session, filters, names, rows)
        for key, own in rows.items():
            yield from ({**heads[key], **row} for row in own)


def _annotation_rows(session: Session, filters: Filters, names: Names, rows: dict[int, list[dict[str, Any]]]) -> None:
    a = tables.Annotation
    stages = [s for s in get_args(Stage) if not filters.stages or s in filters.stages]
    query = (
        select(a.id, a.question_id, a.stage, a.type, a.version, a.created, a.updated, tables.Annotator.name)
        .join(tables.Annotator, tables.Annotator.id == a.annotator_id)
        .where(a.state == "submitted", a.question_id.in_(list(rows)), a.stage.in_(stages))
        .order_by(tables.Annotator.id, a.stage)
    )
    if filters.annotators:
        query = query.where(tables.Annotator.name.in_(filters.annotators))
    found = session.execute(dated(query, a.updated, filters)).all()
    pairs = pairs_of(session, [row.id for row in found])
    for row in found:
        common = {
            "stage": row.stage,
            "annotator": names(row.name),
            "type": row.type,
            "version": row.version,
            "created": row.created,
            "updated": row.updated,
        }
        own = pairs.get(row.id, ())
        if not own:
            rows[row.question_id].append(common)
        for position, pair in enumerate(own):
            rows[row.question_id].append(
                {
                    **common,
                    "position": position,
                    "answers": list(pair.answers),
                    "disambiguated_question": pair.question,
                    "passage_ids": list(pair.passage_ids),
                }
            )


def _verdict_rows(session: Session, filters: Filters, names: Names, rows: dict[int, list[dict[str, Any]]]) -> None:
    j, answer, prediction = tables.Judgment, tables.PredictedAnswer, tables.Prediction
    query = (
        select(
            prediction.question_id,
            prediction.public_id,
            prediction.system,
            answer.position,
            answer.text,
            answer.clarified,
            answer.probability,
            answer.evidence,
            tables.Annotator.name,
            j.verdict,
            j.note,
            j.version,
            j.created,
            j.updated,
        )
        .join(answer, answer.id == j.predicted_answer_id)
        .join(prediction, prediction.id == answer.prediction_id)
        .join(tables.Annotator, tables.Annotator.id == j.annotator_id)
        .where(j.state == "submitted", prediction.question_id.in_(list(rows)))
        .order_by(prediction.id, answer.position, tables.Annotator.id)
    )
    if filters.system:
        query = query.where(prediction.system == filters.system)
    if filters.annotators:
        query = query.where(tables.Annotator.name.in_(filters.annotators))
    for row in session.execute(dated(query, j.updated, filters)):
        rows[row.question_id].append(
            {
                "stage": "judging",
                "annotator": names(row.name),
                "position": row.position,
                "answers": [row.text],
                "disambiguated_question": row.clarified or "",
                "passage_ids": list(dict.fromkeys(e["passage_id"] for e in row.evidence)),
                "verdict": row.verdict,
                "note": row.note,
                "system": row.system,
                "prediction_id": row.public_id,
                "probability": row.probability,
                "version": row.version,
                "created": row.created,
                "updated": row.updated,
            }
        )


def _count(row: dict[str, Any], counts: Counter[str]) -> None:
    counts["rows"] += 1
    counts[row["stage"]] += 1


def write_csv(session: Session, filters: Filters, names: Names, counts: Counter[str], out: HashedWriter) -> None:
    """UTF-8 with a byte order mark, so that spreadsheets read accents; every cell quoted; several aliases joined by ` | `."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    out.write("\ufeff")
    writer.writerow([name for name, _ in COLUMNS])
    for number, row in enumerate(statements(session, filters, names), 1):
        _count(row, counts)
        writer.writerow([_cell(row.get(name), kind) for name, kind in COLUMNS])
        if number % 500 == 0:
            out.write(buffer.getvalue())
            buffer.seek(0)
            buffer.truncate()
    out.write(buffer.getvalue())


def _cell(value: Any, kind: str) -> str:
    if value is None:
        return ""
    if kind == "time":
        return str(value.isoformat())
    if kind == "texts":
        return safe_cell(" | ".join(value))
    return safe_cell(value) if kind == "text" else str(value)


def schema() -> Any:
    """The Arrow schema of COLUMNS."""
    import pyarrow as pa

    kinds = {
        "text": pa.string(),
        "texts": pa.list_(pa.field("item", pa.string(), nullable=False)),
        "number": pa.int64(),
        "share": pa.float64(),
        "time": pa.timestamp("us", tz="UTC"),
    }
    required = ("question_id", "question", "stage", "annotator")
    return pa.schema([pa.field(name, kinds[kind], nullable=name not in required) for name, kind in COLUMNS])


def write_parquet(session: Session, filters: Filters, names: Names, counts: Counter[str], out: HashedWriter) -> None:
    """Row groups of ROWS rows, compressed with zstd."""
    import pyarrow as pa
    from pyarrow import parquet

    shape = schema()

    def group(rows: list[dict[str, Any]]) -> Any:
        return pa.Table.from_pylist(rows, schema=shape)

    with parquet.ParquetWriter(pa.PythonFile(out, mode="w"), shape, compression="zstd") as writer:
        waiting: list[dict[str, Any]] = []
        for row in statements(session, filters, names):
            _count(row, counts)
            waiting.append(row)
            if len(waiting) == ROWS:
                writer.write_table(group(waiting))
                waiting.clear()
        if waiting:
            writer.write_table(group(waiting))
