"""A server on loopback that says what a test tells it to: no model, only the protocol and its accidents."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from core.models.language.roles import Completion, LanguageModel, Request


class Reply:
    def __init__(self, body: str | bytes = "", status: int = 200, wait: float = 0.0, drip: float = 0.0, **headers: str) -> None:
        """`wait`: seconds before the first byte; `drip`: seconds between two bytes."""
        self.body = body.encode() if isinstance(body, str) else body
        self.status, self.wait, self.drip = status, wait, drip
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def said(content: Any, **usage: int) -> Reply:
    """A chat completion with this content (an object becomes JSON)."""
    return choice({"content": content if isinstance(content, str) else json.dumps(content)}, **usage)


def choice(message: dict[str, Any], reason: str | None = "stop", **usage: int) -> Reply:
    """A chat completion with this message, as servers send what is more than a text."""
    body: dict[str, Any] = {"choices": [{"message": {"role": "assistant", **message}, "finish_reason": reason}]}
    return Reply(json.dumps(body | ({"usage": usage} if usage else {})))


def listing(*rows: dict[str, Any] | str) -> Reply:
    """The reply of `/models`: ids, or rows with more fields."""
    return Reply(json.dumps({"data": [{"id": r} if isinstance(r, str) else r for r in rows]}))


def complete(
    model: LanguageModel, requests: Sequence[Request], deadline: float, cancelled: Callable[[], bool] = lambda: False
) -> list[Completion]:
    """All completions in the order of the requests."""
    completions = dict(model.stream(requests, deadline, cancelled))
    return [completions[i] for i in range(len(requests))]


class Seen:
    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []
        self.times: list[float] = []
        self.paths: list[str] = []
        self.now = self.most = 0  # requests at the same time
        self.lock = threading.Lock()


@contextmanager
def http_server(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """The address of a server on a free port of this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)


@contextmanager
def endpoint(answer: Callable[[dict[str, Any], int], Reply]) -> Iterator[tuple[str, Seen]]:
    """`answer(body, n)` for the n-th request (from 0).  Yields the base URL and what was seen."""
    seen, over = Seen(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            body = json.loads(raw) if raw else {}
            with seen.lock:
                number = len(seen.bodies)
                seen.bodies.append(body)
                seen.headers.append(dict(self.headers))
                seen.times.append(time.monotonic())
                seen.paths.append(self.path)
                seen.now += 1
                seen.most = max(seen.most, seen.now)
            try:
                reply = answer(body, number)
                over.wait(reply.wait)
            finally:
                with seen.lock:  # before the reply: the client can send its next request as soon as it has read this one
                    seen.now -= 1
            try:
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(reply.body)))
                self.end_headers()
                if not reply.drip:
                    self.wfile.write(reply.body)
                for i in range(len(reply.body) if reply.drip else 0):
                    self.wfile.write(reply.body[i : i + 1])
                    self.wfile.flush()
                    if over.wait(reply.drip):
                        return
            except OSError:
                pass  # the client went away, as some tests want

        def log_message(self, *args: Any) -> None: ...

    with http_server(Handler) as address:
        try:
            yield f"{address}/v1", seen
        finally:
            over.set()
