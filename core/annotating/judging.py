"""The form of the judging stage: labels of the answers of one or two answer sets, as one immutable value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from core.annotating.aliases import parse_aliases
from core.annotating.labels import Label, Preference, QuestionLabel


@dataclass(frozen=True, slots=True)
class Unit:
    """One displayed answer, which may be in both sets.  Its distinct disambiguated questions are judged too."""

    key: str  # of its label: prediction id and position, as `unit_key` makes it
    questions: tuple[str, ...] = ()  # keys of the labels of its questions


def unit_key(prediction_id: str, position: int) -> str:
    return f"{prediction_id}.{position}"


@dataclass(frozen=True, slots=True)
class JudgingForm:
    labels: Mapping[str, Label] = field(default_factory=dict)
    questions: Mapping[str, QuestionLabel] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    missing: str = ""  # one answer a line, its aliases separated by |
    preference: Preference | None = None
    note: str = ""
    errors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # error labels of the project

    def missing_answers(self) -> tuple[tuple[str, ...], ...]:
        return tuple(aliases for line in self.missing.splitlines() if (aliases := parse_aliases(line)))


def judge(form: JudgingForm, key: str, label: Label | None) -> JudgingForm:
    """Sets an answer's label; None removes it."""
    return replace(form, labels=_with(form.labels, key, label))


def judge_question(form: JudgingForm, key: str, label: QuestionLabel | None) -> JudgingForm:
    return replace(form, questions=_with(form.questions, key, label))


def annotate(form: JudgingForm, key: str, note: str) -> JudgingForm:
    return replace(form, notes=_with(form.notes, key, note.strip() or None))


def _with(old: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    others = {k: v for k, v in old.items() if k != key}
    return others if value is None else {**others, key: value}


def open_parts(form: JudgingForm, unit: Unit) -> tuple[str, ...]:
    """The labels that an answer still lacks: "answer", "question"."""
    missing = ["answer"] if unit.key not in form.labels else []
    if any(key not in form.questions for key in unit.questions):
        missing.append("question")
    return tuple(missing)


def next_open(form: JudgingForm, units: Sequence[Unit], after: int = -1) -> int | None:
    """The index of the next answer that is not fully judged, from `after` on, wrapping around; None if all are."""
    order = [*range(after + 1, len(units)), *range(0, max(0, after + 1))]
    return next((i for i in order if open_parts(form, units[i])), None)


def problems(form: JudgingForm, units: Sequence[Unit], compares: bool) -> tuple[str, ...]:
    """Messages about everything that blocks the submission.  `compares`: there are two different sets, so that one may be
    better."""
    messages = []
    for part, words in (("answer", "answer"), ("question", "the question of answer")):
        if unlabelled := [str(i) for i, unit in enumerate(units, 1) if part in open_parts(form, unit)]:
            messages.append(f"Choose a label for {words} {', '.join(unlabelled)}.")
    if compares and form.preference is None:
        messages.append("Say which of the two sets is better, or that they are equally good.")
    return tuple(messages)
