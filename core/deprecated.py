"""Deprecated public names.  Each works for one release, with a warning on stderr that gives the new name; then its row here is removed."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

TARGETS = {"rescorer": "reranker"}  # of `core train`
ADDITIONS = {
    "on": "all",
    "off": "none",
}  # values of the old options `reranking` and `rescoring` -> values of `additions` of ambiscope
CALIBRATIONS = {  # in calibration.json: current name -> deprecated name
    f"ambiscope {kind}": f"ambigprompt {kind}" for kind in ("retrieved", "own", "retrieved_verified", "own_verified")
}
FILES = {  # of checkpoint folders
    "rescorer.json": "reranker.json",
    "rescorer_own.json": "reranker_own.json",
    "rescorer_verified.json": "reranker_verified.json",
    "rescorer_own_verified.json": "reranker_own_verified.json",
}


def current(name: str, table: Mapping[str, str], where: str) -> str:
    """The current spelling of a name; warns once per process about a deprecated one.  `where`: what the name belongs to, for the warning."""
    if (new := table.get(name)) is None:
        return name
    _warn(name, new, where)
    return new


def current_request(system: str, extra: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """A system and its options under their current names.  With the option `reranking`, `ambigprompt` means the system with additions."""
    deprecated = [name for name in ("rescoring", "reranking") if name in extra]
    if not deprecated or system not in ("ambigprompt", "ambiscope"):
        return system, dict(extra)
    value = extra[deprecated[-1]]
    option = f"additions={ADDITIONS.get(value, value)}"
    _warn(f"{deprecated[-1]}={value} of {system}", f"{option} of ambiscope", "option")
    return "ambiscope", {"additions": ADDITIONS.get(value, value), **{k: v for k, v in extra.items() if k not in deprecated}}


def current_system(system: str, settings: Mapping[str, Any]) -> str:
    """The current system that does what a stored run did: an `ambigprompt` run with reranking is an `ambiscope` run."""
    had = "additions" not in settings and ("reranking" in settings or "rescoring" in settings)
    return "ambiscope" if had and system == "ambigprompt" else system


def find_file(folder: Path, name: str) -> Path | None:
    """A file of a checkpoint folder, under its current or its deprecated name; None if there is neither."""
    for file in (folder / n for n in (name, *(old for old, new in FILES.items() if new == name))):
        if file.is_file():
            current(file.name, FILES, str(folder))
            return file
    return None


@lru_cache(maxsize=64)
def _warn(old: str, new: str, where: str) -> None:
    print(f"warning: {where}: '{old}' is now called '{new}'; the old name will be removed in the next release", file=sys.stderr)
