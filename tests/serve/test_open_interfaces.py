"""Chat completions, the Model Context Protocol and OpenInference spans, each with the real client library."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from typing import Any

import httpx
import openai
import pytest
from answering_service import HeldEngine, Running
from loopback_endpoint import http_server
from mcp import Client, StdioServerParameters
from openai.types.chat import ChatCompletion
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from page_helpers import ANSWERS, QUESTION
from serving import PATIENCE

from core.commands.mcp import make_server
from core.engine import Engine
from core.serve.forms import MAX_MESSAGES
from core.settings import Settings
from core.systems.base.telemetry import tracer


@pytest.fixture
def settings(service: Running) -> Settings:
    return service.service.settings


@pytest.fixture(scope="module")
def client(service: Running) -> openai.OpenAI:
    http = httpx.Client(trust_env=False, timeout=PATIENCE)
    return openai.OpenAI(base_url=f"{service.address}/v1", api_key="none", max_retries=0, http_client=http)


def user(text: Any) -> Any:
    return {"role": "user", "content": text}


def chat(client: openai.OpenAI, *messages: Any) -> ChatCompletion:
    return client.chat.completions.create(model="scripted", messages=list(messages))


def test_a_chat_reply_cites_its_passages(client: openai.OpenAI, service: Running) -> None:
    before = ({"role": "system", "content": "Be brief."}, user("Hello"), {"role": "assistant", "content": "?"})
    reply = chat(client, *before, user(QUESTION))
    message = reply.choices[0].message
    assert message.content
    assert message.annotations
    assert all(a in message.content for a in ANSWERS)
    assert reply.choices[0].finish_reason == "stop"
    for number, annotation in enumerate(message.annotations, 1):
        cited = annotation.url_citation
        assert message.content[cited.start_index : cited.end_index] == f"[{number}]"
        passage = service.http.get(cited.url).json()["passage"]
        assert passage["title"] == cited.title


@pytest.mark.parametrize("model", ["scripted/small", "/small"])
def test_a_stream_has_the_same_text(client: openai.OpenAI, model: str) -> None:
    question = user([{"type": "text", "text": QUESTION}])
    chunks = list(client.chat.completions.create(model=model, messages=[question], stream=True))
    assert "".join(c.choices[0].delta.content or "" for c in chunks) == chat(client, user(QUESTION)).choices[0].message.content
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_models_are_the_systems_that_can_run(client: openai.OpenAI, settings: Settings) -> None:
    assert [m.id for m in client.models.list()] == [s.name for s in Engine(settings).statuses() if s.ready]


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "system", "content": QUESTION}],
        [user("   ")],
        [user([{"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}])],
        [user(QUESTION)] * (MAX_MESSAGES + 1),
        [],
    ],
    ids=["no user message", "blank", "image", "too many", "none"],
)
def test_a_chat_that_cannot_be_answered_is_refused(client: openai.OpenAI, messages: list[Any]) -> None:
    with pytest.raises(openai.UnprocessableEntityError) as refusal:
        chat(client, *messages)
    assert "messages" in refusal.value.body["message"]  # type: ignore[index]


def test_a_stream_that_fails_ends_with_its_error(client: openai.OpenAI) -> None:
    with pytest.raises(openai.APIError, match="no-such"):
        list(client.chat.completions.create(model="scripted/no-such", messages=[user(QUESTION)], stream=True))


def test_tools_answer_and_search(settings: Settings) -> None:
    async def session() -> tuple[Any, Any, Any]:
        async with Client(make_server(HeldEngine(settings))) as tools:
            return (
                await tools.call_tool("ask", {"question": QUESTION, "system": "scripted"}),
                await tools.call_tool("search", {"query": "musical", "k": 2}),
                await tools.call_tool("ask", {"question": " "}),
            )

    answer, search, refusal = asyncio.run(session())
    reply = json.loads(answer.content[0].text)
    assert [a["text"] for a in reply["answers"]] == list(ANSWERS)
    assert {p["id"] for p in reply["passages"]} == {i for a in reply["answers"] for i in a["passages"]}
    assert len(search.content) == 2
    assert refusal.is_error
    assert "empty" in refusal.content[0].text


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"query": "musical", "k": 0}, "500"),
        ({"query": "musical", "k": 501}, "500"),
        ({"query": "musical", "k": 10**9}, "500"),
        ({"query": "word " * 5_000}, "characters"),
        ({"query": "a\0b"}, "NUL"),
    ],
)
def test_a_search_has_the_bounds_of_http(settings: Settings, arguments: dict[str, Any], word: str) -> None:
    async def session() -> Any:
        async with Client(make_server(HeldEngine(settings))) as tools:
            return await tools.call_tool("search", arguments)

    refusal = asyncio.run(session())
    assert refusal.is_error
    assert word in refusal.content[0].text


@pytest.mark.slow
def test_the_command_speaks_over_standard_input(settings: Settings) -> None:
    """A client that disconnects ends the process."""
    environment = {"AMBISCOPE_HOME": str(settings.home)}
    command = StdioServerParameters(command=sys.executable, args=["-m", "core", "mcp"], env=environment)

    async def names() -> list[str]:
        async with Client(command) as tools:
            return [tool.name for tool in (await tools.list_tools()).tools]

    assert sorted(asyncio.run(names())) == ["ask", "search"]


@pytest.fixture
def collector() -> Iterator[tuple[str, list[Any]]]:
    """An OTLP endpoint, and the spans that it was sent."""
    spans: list[Any] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["content-length"])))
            spans.extend(s for r in request.resource_spans for scope in r.scope_spans for s in scope.spans)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with http_server(Collector) as address:
        yield f"{address}/v1/traces", spans


def test_a_run_is_sent_as_spans(settings: Settings, collector: tuple[str, list[Any]]) -> None:
    endpoint, spans = collector
    HeldEngine(replace(settings, traces=endpoint)).ask(QUESTION, "scripted")
    tracer(endpoint).span_processor.force_flush()
    root = next(s for s in spans if not s.parent_span_id)
    kinds = {a.value.string_value for s in spans for a in s.attributes if a.key == "openinference.span.kind"}
    assert kinds == {"CHAIN", "RETRIEVER"}
    assert {s.parent_span_id for s in spans if s is not root} == {root.span_id}
    values = {a.key: a.value.string_value for a in root.attributes}
    assert values["input.value"] == QUESTION
    assert json.loads(values["output.value"]) == list(ANSWERS)
