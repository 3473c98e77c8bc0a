"""Works on several questions at a time and returns the results in the order of the questions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from core.models.scheduling.turns import gathering

Q = TypeVar("Q")
R = TypeVar("R")


def in_order(ask: Callable[[Q], R], questions: Sequence[Q], batch: int) -> Generator[R, None, None]:
    """Yields the result of `ask` for each question, with `batch` of them in work at a time: calls of an endpoint overlap, and
    waiting reads of a local model are batched (core.models.scheduling.turns).  Closing it starts no more of them.  Raises what
    `ask` raises.
    """
    if batch == 1:
        yield from map(ask, questions)
        return
    pool, waiting = ThreadPoolExecutor(batch), deque[Future[R]]()
    with gathering(batch):
        try:
            for question in questions:
                waiting.append(pool.submit(ask, question))
                if len(waiting) >= batch:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
