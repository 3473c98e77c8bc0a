"""Reuses the passages of unchanged files from the corpus that a build replaces, so that only changed files are read again."""

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
from core.settings import ROOT
from core.types import Passage

MAX_PASSAGES = 100_000  # of a file: they are held in memory
_SHARED_ID = re.compile(r"~\d+(#\d+)?$")  # ends an id that depends on the ids of other files


def reading_digest(limits: Limits, others: Sequence[Sequence[str]]) -> str:
    """A digest of everything besides its bytes that decides how a file is read: limits, columns and the like (`others`, from a
    fingerprint), our readers, and the pinned versions of the libraries that parse."""
    digest = hashlib.sha256(repr((limits, [list(o) for o in others])).encode())
    folders = (Path(module.__file__ or "").parent for module in (readers, parsing))
    for path in (
        ROOT / "requirements.txt",
        Path(text.__file__),
        *(path for folder in folders for path in sorted(folder.glob("*.py"))),
    ):
        digest.update(path.read_bytes())
    return digest.hexdigest()


class KnownPassages:
    """The passages of an earlier corpus, by name and sha256 of their file."""

    def __init__(self, earlier: Path, reading: str) -> None:
        """Empty if `earlier` holds no intact corpus, or if its files were read differently (another `reading_digest`)."""
        self._store: PassageStore | None = None
        self._files: dict[tuple[str, str], tuple[int, Tally]] = {}
        try:
            self._store = store = PassageStore(earlier)
            files = dict(_reusable(store.facts)) if store.facts.get("reading") == reading else {}
            if files:
                store.verify()  # what is damaged would be copied, and pass for sound from then on
            self._files = files
        except (AmbiscopeError, OSError):
            return

    def close(self) -> None:
        if self._store:
            self._store.close()

    def lookup(self, name: str, digest: str) -> tuple[Tally, list[Passage]] | None:
        """The passages of a file; None if it has to be read: it is new or large, has rejected rows, or has ids that depended on
        other files."""
        if self._store is None or (name, digest) not in self._files:
            return None
        start, tally = self._files[name, digest]
        passages = self._store.passages(start, tally.passages)
        return None if any(_SHARED_ID.search(p.id) for p in passages) else (tally, passages)


def _reusable(facts: dict[str, Any]) -> Iterator[tuple[tuple[str, str], tuple[int, Tally]]]:
    """(name, sha256) of each file that can be reused, with the row of its first passage and its counts."""
    start = 0
    for (name, digest), counts in zip(facts["fingerprint"], facts["files"], strict=False):
        tally = Tally.of(counts)
        if digest and not tally.rejected and tally.passages <= MAX_PASSAGES:
            yield (name, digest), (start, tally)
        start += tally.passages
