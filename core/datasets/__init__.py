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

# Data sets whose layouts are not read, by the fields of their first row or object
OTHER_LAYOUTS: tuple[tuple[str, frozenset[str]], ...] = tuple(
    (name, frozenset(fields.split()))
    for name, fields in (
        ("MRQA", "header"),
        ("MRQA", "context qas"),
        ("SQuAD", "data version"),
        ("SQuAD", "paragraphs title"),
        ("HotpotQA", "supporting_facts"),
        ("MuSiQue", "question_decomposition"),
        ("SQuAD", "context question"),
        ("MS MARCO", "query passages"),
        ("TriviaQA", "Data"),
        ("TriviaQA", "question_source"),
        ("PopQA", "subj prop obj"),
        ("Natural Questions with their pages", "question_text"),
        ("WebQuestions of 2013", "utterance"),
        ("KILT", "input output"),
        ("BoolQ", "passage question"),
        ("BEIR", "_id text"),
    )
)
ANSWER_FIELDS = ("answers", "answer", "annotations", "gold_answers", "wrong_answers", "Questions", "train", "dev")


def refuse_other_layouts(row: Mapping[str, Any]) -> None:
    """Raises FormatError for a row in the layout of another data set, or with answers under a name that no layout has."""
    answers, fields = row.get("answers"), row.keys()
    if isinstance(answers, list) and answers and all(isinstance(aliases, list) for aliases in answers):
        return  # converted to ours, perhaps with fields of its old layout
    name = next(
        (name for name, signature in OTHER_LAYOUTS if signature <= fields), "SQuAD" if isinstance(answers, dict) else ""
    )
    problem = f"this is the layout of {name}, which is not read" if name else ""
    if not name and not any(row.get(f) for f in ANSWER_FIELDS):
        named = (
            f for f in fields if f.lower().endswith(("answer", "answers")) and row[f] and isinstance(row[f], str | list | dict)
        )
        if unread := next(named, ""):
            problem = f"the field '{unread[:80]}' holds answers, and no layout reads it"
    if problem:
        layouts = ", ".join(LAYOUTS)
        raise FormatError(
            f'{problem}; write {{"question": "...", "answers": [["..."]]}} for each question, or use one of the layouts {layouts}'
        )


def detect(path: Path) -> str:
    """The name of a file's layout, recognised by the fields of its first row.  Raises FormatError for unknown layouts."""
    first = json_io.first_text(path)
    if first[:1] not in ("[", "{"):
        problem = "expected questions as a JSON list (AmbigNQ light) or as JSON lines" if first else "the file is empty"
        raise FormatError(f"{problem}; give a file in one of the layouts {', '.join(LAYOUTS)}", file=path.name)
    row = _first_row(path, first)
    try:
        refuse_other_layouts(row)
    except FormatError as error:
        raise FormatError(error.problem, file=path.name) from None
    if first.startswith("[") and ("annotations" in row or not row):
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
    fields = ", ".join(f"'{field[:40]}'" for field in list(row)[:8]) or "no object"
    raise FormatError(
        f"the first row has {fields}; it needs 'question' with 'answers' (a list of alias lists) or 'answer' (a list of aliases), or the "
        f"fields of another of the layouts {', '.join(LAYOUTS)}",
        file=path.name,
    )


def _first_row(path: Path, first: str) -> Mapping[str, Any]:
    """The first object of a JSON list or of JSON lines, or a single object over many lines; empty if there is none."""
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
