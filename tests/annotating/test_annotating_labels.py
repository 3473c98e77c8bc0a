"""The labels of an answer: one list, which the database and whatever shows them follow."""

from __future__ import annotations

from core.annotating.labels import LABELS, QUESTION_LABELS
from pages.annotate import judging
from pages.manage import items
from pages.quality import tables


def test_every_label_has_its_looks_and_its_help() -> None:
    assert list(judging.ANSWER_LABELS) == list(items.LABEL_COLOURS) == list(LABELS)
    assert list(judging.QUESTION_LABELS) == list(items.QUESTION_BADGES) == list(QUESTION_LABELS)
    assert set(judging.ICONS) == {*LABELS, *QUESTION_LABELS}
    assert set(LABELS) <= set(tables.HELP)
