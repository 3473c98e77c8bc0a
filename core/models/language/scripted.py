"""A language model that answers from rules, in milliseconds, for tests of everything around a model with the real prompts and
parsing.

It is not a model.  `table` maps a role to its reply: a text, or a function of the request.  Other roles are answered by a rule: each capitalised
name or year of a passage that the question does not contain is an answer, and a passage without one is abstained from.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from core.models.language.roles import STOPPED, TOO_LATE, Completion, Request
from core.models.language.structured import parse_completion
from core.text import word_tokens

Rule = str | Callable[[Request], str]
_NAME = re.compile(r"\b[A-Z][a-z]+(?:\s+[A-Z][a-z]+)*|\b\d{4}\b")
_PASSAGE = re.compile(r"(\d+)\">\nTitle: (.*)\n((?s:.*))\Z")  # what begins and ends a passage is split off


class ScriptedLanguageModel:
    name = "scripted language model"

    def __init__(self, table: Mapping[str, Rule] | None = None) -> None:
        self.table = dict(table or {})
        self.requests: list[Request] = []  # so far, in order
        self.about: Mapping[str, Any] = {"model": "scripted"}

    def stream(
        self, requests: Sequence[Request], deadline: float, cancelled: Callable[[], bool] = lambda: False
    ) -> Iterator[tuple[int, Completion]]:
        for index, request in enumerate(requests):
            if cancelled() or time.monotonic() >= deadline:
                yield index, Completion(error=STOPPED if cancelled() else TOO_LATE)
                continue
            self.requests.append(request)
            rule = self.table.get(request.purpose)
            text = rule if isinstance(rule, str) else rule(request) if rule else _by_rule(request)
            prompt = " ".join(m.text for m in request.messages)
            completion = Completion(text, None, "", len(prompt.split()), len(text.split()), 0.001)
            yield index, parse_completion(completion, request)


def question_of(request: Request) -> str:
    match = re.search(r"<question>\n(.*)\n</question>", request.messages[-1].text)
    return match.group(1) if match else ""


def passages_of(request: Request) -> list[tuple[int, str, str]]:
    """(number, title, text) of each passage in the last message."""
    parts = (part.partition("\n</passage>")[0] for part in request.messages[-1].text.split('<passage number="')[1:])
    return [(int(match[1]), match[2], match[3]) for part in parts if (match := _PASSAGE.match(part))]


def _names(text: str, question: str) -> list[str]:
    question_words = set(word_tokens(question))
    return [n for n in dict.fromkeys(_NAME.findall(text)) if not set(word_tokens(n)) <= question_words]


def _next_answer(request: Request, rows: list[dict[str, Any]]) -> dict[str, Any]:
    previous = request.messages[-1].text.partition("<answers>\n")[2].partition("\n</answers>")[0]
    row = next((r for r in rows if r["answer"] not in previous), {})
    return {"answer": row.get("answer"), "passage": row.get("passage"), "quotation": row.get("answer")}


def _by_rule(request: Request) -> str:
    question, passages = question_of(request), passages_of(request)
    stem = question.rstrip("?. ")
    rows = [
        {"question": f"{stem}, of {title}?", "answer": names[0], "passage": number}
        for number, title, text in passages
        if (names := _names(text, question))
    ]
    replies: dict[str, dict[str, Any]] = {
        "relax": {"query": " ".join(w for w in word_tokens(question) if w not in ("who", "when", "what", "which", "the"))},
        "interpret": {**rows[0], "reason": ""} if rows else {"question": None, "answer": None, "reason": "no name in it"},
        "verify": {"supported": bool(rows)},
        "supporting": {"passages": [row["passage"] for row in rows]},
        "pseudo_interpretations": {"questions": [f"{stem} first?", f"{stem} last?"]},
        "clarify_long": {"interpretations": rows},
        "next_answer": _next_answer(request, rows),
        "long_answer": {"text": " ".join(f"{title} has {row['answer']}." for (_, title, _), row in zip(passages, rows))},
        "answer": {"answer": rows[0]["answer"] if rows else None},
        "match": {"covered": [True] * request.messages[-1].text.partition("<known>")[2].count(". ")},
        "deduplicate": {"keep": [1, 2, 3]},
    }
    return json.dumps(replies.get(request.purpose, {}))
