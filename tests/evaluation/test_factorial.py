"""The factorial comparison: paired differences of the same questions, in all and by the answers in one passage."""

from __future__ import annotations

from benchmarks.quality.factorial import CELLS, Compared, most_in_one_passage, of_set, what_it_brings
from core import types as t


def test_differences_are_paired_and_grouped_by_the_answers_in_one_passage() -> None:
    compared = Compared("starter", several=[bool(i % 2) for i in range(8)], in_one_passage=[1 + i % 2 for i in range(8)])
    for system, added in CELLS:
        compared.f1[system, added] = [
            0.5 + 0.1 * (added != "none") + 0.2 * (system == "ambigprompt") * (i % 2) for i in range(8)
        ]
    lines = [*of_set(compared), *what_it_brings([compared])]
    assert "| `dpr-threshold` | 50.0 [50.0, 50.0] / 50.0 | 60.0 [60.0, 60.0] / 60.0 | 60.0 [60.0, 60.0] / 60.0 |" in lines
    assert "| all | 8 | +10.0 [+10.0, +10.0] | +0.0 [+0.0, +0.0] |" in lines
    assert any(line.startswith("| at most one answer in one passage | 4 | +0.0 [+0.0, +0.0]") for line in lines)
    assert any(line.startswith("| two answers in one passage | 4 | +20.0 [+20.0, +20.0]") for line in lines)


def test_answers_in_one_passage_are_counted_by_their_words() -> None:
    pairs = tuple(t.QAPair("", names) for names in (("Ada Lee", "Ada"), ("Bob",), ("Cleo",)))
    question = t.ReferenceQuestion("1", "Who won?", (t.Annotation("multiple", pairs),))
    passages = [t.Passage("a", "T", "Ada and Bob won."), t.Passage("b", "T", "Cleo")]
    assert [most_in_one_passage(question, found) for found in (passages, passages[1:], [])] == [2, 1, 0]
