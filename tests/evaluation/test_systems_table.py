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


def test_a_row_says_what_is_undefined() -> None:
    both = {"all": 0.5, "multi": None}
    report = {
        "scores": dict.fromkeys(("F1 answer", "precision", "recall", "answers", "reference answers"), both),
        "intervals": {"F1 answer": {"all": [0.4, 0.6]}},
        "timings": {"seconds_median": 1.0, "seconds_p95": None, "peak_memory_mb": 900.4},
        "provenance": {"parameters": 22_400_000},
        "failed": 2,
    }
    assert systems.line("x", report) == (
        "| `x` | 50.0 [40.0, 60.0] / undefined | 50.0 / 50.0 | 0.50 (0.50) | 1.00 (–) | 900 | 22 | 2 |"
    )
