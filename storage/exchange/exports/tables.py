"""Final answer sets or all contributions, and labels, as one long table with a row for each statement: CSV for spreadsheets,
Parquet for everything else.

CSV is safe to open: a physical line of a cell that a spreadsheet would take for a formula begins with an apostrophe (OWASP, "CSV
Injection": = + - @, tab and carriage return; also their full-width, small and raised forms, and behind anything invisible, which programs
skip).  Parquet holds the texts as they are.  Its schema is written down here and not guessed from rows: a file without rows is valid and has all columns.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from sqlalchemy.orm import Session

from core.annotating.aliases import join_aliases
from storage.exchange.filters import Filters, Names
from storage.exchange.final_answers import FinalSet
from storage.exchange.votes import chunks, contributed_questions, contributions, every_answer_set
from storage.results.standing import AnnotationRecord, LabelRecord

DELIMITER = ","  # of every CSV file, also those of pages
GROUP_ROWS = 5_000  # rows of a Parquet row group
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
    ("error_labels", "texts"),  # of the project's, beside it
    ("note", "text"),
    ("system", "text"),
    ("prediction_id", "text"),
    ("probability", "share"),
    ("version", "number"),
    ("counts", "flag"),  # False if it was late, sent back or reopened, or replaced elsewhere
    ("created", "time"),
    ("updated", "time"),
)
_SIGNS = "=+-@\u2212"
# letters and symbols that draw nothing: Hangul fillers and the empty Braille pattern
_BLANK = "\u115f\u1160\u2800\u3164\uffa0"
_LINES = re.compile(r"(\r\n|\r|\n|\x0b|\x0c|\x1c|\x1d|\x1e|\x85|\u2028|\u2029)")


def _is_formula(line: str) -> bool:
    """Whether the first visible character of a line begins a formula, or the line begins with a tab."""
    if line.startswith("\t"):
        return True
    # controls, formats, unassigned, private (C); separators (Z); combining marks and variation selectors (M)
    visible = (c for c in line if unicodedata.category(c)[0] not in "CZM" and c not in _BLANK)
    first = next(visible, "")
    return first != "" and unicodedata.normalize("NFKC", first)[0] in _SIGNS


def safe_cell(text: str) -> str:
    """The text with an apostrophe before each physical line that could be read as a formula.

    >>> safe_cell("=1+1"), safe_cell("1932"), safe_cell("a\\n -b")
    ("'=1+1", '1932', "a\\n' -b")
    """
    parts = _LINES.split(text)
    return "".join(f"'{p}" if i % 2 == 0 and _is_formula(p) else p for i, p in enumerate(parts))


def statements(session: Session, filters: Filters, names: Names, counts: Counter[str]) -> Iterator[dict[str, Any]]:
    """Yields and counts the rows of COLUMNS: answers of answer sets, then labels, question by question."""
    agreeing = None
    if filters.minimum_agreement is not None:
        agreeing = {question.id for question in contributed_questions(session, filters)}
    for chunk in chunks(session, filters):
        if agreeing is not None:
            chunk = {key: question for key, question in chunk.items() if key in agreeing}
        rows: dict[int, list[dict[str, Any]]] = {key: [] for key in chunk}
        collected = contributions(session, list(chunk), filters, counts)
        if filters.answers == "final":
            for question_id, finals in collected.outcome.finals.items():
                rows[question_id] += [row for final in finals for row in _set_rows(final, final.people, True, names)]
        else:
            for entry in every_answer_set(session, list(chunk), filters):
                record = entry.record
                rows[record.question] += _set_rows(record, [record.annotator], entry.counts, names)
        for label in collected.labels:
            rows[label.answer.question_id].append(_label_row(label, names))
        for key, question in chunk.items():
            for row in rows[key]:
                counts["rows"] += 1
                counts[row["stage"]] += 1
                yield {"question_id": question.public_id, "question": question.text, **row}


def _set_rows(
    record: FinalSet | AnnotationRecord, people: Sequence[str], counts: bool, names: Names
) -> Iterator[dict[str, Any]]:
    """One row for each answer of an answer set by these people.  A single answer has no disambiguated question."""
    common = {
        "stage": record.stage,
        "annotator": join_aliases(map(names, people)),
        "type": record.annotation.type,
        "version": record.version,
        "counts": counts,
        "created": record.created,
        "updated": record.updated,
    }
    if not record.annotation.pairs:
        yield common
    for position, pair in enumerate(record.annotation.pairs):
        yield common | {
            "position": position,
            "answers": list(pair.answers),
            "disambiguated_question": pair.question if record.annotation.type == "multiple" else "",
            "passage_ids": list(pair.passage_ids),
        }


def _label_row(record: LabelRecord, names: Names) -> dict[str, Any]:
    answer = record.answer
    return {
        "stage": "judging",
        "annotator": names(record.annotator),
        "position": answer.position,
        "answers": [answer.text],
        "disambiguated_question": answer.clarified or "",
        "passage_ids": list(dict.fromkeys(e["passage_id"] for e in answer.evidence)),
        "verdict": record.label,
        "error_labels": list(record.errors),
        "note": record.note,
        "system": answer.system,
        "prediction_id": answer.prediction,
        "probability": answer.probability,
        "version": record.version,
        "counts": True,
        "created": record.created,
        "updated": record.updated,
    }


def write_csv(session: Session, filters: Filters, names: Names, counts: Counter[str], out: TextIO) -> None:
    """UTF-8 with a byte order mark, so that spreadsheets read accents; every cell quoted; several aliases joined by ` | `."""
    writer = csv.writer(out, delimiter=DELIMITER, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    out.write("\ufeff")
    writer.writerow([name for name, _ in COLUMNS])
    for row in statements(session, filters, names, counts):
        writer.writerow([_cell(row.get(name), kind) for name, kind in COLUMNS])


def _cell(value: Any, kind: str) -> str:
    if value is None:
        return ""
    if kind == "time":
        return str(value.isoformat())
    if kind == "flag":
        return str(value).lower()
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
        "flag": pa.bool_(),
        "share": pa.float64(),
        "time": pa.timestamp("us", tz="UTC"),
    }
    required = ("question_id", "question", "stage", "annotator")
    return pa.schema([pa.field(name, kinds[kind], nullable=name not in required) for name, kind in COLUMNS])


def write_parquet(session: Session, filters: Filters, names: Names, counts: Counter[str], out: TextIO) -> None:
    """The rows with the types of `schema()`; they go to the bytes beneath `out`."""
    with parquet_file(out.buffer, schema()) as add:
        for row in statements(session, filters, names, counts):
            add(row)


@contextmanager
def parquet_file(out: Any, shape: Any) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Yields a function that takes rows one by one and writes them in row groups of GROUP_ROWS, compressed with zstd.  `out`: a
    path or a binary file.  `shape`: the Arrow schema."""
    import pyarrow as pa
    from pyarrow import parquet

    waiting: list[dict[str, Any]] = []
    with parquet.ParquetWriter(out, shape, compression="zstd") as writer:

        def flush() -> None:
            writer.write_table(pa.Table.from_pylist(waiting, schema=shape))
            waiting.clear()

        def add(row: dict[str, Any]) -> None:
            waiting.append(row)
            if len(waiting) == GROUP_ROWS:
                flush()

        yield add
        if waiting:
            flush()
