"""Forward passes take turns: one at a time in this process, first come, first served; those that wait for the same model may go together.

Each pass uses all cores, so two at once only get in each other's way, and a plain lock lets one thread go on while others starve.  For the same
reason questions have an order, too (Line): of two that share the cores, both would be answered when the second is.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Generic, Literal, TypeVar

from core.errors import CancelledError
from core.types import QuestionQueued

J = TypeVar("J")
R = TypeVar("R")


class Turns:
    """A re-entrant lock that serves those who wait in the order in which they came."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._order: deque[int] = deque()  # threads; the first has the lock
        self._depth = 0

    @property
    def waiting(self) -> int:
        return max(0, len(self._order) - 1)

    def acquire(self, timeout: float | None = None) -> bool:
        """False where `timeout` seconds were not enough."""
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

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.release()

    def release(self) -> None:
        with self._changed:
            self._depth -= 1
            if not self._depth:
                self._order.popleft()
                self._changed.notify_all()


# tokens of a batch of several callers: on CPUs a larger one is no faster than one by one, and its first caller would wait for the last
BUDGET = {"cpu": 1024, "cuda": 32768}
TURNS = Turns()  # of every model of this process
_most = 1  # callers whose jobs go together
_meanwhile: list[int] = []  # the same, of each `gathered` that lasts


def gather(most: int) -> None:
    """From now on the jobs of up to `most` threads that wait for the same model go together; 1: each for itself, which is how a process starts.

    Results are those of one by one up to rounding, as the sums of a larger batch may be added in another order.  The verifier, whose bf16 rounds
    coarsely, takes its turns alone.
    """
    global _most
    _most = most


@contextmanager
def gathered(most: int) -> Iterator[None]:
    """`gather` for as long as it lasts; a process that gathers more keeps that."""
    _meanwhile.append(most)
    try:
        yield
    finally:
        _meanwhile.remove(most)


def most_together() -> int:
    """How many callers' jobs go together now."""
    return max(_most, *_meanwhile) if _meanwhile else _most


class _Asked(Generic[J, R]):
    def __init__(self, jobs: Sequence[J]) -> None:
        self.jobs, self.results = jobs, list[R]()
        self.done = False


class Together(Generic[J, R]):
    """Runs jobs of one model in its turn, with those of other threads that wait for the same model, as far as BUDGET allows."""

    def __init__(self, run: Callable[[Sequence[J]], Sequence[R]], size: Callable[[J], int], on_gpu: Callable[[], bool]) -> None:
        """`run`: one result a job, in order; `size`: of a job, in tokens; `on_gpu`: where the model is now."""
        self._run, self._size, self._on_gpu = run, size, on_gpu
        self._lock = threading.Lock()
        self._waiting: list[_Asked[J, R]] = []
        self.together = 0  # callers of the largest batch so far

    def __call__(self, jobs: Sequence[J]) -> list[R]:
        mine: _Asked[J, R] = _Asked(jobs)
        if most_together() > 1:
            with self._lock:
                self._waiting.append(mine)
        with TURNS:
            if not mine.done:
                self._work(mine)
        return mine.results

    def _work(self, mine: _Asked[J, R]) -> None:
        """Runs `mine`, and what waits behind it as far as there is room.  Raises what `run` raises for `mine` alone."""
        taken = self._take(mine)
        try:
            results = list(self._run([job for asked in taken for job in asked.jobs]))
        except Exception:  # whose fault it is shows when each runs for itself
            if len(taken) == 1:
                raise
            with self._lock:
                self._waiting[:0] = taken[1:]
            taken, results = [mine], list(self._run(mine.jobs))
        at = 0
        for asked in taken:
            asked.results = results[at : at + len(asked.jobs)]
            at += len(asked.jobs)
            asked.done = True
        self.together = max(self.together, len(taken))

    def _take(self, mine: _Asked[J, R]) -> list[_Asked[J, R]]:
        """`mine` and others that wait, in their order; what is taken does not wait any more."""
        with self._lock:
            taken, room = [mine], BUDGET["cuda" if self._on_gpu() else "cpu"] - sum(map(self._size, mine.jobs))
            for asked in [a for a in self._waiting if a is not mine]:
                room -= sum(map(self._size, asked.jobs))
                if room < 0 or len(taken) >= most_together():
                    break
                taken.append(asked)
            self._waiting = [a for a in self._waiting if a not in taken]
        return taken


# ---------------------------------------------------------------- the order of questions

LOOK_SECONDS = 0.1  # between two looks of a question that waits: whether it was cancelled
_admitted = 1  # questions at a time


def admit(most: int) -> None:
    """From now on up to `most` questions are worked on at the same time; 1, which is how a process starts, unless more go together (`gather`)."""
    global _admitted
    _admitted = most


class Line:
    """Questions in the order in which they came: the first ones are worked on, the others wait."""

    def __init__(self, places: Callable[[], int] = lambda: max(_admitted, most_together())) -> None:
        self._places = places
        self._changed = threading.Condition()
        self._order: list[Place] = []

    def place(self, needed: bool = True) -> Place:
        """At the end of the line from `with` on; `needed`: False for a question that does not use this machine."""
        return Place(self, needed)


class Place:
    """A question's place in a line, taken and left by `with`.  A thread has one: what it asks within a question does not wait."""

    def __init__(self, line: Line, needed: bool) -> None:
        self._line, self._needed, self._thread = line, needed, threading.current_thread()

    def __enter__(self) -> Place:
        with self._line._changed:
            if self._needed and all(other._thread is not self._thread for other in self._line._order):
                self._line._order.append(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._line._changed:
            if self in self._line._order:
                self._line._order.remove(self)
            self._line._changed.notify_all()

    def _ahead(self) -> tuple[int, int]:
        """(position in the queue, 0 for none; questions that are worked on)."""
        line = self._line
        with line._changed:
            line._order = [p for p in line._order if p is self or p._thread.is_alive()]  # a thread may end within a question
            places = max(1, line._places())
            at = line._order.index(self) if self in line._order else 0
            return max(0, at - places + 1), min(places, at)

    def wait(
        self, cancelled: Callable[[], bool], part: Literal["answers", "questions"] = "answers"
    ) -> Iterator[QuestionQueued]:
        """Returns at this question's turn, and yields its position before, if it has to wait.  Raises CancelledError when a person stops it."""
        known = 0
        while True:
            position, running = self._ahead()
            if position != known:
                known = position
                yield QuestionQueued(position, running, part)
            if not position:
                return
            if cancelled():
                raise CancelledError("the run was stopped")
            with self._line._changed:
                self._line._changed.wait(LOOK_SECONDS)

    def wait_again(self, cancelled: Callable[[], bool]) -> Iterator[QuestionQueued]:
        """Goes to the end of the line with the rewriting of the question: the answers of those who wait come first."""
        with self._line._changed:
            if self in self._line._order:
                self._line._order.remove(self)
                self._line._order.append(self)
            self._line._changed.notify_all()
        yield from self.wait(cancelled, "questions")


LINE = Line()  # of every question that is answered in this process
