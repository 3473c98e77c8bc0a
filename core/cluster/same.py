"""The code, versions and weights that must be equal on every machine, so that its results equal those of one process."""

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
_MAX_VALUE_CHARS = 40  # in a message


@cache
def versions() -> Facts:
    """The versions in this process.  Ray compares Python's and its own.  Builds of one version (CPU, CUDA) count as equal."""
    code = hashlib.sha256()
    for path in sorted((ROOT / "core").rglob("*")):
        if path.suffix in (".py", ".txt", ".json"):
            code.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    packages = {name: importlib.metadata.version(name).split("+")[0] for name in PACKAGES}
    return {"the code in core/": code.hexdigest()[:12], **packages}


def facts_of(info: SystemInfo) -> Facts:
    """The facts that determine a system's answers, with weights by digest."""
    return {
        "the system": info.name,
        "its options": json.dumps(dict(info.settings), sort_keys=True, default=str),
        "the corpus": f"{info.corpus} {info.corpus_digest}".strip(),
        "its weights": f"{info.checkpoint} {info.checkpoint_digest}".strip(),
    }


def differences(ours: Facts, theirs: Facts) -> list[str]:
    """One line for each fact that differs, with "" for a missing one.  Long values aren't shown."""
    messages = []
    for name in {**ours, **theirs}:
        our_value, their_value = ours.get(name, "none"), theirs.get(name, "none")
        if our_value != their_value:
            is_short = len(our_value) <= _MAX_VALUE_CHARS and len(their_value) <= _MAX_VALUE_CHARS
            values = f"{our_value} here, {their_value} there" if is_short else "another there than here"
            messages.append(f"{name}: {values}")
    return messages
