"""Corpora on disks that are really full, at every point of a build: the process lives, says what is missing, and goes on."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import faiss
import numpy as np
import pytest
from serving import until
from small_disks import resize, small_disk, small_files

from core.errors import StorageError
from core.retrieval import index as ix
from core.retrieval.library import CorpusLibrary
from core.settings import Settings

Write = Callable[[str, str | bytes], Path]


def passages(write: Write) -> Path:
    words = [f"word{i}" for i in range(400)]
    texts = (" ".join(words[(i * 7 + k * k) % 400] for k in range(60)) for i in range(1000))
    return write("many.tsv", "".join(f"{i}\t{text}\tTitle {i}\n" for i, text in enumerate(texts)))


def handles() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def test_a_build_fails_at_each_size_and_goes_on_at_the_next(tmp_path: Path, write: Write) -> None:
    """A write through a map of a sparse file would end the process by SIGBUS."""
    source = passages(write)
    whole = CorpusLibrary(Settings(home=tmp_path / "whole", encoder="hashing", index_kind="hnsw"))
    whole.create("c", [source])
    errors: list[str] = []
    with small_disk(tmp_path / "small", 128) as home:
        library = CorpusLibrary(Settings(home=home, encoder="hashing", index_kind="hnsw"))
        before = handles()
        for kilobytes in range(128, 20_000, 150):
            resize(home, kilobytes)
            try:
                library.create("c", [source])
                break
            except StorageError as error:
                errors.append(str(error))
            part = home / "corpora" / ".building-c"
            assert ("what was done is kept" in errors[-1]) == part.exists()
            assert not any(".part" in p.name for p in part.glob("*"))
            until(lambda: handles() <= before)  # the word index closes its files in threads of its own
        assert len(errors) > 5
        assert "nothing was left behind" in errors[0]
        assert all(" are free in " in line or "full" in line for line in errors)
        resumed, undisturbed = ((p / "corpora" / "c" / ix.VECTORS).read_bytes() for p in (home, tmp_path / "whole"))
        assert resumed == undisturbed
        assert library.open("c").search("word7 word12", 5) == whole.open("c").search("word7 word12", 5)


def test_the_last_bytes_of_an_index_are_written_or_it_fails(tmp_path: Path) -> None:
    """FAISS's own file does not look whether its buffer reached the disk: a cut index had the name of a whole one."""
    vectors = np.random.default_rng(0).normal(size=(600, 16)).astype(np.float32)
    ix.build_index("hnsw", vectors, tmp_path / "whole")
    size = (tmp_path / "whole").stat().st_size
    for less in (1, 100, 5000):
        with small_files(size - less), pytest.raises(StorageError, match=r"index cannot be written \(File too large\)"):
            ix.build_index("hnsw", vectors, tmp_path / "index")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["whole"]
    assert faiss.read_index(str(tmp_path / "whole")).ntotal == 600
