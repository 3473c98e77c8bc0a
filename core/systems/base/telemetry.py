"""Runs as OpenInference spans through OpenTelemetry, if AMBISCOPE_TRACES names an OTLP endpoint.

Source: the OpenInference semantic conventions (https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md): one CHAIN span for a
question, and below it RETRIEVER for a search, CHAIN for a step and for a rewritten question, LLM for a call of a language model.  Needs requirements-open.txt.
Spans are sent in the background: if the endpoint cannot be reached, they are lost and the answer is not.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

from core import __version__
from core import types as t
from core.errors import InputError
from core.trace import fold

KIND = "openinference.span.kind"


@functools.lru_cache(maxsize=4)
def tracer(endpoint: str) -> Any:
    """A tracer that exports to an OTLP endpoint; one per endpoint.  Raises InputError if the packages are not installed."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise InputError("AMBISCOPE_TRACES needs OpenTelemetry: pip install -r requirements-open.txt") from None
    provider = TracerProvider(resource=Resource.create({"service.name": "ambiscope", "service.version": __version__}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    return provider.get_tracer("ambiscope", __version__)


def recorded(run: Callable[..., Iterator[t.Event]]) -> Callable[..., Iterator[t.Event]]:
    """Decorates `System.run` so that each event that took time becomes a span."""

    @functools.wraps(run)
    def recorded_run(system: Any, question: t.Question) -> Iterator[t.Event]:
        endpoint = system.parts.settings.traces
        if not endpoint:
            yield from run(system, question)
            return
        from opentelemetry.trace import StatusCode, set_span_in_context

        trace = tracer(endpoint)
        root = trace.start_span(system.info.name, attributes={KIND: "CHAIN", "input.value": question.text})
        events: list[t.Event] = []
        try:
            for event in run(system, question):
                events.append(event)
                if span := _span(event):
                    name, seconds, attributes = span
                    now = time.time_ns()
                    child = trace.start_span(
                        name, set_span_in_context(root), attributes=attributes, start_time=now - int(seconds * 1e9)
                    )
                    child.end(now)
                yield event
        except Exception as error:
            root.record_exception(error)
            root.set_status(StatusCode.ERROR, str(error))
            raise
        finally:
            answers = [a.text for a in fold(question, system.info, events).answers]
            root.set_attributes(
                {"output.value": json.dumps(answers, ensure_ascii=False), "output.mime_type": "application/json"}
            )
            root.end()

    return recorded_run


def _span(event: t.Event) -> tuple[str, float, dict[str, str | float]] | None:
    """(name, seconds, attributes) of an event that took time."""
    match event:
        case t.PassagesRetrieved(passages=passages, seconds=seconds, query=query):
            attributes: dict[str, str | float] = {KIND: "RETRIEVER", "input.value": query}
            for i, p in enumerate(passages):
                document = f"retrieval.documents.{i}.document"
                attributes |= {f"{document}.id": p.passage.id, f"{document}.score": p.score}
                attributes |= {f"{document}.content": f"{p.passage.title}\n{p.passage.text}"}
            return "retrieve", seconds, attributes
        case t.StepFinished(step=step, answer=answer):
            output = answer.text if answer else t.EOI
            return f"step {step.number}", step.seconds, {KIND: "CHAIN", "input.value": step.prompt, "output.value": output}
        case t.QuestionClarified(clarification=c, seconds=seconds):
            return "rewrite", seconds, {KIND: "CHAIN", "input.value": c.answer, "output.value": c.question}
        case t.ModelCalled(role=role, seconds=seconds):
            attributes = {
                KIND: "LLM",
                "llm.token_count.prompt": event.prompt_tokens,
                "llm.token_count.completion": event.completion_tokens,
                "metadata": json.dumps({"passages": event.passages, "error": event.error}),
            }
            return role, seconds, attributes
    return None
