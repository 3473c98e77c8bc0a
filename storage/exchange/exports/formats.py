"""Exports out of the database: streamed, of one moment, with a manifest.

| format | file | for |
|---|---|---|
| `ambignq` | AmbigNQ light: a list of {id, question, annotations} | AmbigQA's scripts, `python -m core train`, `evaluate`, `score` |
| `ambignq-full` | AmbigNQ full: also used_queries, viewed_doc_titles, and the evidence | evidence supervision |
| `fid` | FiD's layout: a list of {id, question, target, answers, ctxs, negatives} | readers of the FiD family |
| `training` | JSONL of {id, source, question, passages, answers, negatives, supporting, no_answer, answers_known} | `python -m core train --multi` |
| `preferences` | JSONL of {id, prompt, chosen, rejected, chosen_set, rejected_set} | preference training |
| `csv` | a row a statement, formula-safe | spreadsheets |
| `parquet` | the same rows, typed | data frames, data lakes |
| `jsonl` | everything but sign-ins and the logs of files, a kind a line | moving, merging and keeping a database; `import` reads it |

How disagreement between annotators is settled stands in `storage.exchange.consensus.RULE` and in each manifest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from core.errors import InputError
from storage.exchange import dump
from storage.exchange.exports import tables, training_formats
from storage.exchange.exports.files import HashedWriter
from storage.exchange.filters import Filters, Names
from storage.exchange.kinds import KINDS

Rows = Callable[[Session, Filters, Names, Counter[str]], Iterator[str]]
Whole = Callable[[Session, Filters, Names, Counter[str], HashedWriter], None]


@dataclass(frozen=True, slots=True)
class Format:
    """`rows` gives JSON texts, one a line, in a list if `as_list`; `whole` writes the file itself.  `counts`: named even when they are 0."""

    suffix: str
    counts: Sequence[str]
    rows: Rows | None = None
    whole: Whole | None = None
    as_list: bool = False


_MAJORITY = ("questions", "answers", "negatives", "ties", "questions_without_a_correct_answer", "questions_without_passages")
_AMBIGNQ = (
    "questions",
    "annotations",
    "questions_without_a_correct_answer",
    "annotators_without_a_correct_answer",
    "pairs_with_the_prompt_question",
)
_STATEMENTS = ("rows", "generation", "validation", "judging")
FORMATS: Mapping[str, Format] = {
    "ambignq": Format(".json", _AMBIGNQ, training_formats.ambignq, as_list=True),
    "ambignq-full": Format(".json", (*_AMBIGNQ, "used_queries"), training_formats.ambignq_full, as_list=True),
    "fid": Format(".json", _MAJORITY, training_formats.fid, as_list=True),
    "training": Format(
        ".jsonl",
        (*_MAJORITY, "questions_with_evidence", "questions_with_no_answer", "questions_with_negatives_only"),
        training_formats.training,
    ),
    "preferences": Format(".jsonl", ("pairs", "ties"), training_formats.preferences),
    "csv": Format(".csv", _STATEMENTS, whole=tables.write_csv),
    "parquet": Format(".parquet", _STATEMENTS, whole=tables.write_parquet),
    "jsonl": Format(".jsonl", tuple(KINDS), dump.everything),
}


def check_format(name: str, filters: Filters) -> Format:
    """Raises InputError for an unknown format, and for filters that it does not know."""
    if name not in FORMATS:
        raise InputError(f"unknown format '{name}'; use one of {', '.join(FORMATS)}")
    if name == "jsonl" and not filters.empty:
        raise InputError("a jsonl export holds everything: leave the filters out, or use another format")
    return FORMATS[name]


def write_rows(
    session: Session, format: str, out: HashedWriter, filters: Filters, names: Names | None = None
) -> dict[str, int]:
    """Streams one format; returns the counts.  An empty database gives a valid file without rows."""
    made = FORMATS[format]
    called = names or Names(session, filters.pseudonyms)
    counts: Counter[str] = Counter(dict.fromkeys(made.counts, 0))
    if made.whole is not None:
        made.whole(session, filters, called, counts, out)
        return dict(counts)
    assert made.rows is not None
    out.write("[" if made.as_list else "")
    for number, row in enumerate(made.rows(session, filters, called, counts)):
        if made.as_list:
            out.write((",\n" if number else "\n") + row)
        else:
            out.write(row + "\n")
    out.write("\n]\n" if made.as_list else "")
    return dict(counts)
