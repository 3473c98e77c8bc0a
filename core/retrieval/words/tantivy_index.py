"""BM25 by Tantivy (https://github.com/quickwit-oss/tantivy), for corpora whose score matrix would not fit: built as a stream, memory-mapped for reading.

It is given the words of our tokenizer.  Its k1 is 1.2 (1.5 in bm25.py), and it rounds the lengths of passages, so scores differ a little and the
best passages seldom.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core import disk
from core.errors import IndexMismatchError, StorageError
from core.retrieval.words.bm25 import Tokenizer

MEMORY = 200_000_000  # bytes of postings before they are written
SAY = 1000  # passages between two reports of progress
_WORDS, _ROW, _BLANKS = "words", "row", "blanks"


def _schema() -> Any:
    import tantivy

    schema = tantivy.SchemaBuilder()
    schema.add_text_field(_WORDS, stored=False, tokenizer_name=_BLANKS, index_option="freq")
    schema.add_integer_field(_ROW, stored=False, indexed=True, fast=True)
    return schema.build()


def _with_tokenizer(index: Any) -> Any:
    import tantivy

    index.register_tokenizer(_BLANKS, tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
    return index


def build(texts: Iterable[str], count: int, folder: Path, progress: Callable[[int, int], None]) -> None:
    """Writes the index of `count` texts to `folder`, atomically; a build that was killed starts again.  Raises OSError, StorageError."""
    import tantivy

    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    tokenizer = Tokenizer()
    try:
        part.mkdir(parents=True)
        writer = _with_tokenizer(tantivy.Index(_schema(), str(part))).writer(MEMORY, 1)
        for row, text in enumerate(texts):
            writer.add_document(tantivy.Document(**{_WORDS: " ".join(tokenizer(text)), _ROW: row}))
            if row % SAY == SAY - 1:
                progress(row + 1, count)
        writer.commit()
        writer.wait_merging_threads()
        shutil.rmtree(folder, ignore_errors=True)
        part.replace(folder)
    except ValueError as e:  # what Tantivy makes of a disk that refuses
        why = disk.why(e, part)
        shutil.rmtree(part, ignore_errors=True)
        raise StorageError(f"{folder} cannot be written ({why})") from e
    except OSError:
        shutil.rmtree(part, ignore_errors=True)
        raise
    progress(count, count)


class TantivyIndex:
    """Reads what `build` wrote."""

    def __init__(self, folder: Path, count: int) -> None:
        """Raises IndexMismatchError if the index is missing, damaged or has another number of passages."""
        import tantivy

        try:
            index = _with_tokenizer(tantivy.Index.open(str(folder)))
            self._searcher: Any = index.searcher()
            documents = int(self._searcher.num_docs)
        except (OSError, ValueError) as e:
            said = " ".join(str(e).split())[:150]
            raise IndexMismatchError(f"{folder} is missing or damaged ({said}); build the index again") from e
        if documents != count:
            raise IndexMismatchError(f"{folder} has {documents} passages, the corpus {count}; build the index again")
        self._schema, self._tokenizer = index.schema, Tokenizer()

    def knows(self, word: str) -> bool:
        return all(map(self._frequency, self._tokenizer(word)))

    def _frequency(self, token: str) -> int:
        return int(self._searcher.doc_freq(_WORDS, token))

    def search(self, query: str) -> TantivyMatches | None:
        tokens = [t for t in dict.fromkeys(self._tokenizer(query)) if self._frequency(t)]
        return TantivyMatches(self._searcher, self._schema, tokens) if tokens else None


class TantivyMatches:
    def __init__(self, searcher: Any, schema: Any, tokens: Sequence[str]) -> None:
        import tantivy

        self._searcher, self._schema = searcher, schema
        self._words = [(tantivy.Occur.Should, tantivy.Query.term_query(schema, _WORDS, token)) for token in tokens]

    def best(self, k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        import tantivy

        rows, scores = self._found(tantivy.Query.boolean_query(self._words), k)
        order = np.lexsort((rows, -scores))
        return rows[order], scores[order]

    def of(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        import tantivy

        if not len(rows):
            return np.zeros(0, np.float32)
        query: Any = tantivy.Query
        these = query.const_score_query(query.term_set_query(self._schema, _ROW, rows.tolist()), 0.0)
        found, scores = self._found(query.boolean_query([(tantivy.Occur.Must, these), *self._words]), len(rows))
        known = dict(zip(found.tolist(), scores.tolist(), strict=True))
        return np.array([known.get(row, 0.0) for row in rows.tolist()], np.float32)

    def _found(self, query: Any, k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        hits = self._searcher.search(query, max(1, k), count=False).hits
        rows = self._searcher.fast_field_values(_ROW, [address for _, address in hits])
        return np.array(rows, np.int64), np.array([score for score, _ in hits], np.float32)
