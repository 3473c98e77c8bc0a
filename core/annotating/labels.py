"""The labels that people give to an answer and to its disambiguated question, each list in the order in which it is shown."""

from __future__ import annotations

from typing import Literal, get_args

Label = Literal["correct", "wrong", "unsupported", "duplicate", "outdated", "contradicts"]
QuestionLabel = Literal["fits", "ambiguous_still", "changes_meaning"]
Preference = Literal["a", "b", "tie"]  # of two sets of answers

LABELS: tuple[Label, ...] = get_args(Label)
QUESTION_LABELS: tuple[QuestionLabel, ...] = get_args(QuestionLabel)
DISPUTED: tuple[Label, ...] = ("outdated", "contradicts")  # a passage says so, but another one says otherwise
