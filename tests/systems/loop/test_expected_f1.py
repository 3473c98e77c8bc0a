"""The set of highest expected F1, against the expectation written out over every way in which candidates may be right."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError
from core.systems.base.expected_f1 import counts, expected_f1, most_expected

probabilities = st.lists(st.floats(0, 1), max_size=6)


def by_hand(kept: frozenset[int], chances: list[float]) -> float:
    """The expected F1 over all 2^n worlds."""
    total = 0.0
    for world in itertools.product((False, True), repeat=len(chances)):
        chance = math.prod(p if right else 1 - p for p, right in zip(chances, world))
        gold = {i for i, right in enumerate(world) if right}
        f1 = 2 * len(gold & kept) / (len(gold) + len(kept)) if gold or kept else 1.0
        total += chance * f1
    return total


@given(probabilities)
def test_counts_are_a_distribution_with_the_right_mean(chances: list[float]) -> None:
    found = counts(chances)
    assert len(found) == len(chances) + 1
    assert sum(found) == pytest.approx(1)
    assert sum(j * p for j, p in enumerate(found)) == pytest.approx(sum(chances))


@given(probabilities, st.data())
def test_the_expectation_is_that_over_all_worlds(chances: list[float], data: st.DataObject) -> None:
    kept = data.draw(st.frozensets(st.sampled_from(range(len(chances)))) if chances else st.just(frozenset()))
    left = [p for i, p in enumerate(chances) if i not in kept]
    assert expected_f1([chances[i] for i in kept], left) == pytest.approx(by_hand(kept, chances))


@given(probabilities)
def test_no_subset_whatever_has_a_higher_expectation(chances: list[float]) -> None:
    order = sorted(chances, reverse=True)
    size = most_expected(chances)
    own = expected_f1(order[:size], order[size:])
    best = max(
        by_hand(frozenset(kept), chances)
        for k in range(len(chances) + 1)
        for kept in itertools.combinations(range(len(chances)), k)
    )
    assert own == pytest.approx(best)


@given(probabilities, st.lists(st.floats(0, 1), max_size=3))
def test_beside_what_is_given_no_addition_has_a_higher_expectation(chances: list[float], fixed: list[float]) -> None:
    everything = [*fixed, *chances]
    stays = frozenset(range(len(fixed)))
    order = sorted(chances, reverse=True)
    size = most_expected(chances, fixed)
    own = expected_f1([*fixed, *order[:size]], order[size:])
    best = max(
        by_hand(stays | {len(fixed) + i for i in more}, everything)
        for k in range(len(chances) + 1)
        for more in itertools.combinations(range(len(chances)), k)
    )
    assert own == pytest.approx(best)


@given(probabilities, st.integers(0, 8))
def test_at_least_so_many_are_kept_where_there_are_as_many(chances: list[float], least: int) -> None:
    size = most_expected(chances, least=least)
    assert size >= min(least, len(chances))
    assert size == max(most_expected(chances), size)  # it never keeps fewer than without
    assert most_expected(chances, [1.0] * least, least) == most_expected(chances, [1.0] * least)


def test_what_is_sure_is_kept_and_what_is_impossible_is_not() -> None:
    assert most_expected([1.0, 1.0, 0.0]) == 2
    assert most_expected([]) == 0
    assert most_expected([0.0, 0.0]) == 0
    assert most_expected([0.0], given=[0.3]) == 0


@pytest.mark.parametrize("wrong", [-0.1, 1.1, math.nan])
def test_what_is_no_probability_is_refused(wrong: float) -> None:
    with pytest.raises(InputError, match="not a probability"):
        most_expected([0.5, wrong])
