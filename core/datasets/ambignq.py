"""AmbigNQ light and full, its version with evidence articles, and light with the starter's further fields: `passages` of a pair, `ambiguity` and `domain` of a question."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from core import json_io
from core.errors import FormatError
from core.metrics.score.files import parse_references
from core.text import chunk_words
from core.types import Passage, ReferenceQuestion


def load(path: Path) -> list[ReferenceQuestion]:
    """Loads a file.  A pair's `passages` become its `passage_ids`; a question's other fields go to `extra`.  Raises
    FormatError."""
    questions = parse_references(json_io.read(path), path.name, none_allowed=True)
    for question in questions:
        for name in ("ambiguity", "domain", "source"):
            if not isinstance(question.extra.get(name), str | None):
                raise FormatError(f"question '{question.id}': expected text or null", file=path.name, field=name)
    return [_with_articles(question, path) for question in questions]


def _with_articles(question: ReferenceQuestion, path: Path) -> ReferenceQuestion:
    """Reads the evidence version: `articles_plain_text`, whose first line is "# Title", becomes the question's own passages of
    100 words."""
    articles = question.extra.get("articles_plain_text")
    if articles is None:
        return question
    if not isinstance(articles, list) or not all(isinstance(a, str) for a in articles):
        raise FormatError(f"question '{question.id}': expected a list of texts", file=path.name, field="articles_plain_text")
    passages = []
    for number, article in enumerate(articles, 1):
        head, _, body = article.partition("\n")
        title = head.removeprefix("#").strip() if head.startswith("#") else ""
        chunks = chunk_words(body if title else article)
        passages += [Passage(f"{question.id}#{number}.{i}", title, chunk) for i, chunk in enumerate(chunks, 1)]
    extra = {k: v for k, v in question.extra.items() if k not in ("articles_plain_text", "articles_html_text")}
    return replace(question, passages=tuple(passages), extra=extra)
