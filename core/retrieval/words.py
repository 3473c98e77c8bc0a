"""The word index: BM25 by Tantivy (https://github.com/quickwit-oss/tantivy), built as a stream and memory-mapped for reading.

Tantivy is given the words of `Tokenizer`.  It scores with k1 = 1.2 and b = 0.75, and rounds the lengths of passages.
"""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core import disk
from core.errors import IndexMismatchError, StorageError
from core.text import STOPWORDS, unspaced_runs, word_tokens

FOLDER = "words"  # of a corpus
MEMORY_BYTES = 200_000_000  # of postings before they are written
NOT_INDEXED = STOPWORDS | frozenset("but if into no not such their then there they will".split())  # the others of Lucene's list
PROGRESS_PASSAGES = 1000  # between two reports of progress
_WORDS, _ROW, _BLANKS = "words", "row", "blanks"


class Tokenizer:
    """Lower-cases, folds accents, drops English stop words and stems.  Digits stay, so 'Series 3' isn't 'Series 4'.

    Scripts without spaces are tokens of one and of two characters: Nie et al. 2000, https://doi.org/10.1145/355214.355235.
    """

    def __init__(self) -> None:
        import Stemmer

        self._stemmer = Stemmer.Stemmer("english", 0)  # without its cache, which costs four times what it saves

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
        words = [w for w in word_tokens(text) if w not in NOT_INDEXED and (len(w) > 1 or not w.isascii() or w.isdigit())]
        stems: list[str] = self._stemmer.stemWords(words)
        return stems + grams


def _with_tokenizer(index: Any) -> Any:
    import tantivy

    index.register_tokenizer(_BLANKS, tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
    return index


def build(texts: Iterable[str], count: int, folder: Path, progress: Callable[[int, int], None]) -> None:
    """Writes the index of `count` texts to `folder`, atomically. A killed build starts again. Raises OSError, StorageError."""
    import tantivy

    schema = tantivy.SchemaBuilder()
    schema.add_text_field(_WORDS, stored=False, tokenizer_name=_BLANKS, index_option="freq")
    schema.add_integer_field(_ROW, stored=False, indexed=True, fast=True)
    draft = folder.with_name(folder.name + ".part")
    shutil.rmtree(draft, ignore_errors=True)
    tokenizer = Tokenizer()
    try:
        draft.mkdir(parents=True)
        writer = _with_tokenizer(tantivy.Index(schema.build(), str(draft))).writer(MEMORY_BYTES, 1)
        for row, text in enumerate(texts):
            writer.add_document(tantivy.Document(**{_WORDS: " ".join(tokenizer(text)), _ROW: row}))
            if row % PROGRESS_PASSAGES == PROGRESS_PASSAGES - 1:
                progress(row + 1, count)
        writer.commit()
        writer.wait_merging_threads()
        shutil.rmtree(folder, ignore_errors=True)
        draft.replace(folder)
    except ValueError as e:  # what Tantivy makes of a disk that refuses
        raise StorageError(f"{folder} cannot be written ({disk.describe_error(e, draft)})") from e
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    progress(count, count)


class WordIndex:
    """Reads an index that `build` wrote.  Thread-safe."""

    def __init__(self, folder: Path, count: int) -> None:
        """Raises IndexMismatchError if the index is missing, damaged or has another number of passages."""
        import tantivy

        try:
            index = _with_tokenizer(tantivy.Index.open(str(folder)))
            self._searcher: Any = index.searcher()
            documents = int(self._searcher.num_docs)
        except (OSError, ValueError) as e:
            reason = " ".join(str(e).split())[:150]
            raise IndexMismatchError(f"{folder} is missing or damaged ({reason}); build the index again") from e
        if documents != count:
            raise IndexMismatchError(f"{folder} has {documents} passages, the corpus {count}; build the index again")
        self._schema, self._tokenizer = index.schema, Tokenizer()

    def knows(self, word: str) -> bool:
        """Whether a passage has the word, or it is a stop word."""
        return all(map(self._frequency, self._tokenizer(word)))

    def _frequency(self, token: str) -> int:
        return int(self._searcher.doc_freq(_WORDS, token))

    def search(self, query: str) -> WordMatches | None:
        """The matches of a query; None if no word of it is in the corpus (an empty query, only stop words)."""
        tokens = [t for t in dict.fromkeys(self._tokenizer(query)) if self._frequency(t)]
        return WordMatches(self._searcher, self._schema, tokens) if tokens else None


class WordMatches:
    """The passages that share a word with one query."""

    def __init__(self, searcher: Any, schema: Any, tokens: Sequence[str]) -> None:
        import tantivy

        self._searcher, self._schema = searcher, schema
        self._words = [(tantivy.Occur.Should, tantivy.Query.term_query(schema, _WORDS, token)) for token in tokens]

    def best(self, k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Rows and scores above 0 of the k best, best first, ties by row."""
        import tantivy

        rows, scores = self._top(tantivy.Query.boolean_query(self._words), k)
        order = np.lexsort((rows, -scores))
        return rows[order], scores[order]

    def scores(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The scores of given rows; 0 for those that share no word."""
        import tantivy

        if not len(rows):
            return np.zeros(0, np.float32)
        query: Any = tantivy.Query
        these = query.const_score_query(query.term_set_query(self._schema, _ROW, rows.tolist()), 0.0)
        matches, scores = self._top(query.boolean_query([(tantivy.Occur.Must, these), *self._words]), len(rows))
        score_of = dict(zip(matches.tolist(), scores.tolist(), strict=True))
        return np.array([score_of.get(row, 0.0) for row in rows.tolist()], np.float32)

    def _top(self, query: Any, k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        # Tantivy takes memory for as many hits as are asked for, and ends the process where there is not enough
        hits = self._searcher.search(query, max(1, min(k, self._searcher.num_docs)), count=False).hits
        rows = self._searcher.fast_field_values(_ROW, [address for _, address in hits])
        return np.array(rows, np.int64), np.array([score for score, _ in hits], np.float32)
