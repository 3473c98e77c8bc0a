"""What must be the same on every machine, so that its results are those of one process: code, versions and weights."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Mapping
from functools import cache

from core.settings import ROOT
from core.types import SystemInfo

Facts = Mapping[str, str]  # what -> version or digest
PACKAGES = ("torch", "transformers", "tokenizers", "numpy")
_SHOWN = 40  # characters of a value in a message


@cache
def versions() -> Facts:
    """Of this process.  Python and Ray are compared by Ray itself; the builds of a version (CPU, CUDA) count as one."""
    found = hashlib.sha256()
    for path in sorted((ROOT / "core").rglob("*")):
        if path.suffix in (".py", ".txt", ".json"):
            found.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    packages = {name: importlib.metadata.version(name).split("+")[0] for name in PACKAGES}
    return {"the code in core/": found.hexdigest()[:12], **packages}


def facts_of(info: SystemInfo) -> Facts:
    """What makes a system's answers; its weights by digest."""
    return {
        "the system": info.name,
        "its options": json.dumps(dict(info.settings), sort_keys=True, default=str),
        "the corpus": f"{info.corpus} {info.corpus_digest}".strip(),
        "its weights": f"{info.checkpoint} {info.checkpoint_digest}".strip(),
    }


def differences(here: Facts, there: Facts) -> list[str]:
    """One for each fact that differs, "" standing for none; long values are not shown."""
    out = []
    for name in {**here, **there}:
        ours, theirs = here.get(name, "none"), there.get(name, "none")
        if ours != theirs:
            short = len(ours) <= _SHOWN and len(theirs) <= _SHOWN
            out.append(f"{name}: {ours} here, {theirs} there" if short else f"{name}: another there than here")
    return out
