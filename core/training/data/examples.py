"""Training files to examples.

A ReadingExample is one question over one passage; a MultiExample is one question over several passages, with all its
answers.  Layouts:

- `reading`: JSONL(.gz) rows (question, title, passage, answers).
- `multi`: JSONL(.gz) rows (question, passages, answers as alias lists).  Optional fields: `negatives`, RAMDocs'
  `wrong_answers`, ids of `supporting` passages, `no_answer` (the passages hold none), and `answers_known`, false if it
  is only known that the negatives are wrong.
- questions.json and passages.tsv in the layout of data/starter.
"""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core import json_io
from core.disk import plain_or_gz
from core.errors import FormatError
from core.text import find_spans, normalize_answer

Titled = tuple[str, str]  # (title, text)


@dataclass(frozen=True)
class ReadingExample:
    """One question over one passage."""

    question: str
    title: str
    passage: str
    answers: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class MultiExample:
    """`gold`: aliases of each answer.  `bad`: answers known to be wrong (rejected by people, or false on purpose)."""

    question: str
    passages: tuple[Titled, ...]
    gold: tuple[tuple[str, ...], ...]
    source: str
    bad: tuple[str, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Reading:
    """One row.  Empty `answers` mean that the passage does not answer the question."""

    question: str
    passage: Titled
    answers: tuple[str, ...]


def _need(row: dict[str, Any], name: str, kind: type, path: Path, line: int) -> Any:
    if not isinstance(row.get(name), kind):
        raise FormatError(f"must be a {kind.__name__}", file=path, line=line, field=name)
    return row[name]


def _clean(text: str) -> str:
    return " ".join(text.split())


def read_reading(path: Path) -> Iterator[ReadingExample]:
    """The rows of a `reading` file whose answers occur in the passage as whole words.

    Others are left out: truncated answers would be learned.  Raises FormatError.
    """
    for number, row in json_io.read_lines(path):
        passage = _clean(_need(row, "passage", str, path, number))
        question = _clean(_need(row, "question", str, path, number))
        given = _need(row, "answers", list, path, number)
        if not all(isinstance(a, str) for a in given):
            raise FormatError("must be a list of texts", file=path, line=number, field="answers")
        answers = tuple(a for a in given if find_spans(passage, a))
        source = str(row.get("source", path.stem))
        if "[PAR]" in passage:  # several documents in one string; the title marks are no prose
            continue
        if answers:
            yield ReadingExample(question, _clean(str(row.get("title") or "")), passage, answers, source)


def read_multi(path: Path) -> Iterator[MultiExample]:
    """The rows of a `multi` file.  Raises FormatError."""
    for number, row in json_io.read_lines(path):
        passages = _need(row, "passages", list, path, number)
        answers = _need(row, "answers", list, path, number)
        if not all(isinstance(p, dict) and isinstance(p.get("text"), str) for p in passages):
            raise FormatError("each passage must be an object with a text", file=path, line=number, field="passages")
        if not all(isinstance(a, list) and all(isinstance(x, str) for x in a) for a in answers):
            raise FormatError("must be a list of alias lists", file=path, line=number, field="answers")
        bad: list[str] = []
        for field_name in ("negatives", "wrong_answers"):
            for wrong in row.get(field_name) or ():
                first = wrong[0] if isinstance(wrong, list) and wrong else wrong
                if first and not isinstance(first, str):
                    raise FormatError("must be a list of texts or alias lists", file=path, line=number, field=field_name)
                bad += [first] if first else []
        wrong_keys = {normalize_answer(b) for b in bad}
        gold: dict[str, tuple[str, ...]] = {}
        for aliases in answers:  # ASQA repeats an answer for each disambiguated question
            kept = tuple(a for a in aliases if normalize_answer(a) not in wrong_keys)  # no targets that were judged wrong
            if kept:
                gold.setdefault(normalize_answer(kept[0]), kept)
        passages, extra = _supporting_first(passages, row, path, number)
        extra |= {"origin": [p.get("origin") for p in passages]}
        if row.get("no_answer") is True and not gold:
            extra["no_answer"] = True
        elif row.get("answers_known") is False and bad and not row["answers"]:
            extra["negatives_only"] = True
        yield MultiExample(
            _clean(_need(row, "question", str, path, number)),
            tuple((_clean(str(p.get("title") or "")), _clean(p["text"])) for p in passages),
            tuple(gold.values()),
            str(row.get("source", path.stem)),
            tuple(bad),
            extra,
        )


def _supporting_first(passages: list[Any], row: dict[str, Any], path: Path, line: int) -> tuple[list[Any], dict[str, Any]]:
    """(passages, extra): passages that people named as evidence come first, as in `read_annotated`.

    `extra` is {} if the row names none.
    """
    given = row.get("supporting", [])
    if not isinstance(given, list) or not all(isinstance(i, str) for i in given):
        raise FormatError("must be a list of passage ids", file=path, line=line, field="supporting")
    known = [p.get("id") for p in passages]
    found = [i for i in dict.fromkeys(given) if i in known]
    if not found:
        return passages, {}
    order = sorted(range(len(passages)), key=lambda k: known[k] not in found)  # stable
    count = sum(i in found for i in known)  # two corpora may use one id
    ordered = [passages[k] for k in order]
    return ordered, {"supporting": [p["id"] for p in ordered[:count]]}


def read_passages_tsv(path: Path) -> dict[str, Titled]:
    """Passages by id.  Raises FormatError."""
    rows = csv.reader(io.StringIO(json_io.read_text(path, bounded=False), newline=""), delimiter="\t")
    if next(rows, None) != ["id", "text", "title"]:
        raise FormatError("the first line must be: id, text, title (tab-separated)", file=path, line=1)
    out: dict[str, Titled] = {}
    for number, row in enumerate(rows, 2):
        if len(row) != 3:
            raise FormatError(f"{len(row)} columns instead of 3", file=path, line=number)
        out[row[0]] = (row[2], row[1])
    return out


def read_annotated(folder: Path) -> tuple[list[MultiExample], dict[str, Titled]]:
    """The questions of a folder with questions.json and passages.tsv, each possibly .gz, with their supporting passages
    only.

    `extra["supporting"]` holds the ids, `extra["supporting_of"]` those of each pair; retrieval adds context passages
    (core.training.data.mining).  `extra["split"]` is the question's field of that name ("train" or "held out"), if it
    has one.  Raises FormatError.
    """
    passages = read_passages_tsv(plain_or_gz(folder / "passages.tsv"))
    path = plain_or_gz(folder / "questions.json")
    rows = json_io.read(path)
    if not isinstance(rows, list):
        raise FormatError("must be a list of questions", file=path)
    examples = []
    for number, row in enumerate(rows, 1):
        try:
            annotation = row["annotations"][0]
            pairs = (
                annotation["qaPairs"] if annotation["type"] == "multipleQAs" else [{"question": row["question"], **annotation}]
            )
            ids = list(dict.fromkeys(i for pair in pairs for i in pair["passages"]))
            examples.append(
                MultiExample(
                    row["question"],
                    tuple(passages[i] for i in ids),
                    tuple(tuple(pair["answer"]) for pair in pairs),
                    folder.name,
                    extra={
                        "supporting": ids,
                        "supporting_of": [list(pair["passages"]) for pair in pairs],
                        "questions": [pair["question"] for pair in pairs],
                        **({"split": row["split"]} if "split" in row else {}),
                    },
                )
            )
        except (KeyError, IndexError, TypeError) as error:
            raise FormatError(
                f"question {number} lacks {error} (a field of the layout, or a passage of passages.tsv)",
                file=path,
            ) from None
    return examples, passages


def crop(passage: str, answers: tuple[str, ...], size: int, rng: random.Random) -> str:
    """At most `size` words around a random occurrence of an answer, or the whole passage if it is short."""
    tokens = passage.split(" ")
    if len(tokens) <= size:
        return passage
    spans = [span for answer in answers for span in find_spans(passage, answer)]
    start, end = rng.choice(spans) if spans else (0, 0)
    first, last = passage.count(" ", 0, start), passage.count(" ", 0, end) + 1
    low, high = max(0, last - size), min(first, len(tokens) - size)
    begin = rng.randint(min(low, high), max(low, high))
    return " ".join(tokens[begin : begin + size])
