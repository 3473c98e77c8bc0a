"""Lists in the one passage that a question brings are read by their parts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from core.systems.base.lists import PartByPart, by_parts, parts_of
from core.types import Candidate, Evidence, Passage, Proposal, RetrievedPassage

TEXT = "The orders are Doric, Ionic and Corinthian, of Greece."
ONE = [RetrievedPassage(Passage("a", "Orders", TEXT), 1, 1.0)]
TWO = [*ONE, RetrievedPassage(Passage("b", "Rain", "It fell."), 2, 0.5)]
SPAN = "Doric, Ionic and Corinthian"
LIST = Candidate(SPAN, 0.8, Evidence("a", TEXT.index(SPAN), TEXT.index(SPAN) + len(SPAN), SPAN))


class Says:
    """Proposes the same at each step, unless an answer before has its words."""

    def __init__(self, *candidates: Candidate) -> None:
        self.candidates, self.asked = candidates, 0

    def propose(self, question: str, passages: Sequence[RetrievedPassage], previous: Sequence[str]) -> Proposal:
        self.asked += 1
        return Proposal(tuple(c for c in self.candidates if not any(p in c.text for p in previous)), 0.1)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Doric , Ionic , and Corinthian", ["Doric", "Ionic", "Corinthian"]),
        ("Kader Asmal and Albie Sachs", ["Kader Asmal", "Albie Sachs"]),
        ("1953 & 1954", ["1953", "1954"]),
        ("rats, mice", ["rats, mice"]),  # as "Brighton, Boston": a place and what it lies in
        ("certifying and labeling them as eco-friendly", ["certifying and labeling them as eco-friendly"]),
        ("Skidmore and sons", ["Skidmore and sons"]),
        ("7 and June", ["7 and June"]),
        ("and", ["and"]),
    ],
)
def test_what_is_a_list(text: str, parts: list[str]) -> None:
    assert [c.text for c in parts_of(Candidate(text, 0.5))] == parts


def test_each_part_has_its_own_place() -> None:
    for part in parts_of(LIST):
        assert TEXT[part.evidence.start : part.evidence.end] == part.text == part.evidence.text
        assert part.probability == 0.8


def test_only_where_there_is_one_passage() -> None:
    assert len(by_parts([LIST], ONE)) == 3
    assert by_parts([LIST], TWO) == [LIST]
    assert PartByPart(Says(LIST)).propose("q", TWO, []).candidates == (LIST,)


def test_a_loop_gives_one_part_a_step_and_then_goes_on() -> None:
    other = Candidate("Tuscan", 0.3)
    loop = PartByPart(Says(LIST, other))
    previous: list[str] = []
    steps: list[Proposal] = []
    for _ in range(4):
        steps.append(loop.propose("q", ONE, previous))
        previous.append(steps[-1].candidates[0].text)
    assert previous == ["Doric", "Ionic", "Corinthian", "Tuscan"]
    assert {step.eoi_probability for step in steps} == {0.1}
    assert other in steps[0].candidates


def test_a_struck_part_is_passed_over() -> None:
    model = Says(LIST)
    loop = PartByPart(model)
    assert loop.propose("q", ONE, []).candidates[0].text == "Doric"
    assert loop.propose("q", ONE, ["Doric", "Ionic"]).candidates[0].text == "Corinthian"
    assert model.asked == 1
