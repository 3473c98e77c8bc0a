"""Corpora past AMBISCOPE_LARGE_CORPUS: IVF-PQ over vectors in float16."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from core.models.encoders.sentence_encoder import HashingEncoder
from core.retrieval import index as ix
from core.retrieval import ivfpq
from core.retrieval.library import CorpusLibrary
from core.retrieval.words import FOLDER as WORDS
from core.settings import Settings

NOUNS = ("rivers", "running", "bridge", "Zürich", "opera", "basalt", "castle", "train", "novel", "3", "actor", "premiere")


def texts(count: int) -> list[str]:
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(NOUNS, rng.integers(3, 30))) + f" number{i}" for i in range(count)]


@pytest.fixture
def rows(write: Callable[[str, str], Path]) -> Path:
    lines = (json.dumps({"id": f"i{n}", "text": text}) for n, text in enumerate(texts(400)))
    return write("many.jsonl", "\n".join(lines))


def large(home: Path, threshold: int = 300) -> CorpusLibrary:
    return CorpusLibrary(Settings(home=home, encoder="hashing", device="cpu", large_corpus=threshold))


def test_a_large_corpus_is_searched_as_a_small_one(tmp_path: Path, rows: Path) -> None:
    corpora = []
    for threshold, kinds, file in ((300, ("ivfpq", "float16"), ix.HALVES), (100_000, ("flat", "float32"), ix.VECTORS)):
        library = large(tmp_path / file, threshold)
        library.create("many", [rows])
        corpora.append(corpus := library.open("many"))
        assert (corpus.manifest.kind, corpus.manifest.stored) == kinds
        names = {p.name for p in (library.folder / "many").iterdir()}
        assert names & {WORDS, ix.VECTORS, ix.HALVES} == {WORDS, file}
    for mode in ("dense", "bm25", "hybrid"):
        of_large, of_small = (corpus.search("the opera of number17", 5, mode) for corpus in corpora)
        assert of_large[0].passage.id == of_small[0].passage.id
        assert of_large[0].similarity == pytest.approx(of_small[0].similarity, abs=2e-3)
        assert len({r.passage.id for r in of_large} & {r.passage.id for r in of_small}) >= 2


def test_all_of_a_large_corpus_are_ranked_exactly(tmp_path: Path, rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ivfpq, "ADD_ROWS", 64)
    library = large(tmp_path)
    library.create("many", [rows])
    results = library.open("many").search("opera basalt", 400, "dense")
    cosines = HashingEncoder().encode(texts(400)) @ HashingEncoder().encode(["opera basalt"], "query")[0]
    assert len({r.passage.id for r in results}) == 400
    assert np.allclose([r.similarity for r in results], np.sort(cosines)[::-1], atol=2e-3)
