"""Runs the service.  It binds the port before it loads anything, and stops gracefully."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from core.engine import Engine
from core.errors import InputError
from core.models.scheduling import turns
from core.serve.addresses import is_local
from core.serve.app import make_app
from core.settings import Settings

CUT_AFTER = 5.0  # seconds after the grace in which connections may close by themselves


def listen(host: str, port: int) -> socket.socket:
    """A listening socket.  Raises InputError for a port or address that cannot be used."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(2048)
    except (OSError, OverflowError) as error:
        raise InputError(
            f"the service cannot listen on {host}:{port} ({getattr(error, 'strerror', None) or error}); "
            "stop what listens there, or choose another port with --port"
        ) from None
    return sock


class Server(uvicorn.Server):
    """uvicorn's server, which gives up work that still runs after the grace period."""

    def __init__(self, config: uvicorn.Config, grace: float, give_up: Callable[[], None]) -> None:
        super().__init__(config)
        self._grace, self._give_up = grace, give_up

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn's, without raising the signal again at the end, because a requested stop is a success."""
        handlers = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().call_later(self._grace, self._give_up)
        await super().shutdown(sockets)


def run(settings: Settings, host: str, port: int) -> int:
    """Serves until it is stopped.  Raises InputError if the port is in use, or for an address that other machines can reach
    without a key."""
    if not is_local(host) and not (settings.serve_key or settings.open_to_all):
        raise InputError(
            f"the service does not listen on {host}, which other machines may reach, without a key: set AMBISCOPE_SERVE_KEY, "
            "or AMBISCOPE_OPEN_TO_ALL=1 if everybody may ask"
        )
    if any(not 32 < ord(c) < 127 for c in settings.serve_key):
        raise InputError("AMBISCOPE_SERVE_KEY contains a space, a line break or another invalid character; set it again")
    sock = listen(host, port)
    port = sock.getsockname()[1]  # of port 0, the one that was free
    turns.gather(settings.serve_batch)
    turns.admit(settings.serve_workers)
    app = make_app(Engine(settings))
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=int(settings.serve_grace + CUT_AFTER),
    )
    url = f"http://{'[' + host + ']' if ':' in host else host}:{port}"
    print(f"Ambiscope answers on {url}; stop it with Ctrl+C", flush=True)
    print(f"in another terminal: curl {url}/health", flush=True)
    Server(config, settings.serve_grace, app.state.service.stop).run(sockets=[sock])
    return 0
