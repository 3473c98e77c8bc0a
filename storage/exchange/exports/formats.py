"""Exports from the database: streamed, from one moment, with a manifest.  Plugins add formats (core.plugins).

`storage.exchange.consensus.CONSENSUS_RULE`, which is in each manifest, says how disagreement between annotators is settled.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from sqlalchemy.orm import Session

from core.errors import InputError
from core.registry import Entry, Registry
from storage.exchange import dump
from storage.exchange.exports import hub, label_studio, tables, training_formats
from storage.exchange.filters import Filters, Names
from storage.exchange.final_answers import LEFT_OUT

LineMaker = Callable[[Session, Filters, Names, Counter[str]], Iterator[str]]
FileWriter = Callable[[Session, Filters, Names, Counter[str], Any], None]


@dataclass(frozen=True, slots=True)
class Format(Entry):
    """A format of exports.  `target`: a `FileWriter`, which streams into a text file or, where `is_folder`, makes the files of a folder."""

    suffix: str = ""
    counts: Sequence[str] = ()  # named even when they are 0
    is_folder: bool = False

    def problem(self, name: str) -> str:
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
            return "the name must have lower-case letters, digits and '-' only: files are called by it"
        if self.is_folder == bool(self.suffix):
            return "a format of files needs a suffix such as .csv, and a format of folders has none"
        return Entry.problem(self, name)


def json_lines(rows: LineMaker) -> FileWriter:
    """Writes `rows`, which are JSON texts, one a line."""

    def write(session: Session, filters: Filters, names: Names, counts: Counter[str], out: TextIO) -> None:
        out.writelines(row + "\n" for row in rows(session, filters, names, counts))

    return write


def json_list(rows: LineMaker) -> FileWriter:
    """Writes the same as one JSON list."""

    def write(session: Session, filters: Filters, names: Names, counts: Counter[str], out: TextIO) -> None:
        out.write("[")
        for number, row in enumerate(rows(session, filters, names, counts)):
            out.write((",\n" if number else "\n") + row)
        out.write("\n]\n")

    return write


_MAJORITY = (
    "questions",
    "answers",
    "negatives",
    "ties",
    "questions_without_a_correct_answer",
    "questions_without_passages",
    *LEFT_OUT,
)
_AMBIGNQ = ("questions", "annotations", "annotations_without_an_answer", "questions_without_an_answer_set", *LEFT_OUT)
_STATEMENTS = ("rows", "generation", "validation", "judging", *LEFT_OUT)
FORMATS = Registry(
    "export format",
    {
        "ambignq": Format(
            json_list(training_formats.ambignq),
            "AmbigNQ light, for AmbigQA's scripts, `python -m core train`, `evaluate` and `score`",
            "Min et al. 2020",
            suffix=".json",
            counts=_AMBIGNQ,
        ),
        "ambignq-full": Format(
            json_list(training_formats.ambignq_full),
            "AmbigNQ full: also used_queries, viewed_doc_titles and the evidence",
            "Min et al. 2020",
            suffix=".json",
            counts=(*_AMBIGNQ, "used_queries"),
        ),
        "fid": Format(
            json_list(training_formats.fid),
            "FiD's layout, for readers of the FiD family",
            "Izacard and Grave 2021",
            suffix=".json",
            counts=_MAJORITY,
        ),
        "training": Format(
            json_lines(training_formats.training),
            "JSON lines with evidence and negatives, for `python -m core train --multi`",
            suffix=".jsonl",
            counts=(*_MAJORITY, "questions_with_evidence", "questions_with_no_answer", "questions_with_negatives_only"),
        ),
        "preferences": Format(
            json_lines(training_formats.preferences),
            "JSON lines of a chosen and a rejected answer, for preference training",
            suffix=".jsonl",
            counts=("pairs", "ties"),
        ),
        "csv": Format(
            tables.write_csv, "a row an answer or a label, formula-safe, for spreadsheets", suffix=".csv", counts=_STATEMENTS
        ),
        "parquet": Format(
            tables.write_parquet, "the same rows, typed, for data frames and data lakes", suffix=".parquet", counts=_STATEMENTS
        ),
        "datasets": Format(
            hub.write_folder,
            "a folder with a card and a Parquet file a split, for `datasets.load_dataset`",
            counts=(*_AMBIGNQ, "used_queries", *hub.SPLITS),
            is_folder=True,
        ),
        "label-studio": Format(
            json_list(label_studio.label_studio),
            "a list of tasks, whose predictions are the answer sets, for Label Studio",
            suffix=".json",
            counts=_AMBIGNQ,
        ),
        "jsonl": Format(
            json_lines(dump.everything),
            "everything but sign-ins and the logs of files, a row a line, for `import` into an empty database",
            suffix=".jsonl",
            counts=tuple(dump.TABLES),
        ),
    },
    "ambiscope.exports",
    Format,
)


def check_format(name: str, filters: Filters) -> Format:
    """Raises UnknownNameError, and InputError for filters that a format does not know."""
    if name == "jsonl" and not filters.empty:
        raise InputError("a jsonl export holds everything: leave the filters out, or use another format")
    return FORMATS[name]


def write_rows(session: Session, format: str, out: TextIO | Path, filters: Filters, names: Names) -> dict[str, int]:
    """Streams one format into a file or a folder; returns the counts.  An empty database gives a valid file without rows.

    Raises UnknownNameError, and PluginError if the format of a plugin fails.
    """
    counts: Counter[str] = Counter(dict.fromkeys(FORMATS[format].counts, 0))
    write: FileWriter = FORMATS.resolve(format)
    with FORMATS.running(format):
        write(session, filters, names, counts, out)
    return dict(counts)
