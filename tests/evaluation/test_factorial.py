"""The page of the factorial comparison: only questions that every system has answered, and differences of the same ones."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.quality.factorial import CELLS, Asked, Rows, Table, in_one_passage, page
from core import types as t


def rows_of(folder: Path, questions: int) -> Rows:
    rows = Rows(folder / "rows.jsonl")
    for i in range(questions):
        for system, added in CELLS:
            f1 = 0.5 + 0.1 * (added != "none") + 0.2 * (system == "ambigprompt") * (i % 2)
            row = {
                "key": f"starter/{i}",
                "set": "starter",
                "source": "starter",
                "system": system,
                "additions": added,
                "made": "d",
            }
            rows.add({**row, "f1": f1, "references": 1 + i % 2, "in_one_passage": 1 + i % 2, "commit": "abcdef012345"})
    return rows


def test_questions_that_a_system_lacks_are_left_out_and_a_torn_row_is_forgotten(tmp_path: Path) -> None:
    rows_of(tmp_path, 4)
    file = tmp_path / "rows.jsonl"
    lines = file.read_text().splitlines()
    failed = json.loads(lines[-1]) | {"f1": None, "error": "no model"}
    file.write_text("\n".join([*lines[:-1], json.dumps(failed), lines[0][:40]]))
    assert Table(Rows(file)).keys == [f"starter/{i}" for i in range(3)]


def test_what_iterating_brings_is_said_by_the_answers_in_one_passage(tmp_path: Path) -> None:
    text = page(rows_of(tmp_path, 8), "COMMAND")
    assert "`COMMAND` (abcdef0; seed 0)" in text
    assert "| `dpr-threshold` | 50.0 [50.0, 50.0] / 50.0 | 60.0 [60.0, 60.0] / 60.0 | 60.0" in text
    assert "| all | 8 | +10.0 [+10.0, +10.0] | +0.0 [+0.0, +0.0] |" in text
    assert "| at most one answer in one passage | 4 | +0.0 [+0.0, +0.0]" in text
    assert "| two answers in one passage | 4 | +20.0 [+20.0, +20.0]" in text


def test_answers_in_one_passage_are_counted_by_their_words() -> None:
    passages = [
        t.RetrievedPassage(t.Passage("a", "T", "Ada and Bob won."), 1, 1.0),
        t.RetrievedPassage(t.Passage("b", "T", "Cleo"), 2, 1.0),
    ]
    asked = Asked("s", "1", t.Question("Who won?"), "", "s", ((("Ada Lee", "Ada"), ("Bob",), ("Cleo",)),))
    assert (in_one_passage(asked, passages), in_one_passage(asked, passages[1:]), in_one_passage(asked, [])) == (2, 1, 0)
