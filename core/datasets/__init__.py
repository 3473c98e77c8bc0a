"""Question files: one loader per layout, found by name or by content.  All return core.types.ReferenceQuestion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from core import json_io
from core.errors import FormatError
from core.registry import Entry, Registry
from core.types import ReferenceQuestion

LAYOUTS = Registry(
    "question layout",
    {
        "ambignq": Entry(
            "core.datasets.ambignq:load",
            "AmbigNQ light, full or with articles: a JSON list of id, question, annotations",
            "Min et al. 2020",
        ),
        "rows": Entry(
            "core.datasets.rows:load",
            "JSONL(.gz) or a JSON list: question, answers (a list of alias lists), and passages where a row brings its own",
        ),
        "fid": Entry(
            "core.datasets.rows:load",
            "the same with answers (aliases of one answer) and ctxs, or DPR's positive_ctxs",
            "Izacard and Grave 2021; Karpukhin et al. 2020",
        ),
        "one-answer": Entry(
            "core.datasets.rows:load_one_answer", "the same with a flat list of answers: aliases of one answer"
        ),
        "web-questions": Entry(
            "core.datasets.rows:load_web_questions",
            "the same with a flat list of answers: each is another answer",
            "Berant et al. 2013",
        ),
        "asqa": Entry("core.datasets.asqa:load", "ASQA: one JSON object of train and dev", "Stelmakh et al. 2022"),
        "ramdocs": Entry("core.datasets.ramdocs:load", "RAMDocs: JSONL with documents and gold_answers", "Wang et al. 2025"),
        "webqsp": Entry(
            "core.datasets.webqsp:load",
            "WebQSP's Questions",
            "Yih et al. 2016; Min et al. 2021",
        ),
        "nq-open": Entry(
            "core.datasets.rows:load",
            "JSONL(.gz) or a JSON list: question and answer, the aliases of its answer",
            "Lee et al. 2019",
        ),
    },
)


def detect(path: Path) -> str:
    """The name of a file's layout, recognised by the fields of its first row.  Raises FormatError for unknown layouts."""
    first = json_io.first_text(path)
    if first[:1] not in ("[", "{"):
        problem = "expected questions as a JSON list (AmbigNQ light) or as JSON lines" if first else "the file is empty"
        raise FormatError(f"{problem}; give a file in one of the layouts {', '.join(LAYOUTS)}", file=path.name)
    row = _first_row(path, first)
    if first.startswith("[") and ("annotations" in row or not row.keys() & {"answers", "answer"}):
        return "ambignq"
    if "Questions" in row:
        return "webqsp"
    if "gold_answers" in row:
        return "ramdocs"
    if isinstance(row.get("train") or row.get("dev"), dict):
        return "asqa"
    if "ctxs" in row or "positive_ctxs" in row:
        return "fid"
    if "answers" in row:
        return "rows"
    if isinstance(answer := row.get("answer"), list) and any(isinstance(a, list) for a in answer):
        return "rows"
    if "answer" in row:
        return "nq-open"
    raise FormatError("a row needs 'answers' (a list of alias lists) or 'answer' (a list of aliases)", file=path.name, line=1)


def _first_row(path: Path, first: str) -> Mapping[str, Any]:
    """The first object of a JSON list or of JSON lines; of one object over many lines, that; empty if it is none."""
    if first.startswith("["):
        _, row, _ = next(json_io.array_rows(json_io.read_text(path, bounded=False), path), (1, None, None))
    else:
        try:
            _, row = next(json_io.read_lines(path))
        except FormatError:  # maybe one object over many lines
            if first != "{":
                raise
            row = json_io.read(path)
    return row if isinstance(row, dict) else {}


def load(path: Path, layout: str | None = None) -> list[ReferenceQuestion]:
    """The questions of a file, in its order, with distinct ids.

    Raises FormatError (file, line, field), InputError if it cannot be read, UnknownNameError for another layout.
    """
    loader: Callable[[Path], list[ReferenceQuestion]] = LAYOUTS.resolve(layout or detect(path))
    questions = loader(path)
    for question in questions:  # what metrics read of the fields that layouts leave as they are
        for name in ("wrong_answers", "long_answers"):
            if (value := question.extra.get(name)) is not None and not isinstance(value, tuple):
                json_io.FieldReader(path.name, question=question.id).texts(value, name, empty=True)
    return questions
