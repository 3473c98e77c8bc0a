"""One batch of calls to an endpoint: retries with growing pauses, Retry-After, deadlines, cancelling calls in flight, and the messages
of calls that failed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from core.models.language.roles import Completion, Request

RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})
STOPPED, TOO_LATE = "the run was stopped", "no answer came before the run's time was over"


class CallError(Exception):
    """A call that failed for good."""


class StatusError(Exception):
    """An HTTP status other than 200."""

    def __init__(self, status: int, text: str, retry_after: str) -> None:
        super().__init__(status)
        self.status, self.text, self.retry_after = status, text, retry_after


class Batch:
    """The calls of one `stream`, in their own event loop."""

    def __init__(
        self, model: Any, requests: Sequence[Request], deadline: float, deliver: Callable[[int, Completion], None]
    ) -> None:
        self.model, self.requests, self.deadline, self.deliver = model, requests, deadline, deliver
        self.not_before = 0.0  # time.monotonic() from a server's Retry-After: all calls of the batch wait until then
        self.down = ""  # why the endpoint can't be reached, once a call has used its retries: the others are not tried
        self._stop = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    def stop(self) -> None:
        self._stop.set()
        with contextlib.suppress(RuntimeError):  # the loop has ended
            if self._loop is not None and self._task is not None:
                self._loop.call_soon_threadsafe(self._task.cancel)

    def work(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(self._all())

    async def _all(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        if self._stop.is_set():
            return
        slots = asyncio.Semaphore(self.model.address.concurrency)
        async with self.model.client() as client:
            await asyncio.gather(*(self._complete(client, slots, i) for i in range(len(self.requests))))

    async def _complete(self, client: httpx.AsyncClient, slots: asyncio.Semaphore, index: int) -> None:
        start = time.monotonic()
        try:
            async with asyncio.timeout(self.deadline - start), slots:
                start = time.monotonic()
                completion = await self._with_retries(client, self.requests[index])
        except Exception as error:  # one failed request must not stop the batch
            problem = TOO_LATE if isinstance(error, TimeoutError) else self.model.clean(error)
            if not isinstance(error, (TimeoutError, CallError)):
                problem = f"{type(error).__name__}: {problem}"
            completion = Completion(error=problem, seconds=time.monotonic() - start)
        if completion.error and self.model.choice and not (self.down or completion.cut):
            completion = replace(completion, error=f"{completion.error}; {self.model.choice}")
        self.deliver(index, completion)

    async def _with_retries(self, client: httpx.AsyncClient, request: Request) -> Completion:
        address, start = self.model.address, time.monotonic()
        try:
            async with asyncio.timeout(address.timeout):
                for attempt in range(address.retries + 1):
                    if self.down:
                        raise CallError(self.down)
                    await asyncio.sleep(max(0.0, self.not_before - time.monotonic()))
                    is_last = attempt == address.retries
                    pause = address.first_pause * 2**attempt * random.uniform(0.8, 1.2)
                    try:
                        call_start = time.monotonic()
                        reply = await self.model.ask(client, request)
                        return self.model.completion(reply, request, time.monotonic() - call_start)
                    except StatusError as error:
                        pause = self._pause_before_retry(error, is_last, pause, address.timeout - (time.monotonic() - start))
                    except (httpx.TransportError, httpx.InvalidURL) as error:
                        if is_last or isinstance(error, (httpx.UnsupportedProtocol, httpx.InvalidURL)):
                            if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout)):
                                self.down = f"the endpoint {address.url} can't be reached; is it running?"
                                raise CallError(self.down) from None
                            raise CallError(
                                f"the connection broke ({type(error).__name__}: {self.model.clean(error, 100)})"
                            ) from None
                    await asyncio.sleep(pause)
        except TimeoutError:
            raise CallError(f"no answer within {address.timeout:g} s (AMBISCOPE_LM_TIMEOUT)") from None
        raise AssertionError("a call ends with an answer or a failure")

    def _pause_before_retry(self, error: StatusError, is_last: bool, pause: float, seconds_left: float) -> float:
        """Seconds to wait before the next try.  Raises CallError when there is none."""
        problem = self.model.clean(_problem(error.text), 160)
        if 300 <= error.status < 400:
            raise CallError(
                f"the endpoint redirects (HTTP {error.status}), which is not followed; set AMBISCOPE_LM_URL to the final address"
            )
        if error.status in (401, 403):
            raise CallError(f"the endpoint refuses the key (HTTP {error.status}); check AMBISCOPE_LM_KEY")
        if error.status == 404:
            raise CallError(
                f"the endpoint has no such path or model (HTTP 404): {problem}; check AMBISCOPE_LM_URL and AMBISCOPE_LM_MODEL"
            )
        if error.status not in RETRIED or is_last:
            raise CallError(f"the endpoint returned HTTP {error.status}: {problem}")
        seconds = retry_after(error.retry_after)
        if seconds is not None:
            if seconds > seconds_left:
                raise CallError(f"the endpoint asks to wait {seconds:.0f} s (HTTP {error.status}), longer than a call may last")
            self.not_before = max(self.not_before, time.monotonic() + seconds)
            return 0.0
        return pause


def retry_after(header: str) -> float | None:
    """Seconds to wait from a Retry-After header (RFC 9110, section 10.2.3: seconds or a date); None if it has neither."""
    header = header.strip()
    if header.isascii() and header.isdigit():
        return float(header[:9])
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def _problem(text: str) -> str:
    """The message of an error object ({"error": {"message": ...}}, {"detail": ...}), else the text itself."""
    try:
        body: Any = json.loads(text)
    except (ValueError, RecursionError):
        return text
    for name in ("error", "message", "detail"):
        if isinstance(body, dict) and name in body:
            body = body[name]
    return str(body)
