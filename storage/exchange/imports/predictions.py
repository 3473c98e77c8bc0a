"""Reads predictions as other programs write them into core.types.

A JSON line each:
- a trace: `core.trace.to_json` of a Prediction, alone or under `prediction`;
- what `python -m core ask --json` prints (its passages have no text to show or train on);
- the simple layout: {"question", "answers"} and, as far as known, "id", "system", "corpus", "seconds", "passages": [{"id", "title", "text"}].
  An answer is a text, or {"answer" or "text", "question", "probability", "passages": [ids]}.
"""

from __future__ import annotations

import hashlib
from typing import Any

from core.errors import FormatError
from core.json_io import FieldReader, dumps
from core.trace import prediction_from_json
from core.types import (
    Answer,
    Clarification,
    Evidence,
    Finished,
    Passage,
    PassagesRetrieved,
    Prediction,
    Question,
    RetrievedPassage,
    SystemInfo,
)
from storage.records.checks import MAX_ID_CHARS, MAX_QUESTION_CHARS, check_text

PredictionRow = dict[str, Any]
MAX_ANSWERS = 1000
MAX_ANSWER_CHARS = 20_000
UNNAMED_SYSTEM = "imported"


def _text(row: PredictionRow, name: str, field: str, *, limit: int = MAX_ID_CHARS, default: str | None = None) -> str:
    if default is not None and row.get(name) is None:
        return default
    value = row.get(name)
    if not isinstance(value, str):
        raise FormatError(f"expected text, found {type(value).__name__ if name in row else 'nothing'}", field=field)
    return check_text(value, f"field '{field}'", limit=limit, empty=default is not None)


def _number(row: PredictionRow, name: str, field: str, default: float) -> float:
    value = row.get(name, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise FormatError("expected a number", field=field)
    return float(value)


def _list(row: PredictionRow, name: str, field: str) -> list[Any]:
    value = row.get(name, [])
    if not isinstance(value, list) or len(value) > MAX_ANSWERS:
        raise FormatError(f"expected a list of at most {MAX_ANSWERS}", field=field)
    return value


def _id(row: PredictionRow, field: str) -> str:
    return FieldReader(None).id(row.get("id"), field)


def prediction_of(row: PredictionRow) -> Prediction:
    """A prediction in any of the three layouts.  Its question and probabilities are checked when it is stored.  Raises
    FormatError or InputError naming the field."""
    body = row.get("prediction", row)
    is_trace = isinstance(body, dict) and "events" in body
    prediction = prediction_from_json(body) if is_trace else _simple(row)
    check_text(prediction.system.name, "the system's name", limit=MAX_ID_CHARS, empty=False)
    for number, answer in enumerate(prediction.answers, 1):
        check_text(answer.text, f"answer {number}", limit=MAX_ANSWER_CHARS, empty=False)
    return prediction


def _simple(row: PredictionRow) -> Prediction:
    identity = _id(row, "id") if row.get("id") not in (None, "") else ""
    question = Question(_text(row, "question", "question", limit=MAX_QUESTION_CHARS), id=identity)
    if "answers" not in row:
        raise FormatError("expected a list of answers", field="answers")
    passages = tuple(_passage(body, i) for i, body in enumerate(_list(row, "passages", "passages")))
    if len({p.passage.id for p in passages}) != len(passages):
        raise FormatError("an id occurs twice", field="passages")
    answers: dict[str, Answer] = {}
    clarified: dict[str, Clarification] = {}
    for i, body in enumerate(_list(row, "answers", "answers")):
        answer, clarification = _answer(body, f"answers[{i}]", passages, question.text)
        if answer.text in answers:
            raise FormatError(f"'{answer.text[:80]}' occurs twice", field=f"answers[{i}]")
        answers[answer.text] = answer
        if clarification is not None:
            clarified[answer.text] = clarification
    info = row.get("info")
    if not isinstance(info, dict):
        info = {name: row.get(name) for name in ("corpus", "checkpoint")}
    settings = info.get("settings")
    system = SystemInfo(
        _text(row, "system", "system", default="") or UNNAMED_SYSTEM,
        settings if isinstance(settings, dict) else {},
        corpus=_text(info, "corpus", "corpus", default=""),
        checkpoint=_text(info, "checkpoint", "checkpoint", default=""),
    )
    seconds = max(0.0, _number(row, "seconds", "seconds", 0.0))
    events = (*((PassagesRetrieved(passages, 0.0, question.text),) if passages else ()), Finished(seconds, "imported"))
    return Prediction(question, system, tuple(answers.values()), tuple(clarified.values()), (), passages, seconds, events)


def _passage(body: Any, i: int) -> RetrievedPassage:
    field = f"passages[{i}]"
    if not isinstance(body, dict):
        raise FormatError("expected an object with id, title and text", field=field)
    passage = Passage(
        _id(body, f"{field}.id"),
        _text(body, "title", f"{field}.title", default="", limit=MAX_ANSWER_CHARS),
        _text(body, "text", f"{field}.text", default="", limit=10**6),
    )
    return RetrievedPassage(passage, i + 1, _number(body, "score", f"{field}.score", 0.0))


def _answer(body: Any, field: str, passages: tuple[RetrievedPassage, ...], prompt: str) -> tuple[Answer, Clarification | None]:
    if isinstance(body, str):
        body = {"text": body}
    if not isinstance(body, dict):
        raise FormatError("expected a text or an object with answer", field=field)
    name = "text" if "text" in body else "answer"
    text = _text(body, name, f"{field}.{name}", limit=MAX_ANSWER_CHARS)
    evidence = tuple(_evidence(e, f"{field}.evidence[{i}]") for i, e in enumerate(_list(body, "evidence", f"{field}.evidence")))
    passage_by_id = {p.passage.id: p.passage for p in passages}
    # the output of `ask --json` has both: evidence says more than passages
    for i, passage_id in enumerate(() if evidence else _list(body, "passages", f"{field}.passages")):
        if not isinstance(passage_id, str) or (passage_by_id and passage_id not in passage_by_id):
            raise FormatError("expected the id of one of the row's passages", field=f"{field}.passages[{i}]")
        start = passage_by_id[passage_id].text.find(text) if passage_id in passage_by_id else -1
        evidence += (Evidence(passage_id, start, start + len(text), text) if start >= 0 else Evidence(passage_id, 0, 0, ""),)
    answer = Answer(text, _number(body, "probability", f"{field}.probability", 1.0), evidence)
    question = _text(body, "question", f"{field}.question", default="", limit=MAX_QUESTION_CHARS)
    if not question.strip() or question == prompt:
        return answer, None
    return answer, Clarification(text, question, body.get("round_trip") is True)


def _evidence(body: Any, field: str) -> Evidence:
    if not isinstance(body, dict):
        raise FormatError("expected an object with passage_id, start, end and text", field=field)
    start, end = body.get("start"), body.get("end")
    if not isinstance(start, int) or not isinstance(end, int) or isinstance(start, bool) or not 0 <= start <= end:
        raise FormatError("expected start and end as whole numbers, start first", field=field)
    text = _text(body, "text", f"{field}.text", default="", limit=10**6)
    return Evidence(_text(body, "passage_id", f"{field}.passage_id"), start, end, text)


def content_key(trace: PredictionRow) -> str:
    """A key made from a prediction's trace, so that a file imported twice is stored once."""
    return f"import:{hashlib.sha256(dumps(trace).encode()).hexdigest()}"
