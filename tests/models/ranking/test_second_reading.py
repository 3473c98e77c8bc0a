"""Second readings: the reader's best span in a candidate's place is a candidate too, and nothing else is."""

from __future__ import annotations

from core.models.ranking.second_reading import LEAST, with_readings
from core.models.span.reader import Readout
from core.types import Candidate, Evidence, Passage, Proposal

TEXT = "It was led by Seán Lester of Ireland until 1947, and by Eric Drummond before."


def candidate(text: str, probability: float, passage: str = "p", within: str = TEXT) -> Candidate:
    start = within.index(text)
    return Candidate(text, probability, Evidence(passage, start, start + len(text), text))


def readout(*candidates: Candidate, passage: str = "p") -> Readout:
    return Readout(Passage(passage, "League", TEXT), candidates, 0.1)


LONG = candidate("Seán Lester of Ireland", 0.4)
SHORT = candidate("Seán Lester", 0.8)


def test_a_shorter_reading_of_the_same_place_stands_behind_the_candidates_with_half_of_the_last_ones_probability() -> None:
    wider = with_readings(Proposal((LONG, candidate("1947", 0.2)), 0.3), [readout(SHORT)], [])
    assert [c.text for c in wider.candidates] == ["Seán Lester of Ireland", "1947", "Seán Lester"]
    assert wider.candidates[2].probability == 0.1
    assert wider.candidates[2].evidence == SHORT.evidence
    assert wider.eoi_probability == 0.3


def test_only_the_best_span_of_a_passage_is_taken() -> None:
    wider = with_readings(Proposal((LONG,), 0.3), [readout(SHORT, candidate("Lester of Ireland", 0.1))], [])
    assert [c.text for c in wider.candidates] == ["Seán Lester of Ireland", "Seán Lester"]


def test_what_stands_elsewhere_or_is_unlikely_or_was_given_is_left_out() -> None:
    only = Proposal((LONG,), 0.3)
    assert with_readings(only, [readout(candidate("Eric Drummond", 0.9))], []) == only
    assert with_readings(only, [readout(candidate("Seán Lester", LEAST / 2))], []) == only
    assert with_readings(only, [readout(SHORT)], ["Lester"]) == only
    assert with_readings(only, [readout(candidate("Seán Lester", 0.8, "q"), passage="q")], []) == only  # another passage
    assert with_readings(only, [readout(candidate("Seán Lester of Ireland", 0.8))], []) == only  # the same text
    assert with_readings(Proposal((), 1.0), [readout(SHORT)], []) == Proposal((), 1.0)
