"""Passages of files that are the same as in the corpus that a build replaces, so that only files that changed are read again."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from core import text
from core.errors import AmbiscopeError
from core.retrieval import parsing, readers
from core.retrieval.corpus import PassageStore
from core.retrieval.readers.lines import Limits, Tally
from core.types import Passage

MAX_PASSAGES = 100_000  # of a file: they are held in memory
_OF_ANOTHER = re.compile(r"~\d+(#\d+)?$")  # ends an id that depends on what other files took


def reading_digest(limits: Limits, others: Sequence[Sequence[str]]) -> str:
    """Digest of what decides how a file is read beside its bytes: limits, columns and the like (`others`, of a fingerprint), and our readers."""
    digest = hashlib.sha256(repr((limits, [list(o) for o in others])).encode())
    folders = (Path(module.__file__ or "").parent for module in (readers, parsing))
    for path in sorted([Path(text.__file__), *(path for folder in folders for path in folder.glob("*.py"))]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


class KnownPassages:
    """By name and sha256 of their file."""

    def __init__(self, earlier: Path, way: str) -> None:
        """Knows nothing where `earlier` holds no sound corpus or its files were read in another way (`reading_digest`)."""
        self._store: PassageStore | None = None
        self._files: dict[tuple[str, str], tuple[int, Tally]] = {}
        try:
            store = PassageStore(earlier)
        except (AmbiscopeError, OSError):
            return
        if store.facts.get("reading") == way:
            self._store, self._files = store, dict(_places(store.facts))

    def close(self) -> None:
        if self._store:
            self._store.close()

    def of(self, name: str, digest: str) -> tuple[Tally, list[Passage]] | None:
        """None for a file that has to be read: it is new or large, it has rejected rows, or ids that other files decided.  Raises IndexMismatchError."""
        start, tally = self._files.get((name, digest), (0, Tally(rejected=1)))
        if self._store is None or tally.rejected or tally.passages > MAX_PASSAGES:
            return None
        passages = self._store.passages(start, tally.passages)
        return None if any(_OF_ANOTHER.search(p.id) for p in passages) else (tally, passages)


def _places(facts: dict[str, Any]) -> Iterator[tuple[tuple[str, str], tuple[int, Tally]]]:
    """(name, sha256) of each file, with the row of its first passage and its counts."""
    start = 0
    for (name, digest), counts in zip(facts["fingerprint"], facts["files"], strict=False):
        tally = Tally(**counts)
        if digest:
            yield (name, digest), (start, tally)
        start += tally.passages
