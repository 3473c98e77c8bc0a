"""Old spellings of public names.  Each works for one release, with a warning on stderr that says the new name; then its row here goes."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

TARGETS = {"rescorer": "reranker"}  # of `core train`
OPTIONS = {"rescoring": "reranking"}  # of systems: --set, stored runs, links
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


def current_options(extra: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a system under today's names.  Where both spellings are given, the new one counts."""
    return {current(name, OPTIONS, "option"): value for name, value in extra.items() if OPTIONS.get(name) not in extra}


def current_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What an earlier version wrote as the settings of a system, under today's names: no warning, since nobody typed them."""
    out = {OPTIONS.get(name, name): value for name, value in settings.items()}
    if isinstance(extra := out.get("extra"), dict):
        out["extra"] = {OPTIONS.get(name, name): value for name, value in extra.items()}
    return out


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
