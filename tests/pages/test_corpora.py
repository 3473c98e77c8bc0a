"""The corpora page: upload, look, search, delete, and what can go wrong."""

from __future__ import annotations

import gzip
import io
import os
import threading
import time
import zipfile
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from annotate_helpers import fine
from page_helpers import ROWS, TIMEOUT, Open, built, button, start_build, texts, tsv, upload
from streamlit.testing.v1 import AppTest

from core.engine import Engine
from core.errors import StorageError
from core.retrieval import build as building
from core.retrieval.library import CorpusLibrary
from core.retrieval.starter import coverage
from core.settings import Settings
from pages.corpora import builds
from pages.ui.formatting import local_time


def table(app: AppTest, column: str) -> Any:
    """The first table with this column."""
    return next(d.value for d in app.dataframe if column in d.value)


def search(app: AppTest) -> AppTest:
    app.text_input(key="corpora.query").set_value("Who played Maria in the 2021 remake?")
    button(app, "Search").click().run()
    assert "West Side Story (2021 film)" in app.expander[0].label.replace("\\", "")
    return fine(app)


def delete(app: AppTest, name: str, typed: str = "") -> AppTest:
    app.text_input(key=f"corpora.typed.{name}").set_value(typed or name)
    return button(app, "Delete corpus").click().run()


def choose(app: AppTest, name: str) -> AppTest:
    return app.selectbox(key="corpora.chosen").set_value(name).run()


class File:
    def __init__(self, name: str, content: bytes = b"x") -> None:
        self.name, self._content = name, content

    def getbuffer(self) -> memoryview:
        return memoryview(self._content)


def test_upload_build_search_delete(open_app: Open, settings: Settings) -> None:
    app = fine(upload(open_app("corpora"), "films", ("my films.tsv", tsv(ROWS).encode())))
    assert "Corpus films is ready: 4 passages" in texts(app)
    assert "films" in set(table(app, "Name")["Name"])
    assert not list((settings.home / "uploads").glob("*"))

    assert app.selectbox(key="corpora.chosen").value == "films"
    assert app.text_input(key="corpora.name").value == ""
    assert not app.file_uploader[0].value
    assert button(app, "Ask it")
    assert list(table(app, "ID")["ID"]) == ["p1", "p2", "p3", "p4"]
    for mode in ("hybrid", "dense", "bm25"):
        app.selectbox(key="corpora.mode").set_value(mode)
        search(app)

    assert "not the corpus name" in delete(app, "films", "film").error[0].value
    assert "films" in CorpusLibrary(settings).names()
    assert "was deleted" in texts(fine(delete(app, "films")))
    assert "films" not in CorpusLibrary(settings).names()
    assert "films" not in set(table(app, "Name")["Name"])


def test_rejected_rows_are_told_by_number(open_app: Open) -> None:
    lines = "id\ttext\ttitle\na\tgood text here\tT\nb\t\tempty\nonly one column\na\tduplicate id\tT\n"
    app = upload(open_app("corpora"), "mixed", ("**bold**.tsv", lines.encode()))
    assert "is ready: 1 passage in" in texts(app)
    rejected = table(app, "Reason")
    assert list(rejected["Number"]) == [3, 4, 5]
    assert set(rejected["File"]) == {"**bold**.tsv"}
    assert "3 rows were skipped" in texts(app)
    button(app, "Dismiss").click().run()
    assert "left out" not in texts(app)


def test_a_zip_of_a_folder_is_uploaded(open_app: Open) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as packed:
        for name in ("docs/index.md", "docs/guide/index.html", "docs/logo.png"):
            packed.writestr(name, f"<p>Words of {name}")
    app = upload(open_app("corpora"), "zipped", ("docs.zip", content.getvalue()), ("b.rst", b"Words\n=====\n\nA text."))
    assert not app.error
    assert "is ready: 3 passages" in texts(app)
    assert list(table(app, "Why")["File"]) == ["logo.png"]


@pytest.mark.parametrize(
    ("name", "files", "reason"),
    [
        ("", [("a.tsv", b"1\tx\ty\n")], "has no name"),
        ("new", [], "no file is selected"),
        ("../new", [("a.tsv", b"1\tx\ty\n")], "cannot be a corpus name"),
        ("new", [("a.gz", b"\x1f\x8b")], "this file type cannot be read"),
        ("new", [("a.tsv.gz", gzip.compress(b"1\tx\ty\n" * 50)[:20])], "a.tsv.gz"),
        ("small", [("a.tsv", b"1\tother text\ty\n")], "exists"),
    ],
)
def test_bad_uploads(open_app: Open, corpus: str, settings: Settings, name: str, files: list[Any], reason: str) -> None:
    app = upload(open_app("corpora"), name, *files)
    assert not app.exception
    (error,) = app.error
    assert reason in error.value.replace("\\", "")
    assert CorpusLibrary(settings).names() == ["small", "starter"]
    assert not list((settings.home / "uploads").glob("*"))
    assert len(CorpusLibrary(settings).open("small")) == 4


def test_a_full_disk_while_uploading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "write_bytes", Mock(side_effect=OSError(28, "No space left on device")))
    with pytest.raises(StorageError, match="No space left"):
        builds.save_upload(tmp_path, "c", [File("x.tsv")])
    assert not list((tmp_path / "uploads").iterdir())


def test_a_stopped_build_can_go_on(open_app: Open, settings: Settings) -> None:
    engine = Engine(settings)
    files = builds.save_upload(settings.home, "half", [File("half.tsv", tsv(ROWS).encode())])

    def stopped(name: str, paths: list[Path], progress: Any) -> Any:
        def at_words(done: int, total: int, stage: str) -> None:
            if stage == "words":
                build.stop()
            progress(done, total, stage)

        return engine.library.create(name, paths, at_words)

    build = builds.build(engine, files, stopped)
    assert build.start().wait(TIMEOUT)
    assert "you can resume it" in str(build.error)

    app = choose(open_app("corpora"), "half")
    shown = texts(app)
    assert "is incomplete" in shown
    assert "half.tsv" in shown
    built(button(app, "Resume building").click().run())
    assert not app.exception
    assert "Corpus half is ready: 4 passages" in texts(app)
    assert len(CorpusLibrary(settings).open("half")) == 4
    assert not list((settings.home / "uploads").glob("*"))


def test_of_two_stopped_uploads_the_later_one_goes_on(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = iter("ba")
    monkeypatch.setattr(builds.uuid, "uuid4", lambda: Mock(hex=next(folders)))
    uploads = [builds.save_upload(settings.home, "half", [File(name)]) for name in ("wrong.tsv", "right.tsv")]
    os.utime(uploads[0].folder / builds.NAMES_FILE, (0, 0))
    assert builds.pending_uploads(settings.home, "half") == uploads


def test_an_incomplete_corpus_can_be_deleted(open_app: Open, settings: Settings) -> None:
    (settings.corpora_dir / ".building-rest").mkdir(parents=True)
    app = choose(open_app("corpora"), "rest")
    assert "upload the same files" in texts(app)
    assert not delete(app, "rest").exception
    assert not (settings.corpora_dir / ".building-rest").exists()


def test_the_starter_corpus_says_what_it_covers_and_that_it_comes_back(open_app: Open, settings: Settings) -> None:
    app = open_app("corpora")
    assert "built again when it is next used" in texts(app)
    topics = coverage(settings.starter_dir)
    assert app.selectbox(key="corpora.topic").options == [topic.capitalize() for topic in topics]
    app.selectbox(key="corpora.topic").set_value("chess").run()
    assert app.selectbox(key="corpora.example").options == topics["chess"]


def test_a_build_is_searched_by_words_while_its_vectors_are_made(
    open_app: Open, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoding, go_on = threading.Event(), threading.Event()
    real = building.index.write_vectors

    def waiting(*args: Any) -> int:
        encoding.set()
        assert go_on.wait(TIMEOUT)
        return real(*args)

    app = open_app("corpora")  # which builds the starter corpus
    monkeypatch.setattr(building.index, "write_vectors", waiting)
    try:
        start_build(app, "films", ("films.tsv", tsv(ROWS).encode()))
        assert encoding.wait(TIMEOUT)
        app.run()
        assert app.selectbox(key="corpora.chosen").value == "films"
        assert table(app, "State").set_index("Name")["State"]["films"] == "search by words only"
        search(app)
    finally:
        go_on.set()
    assert "Corpus films is ready: 4 passages" in texts(built(app))


def test_a_damaged_corpus_is_told_and_can_be_deleted(open_app: Open, corpus: str, settings: Settings) -> None:
    (settings.corpora_dir / "small" / "passages.sqlite").write_bytes(b"x")
    app = choose(open_app("corpora"), "small")
    assert not app.exception
    assert "delete the corpus and build it again" in texts(app)
    delete(app, "small")
    assert not (settings.corpora_dir / "small").exists()


def test_times_are_those_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on every other page; the manifest has UTC."""
    with monkeypatch.context() as abroad:
        abroad.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        assert local_time("2026-01-31T22:30:00+00:00") == local_time("2026-01-31T22:30:00") == "2026-02-01 07:30"
        assert local_time("") == ""
    time.tzset()
