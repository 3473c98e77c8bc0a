"""Readers of tables with one passage or document a line: TSV in the DPR layout, and JSON lines."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator

from core.retrieval.readers.lines import DocumentRow, Source

DPR_COLUMNS = ("id", "text", "title")  # psgs_w100.tsv, https://github.com/facebookresearch/DPR
MAX_ID_CHARS = 200


def _unquoted(field: str) -> str:
    """A field without its CSV quotes; unchanged if the quotes belong to the text ('"Help!" is an album')."""
    if len(field) < 2 or field[0] != '"' or field[-1] != '"':
        return field
    inner = field[1:-1]
    return inner.replace('""', '"') if '"' not in inner.replace('""', "") else field


def split_row(line: str, columns: int) -> list[str] | None:
    """The fields of one line with CSV quotes undone; None if their number isn't `columns`.

    One line is one row: psgs_w100.tsv has no line breaks in fields, and an unclosed quote must not consume the rest of the file,
    as it would with a CSV parser.
    """
    fields = line.split("\t")
    if len(fields) == columns:
        return [_unquoted(f) for f in fields]
    if len(fields) > columns and '"' in line:  # a quoted field may hold a tab
        try:
            parsed = next(csv.reader([line], delimiter="\t"), [])
        except csv.Error:
            return None
        return parsed if len(parsed) == columns else None
    return None


def read_tsv(source: Source) -> Iterator[DocumentRow]:
    """`id<TAB>text<TAB>title`.  A first line that names these columns (in any order, `title` optional) is the header."""
    columns: tuple[str, ...] = DPR_COLUMNS
    for number, line in source.lines():
        if number == 1:
            names = tuple(_unquoted(n.strip()).strip().lower() for n in line.split("\t"))
            if {"id", "text"} <= set(names) <= set(DPR_COLUMNS) and len(set(names)) == len(names):
                columns = names
                source.tally.header += 1
                continue
        fields = split_row(line, len(columns))
        if fields is None:
            count = line.count("\t") + 1
            source.reject(
                number, f"{count} column{'s' * (count != 1)}; expected {len(columns)}: {', '.join(columns)} with tabs"
            )
            continue
        row = dict(zip(columns, fields, strict=True))
        if not row["id"].strip():
            source.reject(number, "the id is empty")
            continue
        yield DocumentRow(number, row["id"].strip(), row.get("title", ""), row["text"])


def read_jsonl(source: Source) -> Iterator[DocumentRow]:
    """Objects with a text and optionally a title and an id, under the names in `Columns`."""
    for number, line in source.lines():
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as e:
            position = f" at column {e.colno}" if isinstance(e, json.JSONDecodeError) else ""
            source.reject(number, f"not JSON{position}; expected one object a line")
            continue
        if not isinstance(row, dict):
            source.reject(number, f"a JSON {type(row).__name__}; expected an object with text and title")
            continue
        names = source.columns.names_in(row)
        if "text" not in names:
            expected = ", ".join(source.columns.text)
            source.reject(number, f"no field {expected}; found {', '.join(list(row)[:5])[:100] or 'nothing'}")
            continue
        if document := source.row(number, "field", names, {field: row[name] for field, name in names.items()}):
            yield document
