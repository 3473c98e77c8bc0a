"""AmbigNQ light, with the starter's further fields: `passages` of a pair, `ambiguity` and `domain` of a question."""

from __future__ import annotations

from pathlib import Path

from core.errors import FormatError
from core.metrics import strict_json
from core.metrics.files import parse_references
from core.types import ReferenceQuestion


def load(path: Path) -> list[ReferenceQuestion]:
    """A pair's `passages` become its `passage_ids`; a question's other fields go to `extra`.  Raises FormatError."""
    found = parse_references(strict_json.read(path), path.name, none_allowed=True)
    for question in found:
        for name in ("ambiguity", "domain", "source"):
            if not isinstance(question.extra.get(name), str | None):
                raise FormatError(f"question '{question.id}': expected text or null", file=path.name, field=name)
    return found
