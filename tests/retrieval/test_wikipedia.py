"""Simple English Wikipedia: a small file of the same format is built and searched by words at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.cli import main
from core.errors import DownloadError
from core.retrieval import wikipedia
from core.retrieval.library import CorpusLibrary
from core.retrieval.readers.lines import MB

SITE = "https://simple.wikipedia.org/wiki"
ARTICLES = [
    {"id": "1", "url": f"{SITE}/April", "title": "April", "text": "April is the fourth month.\n\nIt has 30 days."},
    {"id": "6", "url": f"{SITE}/Art", "title": "Art", "text": "Art is a creative activity. " * 60},
]


def test_it_is_downloaded_and_built_with_its_words_first(
    library: CorpusLibrary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def obtain(data: Any, home: Path, *, again: bool, progress: Any) -> list[Path]:
        progress(data.files[0].url, 3 * MB, 6 * MB)
        pq.write_table(pa.Table.from_pylist(ARTICLES), file := tmp_path / data.files[0].name)
        return [file]

    monkeypatch.setattr(wikipedia, "obtain", obtain)
    steps: list[tuple[int, int, str]] = []
    report = wikipedia.add_wikipedia(library, lambda *step: steps.append(step))
    assert (report.passages, report.rejected_total) == (4, 0)  # the second article has 300 words
    assert steps[0] == (3, 6, wikipedia.DOWNLOADING)
    assert list(dict.fromkeys(stage for *_, stage in steps[1:])) == ["reading", "words", "encoding", "indexing"]
    assert library.open(wikipedia.NAME).search("creative activity", 1)[0].passage.title == "Art"


def test_the_command_says_size_and_time_before_it_downloads(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AMBISCOPE_HOME", str(tmp_path))
    monkeypatch.setattr(wikipedia, "obtain", Mock(side_effect=DownloadError("no connection")))
    assert main(["download", "simple-wikipedia"]) != 0
    errors = capsys.readouterr().err
    assert errors.index(wikipedia.COST) < errors.index("no connection")
