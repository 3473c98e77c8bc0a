"""Reads training files into examples.

A ReadingExample is one question over one passage; a MultiExample is one question over several passages, with all its answers.  Layouts:

- `reading`: JSONL(.gz) rows (question, title, passage, answers).
- `multi`: JSONL(.gz) rows (question, passages, answers as alias lists).  Optional fields: `negatives`, RAMDocs'
  `wrong_answers`, ids of `supporting` passages, `no_answer` (the passages hold none), `answers_known`, false if it
  is only known that the negatives are wrong, and `conditions`: when each answer holds.
- questions.json and passages.tsv in the layout of data/starter.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core import json_io
from core.disk import plain_or_gz
from core.errors import FormatError
from core.json_io import FieldReader
from core.retrieval.readers.tables import split_row
from core.text import answer_key, find_spans

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
class ReadingRow:
    """One row.  Empty `answers` mean that the passage doesn't answer the question."""

    question: str
    passage: Titled
    answers: tuple[str, ...]


def _clean(text: str) -> str:
    return " ".join(text.split())


def read_reading(path: Path) -> Iterator[ReadingExample]:
    """The rows of a `reading` file whose answers occur in the passage as whole words.

    Others are left out: truncated answers would be learned.  Raises FormatError.
    """
    for number, row in json_io.read_lines(path):
        fields = FieldReader(path, line=number)
        passage, question = (_clean(fields.text(row.get(name), name, empty=True)) for name in ("passage", "question"))
        answers = tuple(a for a in fields.items(row.get("answers"), "answers", str, empty=True) if find_spans(passage, a))
        source = str(row.get("source", path.stem))
        if "[PAR]" in passage:  # several documents in one string; the title marks are no prose
            continue
        if answers:
            yield ReadingExample(question, _clean(str(row.get("title") or "")), passage, answers, source)


def read_multi(path: Path) -> Iterator[MultiExample]:
    """The rows of a `multi` file.  Raises FormatError."""
    for number, row in json_io.read_lines(path):
        fields = FieldReader(path, line=number)
        passages = fields.items(row.get("passages"), "passages", dict, empty=True)
        for i, p in enumerate(passages):
            fields.text(p.get("text"), f"passages[{i}].text", empty=True)
        answers = fields.items(row.get("answers"), "answers", list, empty=True)
        bad: list[str] = []
        for name in ("negatives", "wrong_answers"):
            for i, wrong in enumerate(row.get(name) or ()):
                first = wrong[0] if isinstance(wrong, list) and wrong else wrong
                bad += [fields.text(first, f"{name}[{i}]", empty=True)] if first else []
        wrong_keys = {answer_key(b) for b in bad}
        gold: dict[str, tuple[str, ...]] = {}
        for i, aliases in enumerate(answers):  # ASQA repeats an answer for each disambiguated question
            names = fields.items(aliases, f"answers[{i}]", str, empty=True)
            right = tuple(a for a in names if answer_key(a) not in wrong_keys)  # no targets that were judged wrong
            if right:
                gold.setdefault(answer_key(right[0]), right)
        supporting = fields.items(row.get("supporting", []), "supporting", str, empty=True)
        passages, extra = _supporting_first(passages, supporting)
        extra |= {"origin": [p.get("origin") for p in passages]}
        conditions = fields.items(row.get("conditions", []), "conditions", str, empty=True)
        if any(conditions):
            extra["conditions"] = conditions
        if row.get("no_answer") is True and not gold:
            extra["no_answer"] = True
        elif row.get("answers_known") is False and bad and not row["answers"]:
            extra["negatives_only"] = True
        yield MultiExample(
            _clean(fields.text(row.get("question"), "question", empty=True)),
            tuple((_clean(str(p.get("title") or "")), _clean(p["text"])) for p in passages),
            tuple(gold.values()),
            str(row.get("source", path.stem)),
            tuple(bad),
            extra,
        )


def _supporting_first(passages: list[Any], supporting: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
    """(passages, extra).  Passages that people named as evidence come first, as in `read_annotated`; `extra` has their ids, if
    any."""
    ordered = sorted(passages, key=lambda p: p.get("id") not in supporting)
    ids = [p["id"] for p in passages if p.get("id") in supporting]  # two corpora may use one id
    return ordered, {"supporting": ids} if ids else {}


def read_passages_tsv(path: Path) -> dict[str, Titled]:
    """Passages by id, read as a corpus reads them.  Raises FormatError."""
    header, *lines = json_io.read_text(path, bounded=False).replace("\r\n", "\n").split("\n")
    if split_row(header, 3) != ["id", "text", "title"]:
        raise FormatError("the first line must be: id, text, title (tab-separated)", file=path, line=1)
    out: dict[str, Titled] = {}
    for number, line in enumerate(lines, 2):
        if not line.strip():
            continue
        row = split_row(line, 3)
        if row is None:
            raise FormatError(f"{line.count(chr(9)) + 1} columns instead of 3", file=path, line=number)
        out[row[0]] = (row[2], row[1])
    return out


def read_annotated(folder: Path) -> tuple[list[MultiExample], dict[str, Titled]]:
    """The questions of a folder with questions.json and passages.tsv, each possibly .gz, with their supporting passages only.

    `extra["supporting"]` holds the ids, `extra["supporting_of"]` those of each pair; retrieval adds context passages
    (core.training.data.mining).  `extra["split"]` is the question's field of that name ("train" or "held out"), if it has one.  Raises FormatError.
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
            question, several = row["question"], annotation["type"] == "multipleQAs"
            pairs = annotation["qaPairs"] if several else [{"question": question, **annotation}]
            ids = list(dict.fromkeys(i for pair in pairs for i in pair["passages"]))
            gold = tuple(tuple(pair["answer"]) for pair in pairs)
            extra = {"supporting": ids, "supporting_of": [list(pair["passages"]) for pair in pairs]}
            extra |= {"questions": [pair["question"] for pair in pairs], **({"split": row["split"]} if "split" in row else {})}
            examples.append(MultiExample(question, tuple(passages[i] for i in ids), gold, folder.name, extra=extra))
        except (KeyError, IndexError, TypeError) as error:
            raise FormatError(
                f"question {number} lacks {error} (a field of the layout, or a passage of passages.tsv)", file=path
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
