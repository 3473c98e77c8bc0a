"""BM25: the scores of bm25s itself, built on disk; words; damage."""

from __future__ import annotations

import tempfile
from pathlib import Path

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import IndexMismatchError
from core.retrieval.words import bm25

TEXTS = ["Cats chase the mice. Cats sleep.", "Dogs chase cats", "", "The of and", "Mouse traps and cheese 3", "Café in Zürich"]


def made(folder: Path, texts: list[str]) -> bm25.Bm25Index:
    bm25.build(texts, len(texts), folder, lambda done, total: None)
    return bm25.Bm25Index(folder, len(texts))


def check_equal(folder: Path, texts: list[str], queries: list[str]) -> None:
    ours, tokenizer = made(folder, texts), bm25.Tokenizer()
    tokens = [tokenizer(t) for t in texts]
    theirs = bm25s.BM25(method="lucene", k1=bm25.K1, b=bm25.B)
    theirs.index(tokens, show_progress=False)
    for query in queries:
        words = [w for w in dict.fromkeys(tokenizer(query)) if any(w in t for t in tokens)]
        scores = ours.scores(query)
        if not words:
            assert scores is None
        else:
            assert scores is not None
            assert np.allclose(scores, theirs.get_scores(words), atol=1e-5)


def test_scores_equal_those_of_bm25s(tmp_path: Path) -> None:
    check_equal(tmp_path / "b", TEXTS, ["cats", "the cats chase a mouse", "cheese 3", "unknown word", ""])


def test_scores_are_the_same_over_several_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bm25, "CHUNK", 3)
    monkeypatch.setattr(bm25, "_BUFFERED", 2)
    check_equal(tmp_path / "b", TEXTS * 3, ["cats", "chase mouse zurich"])


WORD = st.sampled_from(["cat", "dog", "the", "running", "ran", "x", "7", "é", "東京"])


@settings(max_examples=20, derandomize=True, deadline=None)
@given(st.lists(st.lists(WORD, max_size=8).map(" ".join), min_size=1, max_size=8), st.lists(WORD, max_size=4).map(" ".join))
def test_scores_equal_those_of_bm25s_on_any_corpus(texts: list[str], query: str) -> None:
    if not any(bm25.Tokenizer()(t) for t in texts):
        texts = [*texts, "anchor"]  # bm25s itself fails on a corpus without words
    with tempfile.TemporaryDirectory() as folder:
        check_equal(Path(folder) / "b", texts, [query])


def test_a_corpus_of_stop_words_finds_nothing(tmp_path: Path) -> None:
    assert made(tmp_path / "b", ["the of", ""]).scores("cats of the") is None


def test_words_are_stemmed_folded_and_without_stop_words() -> None:
    tokenizer = bm25.Tokenizer()
    assert tokenizer("The cafés in ZÜRICH were running") == tokenizer("cafe zurich run")
    assert tokenizer("what is the") == []
    assert tokenizer("Series 3") != tokenizer("Series 4")


def test_best_breaks_ties_by_row_and_leaves_zeros_out() -> None:
    scores = np.array([0, 2, 1, 2, 0, 1], np.float32)
    assert bm25.best(scores, 3).tolist() == [1, 3, 2]
    assert bm25.best(scores, 99).tolist() == [1, 3, 2, 5]
    assert bm25.best(np.zeros(3, np.float32), 2).tolist() == []
    assert bm25.best(np.zeros(0, np.float32), 2).tolist() == []


def test_missing_damaged_or_of_another_corpus(tmp_path: Path) -> None:
    with pytest.raises(IndexMismatchError, match="missing or damaged"):
        bm25.Bm25Index(tmp_path / "none", 3)
    made(tmp_path / "b", TEXTS)
    with pytest.raises(IndexMismatchError, match="has 6 passages, the corpus 7"):
        bm25.Bm25Index(tmp_path / "b", 7)
    for name in ("data.csc.index.npy", "vocab.index.json", "params.index.json"):
        made(tmp_path / "b", TEXTS)
        path = tmp_path / "b" / name
        path.write_bytes(path.read_bytes()[:20])
        with pytest.raises(IndexMismatchError, match="build the index again"):
            bm25.Bm25Index(tmp_path / "b", 6)
