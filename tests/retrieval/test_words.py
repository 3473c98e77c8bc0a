"""The word index: its words and scores; damage; a disk that refuses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from core.errors import IndexMismatchError, StorageError
from core.retrieval import words

TEXTS = ["Cats chase the mice. Cats sleep.", "Dogs chase cats", "", "The of and", "Mouse traps and cheese 3", "Café in Zürich"]
UNSPACED = ["東京は日本の首都で、人口が多い。", "京都は古い都です。", "唐朝是中国历史上的王朝", "กรุงเทพเป็นเมืองหลวง", "東京タワー", "दिल्ली भारत की राजधानी है", "basalt"]  # fmt: skip


def built(folder: Path, texts: Sequence[str]) -> words.WordIndex:
    words.build(texts, len(texts), folder, lambda done, total: None)
    return words.WordIndex(folder, len(texts))


def test_scores_are_those_of_bm25(tmp_path: Path) -> None:
    """Against Robertson and Zaragoza 2009, equation 3.15, with Lucene's idf; for short passages the lengths are exact."""
    index, tokens = built(tmp_path / "w", TEXTS), [words.Tokenizer()(text) for text in TEXTS]
    mean, n = sum(map(len, tokens)) / len(tokens), len(tokens)
    for query in ("cats", "the cats chase a mouse", "cheese 3"):
        expected = np.zeros(n)
        for word in words.Tokenizer()(query):
            holding = sum(word in t for t in tokens)
            idf = np.log(1 + (n - holding + 0.5) / (holding + 0.5))
            for row, text in enumerate(tokens):
                times = text.count(word)
                expected[row] += idf * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * len(text) / mean))
        matches = index.search(query)
        assert np.allclose(matches.scores(np.arange(n)), expected, rtol=1e-5)
        rows, scores = matches.best(9)
        assert (rows.tolist(), scores.tolist()) == (sorted(rows, key=lambda r: -expected[r]), sorted(scores, reverse=True))
        assert set(rows.tolist()) == set(np.flatnonzero(expected).tolist())


@pytest.mark.parametrize(
    ("query", "row"), [("東京の人口", 0), ("京都", 1), ("唐", 2), ("เมืองหลวง", 3), ("ﾀﾜｰ", 4), ("राजधानी", 5)]
)
def test_words_of_scripts_without_spaces(tmp_path: Path, query: str, row: int) -> None:
    matches = built(tmp_path / "w", UNSPACED).search(query)
    assert matches.best(3)[0][0] == row


def test_ties_go_by_row_and_unknown_words_find_nothing(tmp_path: Path) -> None:
    index = built(tmp_path / "w", ["same words", "other things", "same words", "", "Zürich"])
    matches = index.search("same words")
    rows, scores = matches.best(10**12)  # however many are asked for
    assert rows.tolist() == [0, 2]
    assert scores[0] == scores[1]
    assert matches.scores(np.array([3, 0])).tolist() == [0.0, scores[0]]
    assert matches.scores(np.zeros(0, np.int64)).tolist() == []
    assert [index.search(q) for q in ("unseen", "the of", "")] == [None] * 3
    assert [index.knows(w) for w in ("zurich", "the", "unseen")] == [True, True, False]


def test_words_are_stemmed_folded_and_without_stop_words() -> None:
    tokenizer = words.Tokenizer()
    assert tokenizer("The cafés in ZÜRICH were running") == tokenizer("cafe zurich run")
    assert tokenizer("what is the") == []
    assert tokenizer("Series 3") != tokenizer("Series 4")


def test_an_index_missing_damaged_or_of_another_corpus(tmp_path: Path) -> None:
    with pytest.raises(IndexMismatchError):
        words.WordIndex(tmp_path / "none", 3)
    built(tmp_path / "w", TEXTS)
    with pytest.raises(IndexMismatchError, match=r"6 .* 7"):
        words.WordIndex(tmp_path / "w", 7)
    (tmp_path / "w" / "meta.json").write_text("{")
    with pytest.raises(IndexMismatchError):
        words.WordIndex(tmp_path / "w", 6)


def test_a_disk_that_refuses_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed = ValueError("An index writer was killed.. (io::Error most likely)")
    monkeypatch.setattr(words.Tokenizer, "__call__", Mock(side_effect=killed))
    with pytest.raises(StorageError):
        built(tmp_path / "w", TEXTS)
    assert list(tmp_path.iterdir()) == []
