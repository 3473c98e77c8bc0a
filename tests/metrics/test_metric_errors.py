"""Error buckets: worked cases, and that they add up for whatever a system says."""

from __future__ import annotations

import pytest

from core.metrics.base import Example
from core.metrics.errors import BUCKETS, close, errors_of
from core.types import Annotation, QAPair

READ = ["Rome is old and Oslo is cold.", "John F. Kennedy was born in Brookline."]


def example(references: list[list[str]], answers: list[str]) -> Example:
    pairs = tuple(QAPair("", tuple(a)) for a in references)
    return Example("Which?", (Annotation("single" if len(pairs) == 1 else "multiple", pairs),), tuple(answers))


CASES: dict[str, tuple[list[list[str]], list[str], dict[str, int]]] = {
    "all right": ([["Rome"], ["Oslo"]], ["oslo!", "Rome"], {}),
    "one missed": ([["Rome"], ["Oslo"]], ["Rome"], {"missed": 1, "stopped_early": 1}),
    "one that no passage has": ([["Rome"], ["Lima"]], ["Rome"], {"not_retrieved": 1}),
    "one too many": ([["Rome"]], ["Rome", "Bonn"], {"spurious": 1, "ran_on": 1}),
    "the same twice": ([["Rome"]], ["Rome", "rome."], {"duplicate": 1, "ran_on": 1}),
    "another alias of the same": ([["Rome", "Roma"]], ["Rome", "Roma"], {"duplicate": 1, "ran_on": 1}),
    "a wrong one twice": ([["Rome"]], ["Bonn", "bonn"], {"missed": 1, "spurious": 1, "duplicate": 1, "ran_on": 1}),
    "a shorter name": ([["John F. Kennedy"]], ["Kennedy"], {"alias_mismatch": 1}),
    "another spelling": ([["Colour of Rome"], ["Oslo"]], ["Color of Rome", "Oslo"], {"alias_mismatch": 1}),
    "nothing": ([["Rome"], ["Lima"]], [], {"missed": 1, "not_retrieved": 1, "stopped_early": 1}),
}


@pytest.mark.parametrize("case", CASES)
def test_worked_cases(case: str) -> None:
    references, answers, wanted = CASES[case]
    found = errors_of(example(references, answers), READ)
    assert found.buckets() == {**dict.fromkeys(BUCKETS, 0), **wanted}


def test_years_are_not_spellings_of_one_another() -> None:
    assert not close(["19 March 1932"], "19 March 1937")
    assert close(["19 March 1932"], "1932")


def test_passages_that_are_not_known_make_no_bucket() -> None:
    found = errors_of(example([["Rome"], ["Lima"]], []))
    assert (found.not_retrieved, found.missed) == (None, 2)


def test_no_reference_no_errors() -> None:
    assert errors_of(Example("Which?", (Annotation("none"),), ("Rome",)), READ) is None
