"""Weights and thresholds of core.models.ranking.passage_signals: signals.json next to the reader's weights, fitted by `python -m core train signals`.

A reader without this file uses the bundled reader's.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from core import disk, json_io
from core.errors import AmbiscopeError, CheckpointError
from core.models.loading.finding import BUNDLED, named_folder
from core.models.ranking.passage_signals import LEAST, PassageView, QuestionSignals, Weighing, readings
from core.types import Candidate, Passage, RetrievedPassage

FILE = "signals.json"


@dataclass(frozen=True)
class Signals:
    """`abstain_below`, `verified_above`: probabilities; below the first, a passage abstains; from the second on, an interpretation needs no
    support from another.  `figures`: cross-validated on what it was `fitted_on`."""

    weighing: Weighing
    abstain_below: float
    verified_above: float
    fitted_on: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)


def signals_of(reader: str) -> Signals:
    """Those of a reader (a folder or a bundled name), or the bundled ones.  Raises CheckpointError for a damaged file."""
    folder = named_folder(reader, "reader")
    return read_signals(folder if folder is not None and (folder / FILE).is_file() else BUNDLED / "reader")


def read_signals(folder: Path) -> Signals:
    """Cached until the file changes.  Raises CheckpointError if it is missing or damaged."""
    path = folder / FILE
    try:
        stat = path.stat()
    except OSError as error:
        raise CheckpointError(
            f"{path} cannot be read ({error.strerror}); fetch it again, or fit it: python -m core train signals"
        ) from None
    return _read(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=4)
def _read(path: Path, _changed: int, _size: int) -> Signals:
    try:
        body = json_io.read(path)
        weighing = Weighing(*(body[name] for name in ("passage", "passage_bias", "reading", "nothing")))
        found = Signals(weighing, body["abstain_below"], body["verified_above"], str(body["fitted_on"]), dict(body["figures"]))
        _check(found)
    except (AmbiscopeError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path} is damaged ({error}); fit it again with: python -m core train signals") from None
    return found


def _check(found: Signals) -> None:
    """Raises ValueError."""
    of_passage, of_reading = _names()
    for part, names in ((found.weighing.passage, of_passage), (found.weighing.reading, of_reading)):
        if odd := sorted(set(part) ^ names):
            raise ValueError(f"it has other signals than this version: {', '.join(odd)}")
    numbers = {**found.weighing.passage, **found.weighing.reading}
    numbers |= {"passage_bias": found.weighing.passage_bias, "nothing": found.weighing.nothing}
    for name, value in numbers.items():
        if not _is_number(value):
            raise ValueError(f"{name} is not a number")
    for name in ("abstain_below", "verified_above"):
        if not (_is_number(value := getattr(found, name)) and 0 <= value <= 1):
            raise ValueError(f"{name} is {value!r}; it must be between 0 and 1")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _names() -> tuple[set[str], set[str]]:
    """The signals of a passage, and those of a reading, as this version computes them."""
    view = PassageView(
        RetrievedPassage(Passage("", "", "a"), 1, 0.0), reader=(Candidate("b", 1.0),), answerer=((Candidate("b", 1.0), LEAST),)
    )
    (reading,) = readings("", view)
    return set(QuestionSignals("", [view]).passage(0, view)), set(reading.signals)


def write_signals(folder: Path, found: Signals) -> Path:
    """Raises StorageError."""
    w = found.weighing
    body = {
        "fitted_on": found.fitted_on,
        "figures": dict(found.figures),
        "abstain_below": found.abstain_below,
        "verified_above": found.verified_above,
        "passage": dict(w.passage),
        "passage_bias": w.passage_bias,
        "reading": dict(w.reading),
        "nothing": w.nothing,
    }
    disk.write_text(folder / FILE, json.dumps(body, indent=1) + "\n")
    return folder / FILE
