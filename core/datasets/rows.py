"""JSON lines with `question`, `answers` and, where a row has them, its own `passages`.

`answers` is a list of alias lists, or a list of plain texts of which each is one answer (WebQuestions).  Equal answers are not merged.
Optional fields: `passages` (`title`, `text`, and `id`, `origin`, `answer` where known), `wrong_answers` (RAMDocs), `qa_pairs`
(ASQA: disambiguated questions), `source`, `ambiguity`.  Everything else goes to `extra` as it is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from core.datasets.lines import Line, load_lines
from core.text import answer_key
from core.types import Annotation, Passage, QAPair, ReferenceQuestion

_SUPPORTING = ("gold", "correct")  # `origin` of a supporting passage


def load(path: Path) -> list[ReferenceQuestion]:
    """Raises FormatError with the line, or InputError if the file cannot be read."""
    return load_lines(path, question_of)


def question_of(line: Line, name: str) -> ReferenceQuestion:
    """One row.  Raises FormatError."""
    row = line.row
    question = line.text(row, "question", "question")
    aliases = _answers(line)
    bodies = _bodies(line)
    passages = None if bodies is None else _passages(line, name, bodies)
    asked = _disambiguated(line, len(aliases))
    pairs = tuple(
        QAPair(asked[i] if asked else "", group, _support(group, passages or (), bodies or ()))
        for i, group in enumerate(aliases)
    )
    if len(pairs) == 1:
        pairs = (QAPair(pairs[0].question or question, pairs[0].answers, pairs[0].passage_ids),)
    extra = {k: v for k, v in row.items() if k not in ("id", "question", "answers", "passages")}
    for field in ("source", "ambiguity"):
        if extra.get(field) is not None:
            line.text(row, field, field)
    if "wrong_answers" in extra:
        extra["wrong_answers"] = line.texts(row["wrong_answers"], "wrong_answers", empty=True)
    annotation = Annotation("single" if len(pairs) == 1 else "multiple", pairs)
    return ReferenceQuestion(name, question, (annotation,), passages, extra)


def _answers(line: Line) -> list[tuple[str, ...]]:
    value = line.row.get("answers")
    if not isinstance(value, list) or not value:
        raise line.error(f"expected a list of at least one alias list, found {value!r:.80}", "answers")
    if all(isinstance(v, str) for v in value):
        return [(text,) for text in line.texts(value, "answers")]
    return [line.aliases(group, f"answers[{i}]") for i, group in enumerate(value)]


def _bodies(line: Line) -> list[dict[str, Any]] | None:
    """The row's own passages; None if it has no such field.

    An empty list is kept: such a question has nothing to read and fails instead of being asked over a corpus.
    """
    value = line.row.get("passages")
    if value is None:
        return None
    if not isinstance(value, list):
        raise line.error("expected a list of passages; leave the field out to retrieve some", "passages")
    for i, body in enumerate(value):
        if not isinstance(body, dict):
            raise line.error(f"expected an object with title and text, found {body!r:.80}", f"passages[{i}]")
    return value


def _passages(line: Line, name: str, bodies: list[dict[str, Any]]) -> tuple[Passage, ...]:
    found: dict[str, Passage] = {}
    for i, body in enumerate(bodies):
        where = f"passages[{i}]"
        key = line.text(body, "id", f"{where}.id") if "id" in body else f"{name}#{i + 1}"
        if key in found:
            raise line.error(f"the id '{key[:80]}' occurs twice", f"{where}.id")
        title = line.text(body, "title", f"{where}.title", empty=True) if "title" in body else ""
        found[key] = Passage(key, title, line.text(body, "text", f"{where}.text"))
    return tuple(found.values())


def _support(aliases: tuple[str, ...], passages: tuple[Passage, ...], bodies: Any) -> tuple[str, ...]:
    """The passages that the row names for this answer."""
    wanted = {answer_key(a) for a in aliases}
    return tuple(
        passage.id
        for passage, body in zip(passages, bodies, strict=True)
        if isinstance(body.get("answer"), str)
        and body.get("origin", "gold") in _SUPPORTING
        and answer_key(body["answer"]) in wanted
    )


def _disambiguated(line: Line, count: int) -> list[str] | None:
    """One question an answer, from ASQA's `qa_pairs`, which stand in the order of `answers`."""
    value = line.row.get("qa_pairs")
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != count or not all(isinstance(v, dict) for v in value):
        raise line.error("expected one object with a question for each of the answers", "qa_pairs")
    return [line.text(body, "question", f"qa_pairs[{i}].question") for i, body in enumerate(value)]
