"""The service of `core serve` in a thread of this process, over an engine whose questions can be held up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from page_helpers import ANSWERS, QUESTION, ROWS
from serving import PATIENCE, until, with_corpus

from core import types as t
from core.engine import Engine
from core.errors import CancelledError
from core.serve.app import Service, make_app
from core.serve.server import Server, listen
from core.settings import Settings
from core.systems.base.options import Options

HOLD = "Hold on"  # a question that begins so waits until the engine lets go


class HeldEngine(Engine):
    """Answers QUESTION from a table.  A question that begins with HOLD is announced in `held` and goes on after `release`."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.release, self.held, self.cancelled = threading.Event(), list[str](), list[str]()

    def warm(self, corpus: str | None = None) -> None:
        self.corpus(corpus).warm()
        super().system("scripted", corpus)

    def system(
        self,
        name: str | None = None,
        corpus: str | None = None,
        options: Options | None = None,
        cancelled: Callable[[], bool] | None = None,
        own_passages: bool = False,
    ) -> Any:
        options = options or Options()
        if (name or self.settings.system) == "scripted":
            options = replace(options, extra={"table": {QUESTION: list(ANSWERS)}, **options.extra})
        system = super().system(name, corpus, options, cancelled, own_passages)
        return _Held(system, self, cancelled or (lambda: False))


class _Held:
    def __init__(self, system: t.AnsweringSystem, engine: HeldEngine, cancelled: Callable[[], bool]) -> None:
        self._system, self._engine, self._cancelled, self.info = system, engine, cancelled, system.info

    def run(self, question: t.Question) -> Iterator[t.Event]:
        if question.text == "Fail":
            raise ZeroDivisionError("a fault that nobody foresaw")
        if question.text.startswith(HOLD):
            yield t.QuestionRelaxed(question.text)
            self._engine.held.append(question.text)
            while not self._engine.release.wait(0.01):
                if self._cancelled():
                    self._engine.cancelled.append(question.text)
                    raise CancelledError("the run was stopped")
        yield from self._system.run(question)


def small_settings(folder: Path, **changes: Any) -> Settings:
    """A home with the corpus `small` that the scripted system answers from."""
    settings = with_corpus(folder / "home", "small", ROWS)
    return replace(settings, system="scripted", corpus="small", device="cpu", **changes)


class Running:
    def __init__(self, address: str, service: Service, server: Server, thread: threading.Thread) -> None:
        self.address, self.service, self.server, self.thread = address, service, server, thread
        key = service.settings.serve_key
        self.http = httpx.Client(
            base_url=address,
            timeout=PATIENCE,
            trust_env=False,
            headers={"authorization": f"Bearer {key}".encode()} if key else {},
        )

    @property
    def engine(self) -> HeldEngine:
        assert isinstance(self.service.engine, HeldEngine)
        return self.service.engine

    def ask(self, question: str = QUESTION, **more: Any) -> httpx.Response:
        return self.http.post("/v1/ask", json={"question": question, **more})


@contextmanager
def running(settings: Settings, engine: Engine | None = None) -> Iterator[Running]:
    """A service on a free loopback port, ready for questions."""
    sock = listen("127.0.0.1", 0)
    app = make_app(engine or HeldEngine(settings))
    config = uvicorn.Config(app, log_level="error", ws="none", timeout_graceful_shutdown=20)
    server = _InThread(config, settings.serve_grace, app.state.service.stop)
    thread = threading.Thread(target=lambda: server.run(sockets=[sock]), daemon=True)
    thread.start()
    started = Running(f"http://127.0.0.1:{sock.getsockname()[1]}", app.state.service, server, thread)
    until(lambda: started.service.ready.is_set() and server.started)
    try:
        yield started
    finally:
        if isinstance(started.service.engine, HeldEngine):
            started.service.engine.release.set()
        server.should_exit = True
        started.http.close()
        thread.join(PATIENCE)
        assert not thread.is_alive()


class _InThread(Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # signals are for the main thread
