"""Old spellings of public names.  Each works for one release, with a warning on stderr that says the new name; then its row here goes."""

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
}  # values of the option `reranking`, before that `rescoring`, as those of `additions` of ambiscope
CALIBRATIONS = {  # in calibration.json: today's name -> the one of before, when ambigprompt had the additions
    f"ambiscope {kind}": f"ambigprompt {kind}" for kind in ("retrieved", "own", "retrieved_verified", "own_verified")
}
FILES = {  # of checkpoint folders
    "rescorer.json": "reranker.json",
    "rescorer_own.json": "reranker_own.json",
    "rescorer_verified.json": "reranker_verified.json",
    "rescorer_own_verified.json": "reranker_own_verified.json",
}


def current(name: str, table: Mapping[str, str], where: str) -> str:
    """The name as it is written today; says so once per process where it was the old one.  `where`: what the name belongs to, in words."""
    if (new := table.get(name)) is None:
        return name
    _warn(name, new, where)
    return new


def current_request(system: str, extra: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """A system and its options under today's names.  With the option `reranking`, `ambigprompt` means the system with additions, as it did."""
    olds = [name for name in ("rescoring", "reranking") if name in extra]
    if not olds or system not in ("ambigprompt", "ambiscope"):
        return system, dict(extra)
    value = extra[olds[-1]]
    said = f"additions={ADDITIONS.get(value, value)}"
    _warn(f"{olds[-1]}={value} of {system}", f"{said} of ambiscope", "option")
    return "ambiscope", {"additions": ADDITIONS.get(value, value), **{k: v for k, v in extra.items() if k not in olds}}


def ran_as(system: str, settings: Mapping[str, Any]) -> str:
    """The system of today that does what a stored run did: until `ambiscope` was a system of its own, `ambigprompt` had the additions."""
    had = "additions" not in settings and ("reranking" in settings or "rescoring" in settings)
    return "ambiscope" if had and system == "ambigprompt" else system


def find_file(folder: Path, name: str) -> Path | None:
    """The file of a checkpoint folder, perhaps under its old name; None where there is neither."""
    olds = [old for old, new in FILES.items() if new == name]
    for file in (folder / n for n in (name, *olds)):
        if file.is_file():
            current(file.name, FILES, str(folder))
            return file
    return None


@lru_cache(maxsize=64)
def _warn(old: str, new: str, where: str) -> None:
    print(f"warning: {where}: '{old}' is now called '{new}'; the next release no longer knows the old name", file=sys.stderr)
