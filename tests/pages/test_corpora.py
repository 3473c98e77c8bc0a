"""The corpora page: upload, look, search, delete, and what can go wrong."""

from __future__ import annotations

import gzip
import io
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from page_helpers import ROWS, built, button, texts, tsv
from streamlit.testing.v1 import AppTest

from core.engine import Engine
from core.errors import StorageError
from core.retrieval import build as building
from core.retrieval.library import CorpusLibrary
from core.retrieval.starter import coverage
from core.settings import Settings
from pages.corpora import builds

Open = Callable[..., AppTest]


def upload(app: AppTest, name: str, *files: tuple[str, bytes]) -> AppTest:
    app.text_input(key="corpora.name").set_value(name)
    app.file_uploader[0].set_value([(file, content, "text/plain") for file, content in files])
    return built(button(app, "Upload and build").click().run())


def names(app: AppTest) -> list[str]:
    return list(next(d.value["Name"] for d in app.dataframe if "Name" in d.value))


class File:
    def __init__(self, name: str, content: bytes = b"x") -> None:
        self.name, self._content = name, content

    def getbuffer(self) -> memoryview:
        return memoryview(self._content)


def test_upload_build_search_delete(open_app: Open, settings: Settings) -> None:
    app = upload(open_app("corpora"), "films", ("my films.tsv", tsv(ROWS).encode()))
    assert not app.exception
    assert not app.error
    assert "Corpus films is ready: 4 passages" in texts(app)
    assert "films" in names(app)
    assert not list((settings.home / "uploads").glob("*"))

    assert app.selectbox(key="corpora.chosen").value == "films"
    assert app.text_input(key="corpora.name").value == ""
    assert not app.file_uploader[0].value
    assert button(app, "Ask it")
    table = next(d.value for d in app.dataframe if "ID" in d.value)
    assert list(table["ID"]) == ["p1", "p2", "p3", "p4"]
    for mode in ("hybrid", "dense", "bm25"):
        app.selectbox(key="corpora.mode").set_value(mode)
        app.text_input(key="corpora.query").set_value("Who played Maria in the 2021 remake?")
        button(app, "Search").click().run()
        assert not app.error
        assert "West Side Story (2021 film)" in app.expander[0].label.replace("\\", "")

    app.text_input(key="corpora.typed.films").set_value("film")
    button(app, "Delete corpus").click().run()
    assert "not the corpus name" in app.error[0].value
    assert "films" in CorpusLibrary(settings).names()
    app.text_input(key="corpora.typed.films").set_value("films")
    button(app, "Delete corpus").click().run()
    assert not app.exception
    assert "was deleted" in texts(app)
    assert "films" not in CorpusLibrary(settings).names()
    assert "films" not in names(app)


def test_rejected_rows_are_told_by_number(open_app: Open) -> None:
    lines = "id\ttext\ttitle\na\tgood text here\tT\nb\t\tempty\nonly one column\na\tduplicate id\tT\n"
    app = upload(open_app("corpora"), "mixed", ("**bold**.tsv", lines.encode()))
    assert "is ready: 1 passage in" in texts(app)
    rejected = next(d.value for d in app.dataframe if "Reason" in d.value.columns)
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
    others = next(d.value for d in app.dataframe if "Why" in d.value.columns)
    assert list(others["File"]) == ["logo.png"]


@pytest.mark.parametrize(
    ("name", "files", "said"),
    [
        ("", [("a.tsv", b"1\tx\ty\n")], "has no name"),
        ("new", [], "no file is selected"),
        ("../new", [("a.tsv", b"1\tx\ty\n")], "cannot be a corpus name"),
        ("new", [("a.gz", b"\x1f\x8b")], "this file type cannot be read"),
        ("new", [("a.tsv.gz", gzip.compress(b"1\tx\ty\n" * 50)[:20])], "a.tsv.gz"),
        ("small", [("a.tsv", b"1\tother text\ty\n")], "exists"),
    ],
)
def test_bad_uploads(open_app: Open, corpus: str, settings: Settings, name: str, files: list[Any], said: str) -> None:
    app = upload(open_app("corpora"), name, *files)
    assert not app.exception
    (error,) = app.error
    assert said in error.value.replace("\\", "")
    assert CorpusLibrary(settings).names() == ["small", "starter"]
    assert not list((settings.home / "uploads").glob("*"))
    assert len(CorpusLibrary(settings).open("small")) == 4


def test_a_full_disk_while_uploading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(StorageError, match="No space left"):
        builds.save_upload(tmp_path, "c", [File("x.tsv")])
    assert not list((tmp_path / "uploads").iterdir())


def test_a_stopped_build_can_go_on(open_app: Open, settings: Settings) -> None:
    engine = Engine(settings)
    files = builds.save_upload(settings.home, "half", [File("half.tsv", tsv(ROWS).encode())])
    real = engine.library.create

    def stopped(name: str, paths: list[Path], progress: Any) -> Any:
        def at_words(done: int, total: int, stage: str) -> None:
            if stage == "words":
                build.stop()
            progress(done, total, stage)

        while not started:
            time.sleep(0.01)
        return real(name, paths, at_words)

    started: list[bool] = []
    build = builds.build(engine, files, stopped).start()
    started.append(True)
    assert build.wait(60)
    assert "you can resume it" in str(build.error)

    app = open_app("corpora")
    app.selectbox(key="corpora.chosen").set_value("half").run()
    assert "is incomplete" in texts(app)
    assert "half.tsv" in texts(app)
    built(button(app, "Resume building").click().run())
    assert not app.exception
    assert "Corpus half is ready: 4 passages" in texts(app)
    assert len(CorpusLibrary(settings).open("half")) == 4
    assert not list((settings.home / "uploads").glob("*"))


def test_an_incomplete_corpus_can_be_deleted(open_app: Open, settings: Settings) -> None:
    (settings.corpora_dir / ".building-rest").mkdir(parents=True)
    app = open_app("corpora")
    app.selectbox(key="corpora.chosen").set_value("rest").run()
    assert "upload the same files" in texts(app)
    app.text_input(key="corpora.typed.rest").set_value("rest")
    button(app, "Delete corpus").click().run()
    assert not app.exception
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
        assert go_on.wait(60)
        return real(*args)

    app = open_app("corpora")  # which builds the starter corpus
    monkeypatch.setattr(building.index, "write_vectors", waiting)
    app.text_input(key="corpora.name").set_value("films")
    app.file_uploader[0].set_value([("films.tsv", tsv(ROWS).encode(), "text/plain")])
    try:
        button(app, "Upload and build").click().run()
        assert encoding.wait(60)
        app.run()
        assert app.selectbox(key="corpora.chosen").value == "films"
        table = next(d.value for d in app.dataframe if "State" in d.value).set_index("Name")
        assert table["State"]["films"] == "search by words only"
        app.text_input(key="corpora.query").set_value("Who played Maria in the 2021 remake?")
        button(app, "Search").click().run()
        assert "West Side Story (2021 film)" in app.expander[0].label.replace("\\", "")
        assert not app.error, [e.value for e in app.error]
    finally:
        go_on.set()
    assert "Corpus films is ready: 4 passages" in texts(built(app))


def test_a_damaged_corpus_is_told_and_can_be_deleted(open_app: Open, corpus: str, settings: Settings) -> None:
    (settings.corpora_dir / "small" / "passages.sqlite").write_bytes(b"x")
    app = open_app("corpora")
    app.selectbox(key="corpora.chosen").set_value("small").run()
    assert not app.exception
    assert "delete the corpus and build it again" in texts(app)
    app.text_input(key="corpora.typed.small").set_value("small")
    button(app, "Delete corpus").click().run()
    assert not (settings.corpora_dir / "small").exists()
