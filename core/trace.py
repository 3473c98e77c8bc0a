"""Events <-> JSON, and the fold of events into a prediction.  A trace round-trips exactly."""

from __future__ import annotations

import dataclasses
import functools
import types as pytypes
import typing
from collections.abc import Iterable, Mapping
from typing import Any

from core import types as t
from core.errors import FormatError

T = typing.TypeVar("T")
EVENTS: dict[str, type] = {cls.__name__: cls for cls in typing.get_args(t.Event)}
_hints = functools.cache(typing.get_type_hints)  # evaluating annotations takes 70% of the time to read a trace


def to_json(value: Any) -> Any:
    """Plain JSON values for a dataclass of core.types; an event carries its class name under "event"."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        body = {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"event": type(value).__name__, **body} if type(value).__name__ in EVENTS else body
    if isinstance(value, (list, tuple)):
        return [to_json(v) for v in value]
    if isinstance(value, Mapping):
        return {str(k): to_json(v) for k, v in value.items()}
    return value


def _build(kind: Any, value: Any, place: str) -> Any:
    """A value of type `kind` from plain JSON.  Raises FormatError with `place`."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return value
    if origin in (typing.Union, pytypes.UnionType):
        if value is None and type(None) in args:
            return None
        event = value.get("event") if isinstance(value, dict) else None
        if isinstance(event, str) and EVENTS.get(event) in args:
            return _build(EVENTS[event], value, place)
        return _build(next(a for a in args if a is not type(None)), value, place)
    if origin is tuple:
        if not isinstance(value, list):
            raise FormatError(f"expected a list, found {type(value).__name__}", field=place)
        kinds = args[:1] * len(value) if args[-1] is Ellipsis else args
        if len(kinds) != len(value):
            raise FormatError(f"expected a list of {len(kinds)}", field=place)
        return tuple(_build(part, v, f"{place}[{i}]") for i, (part, v) in enumerate(zip(kinds, value, strict=True)))
    if origin is typing.Literal:
        if value not in args:
            raise FormatError(f"expected one of {args}, found {_short(value)}", field=place)
        return value
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        if not isinstance(value, dict):
            raise FormatError(f"expected an object, found {type(value).__name__}", field=place)
        hints = _hints(kind)
        fields = {f.name: f for f in dataclasses.fields(kind)}
        missing = [n for n, f in fields.items() if n not in value and f.default is f.default_factory is dataclasses.MISSING]
        if missing:
            raise FormatError(f"{kind.__name__} lacks {', '.join(missing)}", field=place)
        return kind(**{n: _build(hints[n], value[n], f"{place}.{n}") for n in fields if n in value})
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, dict):
            raise FormatError(f"expected an object, found {type(value).__name__}", field=place)
        return {key: _build(args[1], v, f"{place}.{key[:80]}") for key, v in value.items()}
    if kind is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if isinstance(kind, type) and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
        raise FormatError(f"expected {kind.__name__}, found {_short(value)}", field=place)
    return value


def _short(value: Any) -> str:
    """A value as quoted in a message: a container only by its type, a text only by its start."""
    if isinstance(value, (dict, list)):
        return type(value).__name__
    return repr(value[:80] if isinstance(value, str) else value)


def event_from_json(row: Any) -> t.Event:
    """An event from its JSON. Raises FormatError for an unknown event or a wrong field."""
    if not isinstance(row, dict) or not isinstance(row.get("event"), str) or row["event"] not in EVENTS:
        raise FormatError(f"unknown event {_short(row.get('event') if isinstance(row, dict) else row)}")
    return typing.cast(t.Event, _build(EVENTS[row["event"]], row, row["event"]))


def from_json(kind: type[T], row: Any) -> T:
    """A dataclass of core.types from the result of `to_json`.  Raises FormatError."""
    return typing.cast(T, _build(kind, row, kind.__name__))


def prediction_from_json(row: Any) -> t.Prediction:
    """A prediction from the result of `to_json`.  Raises FormatError."""
    return typing.cast(t.Prediction, _build(t.Prediction, row, "prediction"))


def fold(question: t.Question, info: t.SystemInfo, events: Iterable[t.Event]) -> t.Prediction:
    """Folds one run's events into a prediction; those of waiting are left out.

    An answer that is rejected later leaves the set; a passage retrieved twice counts once; a system has already collected all evidence of an answer.
    """
    log = tuple(e for e in events if not isinstance(e, t.QuestionQueued))
    answers: dict[str, t.Answer] = {}
    clarifications: dict[str, t.Clarification] = {}
    steps: list[t.Step] = []
    passages: dict[str, t.RetrievedPassage] = {}
    interpretations: tuple[t.Interpretation, ...] = ()
    seconds = 0.0
    for event in log:
        match event:
            case t.PassagesRetrieved(passages=retrieved):
                for p in retrieved:
                    passages.setdefault(p.passage.id, p)
            case t.StepFinished(step=step, answer=answer):
                steps.append(step)
                if answer is not None:
                    answers[answer.text] = answer
            case t.AnswerRejected(answer=text):
                answers.pop(text, None)
            case t.QuestionClarified(clarification=c):
                clarifications[c.answer] = c
            case t.InterpretationsChosen(interpretations=chosen):
                interpretations = chosen
            case t.Finished(seconds=s):
                seconds = s
    return t.Prediction(
        question=question,
        system=info,
        answers=tuple(answers.values()),
        clarifications=tuple(clarifications[a] for a in answers if a in clarifications),
        steps=tuple(steps),
        passages=tuple(passages.values()),
        seconds=seconds,
        events=log,
        interpretations=interpretations,
    )
