"""Folders and zips of documents: read as they are, with everything else counted, or refused with one clear error and nothing stored."""

from __future__ import annotations

import gzip
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from core.errors import InputError, StorageError
from core.retrieval import build
from core.retrieval.library import BuildOptions, CorpusLibrary
from core.retrieval.readers import zips
from core.retrieval.readers.lines import Limits, Source
from core.types import Passage

FILES = {
    "index.md": "# Start\nWords of the start.",
    "guide/index.md": "# Guide\nWords of the guide.",
    "guide/deep/er/index.html": "<h1>Deep</h1><p>Words from below.",
    "api/index.md": "# API\nWords of the API.",
    "api/logo.png": "no text",
    "api/.hidden.md": "# Hidden\nWords.",
    "LICENSE": "Words of a licence.",
}
Tree = Callable[[str, dict[str, str]], Path]
IDS = ["api/index.md", "guide/deep/er/index.html", "guide/index.md", "index.md"]


def zip_of(path: Path, files: dict[str, str | bytes], change: Callable[[zipfile.ZipInfo], None] | None = None) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in files.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            if change:
                change(info)
            packed.writestr(info, text)
    return path


def stored(library: CorpusLibrary, name: str) -> list[Passage]:
    return library.open(name).passages(0, 1000)


def test_a_folder_and_its_zip_are_the_same_corpus(tmp_path: Path, library: CorpusLibrary, tree: Tree) -> None:
    folder = tree("docs", FILES)
    report = library.create("docs", [folder])
    assert [p.id for p in stored(library, "docs")] == IDS
    assert ([r.file for r in report.others], report.others_total, report.rejected_total) == (["LICENSE", "api/logo.png"], 2, 0)
    for top in ("", "docs/"):
        packed = zip_of(tmp_path / f"docs{len(top)}.zip", {top + name: text for name, text in FILES.items()})
        again = library.create("docs", [packed])
        assert (again.already_built, again.others_total) == (True, 2)


def test_links_in_a_folder_are_listed_and_not_followed(tmp_path: Path, library: CorpusLibrary, tree: Tree) -> None:
    secret, folder = tree("secret", {"secret.md": "# Secret\nWords."}), tree("docs", FILES)
    (folder / "link.md").symlink_to(secret / "secret.md")
    (folder / "linked").symlink_to(secret)
    (folder / "loop").symlink_to(folder)
    (folder / "gone.md").symlink_to("nowhere")
    report = library.create("docs", [folder])
    assert [p.id for p in stored(library, "docs")] == IDS
    assert [r.file for r in report.others if "link" in r.reason] == ["gone.md", "link.md", "linked", "loop"]


def test_links_in_a_zip_and_names_that_are_there_twice(tmp_path: Path, library: CorpusLibrary) -> None:
    def linked(info: zipfile.ZipInfo) -> None:
        info.external_attr = (stat.S_IFLNK | 0o777) << 16 if info.filename == "link.md" else 0

    path = zip_of(tmp_path / "a.zip", {"a.md": "Words.", "link.md": "/etc/passwd"}, linked)
    with zipfile.ZipFile(path, "a") as packed, pytest.warns(UserWarning, match="Duplicate"):
        packed.writestr("a.md", "Others.")
    report = library.create("a", [path])
    assert [p.text for p in stored(library, "a")] == ["Words."]
    assert [r.file for r in report.others] == ["a.md", "link.md"]


def encrypted(path: Path) -> Path:
    zip_of(path, {"a.md": "Words."})
    raw = bytearray(path.read_bytes())
    raw[raw.index(b"PK\x01\x02") + 8] = 1
    path.write_bytes(raw)
    return path


def cut(path: Path) -> Path:
    path.write_bytes(zip_of(path, {"a.md": "Words." * 1000}).read_bytes()[:-30])
    return path


def damaged(path: Path) -> Path:
    raw = zip_of(path, {"a.md": "Words of some text. " * 9}).read_bytes()
    path.write_bytes(raw[:38] + b"\xff\xff\xff" + raw[41:])
    return path


BAD: dict[str, tuple[Callable[[Path], Any], str]] = {
    "bomb": (lambda path: zip_of(path, {"a.md": "a" * 40_000_000}), "unpacks to"),
    "many bombs": (lambda path: zip_of(path, {f"{n}.md": b"a" * 2_000_000 for n in range(30)}), "unpacks to"),
    "up": (lambda path: zip_of(path, {"a.md": "Words.", "../b.md": "Words."}), "leaves the zip"),
    "up later": (lambda path: zip_of(path, {"a/../../b.md": "Words."}), "leaves the zip"),
    "up on Windows": (lambda path: zip_of(path, {"a\\..\\..\\b.md": "Words."}), "leaves the zip"),
    "from the root": (lambda path: zip_of(path, {"/etc/b.md": "Words."}), "leaves the zip"),
    "from a drive": (lambda path: zip_of(path, {"C:/b.md": "Words."}), "leaves the zip"),
    "empty": (lambda path: zip_of(path, {}), "no file of these kinds"),
    "other files": (lambda path: zip_of(path, {"a.png": "x", "inner.zip": "y"}), "no file of these kinds"),
    "encrypted": (encrypted, "encrypted"),
    "cut": (cut, "not a zip that can be read"),
    "damaged": (damaged, "not a zip that can be read"),
    "no zip": (lambda path: path.write_text("words"), "not a zip that can be read"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_zip_is_one_clear_error_and_stores_nothing(tmp_path: Path, library: CorpusLibrary, tree: Tree, what: str) -> None:
    make, message = BAD[what]
    path = tree("in", {}) / "docs.zip"
    make(path)
    good = tree("good", {"a.md": "Words."})
    around = set(tmp_path.iterdir())
    with pytest.raises(InputError, match=message) as error:
        library.create("docs", [good, path])
    assert "docs.zip" in str(error.value)
    assert "\n" not in str(error.value)
    assert library.list() == []
    assert set(tmp_path.iterdir()) - around <= {tmp_path / "home"}


def test_empty_folders_and_folders_of_other_files(library: CorpusLibrary, tree: Tree) -> None:
    for folder in (tree("empty", {}), tree("others", {"a.png": "x", ".git/a.md": "Words."})):
        with pytest.raises(InputError, match="no file of these kinds"):
            library.create("docs", [folder])
    assert library.list() == []


def test_a_full_disk_while_unpacking(tmp_path: Path, limits: Limits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zips.shutil, "copyfileobj", Mock(side_effect=OSError(28, "No space left on device")))
    with pytest.raises(StorageError, match="No space left"):
        zips.unpacked(zip_of(tmp_path / "a.zip", {"a.md": "Words."}), tmp_path / "out", limits, lambda row: None)


def test_a_file_that_changes_while_it_is_read(library: CorpusLibrary, tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tree("docs", {"a.md": "# A\nWords.", "b.md": "# B\nWords."})
    reading = build.read_passages

    def changing(file: Source, *args: Any) -> Any:
        yield from reading(file, *args)
        if file.path.name == "a.md":
            file.path.write_text("# A\nWords, and more.")

    monkeypatch.setattr(build, "read_passages", changing)
    with pytest.raises(InputError, match=r"a\.md changed while it was read"):
        library.create("one", [folder / "a.md"])
    assert library.list() == []
    (folder / "a.md").write_text("# A\nWords.")
    report = library.create("docs", [folder])
    assert [(r.file, "changed while" in r.reason) for r in report.rejected] == [("a.md", True)]
    assert [p.id for p in stored(library, "docs")] == ["b.md"]
    monkeypatch.undo()
    library.create("docs", [folder], options=BuildOptions(replace=True))
    assert [p.text for p in stored(library, "docs")] == ["Words, and more.", "Words."]


def test_an_upload_unpacks_to_what_the_settings_allow(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:  # stored, not compressed
        packed.writestr("a.txt", "words " * 400_000)
    with pytest.raises(InputError, match="at most 1 MB"):
        zips.unpacked(tmp_path / "a.zip", tmp_path / "out", Limits(10**6, 2**20, 9, 9, 9), lambda row: None)


def test_gzipped_files_of_a_zip_count_with_what_they_unpack_to(tmp_path: Path, limits: Limits) -> None:
    """One sum over all layers: each is small, and unpacks to less than its own bound."""
    packed_rows = gzip.compress(b'{"text": "words of a row"}\n' * 200_000, 9)
    path = zip_of(tmp_path / "a.zip", {f"{n}.jsonl.gz": packed_rows for n in range(20)})
    with pytest.raises(InputError, match=r"a\.zip unpacks to \d+ MB or more"):
        zips.unpacked(path, tmp_path / "out", limits, lambda row: None)
    assert not (tmp_path / "out").exists()


def test_a_damaged_gzip_in_a_zip_is_listed(library: CorpusLibrary, tmp_path: Path) -> None:
    path = zip_of(tmp_path / "a.zip", {"a.md": "Words.", "b.tsv.gz": gzip.compress(b"1\tx\tT\n" * 1000)[:-20]})
    assert [r.file for r in library.create("docs", [path]).rejected] == ["b.tsv.gz"]


@pytest.mark.parametrize("claimed", [None, 3])
def test_a_zip_of_too_many_entries_is_refused_before_they_are_read(
    tmp_path: Path, limits: Limits, monkeypatch: pytest.MonkeyPatch, claimed: int | None
) -> None:
    """The number that the zip's end claims does not matter."""
    monkeypatch.setattr(zips, "MAX_FILES", 50)
    path = zip_of(tmp_path / "a.zip", {f"{n}.png": "" for n in range(101)})
    if claimed:
        content = bytearray(path.read_bytes())
        content[-14:-10] = struct.pack("<HH", claimed, claimed)
        path.write_bytes(content)
    monkeypatch.setattr(zips.zipfile, "ZipFile", Mock(side_effect=AssertionError("it was opened")))
    with pytest.raises(InputError, match=r"a\.zip has 101 entries or more; at most 50 files"):
        zips.unpacked(path, tmp_path / "out", limits, lambda row: None)
