"""Corpora past AMBISCOPE_LARGE_CORPUS: IVF-PQ over vectors in float16, and builds that were killed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.models.encoders.sentence_encoder import HashingEncoder
from core.retrieval import index as ix
from core.retrieval import ivfpq
from core.retrieval.library import CorpusLibrary
from core.retrieval.words import FOLDER as WORDS
from core.settings import ROOT, Settings

NOUNS = ("rivers", "running", "bridge", "Zürich", "opera", "basalt", "castle", "train", "novel", "3", "actor", "premiere")


def texts(count: int) -> list[str]:
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(NOUNS, rng.integers(3, 30))) + f" number{i}" for i in range(count)]


def rows(path: Path, count: int = 400) -> Path:
    path.write_text("".join(json.dumps({"id": f"i{n}", "text": text}) + "\n" for n, text in enumerate(texts(count))))
    return path


def large(home: Path, threshold: int = 300) -> CorpusLibrary:
    return CorpusLibrary(Settings(home=home, encoder="hashing", device="cpu", large_corpus=threshold))


@pytest.mark.parametrize("mode", ["dense", "bm25", "hybrid"])
def test_a_large_corpus_is_searched_as_a_small_one(tmp_path: Path, mode: str) -> None:
    path = rows(tmp_path / "many.jsonl")
    found = []
    for home, threshold in (("large", 300), ("small", 100_000)):
        library = large(tmp_path / home, threshold)
        library.create("many", [path])
        corpus = library.open("many")
        found.append(corpus.search("the opera of number17", 5, mode))
        kinds = (corpus.manifest.kind, corpus.manifest.stored)
        assert kinds == (("ivfpq", "float16") if home == "large" else ("flat", "float32"))
        names = {p.name for p in (library.folder / "many").iterdir()}
        assert names & {WORDS, ix.VECTORS, ix.HALVES} == {WORDS, ix.HALVES if home == "large" else ix.VECTORS}
    first, second = found
    assert first[0].passage.id == second[0].passage.id
    assert first[0].similarity == pytest.approx(second[0].similarity, abs=2e-3)
    assert len({p.passage.id for p in first} & {p.passage.id for p in second}) >= 2


def test_all_of_a_large_corpus_are_ranked_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ivfpq, "ADD_ROWS", 64)
    library = large(tmp_path)
    library.create("many", [rows(tmp_path / "many.jsonl")])
    corpus = library.open("many")
    found = corpus.search("opera basalt", 400, "dense")
    cosines = HashingEncoder().encode(texts(400)) @ HashingEncoder().encode(["opera basalt"], "query")[0]
    assert len({p.passage.id for p in found}) == 400
    assert np.allclose([p.similarity for p in found], np.sort(cosines)[::-1], atol=2e-3)


def test_progress_of_another_precision_is_not_that_of_a_new_file(tmp_path: Path) -> None:
    encoder, of = HashingEncoder(), texts(40)

    def write(stored: Any, encode: Any = None) -> int:
        return ix.write_vectors(tmp_path, lambda a, b: of[a:b], 40, encoder, "digest", lambda n, total: None, stored, encode)

    def stops(shards: Any, count: int) -> Any:
        raise KeyboardInterrupt

    write("float32")
    (tmp_path / ix.vectors_file("float32")).unlink()
    with pytest.raises(KeyboardInterrupt):
        write("float16", stops)
    assert write("float16") == 0
    assert np.allclose(ix.open_vectors(tmp_path, 40, encoder.dimension, "float16"), encoder.encode(of), atol=1e-3)


BUILD = """
import sys
from pathlib import Path
from core.retrieval.library import CorpusLibrary
from core.settings import Settings
CorpusLibrary(Settings(home=Path(sys.argv[1]), encoder="hashing", large_corpus=300)).create("many", [Path(sys.argv[2])])
"""


@pytest.mark.slow
@pytest.mark.parametrize("until", [f"{WORDS}.part", ix.HALVES])
def test_a_killed_build_is_built_by_the_same_command(tmp_path: Path, until: str) -> None:
    path = rows(tmp_path / "many.jsonl", 20_000)
    argv = [sys.executable, "-c", BUILD, str(tmp_path / "home"), str(path)]
    building = tmp_path / "home" / "corpora" / ".building-many"
    process = subprocess.Popen(argv, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"})
    try:
        for _ in range(6000):
            if (building / until).exists() or process.poll() is not None:
                break
            time.sleep(0.02)
    finally:
        process.kill()
        process.wait()
    assert (building / until).exists(), "the build ended before it was killed"
    # what is left cannot be opened, and a smaller file of the same name is another corpus: only the same files go on
    report = large(tmp_path / "home").create("many", [path])
    corpus = large(tmp_path / "home").open("many")
    assert report.passages == len(corpus) == 20_000
    assert corpus.search("number12345", 1, "bm25")[0].passage.id == "i12345"
    assert not building.exists()
    shutil.rmtree(tmp_path / "home")
