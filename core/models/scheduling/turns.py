"""Serialises forward passes in this process, first come, first served.  Calls that wait for the same model may share a batch.

Each pass uses all cores, so two at once only get in each other's way, and a plain lock lets one thread go on while others starve.  For the same
reason questions have an order, too (WaitingLine): if two shared the cores, neither would be answered before both are.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, Literal, TypeVar

from core.errors import CancelledError
from core.types import QuestionQueued

J = TypeVar("J")
R = TypeVar("R")


class FairLock:
    """A re-entrant lock that serves waiting threads in the order in which they came."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._order: deque[int] = deque()  # threads; the first has the lock
        self._depth = 0

    @property
    def waiting(self) -> int:
        return max(0, len(self._order) - 1)

    def acquire(self, timeout: float | None = None) -> bool:
        """False if `timeout` seconds weren't enough."""
        me = threading.get_ident()
        with self._changed:
            if not self._order or self._order[0] != me:
                self._order.append(me)
                if not self._changed.wait_for(lambda: self._order[0] == me, timeout):
                    self._order.remove(me)
                    return False
            self._depth += 1
            return True

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()

    def release(self) -> None:
        with self._changed:
            self._depth -= 1
            if not self._depth:
                self._order.popleft()
                self._changed.notify_all()


# tokens of a batch of several callers: on CPUs a larger one is no faster than one by one, and its first caller would wait for the last
BUDGET = {"cpu": 1024, "cuda": 32768}
MODEL_LOCK = FairLock()  # of every model of this process
_callers_per_batch = 1  # callers whose jobs share a batch
_temporary: list[int] = []  # the same, of each `gathering` in progress


def gather(callers: int) -> None:
    """Lets the jobs of up to `callers` threads that wait for the same model share a batch from now on.  A process starts with
    1, which means no sharing.

    Results equal those without batching up to rounding, as the sums of a larger batch may be added in another order.
    """
    global _callers_per_batch
    _callers_per_batch = callers


@contextmanager
def gathering(callers: int) -> Iterator[None]:
    """`gather` inside `with`.  A larger number already in force for the process is kept."""
    _temporary.append(callers)
    try:
        yield
    finally:
        _temporary.remove(callers)


def callers_per_batch() -> int:
    """The number of callers whose jobs share a batch now."""
    return max([_callers_per_batch, *_temporary])


class _Call(Generic[J, R]):
    """One caller's jobs, and their results once they are done."""

    def __init__(self, jobs: Sequence[J]) -> None:
        self.jobs, self.results = jobs, list[R]()
        self.is_done = False


class Batcher(Generic[J, R]):
    """Runs the jobs of one model when its turn comes, batched with those of other threads that wait for the same model, up to
    BUDGET."""

    def __init__(self, run: Callable[[Sequence[J]], Sequence[R]], size: Callable[[J], int], on_gpu: Callable[[], bool]) -> None:
        """`run` returns one result a job, in order; `size` is the number of tokens of a job; `on_gpu` tells whether the model
        is on a GPU now."""
        self._run, self._size, self._on_gpu = run, size, on_gpu
        self._lock = threading.Lock()
        self._waiting: list[_Call[J, R]] = []

    def __call__(self, jobs: Sequence[J]) -> list[R]:
        mine: _Call[J, R] = _Call(jobs)
        if callers_per_batch() > 1:
            with self._lock:
                self._waiting.append(mine)
        with MODEL_LOCK:
            if not mine.is_done:
                self._work(mine)
        return mine.results

    def _work(self, mine: _Call[J, R]) -> None:
        """Runs `mine` and as many of the jobs waiting behind it as fit.  Raises whatever `run` raises for `mine` alone."""
        batch = self._take(mine)
        try:
            results = list(self._run([job for call in batch for job in call.jobs]))
        except Exception:  # run alone, the caller at fault gets the error
            if len(batch) == 1:
                raise
            with self._lock:
                self._waiting[:0] = batch[1:]
            batch, results = [mine], list(self._run(mine.jobs))
        start = 0
        for call in batch:
            call.results = results[start : start + len(call.jobs)]
            start += len(call.jobs)
            call.is_done = True

    def _take(self, mine: _Call[J, R]) -> list[_Call[J, R]]:
        """`mine` and the waiting calls that fit, in order.  They are removed from the queue."""
        with self._lock:
            batch, room = [mine], BUDGET["cuda" if self._on_gpu() else "cpu"] - sum(map(self._size, mine.jobs))
            for call in [a for a in self._waiting if a is not mine]:
                room -= sum(map(self._size, call.jobs))
                if room < 0 or len(batch) >= callers_per_batch():
                    break
                batch.append(call)
            self._waiting = [a for a in self._waiting if a not in batch]
        return batch


POLL_SECONDS = 0.1  # how often a waiting question checks whether it was cancelled
_admitted = 1  # questions at a time


def admit(questions: int) -> None:
    """Sets how many questions are worked on at the same time from now on.  A process starts with 1; `gather` may raise it."""
    global _admitted
    _admitted = questions


class WaitingLine:
    """A queue of questions, first come, first served: the first ones are worked on, the others wait."""

    def __init__(self, capacity: Callable[[], int] = lambda: max(_admitted, callers_per_batch())) -> None:
        self._capacity = capacity
        self._changed = threading.Condition()
        self._order: list[LinePlace] = []

    def place(self, uses_machine: bool = True) -> LinePlace:
        """A place at the end of the line, used with `with`.  A question that doesn't use this machine, because an endpoint
        answers it, doesn't wait."""
        return LinePlace(self, uses_machine)


class LinePlace:
    """A question's place in the line, held inside `with`.  A thread has one place, so a question asked within a question
    doesn't wait."""

    def __init__(self, line: WaitingLine, uses_machine: bool) -> None:
        self._line, self._uses_machine, self._thread = line, uses_machine, threading.current_thread()

    def __enter__(self) -> LinePlace:
        with self._line._changed:
            if self._uses_machine and all(other._thread is not self._thread for other in self._line._order):
                self._line._order.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        with self._line._changed:
            if self in self._line._order:
                self._line._order.remove(self)
            self._line._changed.notify_all()

    def _ahead(self) -> tuple[int, int]:
        """(position in the queue, 0 if it isn't queued; number of questions being worked on)."""
        line = self._line
        with line._changed:
            line._order = [p for p in line._order if p is self or p._thread.is_alive()]  # a thread may end within a question
            capacity = max(1, line._capacity())
            index = line._order.index(self) if self in line._order else 0
            return max(0, index - capacity + 1), min(capacity, index)

    def wait(
        self, cancelled: Callable[[], bool], part: Literal["answers", "questions"] = "answers"
    ) -> Iterator[QuestionQueued]:
        """Returns when it is this question's turn.  Until then it yields the position whenever it changes.  Raises
        CancelledError if a person stops it."""
        reported = 0
        while True:
            position, running = self._ahead()
            if position != reported:
                reported = position
                yield QuestionQueued(position, running, part)
            if not position:
                return
            if cancelled():
                raise CancelledError("the run was stopped")
            with self._line._changed:
                self._line._changed.wait(POLL_SECONDS)

    def wait_again(self, cancelled: Callable[[], bool]) -> Iterator[QuestionQueued]:
        """Goes back to the end of the line before the question is rewritten, because answers to waiting questions come
        first."""
        with self._line._changed:
            if self in self._line._order:
                self._line._order.remove(self)
                self._line._order.append(self)
            self._line._changed.notify_all()
        yield from self.wait(cancelled, "questions")


LINE = WaitingLine()  # of every question that is answered in this process
