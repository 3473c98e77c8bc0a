"""A paper's worked example: its published answers and this run's side by side, each marked as matched, missed or added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from core import types as t
from core.evaluation.published import example_of
from core.text import answer_keys
from pages.explore.sides import keys_of
from pages.ui.markup import escape

MARKS = {
    "matched": ":green[:material/check: matched]",
    "missed": ":red[:material/close: missed]",
    "added": ":orange[:material/add: added]",
    "": "",
}


@dataclass(frozen=True)
class ComparedAnswer:
    """`published`: whether each of the paper's columns has the answer.  `mark`: a key of MARKS, empty if only a published
    system has it."""

    text: str
    published: tuple[bool, ...]
    mark: str


def compared(example: t.ReferenceQuestion, answers: Sequence[t.Answer]) -> list[ComparedAnswer]:
    """The paper's right answers in their order, then its systems' other answers, then this run's additions."""
    right = [(pair.answers[0], answer_keys(pair.answers)) for a in example.annotations for pair in a.pairs]
    groups = list(right)
    given = [(text, answer_keys((text,))) for texts in example.extra["published"].values() for text in texts]
    for text, keys in [*given, *((a.text, keys_of(a)) for a in answers)]:
        if not any(keys & known for _, known in groups):
            groups.append((text, keys))
    ours = frozenset[str]().union(*map(keys_of, answers))
    published = [answer_keys(texts) for texts in example.extra["published"].values()]
    rows = []
    for number, (text, keys) in enumerate(groups):
        has = bool(keys & ours)
        mark = ("matched" if has else "missed") if number < len(right) else "added" if has else ""
        rows.append(ComparedAnswer(text, tuple(bool(keys & theirs) for theirs in published), mark))
    return rows


def draw(prediction: t.Prediction) -> None:
    """Draws the comparison, if the question is a worked example over its own passages."""
    example = example_of(prediction.question.text)
    if example is None or prediction.question.passages is None:
        return
    columns = [f"{escape(name)}, in the paper" for name in example.extra["published"]]
    lines = [f"| Answer | Here | {' | '.join(columns)} |", "|:--|:--|" + ":--|" * len(columns)]
    for row in compared(example, prediction.answers):
        cells = [":material/check:" if has else "–" for has in row.published]
        lines.append(f"| **{escape(row.text)}** | {MARKS[row.mark] or '–'} | {' | '.join(cells)} |")
    st.markdown("\n".join(lines))
