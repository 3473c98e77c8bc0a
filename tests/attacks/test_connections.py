"""Clients that hold the connections of a server: heads that never end, more connections than there may be, large messages.  The service and
the app have the same bounds (core.serve.connections); the app's own part is in test_tabs.py."""

from __future__ import annotations

import asyncio
import os
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import httpx
import pytest
import uvicorn
from serving import PATIENCE, close_code, descriptors, free_port, until
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Data

from core.serve import connections, server
from core.serve.addresses import network
from core.serve.connections import Limits

HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
WHOLE = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
FEW = Limits(connections=30, per_address=20)


async def _echo(websocket: WebSocket) -> None:
    await websocket.accept()
    try:
        while True:
            data = await websocket.receive_bytes()
            if data in (b"in", b"out"):
                websocket.scope["state"][connections.ALLOW](data == b"in")
            await websocket.send_bytes(str(len(data)).encode())
    except Exception:  # however it ends
        return


async def _answer(request: Any) -> PlainTextResponse:
    return PlainTextResponse("ok")


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Of the service's server, with room for few."""
    monkeypatch.setattr(connections, "limits", lambda: FEW)
    monkeypatch.setattr(connections, "HEAD_SECONDS", 2.0)
    app = Starlette(routes=[Route("/", _answer), WebSocketRoute("/ws", _echo)])
    config = uvicorn.Config(app, log_level="error", ws="websockets-sansio", timeout_graceful_shutdown=1)
    running, port = server.Server(config, 1.0, lambda: None), free_port()
    thread = threading.Thread(target=lambda: asyncio.run(running._serve([server.listen("127.0.0.1", port)])), daemon=True)
    thread.start()
    until(lambda: running.started)
    yield port
    running.should_exit = True
    thread.join(PATIENCE)


def answers(port: int, source: str = "127.0.0.1") -> int:
    """The status, or 0 where there is no answer."""
    try:
        with httpx.Client(trust_env=False, transport=httpx.HTTPTransport(local_address=source), timeout=PATIENCE) as client:
            return client.get(f"http://127.0.0.1:{port}/").status_code
    except httpx.HTTPError:
        return 0


def held(port: int, stack: ExitStack, source: str = "127.0.0.1", head: bytes = HEAD) -> socket.socket:
    """A connection whose head of a request does not end."""
    connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), source_address=(source, 0)))
    connection.settimeout(PATIENCE)
    connection.sendall(head)
    return connection


def tab(port: int) -> ClientConnection:
    return connect(f"ws://127.0.0.1:{port}/ws", proxy=None)


def refuses(tab: ClientConnection, message: Data | list[bytes]) -> bool:
    """Whether the server closes a tab that sends this, for its size."""
    with suppress(ConnectionClosed):
        tab.send(message)
    return close_code(tab) == 1009


def status_of(connection: socket.socket) -> bytes:
    """Of the answer on a connection, once the server has ended it; empty where it ended without one."""
    reply = b""
    with suppress(ConnectionResetError):
        while part := connection.recv(4096):
            reply += part
    return reply.split(b" ")[1] if reply else b""


def test_beyond_the_limits_the_answer_is_503(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", PATIENCE)
    with ExitStack() as stack:
        first = [held(port, stack) for _ in range(FEW.per_address)]
        assert [status_of(held(port, stack)) for _ in range(3)] == [b"503"] * 3
        assert answers(port) == 503
        assert answers(port, "127.0.0.2") == 200
        other = [held(port, stack, "127.0.0.2") for _ in range(FEW.connections - FEW.per_address)]
        assert answers(port, "127.0.0.3") == 503  # no room for anybody
        for connection in first:
            connection.close()
        until(lambda: answers(port, "127.0.0.3") == 200)
        assert all(connection.fileno() >= 0 for connection in other)


def test_a_head_that_does_not_end_is_given_up(port: int) -> None:
    with ExitStack() as stack:
        slow = [held(port, stack) for _ in range(FEW.per_address)]
        used = held(port, stack, "127.0.0.2", WHOLE)
        assert used.recv(4096).startswith(b"HTTP/1.1 200")
        used.sendall(HEAD)  # its second request
        silent = held(port, stack, "127.0.0.2", b"")
        dripping = held(port, stack, "127.0.0.2")
        with suppress(OSError):  # a byte now and then gives no more time
            until(lambda: dripping.sendall(b"x") or select.select([dripping], [], [], 0.1)[0])
        assert status_of(dripping) == b"408"
        assert {status_of(connection) for connection in slow} == {b"408"}
        assert status_of(used) == b"408"
        assert status_of(silent) == b""
        assert answers(port) == 200


def test_a_flood_of_connections_leaves_descriptors(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", PATIENCE)
    before = descriptors(os.getpid())
    with ExitStack() as stack:
        flood = [held(port, stack) for _ in range(300)]
        refused = [status_of(connection) for connection in flood[FEW.per_address :]]
        assert set(refused) <= {b"503", b""}
        assert refused.count(b"503") >= connections.MAX_REFUSALS
        # both ends are in this process
        until(lambda: descriptors(os.getpid()) <= before + len(flood) + FEW.per_address + 4)
        assert answers(port, "127.0.0.2") == 200


def test_connections_of_tabs_count(port: int) -> None:
    with ExitStack() as stack:
        tabs = [stack.enter_context(tab(port)) for _ in range(FEW.per_address)]
        assert answers(port) == 503
        tabs[0].close()
        until(lambda: answers(port) == 200)


def test_large_messages_are_allowed_and_not_allowed_any_more(port: int) -> None:
    small, much = b"x" * connections.SMALL_MESSAGE, b"x" * (connections.SMALL_MESSAGE + 1)
    parts = [much[at : at + 5000] for at in range(0, len(much), 5000)]
    for message in (much, parts, [b"x"] * 2000):  # many fragments take more than their bytes
        with tab(port) as stranger:
            stranger.send(small)
            assert stranger.recv() == str(len(small)).encode()
            assert refuses(stranger, message)
    with tab(port) as visitor:
        visitor.send(b"in")
        visitor.recv()
        for message in (much, parts):
            visitor.send(message)
            assert visitor.recv() == str(len(much)).encode()
        visitor.send(b"out")
        visitor.recv()
        assert refuses(visitor, much)


def test_an_address_is_a_network() -> None:
    assert network("2001:db8:1:2::3") == network("2001:db8:1:2:ffff::4") != network("2001:db8:1:3::3")
