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


@pytest.mark.parametrize(
    ("references", "answers", "errors"),
    [
        ([["Rome"], ["Oslo"]], ["oslo!", "Rome"], {}),
        ([["Rome"], ["Oslo"]], ["Rome"], {"missed": 1, "stopped_early": 1}),
        ([["Rome"], ["Lima"]], ["Rome"], {"not_retrieved": 1}),
        ([["Rome"]], ["Rome", "Bonn"], {"spurious": 1, "ran_on": 1}),
        ([["Rome"]], ["Rome", "rome."], {"duplicate": 1, "ran_on": 1}),
        ([["Rome", "Roma"]], ["Rome", "Roma"], {"duplicate": 1, "ran_on": 1}),
        ([["Rome"]], ["Bonn", "bonn"], {"missed": 1, "spurious": 1, "duplicate": 1, "ran_on": 1}),
        ([["John F. Kennedy"]], ["Kennedy"], {"alias_mismatch": 1}),
        ([["Colour of Rome"], ["Oslo"]], ["Color of Rome", "Oslo"], {"alias_mismatch": 1}),
        ([["Rome"], ["Lima"]], [], {"missed": 1, "not_retrieved": 1, "stopped_early": 1}),
    ],
)
def test_worked_cases(references: list[list[str]], answers: list[str], errors: dict[str, int]) -> None:
    assert errors_of(example(references, answers), READ).buckets() == dict.fromkeys(BUCKETS, 0) | errors


def test_years_are_not_spellings_of_one_another() -> None:
    assert not close(["19 March 1932"], "19 March 1937")
    assert close(["19 March 1932"], "1932")


def test_passages_that_are_not_known_make_no_bucket() -> None:
    errors = errors_of(example([["Rome"], ["Lima"]], []))
    assert (errors.not_retrieved, errors.missed) == (None, 2)


def test_no_reference_no_errors() -> None:
    assert errors_of(Example("Which?", (Annotation("none"),), ("Rome",)), READ) is None
