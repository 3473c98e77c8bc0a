"""Units of measurement in answers."""

from __future__ import annotations

import doctest

from hypothesis import given
from hypothesis import strategies as st

from core.models.ranking import units
from core.models.ranking.units import measured_in, unit_alike


def test_the_examples_in_the_docstrings() -> None:
    found = doctest.testmod(units)
    assert found.attempted
    assert not found.failed


def test_a_symbol_is_a_unit_behind_a_digit_only() -> None:
    assert measured_in("1,200 m") == measured_in("12km") == {"length"}
    assert measured_in("12 mm thick") == {"length"}
    assert not measured_in("act 2 of Henry V")
    assert measured_in("93 per cent") == measured_in("93%") == {"share"}
    assert not measured_in("1999")


@given(st.text(max_size=30), st.lists(st.text(max_size=30), max_size=4))
def test_the_likeness_is_a_share(answer: str, previous: list[str]) -> None:
    assert -1.0 <= unit_alike(answer, previous) <= 1.0
    assert unit_alike(answer, []) == 0.0
    assert unit_alike(answer, [answer]) == (1.0 if measured_in(answer) else 0.0)
