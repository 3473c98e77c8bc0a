"""The labels of an answer: one list, which the database and whatever shows them follow."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from core.annotating.labels import LABELS, QUESTION_LABELS
from pages.annotate import judging
from pages.manage import items
from pages.quality import tables
from storage.store import Store


@pytest.mark.parametrize("table", ["judgment", "judgment_revision"])
def test_the_database_allows_the_labels_and_no_other(tmp_path: Path, table: str) -> None:
    Store(f"sqlite:///{tmp_path / 'a.db'}").close()
    with sqlite3.connect(tmp_path / "a.db") as raw:
        (made,) = raw.execute("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)).fetchone()
    raw.close()
    assert f"verdict IN ({', '.join(map(repr, LABELS))})" in made


def test_every_label_has_its_looks_and_its_help() -> None:
    assert list(judging.ANSWER_LABELS) == list(items.LABEL_COLOURS) == list(LABELS)
    assert list(judging.QUESTION_LABELS) == list(items.QUESTION_BADGES) == list(QUESTION_LABELS)
    assert set(judging.ICONS) == {*LABELS, *QUESTION_LABELS}
    assert set(LABELS) <= set(tables.HELP)
