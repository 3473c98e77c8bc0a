"""Rows with `question`, `answers` and optionally their own `passages`: JSON lines, or one JSON list.

`answers` is a list of alias lists.  A flat list of several texts is read only if the row says what it means: with `ctxs` (Fusion-in-Decoder,
DPR's retriever) or DPR's `positive_ctxs`, or as `answer` (NQ-open), they are aliases of one answer; with as many `qa_pairs`, each is another
answer.  Otherwise the file's layout says it (`one-answer`, or `web-questions` for WebQuestions), or the row is refused.  Equal answers are not merged.
An empty list says that the question's own passages have no answer; without such passages it is refused.
`ctxs` are the question's own passages; DPR's training passages are left out, because their names say which are right.
Optional fields: `passages` (`title`, `text`, and `id`, `origin`, `answer` where known), `wrong_answers` (RAMDocs), `qa_pairs`
(ASQA: disambiguated questions), `source`, `ambiguity`.  Everything else goes to `extra` as it is.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Literal

from core.datasets.lines import DataLine, load_lines
from core.text import answer_key
from core.types import Annotation, Passage, QAPair, ReferenceQuestion

Flat = Literal["", "aliases", "answers"]  # what a flat list of answers means; "": the row says it
CTXS = "ctxs"
_TRAINING = ("positive_ctxs", "negative_ctxs", "hard_negative_ctxs")  # DPR's
_SUPPORTING = ("gold", "correct")  # `origin` of a supporting passage


def load(path: Path, flat: Flat = "") -> list[ReferenceQuestion]:
    """Loads a file.  Raises FormatError with the line, or InputError if the file can't be read."""
    return load_lines(path, partial(question_of, flat=flat))


load_one_answer = partial(load, flat="aliases")
load_web_questions = partial(load, flat="answers")


def question_of(line: DataLine, name: str, flat: Flat = "") -> ReferenceQuestion:
    """Reads one row.  Raises FormatError."""
    row = line.row
    question = line.text(row.get("question"), "question")
    aliases = _answers(line, flat)
    field = "passages" if row.get("passages") is not None else CTXS
    # an empty list stays one: such a question has nothing to read, and fails instead of being asked over a corpus
    bodies = None if row.get(field) is None else line.items(row[field], field, dict, empty=True)
    passages = None if bodies is None else _passages(line, name, field, bodies)
    clarified = _disambiguated(line, len(aliases))
    pairs = tuple(
        QAPair(clarified[i] if clarified else "", group, _support(group, passages or (), bodies or ()))
        for i, group in enumerate(aliases)
    )
    if len(pairs) == 1:
        pairs = (QAPair(pairs[0].question or question, pairs[0].answers, pairs[0].passage_ids),)
    extra = {k: v for k, v in row.items() if k not in ("id", "question", "answers", "answer", "passages", CTXS, *_TRAINING)}
    for field in ("source", "ambiguity"):
        if extra.get(field) is not None:
            line.text(row[field], field)
    if "wrong_answers" in extra:
        extra["wrong_answers"] = line.texts(row["wrong_answers"], "wrong_answers", empty=True)
    annotation = Annotation("none" if not pairs else "single" if len(pairs) == 1 else "multiple", pairs)
    return ReferenceQuestion(name, question, (annotation,), passages, extra)


def _answers(line: DataLine, flat: Flat) -> list[tuple[str, ...]]:
    row = line.row
    field = "answers" if "answers" in row or "answer" not in row else "answer"
    value = line.items(row.get(field), field, empty=bool(row.get("passages")))
    if not all(isinstance(v, str) for v in value):
        return [line.aliases(group, f"{field}[{i}]") for i, group in enumerate(value)]
    texts = line.texts(value, field, empty=True)
    if not texts:
        return []
    pairs = row.get("qa_pairs")
    if any(name in row for name in (CTXS, *_TRAINING)):
        flat = "aliases"
        texts = tuple(dict.fromkeys(texts))  # these files repeat aliases
    elif field == "answer":
        flat = "aliases"
    elif isinstance(pairs, list) and len(pairs) == len(texts):
        flat = flat or "answers"
    if not flat and len(texts) > 1:
        raise line.error(
            f"a flat list of {len(texts)} texts may be aliases of one answer or several answers, and no other field says which; write "
            '[["a", "b"]] for one answer or [["a"], ["b"]] for two, or choose --layout one-answer or --layout web-questions',
            field,
        )
    return [(text,) for text in texts] if flat == "answers" else [line.aliases(list(texts), field)]


def _passages(line: DataLine, name: str, field: str, bodies: list[dict[str, Any]]) -> tuple[Passage, ...]:
    passages: dict[str, Passage] = {}
    for i, body in enumerate(bodies):
        place = f"{field}[{i}]"
        key, title = f"{name}#{i + 1}", body.get("title", "")
        if field == CTXS:  # ids may be numbers, be missing, or be there twice
            passage_id = str("" if body.get("id") is None else body["id"]).strip()
            key, title = passage_id if passage_id and passage_id not in passages else key, title or ""
        elif "id" in body:
            key = line.id(body["id"], f"{place}.id")
        if key in passages:
            raise line.error(f"the id '{key[:80]}' occurs twice", f"{place}.id")
        text = line.text(body.get("text"), f"{place}.text")
        passages[key] = Passage(key, line.text(title, f"{place}.title", empty=True), text)
    return tuple(passages.values())


def _support(aliases: tuple[str, ...], passages: tuple[Passage, ...], bodies: Any) -> tuple[str, ...]:
    """The passages that the row names for this answer."""
    keys = {answer_key(a) for a in aliases}
    return tuple(
        passage.id
        for passage, body in zip(passages, bodies, strict=True)
        if isinstance(body.get("answer"), str)
        and body.get("origin", "gold") in _SUPPORTING
        and answer_key(body["answer"]) in keys
    )


def _disambiguated(line: DataLine, count: int) -> list[str] | None:
    """One question per answer, from ASQA's `qa_pairs`, which are in the order of `answers`."""
    value = line.row.get("qa_pairs")
    if value is None:
        return None
    if len(line.items(value, "qa_pairs", dict, empty=True)) != count:
        raise line.error("expected one object with a question for each of the answers", "qa_pairs")
    return [line.text(body.get("question"), f"qa_pairs[{i}].question") for i, body in enumerate(value)]
