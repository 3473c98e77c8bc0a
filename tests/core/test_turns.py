"""Turns of forward passes: first come, first served, one at a time; and jobs of several callers that go together."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from serving import until

from core.errors import CancelledError
from core.models.scheduling import turns
from core.models.scheduling.turns import Batcher, FairLock, LinePlace, WaitingLine
from core.types import QuestionQueued


@pytest.fixture
def gathering() -> Iterator[None]:
    turns.gather(4)
    yield
    turns.gather(1)


def call_in_order(lock: FairLock, calls: Sequence[Callable[[], object]]) -> list[object]:
    """The results or errors of the calls when all of them, each in a thread of its own, wait for the same turn in this order."""
    with ThreadPoolExecutor(len(calls)) as pool:
        futures = []
        with lock:
            for n, call in enumerate(calls, 1):
                futures.append(pool.submit(call))
                until(lambda n=n: lock.waiting == n)  # type: ignore[misc]
    return [future.exception() or future.result() for future in futures]


def test_turns_come_in_the_order_of_asking() -> None:
    lock, order = FairLock(), list[int]()

    def work(number: int) -> None:
        with lock:
            order.append(number)

    call_in_order(lock, [partial(work, n) for n in range(8)])
    assert (order, lock.waiting) == (list(range(8)), 0)


def test_who_goes_on_asks_again_behind_the_others() -> None:
    """Two threads with many passes each: neither has two turns in a row while the other waits."""
    lock, order, left = FairLock(), list[str](), {"a": 30, "b": 30}

    def work(name: str, other: str) -> None:
        while left[name]:
            with lock:
                order.append(name)
                left[name] -= 1
                until(lambda: bool(lock.waiting) or not left[other])

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, "ab", "ba"))
    assert all(x != y for x, y in itertools.pairwise(order))


def test_a_turn_within_a_turn_and_one_that_fails_are_given_back() -> None:
    lock = FairLock()
    with lock, lock:
        pass
    with pytest.raises(ZeroDivisionError), lock:
        raise ZeroDivisionError
    with ThreadPoolExecutor(1) as other:
        assert other.submit(lock.acquire, 60).result()


def ask_together(batcher: Batcher[int, int], jobs: Sequence[Sequence[int]]) -> list[object]:
    """The result of each caller when all of them wait for the same turn, in this order."""
    return call_in_order(turns.MODEL_LOCK, [partial(batcher, caller) for caller in jobs])


def squares(batches: list[list[int]]) -> Callable[[Sequence[int]], list[int]]:
    def run(jobs: Sequence[int]) -> list[int]:
        batches.append(list(jobs))
        if 13 in jobs:
            raise ValueError("13")
        return [n * n for n in jobs]

    return run


def test_who_waits_goes_along_and_gets_its_own_results(gathering: None) -> None:
    batches: list[list[int]] = []
    batcher = Batcher(squares(batches), lambda n: 1, lambda: False)
    assert ask_together(batcher, [[1], [2, 3], [], [4]]) == [[1], [4, 9], [], [16]]
    assert batches == [[1, 2, 3, 4]]
    assert batcher([5]) == [25]


@pytest.mark.parametrize(
    ("jobs", "tokens", "on_gpu", "expected"),
    [
        pytest.param(6, 1, False, [[0, 1, 2, 3], [4, 5]], id="callers"),
        pytest.param(2, 600, False, [[0], [1]], id="tokens"),  # of 1,024 on a CPU
        pytest.param(2, 600, True, [[0, 1]], id="tokens on a GPU"),
    ],
)
def test_a_batch_has_no_more_callers_than_the_setting_and_no_more_tokens_than_the_budget(
    gathering: None, jobs: int, tokens: int, on_gpu: bool, expected: list[list[int]]
) -> None:
    batches: list[list[int]] = []
    batcher = Batcher(squares(batches), lambda n: tokens, lambda: on_gpu)
    assert ask_together(batcher, [[n] for n in range(jobs)]) == [[n * n] for n in range(jobs)]
    assert batches == expected


def test_one_that_fails_fails_alone(gathering: None) -> None:
    batcher = Batcher(squares([]), lambda n: 1, lambda: False)
    first, second, third = ask_together(batcher, [[1], [13], [3]])
    assert (first, third) == ([1], [9])
    assert isinstance(second, ValueError)


def test_without_gathering_each_goes_alone() -> None:
    batches: list[list[int]] = []
    assert ask_together(Batcher(squares(batches), lambda n: 1, lambda: False), [[1], [2]]) == [[1], [4]]
    assert batches == [[1], [2]]


# ---------------------------------------------------------------- the order of questions


class Asked(threading.Thread):
    """A question in a line: it waits, works until `answered` is set, rewrites in its next turn until `finish` is set."""

    def __init__(self, line: WaitingLine, rewrites: bool) -> None:
        super().__init__(daemon=True)
        self.line, self.rewrites = line, rewrites
        self.events: list[QuestionQueued] = []
        self.answered, self.finish, self.cancel = threading.Event(), threading.Event(), threading.Event()
        self.state = "waits"
        self.start()

    def run(self) -> None:
        with self.line.place() as place:
            try:
                self.work(place)
            except CancelledError:
                self.state = "cancelled"

    def work(self, place: LinePlace) -> None:
        for event in place.wait(self.cancel.is_set):
            self.events.append(event)
        self.state = "answers"
        self.answered.wait(60)
        if self.rewrites:
            self.state = "waits again"
            for event in place.wait_again(self.cancel.is_set):
                self.events.append(event)
            self.state = "rewrites"
            self.finish.wait(60)
        self.state = "done"

    @property
    def position(self) -> int:
        return self.events[-1].position if self.events else 0


def ask(line: WaitingLine, position: int = 0, rewrites: bool = False) -> Asked:
    """A new question, once it stands at this position; 0: once it is worked on."""
    question = Asked(line, rewrites)
    until(lambda: question.position == position and (position or question.state == "answers"))
    return question


def finish(*questions: Asked) -> None:
    for question in questions:
        question.answered.set()
        question.finish.set()
    until(lambda: all(question.state == "done" for question in questions))


def test_questions_wait_in_order_and_are_told_their_position() -> None:
    line = WaitingLine(lambda: 1)
    first, second, third = (ask(line, position) for position in range(3))
    assert (second.events[-1].running, third.events[-1].running) == (1, 1)
    first.answered.set()
    until(lambda: second.state == "answers" and third.position == 1)
    assert (second.position, first.events) == (0, [])  # its turn came; who never waited is told nothing
    finish(second, third)
    assert [e.position for e in third.events] == [2, 1, 0]


def test_a_question_that_waits_can_be_cancelled() -> None:
    line = WaitingLine(lambda: 1)
    first, second, third = (ask(line, position) for position in range(3))
    second.cancel.set()
    until(lambda: second.state == "cancelled" and third.position == 1)
    finish(first, third)


def test_the_answers_of_one_come_before_the_rewriting_of_another() -> None:
    line = WaitingLine(lambda: 1)
    first, second = ask(line, rewrites=True), ask(line, 1, rewrites=True)
    first.answered.set()
    until(lambda: second.state == "answers" and first.position == 1)
    assert first.events[-1].part == "questions"
    second.answered.set()
    until(lambda: first.state == "rewrites")
    finish(first, second)


def test_what_a_question_asks_itself_and_what_runs_elsewhere_does_not_wait() -> None:
    line = WaitingLine(lambda: 1)

    def ask_elsewhere() -> list[QuestionQueued]:
        with line.place(uses_machine=False) as place:
            return list(place.wait(lambda: False))

    with ThreadPoolExecutor(1) as other, line.place() as outer, line.place() as inner:
        assert list(outer.wait(lambda: False)) == list(inner.wait(lambda: False)) == []
        assert other.submit(ask_elsewhere).result() == []


def test_a_thread_that_ends_within_a_question_holds_up_nobody() -> None:
    line = WaitingLine(lambda: 1)
    with ThreadPoolExecutor(1) as other:
        assert other.submit(lambda: line.place().__enter__()).result()
    with line.place() as place:
        assert list(place.wait(lambda: False)) == []


def test_as_many_as_the_process_admits_do_not_wait() -> None:
    turns.admit(2)
    try:
        questions = [ask(turns.LINE), ask(turns.LINE), ask(turns.LINE, 1)]
        assert questions[-1].events[-1].running == 2
    finally:
        turns.admit(1)
    finish(*questions)
