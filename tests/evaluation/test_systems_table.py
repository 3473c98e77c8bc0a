"""benchmarks.quality.systems: one evaluation a system, one row each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.quality import systems

QUESTIONS = [
    {
        "id": "1",
        "question": "Who built it?",
        "annotations": [{"type": "singleAnswer", "answer": ["Ada"]}],
    }
]


def test_a_system_that_cannot_run_is_named_and_the_others_go_on(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    questions = tmp_path / "questions.json"
    questions.write_text(json.dumps(QUESTIONS))
    code = systems.main(["--out", str(tmp_path / "runs"), "--questions", str(questions), "--systems", "no-such-system"])
    said = capfd.readouterr()
    assert code == 1
    assert "no-such-system: not evaluated" in said.err
    assert said.out.startswith("| system | F1 answer all / multi |")
