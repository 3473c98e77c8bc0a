"""Question files: one loader per layout, found by name or by content.  All return core.types.ReferenceQuestion."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from core import json_io
from core.errors import FormatError
from core.registry import Entry, Registry
from core.types import ReferenceQuestion

Loader = Callable[[Path], list[ReferenceQuestion]]

LAYOUTS = Registry(
    "question layout",
    {
        "ambignq": Entry(
            "core.datasets.ambignq:load",
            "AmbigNQ light, full or with articles: a JSON list of id, question, annotations",
            "Min et al. 2020",
        ),
        "rows": Entry("core.datasets.rows:load", "JSONL(.gz): question, answers, and passages where a row brings its own"),
        "asqa": Entry("core.datasets.asqa:load", "ASQA: one JSON object of train and dev", "Stelmakh et al. 2022"),
        "ramdocs": Entry("core.datasets.ramdocs:load", "RAMDocs: JSONL with documents and gold_answers", "Wang et al. 2025"),
        "webqsp": Entry(
            "core.datasets.webqsp:load",
            "WebQSP's Questions, or a JSON list of question and answers",
            "Yih et al. 2016; Min et al. 2021",
        ),
        "nq-open": Entry("core.datasets.nq_open:load", "JSONL(.gz): question and the aliases of its answer", "Lee et al. 2019"),
    },
)


def detect(path: Path) -> str:
    """The name of a file's layout, recognised by its first row.  Raises FormatError for unknown layouts."""
    first = json_io.first_text(path)
    if first.startswith("["):
        return "ambignq"
    if first.startswith("{"):
        try:
            _, row = next(json_io.read_lines(path))
        except FormatError:  # maybe one object over many lines
            if first != "{":
                raise
            row = json_io.read(path)
        if "Questions" in row:
            return "webqsp"
        if "gold_answers" in row:
            return "ramdocs"
        if isinstance(row.get("train") or row.get("dev"), dict):
            return "asqa"
        if "answers" in row:
            return "rows"
        if "answer" in row:
            return "nq-open"
        raise FormatError(
            "a row needs 'answers' (a list of alias lists) or 'answer' (a list of aliases)", file=path.name, line=1
        )
    problem = "expected questions as a JSON list (AmbigNQ light) or as JSON lines" if first else "the file is empty"
    raise FormatError(f"{problem}; give a file in one of the layouts {', '.join(LAYOUTS)}", file=path.name)


def load(path: Path, layout: str | None = None) -> list[ReferenceQuestion]:
    """The questions of a file, in its order, with distinct ids.

    Raises FormatError (file, line, field), InputError if it cannot be read, UnknownNameError for another layout.
    """
    loader: Loader = LAYOUTS.resolve(layout or detect(path))
    return loader(path)
