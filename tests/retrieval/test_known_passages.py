"""A rebuild reads only the files that changed, and makes the corpus that reading all of them would make."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from core.retrieval import build, known_passages
from core.retrieval.corpus import PASSAGES
from core.retrieval.library import BuildOptions, Corpus, CorpusLibrary
from core.retrieval.readers import read_passages
from core.retrieval.readers.lines import Source
from core.settings import Settings

Tree = Callable[[str, dict[str, str]], Path]
FILES = {
    "a.md": "# Ships\n\nThey sail.\n\n## Sails\n\nOf cloth.",
    "b.txt": "Cars drive.",
    "c/a.md": "# Ships\n\nSteam ships, too.",
}


@pytest.fixture
def folder(tree: Tree) -> Path:
    return tree("docs", FILES)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that were read."""
    names: list[str] = []

    def counted(file: Source, *args: Callable[[str], bool]) -> object:
        names.append(file.name)
        return read_passages(file, *args)

    monkeypatch.setattr(build, "read_passages", counted)
    return names


def rebuilt(library: CorpusLibrary, folder: Path, settings: Settings, tmp_path: Path) -> Corpus:
    """Checks that it equals a corpus of the same files that replaces none."""
    report = library.create("docs", [folder], options=BuildOptions(replace=True))
    other = CorpusLibrary(replace(settings, home=tmp_path / "other"))
    fresh = other.create("fresh", [folder])
    assert (report.digest, report.files, report.rejected_total) == (fresh.digest, fresh.files, fresh.rejected_total)
    other.delete("fresh")
    corpus = library.open("docs")
    corpus.store.verify()
    return corpus


def test_only_changed_files_are_read(
    folder: Path, read: list[str], library: CorpusLibrary, settings: Settings, tmp_path: Path
) -> None:
    library.create("docs", [folder])
    assert read == sorted(FILES)
    for text, name in (("Cars drive fast.", "b.txt"), ("New.", "0.txt"), ("# Ships\n\nThey sank.", "a.md")):
        (folder / name).write_text(text)
        read.clear()
        corpus = rebuilt(library, folder, settings, tmp_path)
        assert read == [name, *sorted(str(p.relative_to(folder)) for p in folder.rglob("*.*"))]  # all for the comparison
        assert text.split("\n")[-1] in {p.text for p in corpus.passages()}
    (folder / "a.md").unlink()
    read.clear()
    corpus = rebuilt(library, folder, settings, tmp_path)
    assert read == ["0.txt", "b.txt", "c/a.md"]  # for the comparison alone
    assert len(corpus) == 3


@pytest.mark.parametrize("change", ["limits", "readers", "store", "text", "bound"])
def test_all_are_read_where_they_would_be_read_differently(
    change: str, folder: Path, read: list[str], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    CorpusLibrary(settings).create("docs", [folder])
    (folder / "b.txt").write_text("Cars drive fast.")
    read.clear()
    corpus = settings.corpora_dir / "docs"
    if change == "limits":
        settings = replace(settings, max_line_chars=20_000)
    elif change == "readers":
        monkeypatch.setattr(build, "reading_digest", lambda *_: "of other readers")
    elif change == "store":
        (corpus / "passages.json").write_text("{}")
    elif change == "text":  # of a passage, in a file of the same size
        with closing(sqlite3.connect(corpus / PASSAGES)) as database, database:
            database.execute("UPDATE passages SET text = 'They sink.' WHERE text = 'They sail.'")
    else:
        monkeypatch.setattr(known_passages, "MAX_PASSAGES", 0)
    library = CorpusLibrary(settings)
    library.create("docs", [folder], options=BuildOptions(replace=True))
    assert read == sorted(FILES)
    texts = {p.text for p in library.open("docs").passages()}
    assert texts == {"They sail.", "Of cloth.", "Cars drive fast.", "Steam ships, too."}


def test_what_depends_on_other_files_is_read_again(
    tmp_path: Path, tree: Tree, read: list[str], library: CorpusLibrary, settings: Settings
) -> None:
    """Rejected rows, ids that another file took, and ids that another file takes now."""
    rows = {"a.tsv": "id\ttext\ttitle\n1\tOne.\tA\n1\tAgain.\tA\n", "d.tsv": "id\ttext\ttitle\n7\tSeven.\tA\n"}
    folder = tree("docs", {**rows, "b.md": "# Ships\n\n## Use\n\nSail.\n\n## Use\n\nSteam.", "c.txt": "Cars."})
    library.create("docs", [folder])
    (folder / "c.txt").write_text("Cars drive.")
    read.clear()
    rebuilt(library, folder, settings, tmp_path)
    assert read[:3] == ["a.tsv", "b.md", "c.txt"]
    assert read.count("d.tsv") == 1
    (folder / "a.tsv").write_text("id\ttext\ttitle\n7\tOne.\tA\n")
    read.clear()
    rebuilt(library, folder, settings, tmp_path)
    assert read.count("d.tsv") == 2
