"""`python -m benchmarks.quality.multi_span`: what a limit keeps of a loop and of one pass, and how it is chosen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from system_fakes import FixedModel, proposal

from benchmarks.quality import multi_span

ROWS: list[dict[str, Any]] = [
    {"id": "1", "question": "q", "passages": [{"title": "", "text": "Oslo, Rome, Bonn"}], "answers": [["Rome"], ["Oslo"]]},
    {"id": "2", "question": "q", "passages": [{"title": "", "text": "Oslo, Rome, Bonn"}], "answers": [["Rome"]]},
]


def test_a_loop_ends_for_good_where_it_ends_first() -> None:
    """[EOI] is likelier than Oslo, and not than Bonn."""
    model: Any = FixedModel(proposal(0.1, Rome=0.4, Oslo=0.3), proposal(0.6, Oslo=0.4), proposal(0.1, Bonn=0.4), proposal(1.0))
    scored = multi_span.looped(model, "q", [])
    assert [text for text, _ in scored] == ["Rome", "Oslo", "Bonn"]
    assert multi_span.above_limit(scored, 0.0) == ["Rome"]
    assert multi_span.above_limit(scored, -1.0) == ["Rome", "Oslo", "Bonn"]


def test_the_limit_of_the_best_f1_is_chosen_and_what_was_asked_is_not_asked_again(tmp_path: Path) -> None:
    calls: list[str] = []

    def find(question: str, passages: Any) -> multi_span.Scored:
        calls.append(passages[0].passage.text)
        return [("Rome", -1.0), ("Oslo", -2.0), ("Bonn", -3.0)]

    way = multi_span.Way("one", find)
    for _ in range(2):
        answers = multi_span.answers_of_ways([way], ROWS, tmp_path / "found.jsonl")
    assert len(calls) == 2
    one = [f["one"] for f in answers]
    assert multi_span.above_limit(one[0], multi_span.best_limit(one[:1], ROWS[:1])) == ["Rome", "Oslo"]
    assert multi_span.above_limit(one[0], multi_span.best_limit(one[1:], ROWS[1:])) == ["Rome"]
