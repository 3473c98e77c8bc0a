"""Several questions in work at a time, their results in the order of the questions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from core.models.scheduling.turns import gathering

Q = TypeVar("Q")
R = TypeVar("R")


def in_order(ask: Callable[[Q], R], questions: Sequence[Q], batch: int) -> Generator[R, None, None]:
    """Yields what `ask` gives for each question, `batch` of them in work at a time: calls of an endpoint overlap, and what waits for a local
    model is read together (core.models.scheduling.turns).  Closing it starts no further ones.  Raises what `ask` raises.
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
