"""The service in the format of OpenAI's chat completions, for existing chat clients.

Source: https://platform.openai.com/docs/api-reference/chat (messages, chunks of a stream, `url_citation` annotations).  What differs: only the last user
message is read, since every question is answered from passages and not from the conversation; sampling parameters are ignored; tokens are not counted.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from core.types import Prediction


def model_list(names: Sequence[str]) -> dict[str, Any]:
    """The reply to `GET /v1/models`, with each system as a model."""
    return {"object": "list", "data": [{"id": n, "object": "model", "created": 0, "owned_by": "ambiscope"} for n in names]}


def inert(text: str) -> str:
    r"""Text of a corpus or a model, escaped for Markdown so that it becomes no link, image or HTML.

    >>> inert("![a](http://b) <i>")
    '!\\[a\\](http://b) \\<i\\>'
    """
    return re.sub(r"([\\\[\]<>])", r"\\\1", text)


def content(prediction: Prediction, passages_url: str) -> tuple[list[str], list[dict[str, Any]]]:
    """The answer set as Markdown, in one-line parts, and the citations of the whole text.

    `passages_url`: address of a corpus's passages, to which `?id=ID` is added.
    """
    answers = prediction.answers
    if not answers:
        return [f"No answer: {prediction.ended or 'the passages do not answer this question'}"], []
    parts = [] if len(answers) == 1 else [f"This question has {len(answers)} answers:\n"]
    citations: list[dict[str, Any]] = []
    position = sum(map(len, parts))
    for answer in answers:
        text = inert(answer.text)
        line = text if len(answers) == 1 else f"\n- **{text}**"
        question = prediction.question_of(answer.text)
        if len(answers) > 1 and question != prediction.question.text:
            line += f" ({inert(question)})"
        for passage_id in dict.fromkeys(e.passage_id for e in answer.evidence):
            passage = prediction.passage(passage_id)
            marker = f" [{len(citations) + 1}]"
            url = f"{passages_url}?id={quote(passage_id, safe='')}"
            span = {"start_index": position + len(line) + 1, "end_index": position + len(line) + len(marker)}
            citation = {**span, "url": url, "title": passage.title if passage else passage_id}
            citations.append({"type": "url_citation", "url_citation": citation})
            line += marker
        parts.append(line)
        position += len(line)
    return parts, citations


class ChatCompletionHead:
    """One reply's identity, as a whole or in chunks."""

    def __init__(self, model: str) -> None:
        self._head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": model}

    def complete(self, parts: Sequence[str], citations: Sequence[dict[str, Any]]) -> dict[str, Any]:
        message = {"role": "assistant", "content": "".join(parts), "refusal": None, "annotations": list(citations)}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
        return {**self._head, "object": "chat.completion", "choices": [choice], "usage": usage}

    def first(self) -> dict[str, Any]:
        return self._chunk({"role": "assistant", "content": ""})

    def chunks(self, parts: Sequence[str], citations: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for part in parts:
            yield self._chunk({"content": part})
        yield self._chunk({"annotations": list(citations)}, "stop")

    def _chunk(self, delta: dict[str, Any], end: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": end, "logprobs": None}
        return {**self._head, "object": "chat.completion.chunk", "choices": [choice]}
