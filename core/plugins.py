"""Registrations from outside the repository: entry points of installed packages, and the files of AMBISCOPE_PLUGINS.

Nothing here is imported before a registry is read.  What fails is kept as a `Plugin` with its problem, and everything else works.
"""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from core.settings import plugin_files

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

# group of entry points -> the dictionary of the same entries in a file
GROUPS = {
    "ambiscope.systems": "SYSTEMS",
    "ambiscope.metrics": "METRICS",
    "ambiscope.readers": "READERS",
    "ambiscope.exports": "EXPORTS",
}


@dataclass(frozen=True, slots=True)
class Plugin:
    """One registered name, or a file that could not be read.  `problem`: why it is left out; empty if it works."""

    kind: str
    name: str
    origin: str  # file, or package and version
    problem: str = ""

    def __str__(self) -> str:
        subject = f"{self.kind} '{self.name}' of {self.origin}" if self.name != self.origin else f"{self.kind} {self.name}"
        return f"{subject}: {self.problem}" if self.problem else subject


@dataclass(frozen=True, slots=True)
class Offer:
    """A name that a plugin offers to a registry; `load` returns its entry, or raises whatever the plugin's code raises."""

    name: str
    origin: str
    load: Callable[[], Any]


def offers(group: str) -> Iterator[Offer]:
    """The names that installed packages and files offer to one registry."""
    for point in _entry_points(group):
        yield Offer(point.name, f"{point.dist.name} {point.dist.version}" if point.dist else point.value, point.load)
    for path in plugin_files():
        module, _ = _module(path)
        entries = getattr(module, GROUPS[group], None)
        if isinstance(entries, Mapping):
            for name, entry in entries.items():
                yield Offer(str(name), path.name, lambda entry=entry: entry)  # type: ignore[misc]


def exist() -> bool:
    """Whether anything is installed or named that may register something."""
    return bool(plugin_files()) or any(map(_entry_points, GROUPS))


def broken_files() -> list[Plugin]:
    """The files of AMBISCOPE_PLUGINS that offer nothing, with the reason."""
    return [Plugin("plugin file", path.name, path.name, problem) for path in plugin_files() if (problem := _module(path)[1])]


def describe(error: BaseException) -> str:
    """An error in a plugin's code on one line, with the line where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return " ".join(f"{type(error).__name__}: {error}".split()) + place


@lru_cache(maxsize=16)
def _entry_points(group: str) -> tuple[EntryPoint, ...]:
    from importlib import metadata  # not needed to list commands

    return tuple(metadata.entry_points(group=group))


@lru_cache(maxsize=16)
def _module(path: Path) -> tuple[ModuleType | None, str]:
    """A file as a module named after it, imported once, or the reason why it isn't one."""
    if not path.is_file():
        return None, f"there is no file {path}; correct AMBISCOPE_PLUGINS"
    name = path.stem
    existing = importlib.util.find_spec(name) if name.isidentifier() else None
    if not name.isidentifier() or (existing is not None and Path(existing.origin or "").resolve() != path):
        return None, "the file's name is not free as the name of a module: rename the file"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        return None, "the file is not Python: its name must end in .py"
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        return None, describe(error)
    offered = {key: getattr(module, key) for key in GROUPS.values() if hasattr(module, key)}
    wrong = [key for key, value in offered.items() if not isinstance(value, Mapping)]
    if wrong:
        return module, f"{wrong[0]} is a {type(offered[wrong[0]]).__name__}; it must be a dictionary of entries by name"
    return module, "" if offered else f"the file has none of {', '.join(GROUPS.values())}"
