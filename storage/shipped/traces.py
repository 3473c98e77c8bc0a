"""Compact traces for files of the repository: without what follows from the events, and without passages that are in a passage file.

A trace keeps its question, system and events, from which the rest follows (core.trace.fold); a passage of a passage file is its id; numbers
have six significant digits.  Files are JSON lines, compressed with LZMA; benchmarks.shipped_runs writes them.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from core.errors import FormatError, StorageError
from core.retrieval.readers import read_passages
from core.retrieval.readers.lines import Limits, Rejected, Source
from core.settings import Settings
from core.trace import fold, prediction_from_json, to_json
from core.types import Prediction

Body = dict[str, Any]


def passages(folder: Path) -> dict[str, Body]:
    """The passages of a folder's passages.tsv by id.  Raises FormatError for a row that is no passage."""

    def refuse(row: Rejected) -> None:
        raise FormatError(row.reason, file=row.file, line=row.number)

    source = Source(folder / "passages.tsv", Limits.for_own_files(Settings()), refuse)
    return {p.id: to_json(p) for p in read_passages(source)}


def expand(trace: Body, passages_by_id: Mapping[str, Body]) -> Prediction:
    """The inverse of `benchmarks.shipped_runs.slim`, except for rounded digits.  Raises FormatError for another layout."""
    try:
        body = passages_as(trace, lambda passage: passages_by_id[passage] if isinstance(passage, str) else passage)
    except KeyError as error:
        raise FormatError(f"a shipped trace names the passage {error}, which is not there; get Ambiscope again") from None
    empty: Body = {"answers": [], "clarifications": [], "steps": [], "passages": [], "seconds": 0.0}
    prediction = prediction_from_json(body | empty)
    return fold(prediction.question, prediction.system, prediction.events)


def passages_as(value: Any, change: Callable[[Any], Any]) -> Any:
    """A copy in which each value of a key "passage" is changed."""
    if isinstance(value, dict):
        return {name: change(part) if name == "passage" else passages_as(part, change) for name, part in value.items()}
    return [passages_as(part, change) for part in value] if isinstance(value, list) else value


def read(path: Path, wanted: Callable[[int], bool] = lambda number: True) -> Iterator[Body]:
    """The lines with the `wanted` numbers, from 0; others are not parsed.  Raises FormatError for a damaged file, StorageError for none."""
    try:
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            yield from (json.loads(line) for number, line in enumerate(lines) if wanted(number))
    except (lzma.LZMAError, EOFError, ValueError) as error:
        raise FormatError(f"nothing that Ambiscope ships ({error}); get Ambiscope again", file=path.name) from None
    except OSError as error:
        raise StorageError(f"{path} cannot be read ({error.strerror or error}); get Ambiscope again") from error
