"""The checks before every route: the key, the size of a request, the host that it was sent to, and whether its JSON can be
read."""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from core import json_io
from core.errors import AmbiscopeError, FormatError, InputError
from core.serve.addresses import host_of, is_local
from core.serve.protocol import API_HEADER, API_VERSION, RefusedError, error_to_json, status_of
from core.settings import Settings

KEYLESS_PATHS = ("/health",)  # needs no key


class Guard:
    """Refuses with the same JSON as the routes.  A body is read up to the limit before a route sees it, so a body of 100 MB is
    never read in full."""

    def __init__(self, app: ASGIApp, settings: Settings, on_refusal: Callable[[int], None]) -> None:
        self._app, self._on_refusal = app, on_refusal
        self._key, self._max_kb = settings.serve_key.encode(), settings.serve_max_request_kb
        self._any_host = bool(settings.serve_key or settings.open_to_all)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            self._check(scope["path"], headers)
            body = await self._body(headers, receive)
            _check_json(headers, body)
        except AmbiscopeError as error:
            self._on_refusal(status_of(error))
            await _send_refusal(error, _stamping(send))
            return
        await self._app(scope, _replaying(body, receive), _stamping(send))

    def _check(self, path: str, headers: Headers) -> None:
        """Raises RefusedError.  Without a key, only this machine may ask, and its browsers only under a local name (DNS
        rebinding)."""
        if not self._any_host and not is_local(host_of(headers.get("host", ""))):
            raise RefusedError(403, "this service has no key and answers under a local address only; set AMBISCOPE_SERVE_KEY")
        if not self._key or path in KEYLESS_PATHS:
            return
        header = headers.get("authorization", "")
        kind, _, key = header.partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(key.strip().encode("latin-1"), self._key):
            problem = "the key is wrong" if header else "a key is needed"
            raise RefusedError(
                401, f"{problem}; send the header 'Authorization: Bearer KEY' with the service's AMBISCOPE_SERVE_KEY"
            )

    async def _body(self, headers: Headers, receive: Receive) -> bytes:
        """The whole body.  Raises RefusedError as soon as it is known to be too large."""
        too_large = RefusedError(413, f"the request has more than {self._max_kb} kB; ask with fewer or shorter passages")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self._max_kb * 1024:
            raise too_large
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise RefusedError(400, "the connection ended within the request")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._max_kb * 1024:
                raise too_large
            if not message.get("more_body", False):
                return b"".join(parts)


def _check_json(headers: Headers, body: bytes) -> None:
    """Raises InputError for JSON that the strict reader refuses: deep nesting, NaN, large numbers, repeated keys, halves of
    characters."""
    if not body or "json" not in headers.get("content-type", "").lower():
        return
    try:
        json_io.parse(body.decode())
    except UnicodeDecodeError:
        raise InputError("the request is not UTF-8; send JSON in UTF-8") from None
    except FormatError as error:
        raise InputError(f"the request cannot be read: {error.problem.removesuffix('; correct the file')}") from None


def _replaying(body: bytes, receive: Receive) -> Receive:
    is_sent = False

    async def replay() -> Message:
        nonlocal is_sent
        if not is_sent:
            is_sent = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return replay


def _stamping(send: Send) -> Send:
    async def stamped_send(message: Message) -> None:
        if message["type"] == "http.response.start":
            added = [
                (API_HEADER.encode(), str(API_VERSION).encode()),
                (b"cache-control", b"no-store"),
                (b"x-content-type-options", b"nosniff"),
            ]
            message["headers"] = [*message.get("headers", ()), *added]
        await send(message)

    return stamped_send


async def _send_refusal(error: AmbiscopeError, send: Send) -> None:
    status, headers = status_of(error), [(b"content-type", b"application/json")]
    if isinstance(error, RefusedError):  # its body may still be on the way
        headers.append((b"connection", b"close"))
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(error_to_json(error)).encode()})
