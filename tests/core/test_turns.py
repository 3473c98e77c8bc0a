"""Turns of forward passes: first come, first served, one at a time; and jobs of several callers that go together."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence

import pytest
from serving import until

from core.errors import CancelledError
from core.models.scheduling import turns
from core.models.scheduling.turns import Batcher, FairLock, Line, Place
from core.types import QuestionQueued


@pytest.fixture
def gathering() -> Iterator[None]:
    turns.gather(4)
    yield
    turns.gather(1)


def test_turns_come_in_the_order_of_asking() -> None:
    lock, order = FairLock(), list[int]()

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
        thread.join()
    assert order == list(range(8))
    assert lock.waiting == 0


def test_who_goes_on_asks_again_behind_the_others() -> None:
    """Two threads with many passes each: neither has two turns in a row while the other waits."""
    lock, order, left = FairLock(), list[str](), {"a": 30, "b": 30}

    def work(name: str, other: str) -> None:
        while left[name]:
            with lock:
                order.append(name)
                left[name] -= 1
                until(lambda: bool(lock.waiting) or not left[other])

    threads = [threading.Thread(target=work, args=names) for names in ("ab", "ba")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(x != y for x, y in itertools.pairwise(order))


def test_a_turn_within_a_turn_and_one_that_fails() -> None:
    lock = FairLock()
    with lock, lock:
        pass
    with pytest.raises(ZeroDivisionError), lock:
        raise ZeroDivisionError
    done = threading.Event()
    threading.Thread(target=lambda: (lock.__enter__(), done.set(), lock.__exit__(None, None, None))).start()
    assert done.wait(60)


def asked_together(together: Batcher[int, int], jobs: Sequence[Sequence[int]]) -> list[object]:
    """What each caller gets when all of them wait for the same turn, in this order."""
    out: list[object] = [None] * len(jobs)

    def ask(at: int) -> None:
        try:
            out[at] = together(jobs[at])
        except Exception as error:
            out[at] = error

    threads = [threading.Thread(target=ask, args=(at,)) for at in range(len(jobs))]
    with turns.MODEL_LOCK:
        for n, thread in enumerate(threads):
            thread.start()
            until(lambda n=n: turns.MODEL_LOCK.waiting == n + 1)  # type: ignore[misc]
    for thread in threads:
        thread.join()
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
    together = Batcher(squares(batches), lambda n: 1, lambda: False)
    assert asked_together(together, [[1], [2, 3], [], [4]]) == [[1], [4, 9], [], [16]]
    assert batches == [[1, 2, 3, 4]]
    assert together([5]) == [25]


def test_not_more_callers_than_the_setting_and_not_more_tokens_than_the_budget(gathering: None) -> None:
    batches: list[list[int]] = []
    assert asked_together(Batcher(squares(batches), lambda n: 1, lambda: False), [[n] for n in range(6)]) == [
        [n * n] for n in range(6)
    ]
    assert batches == [[0, 1, 2, 3], [4, 5]]
    batches.clear()
    large = Batcher(squares(batches), lambda n: 600, lambda: False)  # of 1,024 on a CPU
    assert asked_together(large, [[1], [2]]) == [[1], [4]]
    assert batches == [[1], [2]]
    on_gpu = Batcher(squares(batches), lambda n: 600, lambda: True)
    assert asked_together(on_gpu, [[3], [4]]) == [[9], [16]]
    assert batches[2:] == [[3, 4]]


def test_one_that_fails_fails_alone(gathering: None) -> None:
    together = Batcher(squares([]), lambda n: 1, lambda: False)
    first, second, third = asked_together(together, [[1], [13], [3]])
    assert (first, third) == ([1], [9])
    assert isinstance(second, ValueError)


def test_without_gathering_each_goes_alone() -> None:
    batches: list[list[int]] = []
    assert asked_together(Batcher(squares(batches), lambda n: 1, lambda: False), [[1], [2]]) == [[1], [4]]
    assert batches == [[1], [2]]


# ---------------------------------------------------------------- the order of questions


class Asked(threading.Thread):
    """A question in a line: it waits, works until `answered` is set, rewrites in its next turn until `finish` is set."""

    def __init__(self, line: Line, rewrites: bool = False) -> None:
        super().__init__(daemon=True)
        self.line, self.rewrites = line, rewrites
        self.told: list[QuestionQueued] = []
        self.answered, self.finish, self.cancel = threading.Event(), threading.Event(), threading.Event()
        self.state = "waits"
        self.start()

    def run(self) -> None:
        with self.line.place() as place:
            try:
                self.work(place)
            except CancelledError:
                self.state = "cancelled"

    def work(self, place: Place) -> None:
        for event in place.wait(self.cancel.is_set):
            self.told.append(event)
        self.state = "answers"
        self.answered.wait(60)
        if self.rewrites:
            self.state = "waits again"
            for event in place.wait_again(self.cancel.is_set):
                self.told.append(event)
            self.state = "rewrites"
            self.finish.wait(60)
        self.state = "done"

    @property
    def position(self) -> int:
        return self.told[-1].position if self.told else 0


def test_questions_wait_in_order_and_are_told_their_position() -> None:
    line, asked = Line(lambda: 1), list[Asked]()
    for n in range(3):
        asked.append(Asked(line))
        until(lambda n=n: asked[n].position == n and asked[0].state == "answers")  # type: ignore[misc]
    first, second, third = asked
    assert (second.told[-1].running, third.told[-1].running) == (1, 1)
    first.answered.set()
    until(lambda: second.state == "answers" and third.position == 1)
    assert (second.position, first.told) == (0, [])  # its turn came; who never waited is told nothing
    second.answered.set(), third.answered.set()
    until(lambda: third.state == "done")
    assert [e.position for e in third.told] == [2, 1, 0]


def test_a_question_that_waits_can_be_cancelled() -> None:
    line = Line(lambda: 1)
    first = Asked(line)
    until(lambda: first.state == "answers")
    second = Asked(line)
    until(lambda: second.position == 1)
    third = Asked(line)
    until(lambda: third.position == 2)
    second.cancel.set()
    until(lambda: second.state == "cancelled" and third.position == 1)
    first.answered.set(), third.answered.set()
    until(lambda: third.state == "done")


def test_the_answers_of_one_come_before_the_rewriting_of_another() -> None:
    line = Line(lambda: 1)
    first = Asked(line, rewrites=True)
    until(lambda: first.state == "answers")
    second = Asked(line, rewrites=True)
    until(lambda: second.position == 1)
    first.answered.set()
    until(lambda: second.state == "answers" and first.position == 1)
    assert first.told[-1].part == "questions"
    second.answered.set()
    until(lambda: first.state == "rewrites")
    first.finish.set(), second.finish.set()
    until(lambda: second.state == "done")


def test_as_many_as_there_are_places_do_not_wait() -> None:
    line = Line(lambda: 2)
    first, second = Asked(line), Asked(line)
    until(lambda: first.state == second.state == "answers")
    third = Asked(line)
    until(lambda: third.position == 1)
    assert third.told[-1].running == 2
    second.answered.set(), third.answered.set(), first.answered.set()
    until(lambda: third.state == "done")


def test_what_a_question_asks_itself_and_what_runs_elsewhere_does_not_wait() -> None:
    line = Line(lambda: 1)
    with line.place() as outer, line.place() as inner:
        assert list(outer.wait(lambda: False)) == list(inner.wait(lambda: False)) == []
        elsewhere: list[object] = []

        def ask() -> None:
            with line.place(uses_machine=False) as place:
                elsewhere.append(list(place.wait(lambda: False)))

        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
        assert elsewhere == [[]]


def test_a_thread_that_ends_within_a_question_holds_up_nobody() -> None:
    line, held = Line(lambda: 1), list[Place]()
    thread = threading.Thread(target=lambda: held.append(line.place().__enter__()))
    thread.start()
    thread.join()
    with line.place() as place:
        assert list(place.wait(lambda: False)) == []


def test_a_process_that_admits_more_has_more_places() -> None:
    turns.admit(2)
    try:
        first, second = Asked(turns.LINE), Asked(turns.LINE)
        until(lambda: first.state == second.state == "answers")
    finally:
        turns.admit(1)
    first.answered.set(), second.answered.set()
    until(lambda: first.state == second.state == "done")
