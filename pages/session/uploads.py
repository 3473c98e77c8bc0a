"""Files that a browser sent, and names for them that are safe on every disk."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Protocol

from core.errors import InputError
from core.retrieval.readers import uploaded

_DEVICE = re.compile(r"con|prn|aux|nul|(com|lpt)\d", re.IGNORECASE)
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


class Uploaded(Protocol):
    name: str

    def getbuffer(self) -> memoryview: ...


def safe_names(names: Sequence[str], kinds: Iterable[str] | None = None) -> dict[str, str]:
    """Safe name -> name as uploaded: characters that are safe everywhere, a suffix among `kinds` (by default those of corpus files), and a number where two would be
    equal, or one is a device on Windows.  The same names give the same result, so that a build can be resumed.  Raises InputError."""
    originals: dict[str, str] = {}
    kinds = uploaded() if kinds is None else kinds
    for number, name in enumerate(names, 1):
        lower = name.lower()
        suffix = next((s for s in sorted(kinds, key=len, reverse=True) if lower.endswith(s)), None)
        if suffix is None:
            raise InputError(f"{name[:120]}: this file type cannot be read; use one of {', '.join(kinds)}")
        stem = _UNSAFE.sub("_", name[: -len(suffix)])[:40].strip("_") or "file"
        existing = {n.lower() for n in originals}
        if _DEVICE.fullmatch(stem) or f"{stem}{suffix}".lower() in existing:
            stem = f"{stem}-{number}"
        while f"{stem}{suffix}".lower() in existing:
            stem += "_"
        originals[f"{stem}{suffix}"] = name
    return originals
