"""Answer quality: figures on questions that no training saw."""

from __future__ import annotations

import csv
from pathlib import Path


def read_tsv(path: Path) -> list[dict[str, str]]:
    """The rows of a file of hand-made judgments, which has no quoting."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
