"""Names that resolve lazily to `"module:attribute"`: listing them imports nothing; an unknown name gets a suggestion and the list."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from core.errors import UnknownNameError

Speed = Literal["Fast", "Medium", "Slow"]  # seconds a question on one CPU core, without rewriting: below 1, 1 to 3, more


@dataclass(frozen=True, slots=True)
class Entry:
    target: str  # "module:attribute"
    summary: str
    source: str = ""  # paper, section
    needs: tuple[str, ...] = ()  # checkpoints or packages, readable
    hidden: bool = False  # usable by name, not shown in menus (test doubles)
    options: str = ""  # "module:attribute" of a system's own options
    # how pages show the trace of a run: a line for each step, or what each passage gave and a map of the interpretations
    view: Literal["answers", "interpretations"] = "answers"
    passages: int = 0  # that a system reads by default, as in its paper; 0: the setting says it
    # why a system is not ranked with the bundled weights: what was measured of it, where its method changes next to nothing
    mechanism_only: str = ""
    missing: str = ""  # which parts of its paper a system lacks where no language model is configured
    expect: str = ""  # what its answers are like with the bundled weights, in plain words, where people should know
    decoding: str = ""  # how a system writes all answers in one pass; charts compare systems that set this
    title: str = ""  # a system's name in a few plain words, for lists that people read
    speed: Speed = "Medium"


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """ " Did you mean 'x'?" for a name that is close to one of `names`, else nothing."""
    close = difflib.get_close_matches(name, list(names), n=1, cutoff=0.5)
    return f" Did you mean '{close[0]}'?" if close else ""


class Registry(dict[str, Entry]):
    """Entries by name; `registry[name]` raises UnknownNameError with the names that are not hidden.  `kind` is what they are called there."""

    def __init__(self, kind: str, entries: Mapping[str, Entry]) -> None:
        super().__init__(entries)
        self.kind = kind

    def __missing__(self, name: str) -> Entry:
        available = ", ".join(n for n, entry in self.items() if not entry.hidden)
        raise UnknownNameError(f"unknown {self.kind} '{name}'.{did_you_mean(name, self)} Available: {available}")

    def resolve(self, name: str) -> Any:
        """Imports the target of an entry.  Raises UnknownNameError."""
        return load(self[name].target)


def load(target: str) -> Any:
    """Imports the object that "module:attribute" names."""
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)
