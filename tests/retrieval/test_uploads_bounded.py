"""Bounds of an upload: time, memory and the passages made of it; its files are read outside the process of the app."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pdf_samples import pdf, saved

from core import json_io
from core.errors import FormatError, InputError
from core.retrieval.library import BuildOptions, CorpusLibrary
from core.retrieval.readers import READERS, read_passages, sandbox
from core.retrieval.readers.lines import Limits, Rejected, Source, Tally
from core.settings import Settings
from core.types import Passage

Write = Callable[[str, str | bytes], Path]
FILES = {
    "t.tsv": "1\tOne two\tT\n1\ttwice\tT\nbad\n2\tThree\t\n",
    "j.jsonl": '{"text": "Four", "id": "x"}\n[]\n{"text": ""}\n',
    "p.txt": "Caf\xe9 five\n\nsix\n",
    "m.md": "---\ntitle: Guide\n---\n# One\n\ntext\n\n## Two\n\n```\ncode\n```\n",
    "h.html": "<h1>Page</h1><p>text",
    "r.rst": "Title\n=====\n\ntext\n",
}


def read(path: Path, limits: Limits) -> tuple[list[Passage], list[Rejected], Tally]:
    rejected: list[Rejected] = []
    tally = Tally(path.name)
    return list(read_passages(Source(path, limits, rejected.append, tally))), rejected, tally


@pytest.mark.parametrize("name", FILES)
def test_an_upload_is_read_as_a_file_of_the_command_line(tmp_path: Path, limits: Limits, name: str) -> None:
    path = tmp_path / name
    path.write_text(FILES[name], encoding="latin-1")
    here = read(path, limits)
    assert here[0]
    assert read(path, replace(limits, max_seconds=60)) == here


def test_the_process_of_the_app_parses_no_upload(tmp_path: Path, limits: Limits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(READERS, "resolve", lambda suffix: pytest.fail("read here"))
    path = tmp_path / "a.tsv"
    path.write_text("1\tOne\tT\n")
    assert read(path, replace(limits, max_seconds=60))[0] == [Passage("1", "T", "One")]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.md", b"x\0y", "a.md: neither UTF-8"),
        ("a.pdf", b"no PDF", "a.pdf: not a PDF"),
        ("a.tsv", b"1\tx\tT\n2\ty\tT\n3\tz\tT\n", "AMBISCOPE_MAX_UPLOAD_LINES"),
    ],
)
def test_a_refusal_reaches_the_app(write: Write, limits: Limits, name: str, content: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(write(name, content), replace(limits, max_seconds=60, max_lines=2))
    assert sandbox._idle, "the process is free for another file"


@pytest.mark.parametrize(
    "rows",
    [
        [f"<td rowspan=100 colspan=100>{'wide ' * 5}</td>"] * 400,
        [f"<th>{'name ' * 2000}</th><th>b</th>", *["<td>1</td><td>2</td>"] * 4000],
    ],
    ids=["spans", "names of columns"],
)
def test_what_a_document_becomes_is_bounded(write: Write, limits: Limits, rows: list[str]) -> None:
    table = "".join(f"<tr>{row}</tr>\n" for row in rows)
    with pytest.raises(FormatError, match=r"^a\.html: .* more than \d+, which looks like an attack"):
        read(write("a.html", f"<table>{table}</table>"), replace(limits, max_seconds=60))


def test_what_a_pdf_becomes_is_bounded(tmp_path: Path, limits: Limits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_io, "FREE_BYTES", 1000)
    monkeypatch.setattr(json_io, "MAX_PACKED_RATIO", 0)
    path = saved(pdf(["some words " * 200] * 9), tmp_path / "a.pdf")
    with pytest.raises(FormatError, match=r"^a\.pdf: its \d+ bytes become more than"):
        read(path, limits)


def test_an_upload_has_a_budget_of_time_and_space(library: CorpusLibrary, tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text(f"Text {number}. " * 50)
    paths = sorted(tmp_path.glob("*.txt"))
    uploads = Limits.for_uploads(Settings())
    with pytest.raises(InputError, match="AMBISCOPE_MAX_UPLOAD_MINUTES"):
        library.create("a", paths, options=BuildOptions(replace(uploads, max_seconds=0)))
    with pytest.raises(InputError, match="AMBISCOPE_MAX_UPLOAD_MB"):
        library.create(
            "a",
            [*paths, *[_growing(tmp_path / f"g{n}.tsv") for n in range(4)]],
            options=BuildOptions(replace(uploads, max_unpacked_bytes=50_000)),
        )
    assert library.names() == ["starter"]


def _growing(path: Path) -> Path:
    path.write_text("".join(f"{n}{path.stem}\ta\tb\n" for n in range(500)))
    return path
