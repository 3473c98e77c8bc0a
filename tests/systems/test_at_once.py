"""Several questions in work at a time."""

from __future__ import annotations

import threading

import pytest

from core.models.scheduling.turns import callers_per_batch, gather
from core.systems.base.batching import in_order


@pytest.mark.parametrize("batch", [1, 3])
def test_results_come_in_order_and_models_read_together_meanwhile(batch: int) -> None:
    meeting = threading.Barrier(batch)

    def ask(n: int) -> tuple[int, int]:
        meeting.wait(60)  # never met unless as many are in work
        return n * n, callers_per_batch()

    assert list(in_order(ask, range(6), batch)) == [(n * n, batch) for n in range(6)]
    assert callers_per_batch() == 1


def test_what_fails_is_raised_and_nothing_further_is_started() -> None:
    started: list[int] = []

    def ask(n: int) -> int:
        started.append(n)
        if n == 1:
            raise ValueError("no answer")
        return n

    with pytest.raises(ValueError, match="no answer"):
        list(in_order(ask, range(100), 2))
    assert len(started) < 6
    assert callers_per_batch() == 1


def test_a_process_that_gathers_more_keeps_that() -> None:
    gather(8)
    try:
        assert [callers_per_batch() for _ in in_order(abs, [1, 2], 2)] == [8, 8]
        assert callers_per_batch() == 8
    finally:
        gather(1)


def test_two_at_a_time_leave_nothing_behind() -> None:
    """The first one ends first, as evaluations in the app may."""
    one, other = in_order(abs, [1, 2, 3], 2), in_order(abs, [1, 2, 3], 4)
    next(one), next(other)
    assert callers_per_batch() == 4
    one.close()
    assert callers_per_batch() == 4
    other.close()
    assert callers_per_batch() == 1
