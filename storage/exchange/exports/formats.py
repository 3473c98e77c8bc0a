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
| `datasets` | a folder: a Parquet file a split, of `ambignq-full`'s rows, and a card | `datasets.load_dataset`, the hub |
| `jsonl` | everything but sign-ins and the logs of files, a row a line | keeping and moving a database; `import` reads it into an empty one |

`storage.exchange.consensus.RULE`, which is in each manifest, says how disagreement between annotators is settled.
"""

from __future__ import annotations

from collections.abc import Mapping

from core.errors import InputError
from storage.exchange import dump
from storage.exchange.exports import hub, tables, training_formats
from storage.exchange.exports.writing import Format, json_lines, json_list
from storage.exchange.filters import Filters

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
    "ambignq": Format(".json", _AMBIGNQ, json_list(training_formats.ambignq)),
    "ambignq-full": Format(".json", (*_AMBIGNQ, "used_queries"), json_list(training_formats.ambignq_full)),
    "fid": Format(".json", _MAJORITY, json_list(training_formats.fid)),
    "training": Format(
        ".jsonl",
        (*_MAJORITY, "questions_with_evidence", "questions_with_no_answer", "questions_with_negatives_only"),
        json_lines(training_formats.training),
    ),
    "preferences": Format(".jsonl", ("pairs", "ties"), json_lines(training_formats.preferences)),
    "csv": Format(".csv", _STATEMENTS, tables.write_csv),
    "parquet": Format(".parquet", _STATEMENTS, tables.write_parquet),
    "datasets": Format("", (*_AMBIGNQ, "used_queries", *hub.SPLITS), hub.write_folder, is_folder=True),
    "jsonl": Format(".jsonl", tuple(dump.TABLES), json_lines(dump.everything)),
}


def check_format(name: str, filters: Filters) -> Format:
    """Raises InputError for an unknown format, and for filters that it does not know."""
    if name not in FORMATS:
        raise InputError(f"unknown format '{name}'; use one of {', '.join(FORMATS)}")
    if name == "jsonl" and not filters.empty:
        raise InputError("a jsonl export holds everything: leave the filters out, or use another format")
    return FORMATS[name]
