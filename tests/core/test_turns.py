"""Turns of forward passes: first come, first served, one at a time; and jobs of several callers that go together."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import pytest

from core.models.running import turns
from core.models.running.turns import Together, Turns


def until(met: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not met():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.fixture
def gathering() -> Iterator[None]:
    turns.gather(4)
    yield
    turns.gather(1)


def test_turns_come_in_the_order_of_asking() -> None:
    lock, order = Turns(), list[int]()

    def work(number: int) -> None:
        with lock:
            order.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    with lock:
        for n, thread in enumerate(threads):
            thread.start()
            until(lambda n=n: lock.waiting == n + 1)  # type: ignore[misc]
        assert order == []
    for thread in threads:
        thread.join(10)
    assert order == list(range(8))
    assert lock.waiting == 0


def test_who_goes_on_asks_again_behind_the_others() -> None:
    """Two threads with many passes each: neither has two turns in a row while the other waits."""
    lock, order = Turns(), list[str]()

    def work(name: str) -> None:
        for _ in range(30):
            with lock:
                order.append(name)
                time.sleep(0.002)

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    both = order[order.index("b") - 1 :] if order[0] == "a" else order[order.index("a") - 1 :]
    repeats = sum(x == y for x, y in itertools.pairwise(both[:40]))
    assert repeats <= 4, order  # the last ones stand alone; a thread may be late to ask


def test_a_turn_within_a_turn_and_one_that_fails() -> None:
    lock = Turns()
    with lock, lock:
        pass
    with pytest.raises(ZeroDivisionError), lock:
        raise ZeroDivisionError
    done = threading.Event()
    threading.Thread(target=lambda: (lock.__enter__(), done.set(), lock.__exit__(None, None, None))).start()
    assert done.wait(10)


def asked_together(together: Together[int, int], jobs: Sequence[Sequence[int]]) -> list[object]:
    """What each caller gets when all of them wait for the same turn, in this order."""
    out: list[object] = [None] * len(jobs)

    def ask(at: int) -> None:
        try:
            out[at] = together(jobs[at])
        except Exception as error:
            out[at] = error

    threads = [threading.Thread(target=ask, args=(at,)) for at in range(len(jobs))]
    with turns.TURNS:
        for n, thread in enumerate(threads):
            thread.start()
            until(lambda n=n: turns.TURNS.waiting == n + 1)  # type: ignore[misc]
    for thread in threads:
        thread.join(10)
    return out


def squares(batches: list[list[int]]) -> Callable[[Sequence[int]], list[int]]:
    def run(jobs: Sequence[int]) -> list[int]:
        batches.append(list(jobs))
        if 13 in jobs:
            raise ValueError("13")
        return [n * n for n in jobs]

    return run


def test_who_waits_goes_along_and_gets_its_own_results(gathering: None) -> None:
    batches: list[list[int]] = []
    together = Together(squares(batches), lambda n: 1, lambda: False)
    assert asked_together(together, [[1], [2, 3], [], [4]]) == [[1], [4, 9], [], [16]]
    assert batches == [[1, 2, 3, 4]]
    assert together.together == 4
    assert together([5]) == [25]


def test_not_more_callers_than_the_setting_and_not_more_tokens_than_the_budget(gathering: None) -> None:
    batches: list[list[int]] = []
    assert asked_together(Together(squares(batches), lambda n: 1, lambda: False), [[n] for n in range(6)]) == [
        [n * n] for n in range(6)
    ]
    assert batches == [[0, 1, 2, 3], [4, 5]]
    batches.clear()
    large = Together(squares(batches), lambda n: 600, lambda: False)  # of 1,024 on a CPU
    assert asked_together(large, [[1], [2]]) == [[1], [4]]
    assert batches == [[1], [2]]
    on_gpu = Together(squares(batches), lambda n: 600, lambda: True)
    assert asked_together(on_gpu, [[3], [4]]) == [[9], [16]]
    assert batches[2:] == [[3, 4]]


def test_one_that_fails_fails_alone(gathering: None) -> None:
    together = Together(squares([]), lambda n: 1, lambda: False)
    first, second, third = asked_together(together, [[1], [13], [3]])
    assert (first, third) == ([1], [9])
    assert isinstance(second, ValueError)


def test_without_gathering_each_goes_alone() -> None:
    batches: list[list[int]] = []
    assert asked_together(Together(squares(batches), lambda n: 1, lambda: False), [[1], [2]]) == [[1], [4]]
    assert batches == [[1], [2]]
