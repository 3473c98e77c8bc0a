"""A data set in the form that the hub's library reads: a folder with a Parquet file for each split, and a card.

`datasets.load_dataset(FOLDER)` reads it, and `huggingface-cli upload` takes it, as it is.  The rows are those of `ambignq-full`: questions
with their answer sets, disambiguated questions and evidence.  The schema is written down here, so that every file has all columns, typed alike.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from core import __version__
from core.errors import InputError
from core.text import date_text, question_key
from storage.exchange.consensus import CONSENSUS_RULE
from storage.exchange.exports.tables import parquet_file
from storage.exchange.exports.training_formats import ambignq_full
from storage.exchange.filters import Filters, Names
from storage.exchange.final_answers import LEFT_OUT
from storage.schema import tables
from storage.schema.engine import now

SPLITS = ("train", "validation")
VALIDATION_EVERY = 10  # one question in this many
FIELDS = (
    ("id", "of the question"),
    ("question", "the prompt question, possibly ambiguous"),
    (
        "annotations",
        "the final answer sets, one unless the question was answered in several projects: `type` (singleAnswer, multipleQAs, noAnswer); of a "
        "single answer its `answer` (aliases) and the ids of the `passages` that support it; of several `qaPairs`, each with these and its "
        "disambiguated `question`; with `--answers all` everybody's, each with `stage`, `annotator`, `version` and whether it `counts`",
    ),
    ("evidence", "the passages that the annotations cite: `id`, `title`, `text`"),
    ("viewed_doc_titles", "titles of the passages that annotators opened"),
    ("used_queries", "what annotators searched for"),
)


def split_of(question: str) -> str:
    """The split of a text.  The same words are always in the same split, so that a later export moves no question to another
    one.

    >>> split_of("Who played Maria?") == split_of("who played  Maria")
    True
    """
    number = int.from_bytes(hashlib.sha256(question_key(question).encode()).digest()[:8], "big")
    return SPLITS[number % VALIDATION_EVERY == 0]


def schema(filters: Filters) -> Any:
    """The Arrow schema of FIELDS."""
    import pyarrow as pa

    texts = pa.list_(pa.string())
    pair = pa.struct({"question": pa.string(), "answer": texts, "passages": texts})
    origin = {"stage": pa.string(), "annotator": pa.string(), "version": pa.int64(), "counts": pa.bool_()}
    parts = {"type": pa.string(), "answer": texts, "passages": texts, "qaPairs": pa.list_(pair)}
    annotation = pa.struct(parts | (origin if filters.answers == "all" else {}))
    passage = pa.struct({"id": pa.string(), "title": pa.string(), "text": pa.string()})
    kinds = {"id": pa.string(), "question": pa.string(), "annotations": pa.list_(annotation), "evidence": pa.list_(passage)}
    return pa.schema([pa.field(name, kinds.get(name, texts)) for name, _ in FIELDS])


def _rows(texts: Iterator[str]) -> Iterator[dict[str, Any]]:
    """`ambignq-full`'s rows in the schema's shape: lists where AmbigNQ leaves a field out."""
    for text in texts:
        row = json.loads(text)
        for annotation in row["annotations"]:
            for part in (annotation, *annotation.setdefault("qaPairs", [])):
                part.setdefault("answer", [])
                part.setdefault("passages", [])
        yield {**{name: row[name] for name, _ in FIELDS}, "used_queries": [q["query"] for q in row["used_queries"]]}


def write_folder(session: Session, filters: Filters, names: Names, counts: Counter[str], out: Path) -> None:
    """Writes `data/SPLIT.parquet` for each split that has a row, and README.md.  Raises InputError if none has, because that
    can't be loaded."""
    shape, files = schema(filters), dict[str, Callable[[dict[str, Any]], None]]()
    (out / "data").mkdir()
    with ExitStack() as stack:
        for row in _rows(ambignq_full(session, filters, names, counts)):
            split = split_of(row["question"])
            if split not in files:
                files[split] = stack.enter_context(parquet_file(out / f"data/{split}.parquet", shape))
            files[split](row)
            counts[split] += 1
    if not files:
        raise InputError(
            "no question has a final answer set: there is nothing to make a data set of (--answers all: what people wrote so far)"
        )
    (out / "README.md").write_text(_card(session, filters.to_json(names), counts), encoding="utf-8")


def _card(session: Session, filters: dict[str, Any], counts: Counter[str]) -> str:
    """The data set's card. Texts of people and corpora are in it as JSON, so that they can't become markup of the card's
    head."""
    active = {name: value for name, value in filters.items() if value != Filters().to_json()[name]}
    origin = f"Filters: `{json.dumps(active, default=str)}`."
    if not active:  # else corpora of questions that are left out may be among them
        corpora = sorted(session.scalars(select(tables.Prediction.corpus).where(tables.Prediction.corpus != "").distinct()))
        listed = f"`{json.dumps(corpora, ensure_ascii=False)}`" if corpora else "none"
        origin = f"Corpora that the stored systems read: {listed}. Filters: none."
    head = ["---", "license: unknown", "language: [en]", "task_categories: [question-answering]", "tags: [ambiguous-questions]"]
    head += ["configs:", "- config_name: default", "  data_files:"]
    head += [line for split in SPLITS if counts[split] for line in (f"  - split: {split}", f"    path: data/{split}.parquet")]
    body = [
        "# Ambiguous questions and their answer sets",
        f"Written by Ambiscope {__version__} on {date_text(now())}, from the submitted work of its annotators.",
        "## Splits\n",
        f"One question in {VALIDATION_EVERY} is in `validation`, chosen by its words: a later export moves none.\n",
        "| split | questions |\n|---|---|",
        *[f"| `{split}` | {counts[split]} |" for split in SPLITS],
        f"\n{counts['annotations']} annotations in all. Left out: {sum(counts[name] for name in LEFT_OUT)} items that are not finished.",
        "## Fields\n",
        "| field | content |\n|---|---|",
        *[f"| `{name}` | {description} |" for name, description in FIELDS],
        "\n## Origin\n",
        origin,
        f"\nDisagreement: {CONSENSUS_RULE}",
        "\n## Licence\n",
        "None is stated: the publisher of this data set decides, and writes it here and into `license` above. The passages in `evidence` "
        "keep the licence of their corpus.",
    ]
    return "\n".join([*head, "---", "", *body, ""])
