"""The contract between the service and its clients: the API version, errors and events on the wire.

Events have the form of stored traces (core.trace).  In a stream of server-sent events each has its class name as `event`; before them comes one
`system` (a SystemInfo), and an `error` ends a stream that fails.  A line that starts with a colon keeps the connection alive.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from core import __version__, errors
from core.errors import AmbiscopeError, ServiceError

API_VERSION = 1  # raised when a reader of the earlier version would misunderstand the new one
API_HEADER = "ambiscope-api"  # of every response
STREAM_TYPE = "text/event-stream"
SYSTEM, ERROR = "system", "error"  # names of events that are not part of a trace
KEEP_ALIVE = b": waiting\n\n"
ALIVE_SECONDS = 1.0  # between two keep-alive lines

_STATUS: tuple[tuple[type[AmbiscopeError], int], ...] = (  # the first class that fits
    (errors.NothingRetrievedError, 422),
    (errors.NotFoundError, 404),
    (errors.UnknownNameError, 404),
    (errors.InputError, 422),
    (errors.NotAllowedError, 403),
    (errors.LanguageModelError, 502),
    (errors.CancelledError, 503),
)


class RefusedError(ServiceError):
    """The service refuses a request or gives it up.  `retry_after`: seconds; 0 means that trying again doesn't help."""

    def __init__(self, status: int, message: str, retry_after: int = 0) -> None:
        super().__init__(message)
        self.status, self.retry_after = status, retry_after


def status_of(error: AmbiscopeError) -> int:
    if isinstance(error, RefusedError):
        return error.status
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def stamped(body: Mapping[str, Any]) -> dict[str, Any]:
    """A reply with the API version and the version of the installation."""
    return {**body, "api": API_VERSION, "version": __version__}


def error_to_json(error: AmbiscopeError) -> dict[str, Any]:
    """The body of a response or an event that reports an error."""
    body: dict[str, Any] = {"kind": type(error).__name__, "status": status_of(error), "message": str(error)}
    if isinstance(error, RefusedError) and error.retry_after:
        body["retry_after"] = error.retry_after
    return stamped({"error": body})


def error_from_json(body: Any) -> AmbiscopeError | None:
    """The error that a service reported, as its own class of core.errors; None if `body` reports none."""
    failure = body.get("error") if isinstance(body, dict) else None
    if not isinstance(failure, dict) or not isinstance(failure.get("message"), str):
        return None
    kind: Any = getattr(errors, str(failure.get("kind")), None)
    if not (isinstance(kind, type) and issubclass(kind, AmbiscopeError)) or kind is errors.FormatError:
        kind = ServiceError
    error: AmbiscopeError = kind(one_line(failure["message"]))
    return error


def one_line(text: str, limit: int = 2000) -> str:
    """The start of a text from the other side as one printable line, for a message on a page or terminal."""
    return " ".join("".join(c if c.isprintable() else " " for c in text[:limit]).split())


def message(name: str, body: Any) -> bytes:
    """One server-sent event.  JSON has no line breaks of its own, so `data` is one line."""
    return f"event: {name}\ndata: {json.dumps(body, ensure_ascii=True)}\n\n".encode()


def data(body: Any) -> bytes:
    """A server-sent event without a name, as OpenAI's clients read it."""
    return f"data: {json.dumps(body, ensure_ascii=True)}\n\n".encode()


def messages(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(event, data) of each server-sent event.  https://html.spec.whatwg.org/multipage/server-sent-events.html"""
    name, data = "", list[str]()
    for line in lines:
        if not line:
            if data:
                yield name, "\n".join(data)
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)
