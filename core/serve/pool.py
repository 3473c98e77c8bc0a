"""Few threads that work, a bounded queue before them, and a deadline for each piece of work, counted from its arrival."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from core.errors import CancelledError
from core.serve.protocol import ALIVE_SECONDS, RefusedError

FIRST_GUESS = 3.0  # seconds of a piece of work, before there was any


class Job:
    """One piece of work.  `work` runs in a thread and gives its results to `put`; `results` takes them in the event loop."""

    def __init__(self, work: Callable[[Job], None], seconds: float) -> None:
        self.work, self.seconds = work, seconds
        self.asked = time.monotonic()
        self.begun: float | None = None
        self._stopped = threading.Event()
        self._why: RefusedError | None = None
        self._loop, self._results = asyncio.get_running_loop(), asyncio.Queue[Any]()
        self.future: Future[None] | None = None

    # ------------------------------------------------------------ in the thread

    def cancelled(self) -> bool:
        return self._stopped.is_set() or time.monotonic() - self.asked > self.seconds

    def put(self, result: Any) -> None:
        """Raises CancelledError once nobody waits for it any more."""
        if self._stopped.is_set():
            raise CancelledError("nobody waits for the answer")
        self._send(result)

    def _send(self, result: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(self._results.put_nowait, result)
        except RuntimeError as error:  # the event loop is closed: the service has stopped
            raise CancelledError("the service has stopped") from error

    def end(self, error: BaseException | None) -> None:
        with suppress(CancelledError):
            self._send(_End(error))

    # ------------------------------------------------------------ in the event loop

    def stop(self, why: RefusedError | None = None) -> None:
        """The work ends at its next look; one that waits never begins.  `why`: what `results` raises."""
        self._why = self._why or why
        self._stopped.set()
        if self.future is not None:
            self.future.cancel()

    async def results(self) -> AsyncIterator[Any]:
        """Each result; None after each second without one.  Raises what the work raises, and RefusedError at the deadline or when it was stopped."""
        while True:
            left = self.asked + self.seconds - time.monotonic()
            if self._why is not None:
                raise self._why
            if left <= 0:
                self.stop()
                waited = "all of them spent waiting in the queue" if self.begun is None else "and it was still being worked on"
                raise RefusedError(504, f"the answer took more than {self.seconds:g} seconds, {waited}; ask again later", 10)
            try:
                found = await asyncio.wait_for(self._results.get(), min(ALIVE_SECONDS, left))
            except TimeoutError:
                yield None
                continue
            if self.cancelled():  # what came after the deadline is no answer any more
                continue
            if not isinstance(found, _End):
                yield found
            elif found.error is not None:
                raise found.error
            else:
                return


class _End:
    def __init__(self, error: BaseException | None) -> None:
        self.error = error


class Pool:
    """`started` is told the seconds that a job waited."""

    def __init__(self, name: str, workers: int, queue: int, started: Callable[[float], None] = lambda seconds: None) -> None:
        self.workers, self.queue, self._started = workers, queue, started
        self._threads = ThreadPoolExecutor(workers, name)
        self._lock = threading.Lock()
        self._jobs: dict[Job, None] = {}  # that wait or run, in the order in which they came
        self._running, self._usual = 0, FIRST_GUESS
        self._closed = False

    @property
    def running(self) -> int:
        return self._running

    @property
    def waiting(self) -> int:
        return max(0, len(self._jobs) - self._running)

    def position(self, job: Job) -> int:
        """Of a job that waits, in the queue: 1 is next; 0: it waits for nothing."""
        with self._lock:
            if job.begun is not None or job not in self._jobs:
                return 0
            return max(0, list(self._jobs).index(job) - self.workers + 1)

    def start(self, work: Callable[[Job], None], seconds: float) -> Job:
        """Raises RefusedError when the queue is full or the service stops."""
        if self._closed:
            raise RefusedError(503, "the service is stopping; ask again when it runs", 10)
        with self._lock:
            waiting = len(self._jobs)  # what has been taken and not yet ended
            if waiting >= self.workers + self.queue:
                again = max(1, math.ceil(self._usual * waiting / self.workers / 2))
                raise RefusedError(429, f"the queue of {self.queue} is full; ask again in {again} seconds", again)
            job = Job(work, seconds)
            self._jobs[job] = None
        job.future = self._threads.submit(self._run, job)
        job.future.add_done_callback(lambda future: self._drop(job))
        return job

    def stop(self) -> None:
        """What runs or waits is given up.  Called in the event loop."""
        self._closed = True
        for job in list(self._jobs):
            job.stop(RefusedError(503, "the service was stopped before the answer was ready; ask again when it runs", 10))
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _drop(self, job: Job) -> None:
        with self._lock:
            self._jobs.pop(job, None)

    def _run(self, job: Job) -> None:
        job.begun = time.monotonic()
        with self._lock:
            self._running += 1
        error: BaseException | None = None
        try:
            self._started(job.begun - job.asked)
            if not job.cancelled():
                job.work(job)
                with self._lock:
                    self._usual += 0.1 * (time.monotonic() - job.begun - self._usual)
        except BaseException as raised:
            error = raised
        finally:
            with self._lock:
                self._running -= 1
                self._jobs.pop(job, None)
            job.end(error)
