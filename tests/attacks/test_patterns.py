"""Regular expressions take time in proportion to the text: one that does not would hold the interpreter, so that everybody waits."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from benchmarks.robustness import patterns
from core.errors import FormatError
from core.models.language.structured import read_object
from core.retrieval.parsing import columns, markdown, mdx
from core.retrieval.readers import documents
from core.retrieval.readers.hyphens import Hyphens

CHARS = 30_000
MAX_SECONDS = 0.2  # of the processor; the slowest linear one takes 0.03, quadratic ones take 0.5 and more
PARTS = ("core/disambiguation", "core/metrics", "core/models", "core/retrieval", "core/", "pages/", "storage/")


@pytest.fixture(scope="module")
def found() -> list[patterns.Pattern]:
    return patterns.patterns()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a timer of the processor's time")
@pytest.mark.parametrize("part", PARTS)
def test_every_pattern_is_linear(found, part):
    slow = []
    for pattern in found:
        if part == next(p for p in PARTS if pattern.place.startswith(p)):
            seconds, text = pattern.slowest(CHARS, MAX_SECONDS)
            if seconds >= MAX_SECONDS:
                slow.append(f"{pattern.place}: {pattern.compiled.pattern[:80]!r} over {text!r}")
    assert not slow


def test_every_pattern_is_found(found):
    """Also those in lists, in functions and in f-strings."""
    texts = {pattern.compiled.pattern for pattern in found}
    assert len(found) > 150
    assert {r"[\t\r\n\v\f]", r"[\d.,]+%", r"https?://[^\s\"<>|(){}]+[^\s\"<>|.!?(){},-]"} <= texts


@pytest.mark.parametrize(
    "pattern",
    [
        r"^#+[ \t]+(.*\S)[ \t]*$",
        r"\s+$",
        r"(\w+)@",
        r".*</think>",
        r"\([^)]*\)",
        r"(?:-{1,2})+$",
        r"\[\s*/?\s*A",
        r"'[a-z]{2,}[\w-]*!",
    ],
)
def test_a_new_quadratic_pattern_is_noticed(tmp_path: Path, pattern, monkeypatch):
    (tmp_path / "new_package").mkdir()
    (tmp_path / "new_package" / "__init__.py").write_text(
        f"import re\n\n_NEW = re.compile({pattern!r}, re.MULTILINE)\n\n\ndef use(text):\n    return _NEW.sub('', text)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    (new,) = patterns.patterns(tmp_path, ["new_package"])
    assert new.slowest(CHARS, MAX_SECONDS)[0] >= MAX_SECONDS
    sys.modules.pop("new_package", None)


def _hyphens(text: str) -> None:
    hyphens = Hyphens()
    hyphens.learn(text)
    hyphens.rejoin(text)


READING: dict[str, Callable[[str], object]] = {
    "a model's reply": lambda text: read_object(text, {"properties": {"answer": {"type": "string"}}, "required": ["answer"]}),
    "a page of a PDF": _hyphens,
    "columns of a PDF": lambda text: columns.in_reading_order(text, text),
    "front matter": lambda text: documents._front_matter(iter([(1, "---"), (2, f"title: {text}"), (3, "---")])),
    "Markdown": lambda text: markdown.to_html(f"# {text}\nx"),
    "MDX": mdx.as_markdown,
}


@pytest.mark.parametrize("what", READING)
def test_reading_takes_no_more_than_a_moment(what: str) -> None:
    """40 kB of what made a pattern slow: seconds where time was quadratic."""
    for piece in (" ", "\n", "a", "1", "{", "[", '"', "{#a", "::: a\n", "- ", "a-\n", "<A ", "x  "):
        start = time.thread_time()
        with suppress(FormatError):
            READING[what](piece * (40_000 // len(piece)))
        assert time.thread_time() - start < 1.5, piece
