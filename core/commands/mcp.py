"""`python -m core mcp`: the tools `ask` and `search` for clients of the Model Context Protocol (https://modelcontextprotocol.io), over standard input and
output.  Needs the package `mcp` (requirements-open.txt).
"""

from __future__ import annotations

import argparse
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from core import __version__
from core.errors import AmbiscopeError, CancelledError, InputError
from core.settings import Settings

if TYPE_CHECKING:
    from core.engine import Engine
    from core.serve.remote import RemoteEngine

INSTRUCTIONS = """Answers questions from a corpus of documents. A question may have several right answers: `ask` returns all of them, each with the \
passages behind it and a rewritten question that has only this answer. `search` returns passages."""
T = TypeVar("T")


def add_parser(commands: Any) -> None:
    server = commands.add_parser("mcp", help="tools for clients of the Model Context Protocol (needs requirements-open.txt)")
    server.set_defaults(run=run)


def run(args: argparse.Namespace, settings: Settings) -> int:
    from core.serve.choice import make_engine

    make_server(make_engine(settings)).run("stdio")
    return 0


def make_server(engine: Engine | RemoteEngine) -> Any:
    """An MCPServer over an engine.  Raises InputError if the package is not installed."""
    try:
        import anyio.to_thread
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
    except ImportError:
        raise InputError("the package mcp is not installed: pip install -r requirements-open.txt") from None
    from core.evaluation.prediction_json import prediction_json
    from core.serve.forms import MAX_PASSAGES
    from core.systems.base.system import answer, check_question, one_line
    from core.trace import to_json
    from core.types import Question

    server: Any = MCPServer("ambiscope", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING")

    async def in_thread(call: Callable[[], T]) -> T:
        """Runs a call in a thread.  Raises ToolError with the message of a refusal."""
        try:
            return await anyio.to_thread.run_sync(call, abandon_on_cancel=True)
        except AmbiscopeError as error:
            raise ToolError(str(error)) from None

    async def ask(
        question: str, corpus: str | None = None, system: str | None = None, top_k: int | None = None
    ) -> dict[str, Any]:
        stop = threading.Event()  # the client has cancelled the call or disconnected

        def work() -> dict[str, Any]:
            prompt = check_question(Question(question), engine.settings.max_question_chars)
            prediction = answer(engine.system(system, corpus, engine.options(top_k=top_k), stop.is_set), prompt)
            if stop.is_set():
                raise CancelledError("the client has left")
            reply = prediction_json(prediction)
            texts = {p.passage.id: p.passage.text for p in prediction.passages}
            cited = {i for a in reply["answers"] for i in a["passages"]}
            passages = [{**p, "text": texts[p["id"]]} for p in reply["passages"] if p["id"] in cited]
            return {name: reply[name] for name in ("question", "system", "answers", "ended", "seconds")} | {
                "passages": passages
            }

        try:
            return await in_thread(work)
        finally:
            stop.set()

    async def search(query: str, corpus: str | None = None, k: int = 10) -> list[dict[str, Any]]:
        def work() -> list[dict[str, Any]]:
            words = one_line(query, "the query", engine.settings.max_question_chars)
            if not 1 <= k <= MAX_PASSAGES:
                raise InputError(f"k is {k}; it must be 1 to {MAX_PASSAGES}")
            return [to_json(p) for p in engine.corpus(corpus).search(words, k)]

        return await in_thread(work)

    server.add_tool(ask, description="All answers to a question, with passages and rewritten questions")
    server.add_tool(search, description="The best passages for a query")
    return server
