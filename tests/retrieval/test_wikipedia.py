"""Simple English Wikipedia from a local server: a small file of the same format is downloaded, built and searched by words at once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from loopback_endpoint import http_server

from core.cli import main
from core.datasets.catalogue import DataSet, RemoteFile
from core.errors import DownloadError
from core.retrieval import wikipedia
from core.retrieval.library import CorpusLibrary

SITE = "https://simple.wikipedia.org/wiki"
ARTICLES = [
    {"id": "1", "url": f"{SITE}/April", "title": "April", "text": "April is the fourth month.\n\nIt has 30 days."},
    {"id": "6", "url": f"{SITE}/Art", "title": "Art", "text": "Art is a creative activity. " * 60},
]


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def served(tmp_path: Path) -> Iterator[DataSet]:
    folder = tmp_path / "served"
    folder.mkdir()
    pq.write_table(pa.Table.from_pylist(ARTICLES), folder / "train.parquet")
    with http_server(partial(_Quiet, directory=str(folder))) as address:  # type: ignore[arg-type]
        file = RemoteFile(f"{address}/train.parquet", "simple-wikipedia.parquet")
        yield DataSet(wikipedia.NAME, "", "", "", "", "", (file,))


def test_it_is_downloaded_and_built_with_its_words_first(library: CorpusLibrary, served: DataSet) -> None:
    stages: list[str] = []
    report = wikipedia.add_wikipedia(library, lambda done, total, stage: stages.append(stage), data=served)
    assert (report.passages, report.rejected_total) == (4, 0)  # the second article has 300 words
    assert list(dict.fromkeys(stages)) == [wikipedia.DOWNLOADING, "reading", "words", "encoding", "indexing"]
    assert library.open(wikipedia.NAME).search("creative activity", 1)[0].passage.title == "Art"
    assert wikipedia.add_wikipedia(library, data=served).already_built


def test_the_command_says_size_and_time_before_it_downloads(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AMBISCOPE_HOME", str(tmp_path))
    monkeypatch.setattr(wikipedia, "obtain", Mock(side_effect=DownloadError("no connection")))
    assert main(["download", "simple-wikipedia"]) != 0
    errors = capsys.readouterr().err
    assert errors.index(wikipedia.COST) < errors.index("no connection")
