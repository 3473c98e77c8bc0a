"""The names in a corpus for each short form, in a table next to its index."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

from core import disk
from core.errors import IndexMismatchError
from core.short_names import key_of, names_in, short_forms, short_names_in, written_in
from core.types import Passage

FILE = "short_names.sqlite"
MAX_NAMES = 3  # that a query is expanded by
# weights of a passage that explains the short form, one titled with the name, one that mentions it
EXPLAINED, TITLE, TEXT = 1000, 10, 1
WHOLE_TEXTS = 200_000  # passages; in larger corpora, only names in titles are indexed
_AT_ONCE = 10_000


def build(passages: Iterable[Passage], count: int, file: Path) -> None:
    """Writes the table of `count` passages to `file`, atomically.  Raises OSError and sqlite3.Error."""
    with disk.replacing(file) as draft, closing(sqlite3.connect(draft, isolation_level=None)) as table:
        table.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;")
        table.execute("CREATE TABLE names (key TEXT, name TEXT, weight INTEGER, PRIMARY KEY (key, name)) WITHOUT ROWID")
        table.execute("BEGIN")
        rows: list[tuple[str, str, int]] = []
        for passage in passages:
            rows += _rows(passage, count <= WHOLE_TEXTS)
            if len(rows) >= _AT_ONCE:
                _add(table, rows)
        _add(table, rows)
        table.execute("COMMIT")


def _rows(passage: Passage, reads_texts: bool) -> Iterable[tuple[str, str, int]]:
    title = passage.title.partition(" (")[0].partition(":")[0].removeprefix("The ")
    explained = written_in(f"{passage.title}. {passage.text}")
    weights = dict.fromkeys(((key, title) for key in short_forms(title)), TITLE)
    for name in dict.fromkeys(names_in(passage.text)) if reads_texts or explained else ():
        for key in short_forms(name):
            if reads_texts or key in explained:
                weights.setdefault((key, name), TEXT)
    return [(key, name, EXPLAINED if key in explained else weight) for (key, name), weight in weights.items()]


def _add(table: sqlite3.Connection, rows: list[tuple[str, str, int]]) -> None:
    table.executemany(
        "INSERT INTO names VALUES (?, ?, ?) ON CONFLICT (key, name) DO UPDATE SET weight = weight + excluded.weight", rows
    )
    rows.clear()


class ShortNames:
    """Reads the table; each query opens the file again, so it is thread-safe."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def names(self, short: str, is_word: bool) -> list[str]:
        """Possible names for the short form, highest weight first.  For one that occurs in the corpus (`is_word`), only names
        that a passage explains.

        Raises IndexMismatchError for a missing or damaged table.
        """
        key = key_of(short)
        if len(key) < 3 and not is_word:
            return []
        min_weight = EXPLAINED if is_word else TITLE if short.islower() and short.isalpha() else 0
        query = "SELECT name FROM names WHERE key = ? AND weight >= ? ORDER BY weight DESC, name LIMIT ?"
        try:
            with closing(sqlite3.connect(f"{self._file.resolve().as_uri()}?mode=ro", uri=True)) as table:
                return [name for (name,) in table.execute(query, (key, min_weight, MAX_NAMES))]
        except sqlite3.DatabaseError as e:
            raise IndexMismatchError(f"{self._file} is missing or damaged ({e}); build the index again") from e

    def expanded(self, query: str, is_word: Callable[[str], bool]) -> str:
        """The query with the corpus's names.  A name replaces a short form that the corpus never writes; otherwise, or if there
        are several names, they are added after it.  `is_word`: whether the corpus has a word."""
        for match in reversed(short_names_in(query, is_word)):
            short = match.group()
            if names := self.names(short, is_word(short)):
                expansion = names[0] if len(names) == 1 and not is_word(short) else f"{short} ({'; '.join(names)})"
                query = f"{query[: match.start()]}{expansion}{query[match.end() :]}"
        return query
