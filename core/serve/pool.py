"""A few worker threads behind a bounded queue, and a deadline for each piece of work, counted from its arrival."""

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

ASSUMED_SECONDS = 3.0  # of a piece of work, before one was measured


class Job:
    """One piece of work.  `work` runs in a thread and passes its results to `put`; `results` takes them in the event loop."""

    def __init__(self, work: Callable[[Job], None], seconds: float) -> None:
        self.work, self.seconds = work, seconds
        self.submitted = time.monotonic()
        self.started: float | None = None
        self._stopped = threading.Event()
        self._refusal: RefusedError | None = None
        self._loop, self._results = asyncio.get_running_loop(), asyncio.Queue[Any]()
        self.future: Future[None] | None = None

    # ------------------------------------------------------------ in the thread

    def cancelled(self) -> bool:
        return self._stopped.is_set() or time.monotonic() - self.submitted > self.seconds

    def put(self, result: Any) -> None:
        """Raises CancelledError once nobody waits for the result."""
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

    def stop(self, refusal: RefusedError | None = None) -> None:
        """Ends the work the next time it checks; waiting work never starts.  `refusal`: the error that `results` raises."""
        self._refusal = self._refusal or refusal
        self._stopped.set()
        if self.future is not None:
            self.future.cancel()

    async def results(self) -> AsyncIterator[Any]:
        """Each result, and None for each second without one.  Raises what the work raises, and RefusedError at the deadline or
        when the job was stopped."""
        while True:
            remaining = self.submitted + self.seconds - time.monotonic()
            if self._refusal is not None:
                raise self._refusal
            if remaining <= 0:
                self.stop()
                waited = (
                    "all of them spent waiting in the queue" if self.started is None else "and it was still being worked on"
                )
                raise RefusedError(504, f"the answer took more than {self.seconds:g} seconds, {waited}; ask again later", 10)
            try:
                result = await asyncio.wait_for(self._results.get(), min(ALIVE_SECONDS, remaining))
            except TimeoutError:
                yield None
                continue
            if self.cancelled():  # a result after the deadline does not count
                continue
            if not isinstance(result, _End):
                yield result
            elif result.error is not None:
                raise result.error
            else:
                return


class _End:
    def __init__(self, error: BaseException | None) -> None:
        self.error = error


class Pool:
    """A pool of worker threads.  `on_start` is called with the seconds that a job waited."""

    def __init__(self, name: str, workers: int, queue: int, on_start: Callable[[float], None] = lambda seconds: None) -> None:
        self.workers, self.queue, self._on_start = workers, queue, on_start
        self._threads = ThreadPoolExecutor(workers, name)
        self._lock = threading.Lock()
        self._jobs: dict[Job, None] = {}  # that wait or run, in the order of arrival
        self.running, self._mean_seconds = 0, ASSUMED_SECONDS
        self._closed = False

    @property
    def waiting(self) -> int:
        return max(0, len(self._jobs) - self.running)

    def position(self, job: Job) -> int:
        """The position of a waiting job in the queue: 1 is next; 0 means that it isn't waiting."""
        with self._lock:
            if job.started is not None or job not in self._jobs:
                return 0
            return max(0, list(self._jobs).index(job) - self.workers + 1)

    def start(self, work: Callable[[Job], None], seconds: float) -> Job:
        """Raises RefusedError when the queue is full or the service stops."""
        if self._closed:
            raise RefusedError(503, "the service is stopping; ask again when it runs", 10)
        with self._lock:
            waiting = len(self._jobs)  # what has been taken and not yet ended
            if waiting >= self.workers + self.queue:
                again = max(1, math.ceil(self._mean_seconds * waiting / self.workers / 2))
                raise RefusedError(429, f"the queue of {self.queue} is full; ask again in {again} seconds", again)
            job = Job(work, seconds)
            self._jobs[job] = None
        job.future = self._threads.submit(self._run, job)
        job.future.add_done_callback(lambda future: self._drop(job))
        return job

    def stop(self) -> None:
        """Gives up all running and waiting work.  Called in the event loop."""
        self._closed = True
        for job in list(self._jobs):
            job.stop(RefusedError(503, "the service was stopped before the answer was ready; ask again when it runs", 10))
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _drop(self, job: Job) -> None:
        with self._lock:
            self._jobs.pop(job, None)

    def _run(self, job: Job) -> None:
        job.started = time.monotonic()
        with self._lock:
            self.running += 1
        error: BaseException | None = None
        try:
            self._on_start(job.started - job.submitted)
            if not job.cancelled():
                job.work(job)
                with self._lock:
                    self._mean_seconds += 0.1 * (time.monotonic() - job.started - self._mean_seconds)
        except BaseException as raised:
            error = raised
        finally:
            with self._lock:
                self.running -= 1
                self._jobs.pop(job, None)
            job.end(error)
