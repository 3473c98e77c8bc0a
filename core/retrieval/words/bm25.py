"""BM25 over a passage store (English stemmer and stop words), in bm25s's file format, memory-mapped for reading.

Source: bm25s (Lu 2024, https://arxiv.org/abs/2407.03618), its `lucene` variant with k1 = 1.5 and b = 0.75, English stop words
(its own and core.text's question words), the Snowball stemmer.  bm25s builds its score matrix from the tokens of the whole
corpus in memory; here the same matrix is written in two passes over the disk (`build`), so that memory grows with the vocabulary
and 4 bytes a passage.  A test compares the scores of both.
"""

from __future__ import annotations

import json
import shutil
import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core import disk
from core.errors import IndexMismatchError, StorageError
from core.text import STOPWORDS, unspaced_runs, word_tokens

K1, B = 1.5, 0.75
CHUNK = 4_000_000  # postings scored at a time: 48 MB
_POSTING = np.dtype([("token", "<i4"), ("doc", "<i4"), ("count", "<i4")])
_BUFFERED = 100_000  # postings buffered before they are written


class Tokenizer:
    """Lower case, accents folded, English stop words out, stemmed.  Digits stay: 'Series 3' is not 'Series 4'.

    Scripts without spaces are tokens of one and of two characters: Nie et al. 2000, https://doi.org/10.1145/355214.355235.
    """

    def __init__(self) -> None:
        import Stemmer
        from bm25s.stopwords import STOPWORDS_EN

        # without its cache, which costs four times what it saves
        self._stemmer, self._stop = Stemmer.Stemmer("english", 0), frozenset(STOPWORDS_EN) | STOPWORDS

    def __call__(self, text: str) -> list[str]:
        text = text.lower()
        grams: list[str] = []
        if not text.isascii():
            runs, text = unspaced_runs(text)
            for run in runs:
                characters = word_tokens(unicodedata.normalize("NFKC", run))
                grams += characters
                grams += map(str.__add__, characters, characters[1:])
            text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
        words = [w for w in word_tokens(text) if w not in self._stop and (len(w) > 1 or not w.isascii() or w.isdigit())]
        stems: list[str] = self._stemmer.stemWords(words)
        return stems + grams


def build(texts: Iterable[str], count: int, folder: Path, progress: Callable[[int, int], None]) -> None:
    """Writes the index of `count` texts to `folder`, atomically; partial files are removed if the disk refuses.

    First pass: postings (token, document, occurrences) to a file, document lengths and document frequencies.  Second pass: each
    posting's score to its place in the column of its token (compressed sparse columns, as bm25s stores them).  Raises OSError, StorageError.
    """
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir(parents=True)
        _build(texts, count, part, progress)
        shutil.rmtree(folder, ignore_errors=True)
        part.replace(folder)
    except (OSError, StorageError):  # the next build starts again: partial files only take up space
        shutil.rmtree(part, ignore_errors=True)
        raise
    progress(count, count)


def _build(texts: Iterable[str], count: int, part: Path, progress: Callable[[int, int], None]) -> None:
    tokenizer = Tokenizer()
    vocabulary: dict[str, int] = {}
    lengths, frequency, buffered = array("i"), array("q"), array("i")
    with (part / "postings").open("wb") as postings:
        for doc, text in enumerate(texts):
            tokens = tokenizer(text)
            lengths.append(len(tokens))
            for token, times in Counter(tokens).items():
                number = vocabulary.setdefault(token, len(vocabulary))
                if number == len(frequency):
                    frequency.append(0)
                frequency[number] += 1
                buffered.extend((number, doc, times))
            if len(buffered) >= 3 * _BUFFERED:
                buffered.tofile(postings)
                buffered = array("i")
            if doc % 1000 == 999:
                progress(doc + 1, count)
        buffered.tofile(postings)
    _score(part, np.asarray(lengths, np.int32), np.asarray(frequency, np.int64))
    (part / "postings").unlink()
    disk.write_text(part / "vocab.index.json", json.dumps(vocabulary, ensure_ascii=False))
    parameters = {"k1": K1, "b": B, "delta": 0.5, "method": "lucene", "idf_method": "lucene", "dtype": "float32"}
    parameters |= {"int_dtype": "int32", "num_docs": count, "version": "0.3.16", "backend": "numpy"}
    disk.write_text(part / "params.index.json", json.dumps(parameters))


def _score(part: Path, lengths: NDArray[np.int32], frequency: NDArray[np.int64]) -> None:
    """The second pass: `postings` -> data, indices and indptr."""
    n = len(lengths)
    starts = np.zeros(len(frequency) + 1, np.int64)
    np.cumsum(frequency, out=starts[1:])
    total = int(starts[-1])
    # a mapping cannot be empty: one unused posting stands for an empty index
    data = disk.new_array(part / "data.csc.index.npy", np.float32, (max(1, total),))
    indices = disk.new_array(part / "indices.csc.index.npy", np.int32, (max(1, total),))
    np.save(part / "indptr.csc.index.npy", starts)
    idf = np.log(1 + (n - frequency + 0.5) / (frequency + 0.5))
    norm = K1 * (1 - B + B * lengths / max(1e-9, float(lengths.mean()) if n else 1.0))
    at = starts[:-1].copy()  # where the next posting of each token goes
    for begin in range(0, total, CHUNK):
        raw = np.fromfile(part / "postings", _POSTING, count=CHUNK, offset=begin * _POSTING.itemsize)
        rows = raw[np.argsort(raw["token"], kind="stable")]  # documents stay in order within a token
        tokens, times = rows["token"], rows["count"].astype(np.float64)
        first = np.r_[True, tokens[1:] != tokens[:-1]]
        run = np.maximum.accumulate(np.where(first, np.arange(len(rows)), 0))
        place = at[tokens] + np.arange(len(rows)) - run
        data[place] = idf[tokens] * times / (times + norm[rows["doc"]])
        indices[place] = rows["doc"]
        np.add.at(at, tokens, 1)
    data.flush()
    indices.flush()


class ArrayMatches:
    """The score of every passage (n,) for one query."""

    def __init__(self, scores: NDArray[np.float32]) -> None:
        self._scores = scores

    def best(self, k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        rows = best(self._scores, k)
        return rows, self._scores[rows]

    def of(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        return self._scores[rows]


class Bm25Index:
    """Reads what `build` wrote.  Scores are 0 for a passage that shares no word with the query."""

    def __init__(self, folder: Path, count: int) -> None:
        """Raises IndexMismatchError if the index is missing, damaged or has another number of passages."""
        import bm25s

        try:
            self._bm25: Any = bm25s.BM25.load(folder, mmap=True, show_progress=False)
            documents = int(self._bm25.scores["num_docs"])
        except (OSError, ValueError, KeyError, TypeError) as e:
            raise IndexMismatchError(f"{folder} is missing or damaged ({type(e).__name__}: {e}); build the index again") from e
        if documents != count:
            raise IndexMismatchError(f"{folder} has {documents} passages, the corpus {count}; build the index again")
        self._tokenizer = Tokenizer()

    def knows(self, word: str) -> bool:
        """True if a passage has the word, or if it is a stop word."""
        return all(t in self._bm25.vocab_dict for t in self._tokenizer(word))

    def search(self, query: str) -> ArrayMatches | None:
        """None if no word of the query is in the corpus (an empty query, only stop words)."""
        scores = self.scores(query)
        return None if scores is None else ArrayMatches(scores)

    def scores(self, query: str) -> NDArray[np.float32] | None:
        """BM25 scores of every passage (n,), or None as `search`."""
        known = self._bm25.vocab_dict
        tokens = [known[t] for t in dict.fromkeys(self._tokenizer(query)) if t in known]
        if not tokens:
            return None
        scores: NDArray[np.float32] = self._bm25.get_scores_from_ids(tokens)
        return scores


def best(scores: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """Rows of the k highest scores above 0, best first, ties by row."""
    k = min(k, len(scores))
    if k < 1:
        return np.zeros(0, np.int64)
    threshold = max(float(np.partition(scores, len(scores) - k)[len(scores) - k]), 0.0)
    rows = np.flatnonzero((scores >= threshold) & (scores > 0))
    order: Sequence[int] = np.lexsort((rows, -scores[rows]))[:k].tolist()
    return rows[order].astype(np.int64)
