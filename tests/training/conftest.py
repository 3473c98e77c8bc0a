"""Files of rows, and a tiny network that marks spans."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def jsonl(tmp_path: Path) -> Callable[..., Path]:
    """jsonl(name, *rows): a file of JSON Lines, packed if its name says so; a row that is text is a line as it is."""

    def write(name: str, *rows: Any) -> Path:
        lines = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows).encode()
        (tmp_path / name).write_bytes(gzip.compress(lines) if name.endswith(".gz") else lines)
        return tmp_path / name

    return write


@pytest.fixture(scope="session")
def span_config(tiny_bert_folder: Path) -> Any:
    from core.models.span.network import SpanConfig

    return SpanConfig(base=str(tiny_bert_folder), max_tokens=48, max_prompt_tokens=32, max_answer_tokens=3, span_width=8)
