"""Bounds of the connections to a uvicorn server: how many there are, how long the head of a request may take, how large a message is.

The service (core.serve.server) and the app (pages.server.server) both have them.  What an ASGI application cannot bound is bounded here:
it is called once a request's head is complete, and with whole messages.
"""

from __future__ import annotations

import asyncio
import http
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from core.serve.addresses import network

MAX_CONNECTIONS = 1000
# for the head of a request: from the connection, or from its first byte where the connection was used before
HEAD_SECONDS = 10.0
DESCRIPTORS_PER_CONNECTION = 4  # of a tab: its connection, and the event loop that Streamlit keeps for its session
OTHER_DESCRIPTORS = 512  # databases, files, sessions whose tab may come back, refused connections
MIN_CONNECTIONS = 32
BACKLOG = 128  # connections that are accepted in one go
MAX_REFUSALS = 128  # refused connections that are read until their client has the answer
REFUSAL_SECONDS = 1.0  # for a client to read it
SMALL_MESSAGE = 64 * 1024  # bytes of a websocket message, until the application allows more
FRAGMENT_BYTES = 64  # what a fragment of a message takes besides its bytes
ALLOW = "ambiscope.allow_large_messages"  # of a websocket scope's state: a function of True or False


@dataclass(frozen=True, slots=True)
class Limits:
    connections: int
    per_address: int  # of IPv6 the first 64 bits count


def limits() -> Limits:
    """For this process, by the number of files it may have open, which is raised where the system allows it."""
    descriptors = _descriptors(MAX_CONNECTIONS * DESCRIPTORS_PER_CONNECTION + OTHER_DESCRIPTORS)
    connections = max(MIN_CONNECTIONS, min(MAX_CONNECTIONS, (descriptors - OTHER_DESCRIPTORS) // DESCRIPTORS_PER_CONNECTION))
    return Limits(connections, connections * 3 // 4)


def _descriptors(count: int) -> int:
    if sys.platform == "win32":
        return count
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (count if hard == resource.RLIM_INFINITY else min(count, hard), hard))
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return count if soft == resource.RLIM_INFINITY else soft


Refusal = Callable[[int, str], tuple[dict[str, str], bytes]]  # headers and body, by status and reason


def plain(status: int, reason: str) -> tuple[dict[str, str], bytes]:
    return {"content-type": "text/plain; charset=utf-8"}, f"{reason}\n".encode()


def bound(config: uvicorn.Config, limits: Limits, refusal: Refusal = plain) -> None:
    """Applies the bounds to a configuration that is loaded and not in use yet."""
    config.backlog = min(config.backlog, BACKLOG)
    config.http_protocol_class = type("BoundHttp", (Http,), {"limits": limits, "refusal": staticmethod(refusal)})
    if config.ws_protocol_class is not None:
        config.ws_protocol_class = Messages


class Http(H11Protocol):
    """A connection that is answered 503 beyond the limits, and 408 where the head of a request takes too long."""

    limits: ClassVar[Limits]
    refusal: ClassVar[Refusal]
    _refusals: ClassVar[set[Http]] = set()

    def __init__(self, *args: Any, **kw: Any) -> None:
        super().__init__(*args, **kw)
        self._head: asyncio.TimerHandle | None = None  # runs while the head of a request is awaited
        self._is_refused = self._is_upgraded = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            self._refuse(503, "the server has as many connections as it can serve; try again in a few seconds")
        elif self._from_this_address() > self.limits.per_address:
            self._refuse(503, "there are too many connections from this address; close some, or try again in a few seconds")
        else:
            self._await_head()

    def _from_this_address(self) -> int:
        mine = network(self.client[0] if self.client else "")
        peers = (getattr(other, "client", None) for other in self.connections)
        return sum(network(peer[0] if peer else "") == mine for peer in peers)

    def _await_head(self) -> None:
        """Starts or stops the time for a head: no request is being answered, or one is."""
        awaited = not self._is_upgraded and (self.cycle is None or self.cycle.response_complete)
        if awaited and self._head is None:
            self._head = self.loop.call_later(HEAD_SECONDS, self._head_is_late)
        elif not awaited and self._head is not None:
            self._head.cancel()
            self._head = None

    def _head_is_late(self) -> None:
        if self.conn.trailing_data[0]:
            self._refuse(408, f"the request did not arrive within {HEAD_SECONDS:g} seconds")
        else:  # nothing was asked: browsers open connections ahead
            self.transport.close()

    def _refuse(self, status: int, reason: str) -> None:
        """Answers at once.  What the client still sends is read for a moment: closing at once would take the answer from it."""
        self._is_refused = True
        self.connections.discard(self)
        headers, body = type(self).refusal(status, reason)
        headers |= {"content-length": str(len(body)), "connection": "close", "cache-control": "no-store", "retry-after": "5"}
        lines = [
            f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        self.transport.write("\r\n".join([*lines, "", ""]).encode() + body)
        if len(self._refusals) >= MAX_REFUSALS or not self.transport.can_write_eof():
            self.transport.close()
            return
        self._refusals.add(self)
        self.transport.write_eof()
        self._head = self.loop.call_later(REFUSAL_SECONDS, self.transport.close)

    def data_received(self, data: bytes) -> None:
        if not self._is_refused:
            super().data_received(data)
            self._await_head()

    def handle_websocket_upgrade(self, event: Any) -> None:
        self._is_upgraded = True
        self._await_head()
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        self._refusals.discard(self)
        if self._head is not None:
            self._head.cancel()
        super().connection_lost(exc)


class Messages(WebSocketsSansIOProtocol):
    """A websocket that closes with 1009 at a message of more than SMALL_MESSAGE bytes, unless the application has allowed large ones."""

    def __init__(self, *args: Any, **kw: Any) -> None:
        super().__init__(*args, **kw)
        self._allows_large = False

    def _allow(self, large: bool) -> None:
        self._allows_large = large

    async def run_asgi(self) -> None:
        self.scope["state"][ALLOW] = self._allow
        await super().run_asgi()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._check(len(self.conn.reader.buffer))  # of a message that is not complete

    def handle_bytes(self, event: Frame) -> None:
        if not self._check(len(event.data)):
            super().handle_bytes(event)

    def handle_text(self, event: Frame) -> None:
        if not self._check(len(event.data)):
            super().handle_text(event)

    def handle_cont(self, event: Frame) -> None:
        if not self._check(len(event.data)):
            super().handle_cont(event)

    def handle_parser_exception(self) -> None:
        """As uvicorn's, but what the client still sends is read and dropped: closing at once would reset the connection, and the client could lose
        the close frame.  It has the time of a closing handshake."""
        if self.close_timer is not None:  # it is ending
            return
        if not self.transport.can_write_eof():
            super().handle_parser_exception()
            return
        close = self.conn.close_sent
        assert close is not None
        self.conn.fail(close.code)  # its parser drops everything from here on
        self.queue.put_nowait({"type": "websocket.disconnect", "code": close.code, "reason": close.reason})
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.transport.write_eof()
        self.transport.resume_reading()
        self.close_sent = self.disconnected = True
        self.close_timer = self.loop.call_later(self.close_timeout, self.transport.close)

    def _check(self, size: int) -> bool:
        """Whether the message is too large with `size` more bytes; then the connection ends."""
        if self._allows_large or self.close_sent:
            return self.close_sent
        if size + sum(len(part) + FRAGMENT_BYTES for part in self.frames) <= SMALL_MESSAGE:
            return False
        self.frames = []
        self.conn.fail(1009, "sign in first")
        self.handle_parser_exception()
        return True
