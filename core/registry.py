"""Names that resolve lazily to `"module:attribute"`: listing them imports nothing; an unknown name gets a suggestion and the list."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable, Iterator, Mapping
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


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """ " Did you mean 'x'?" for a name that is close to one of the known ones, else nothing."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f" Did you mean '{close[0]}'?" if close else ""


class Registry(Mapping[str, Entry]):
    def __init__(self, kind: str, entries: Mapping[str, Entry]) -> None:
        self.kind, self._entries = kind, dict(entries)

    def __getitem__(self, name: str) -> Entry:
        try:
            return self._entries[name]
        except KeyError:
            hint = did_you_mean(name, self._entries)
            shown = ", ".join(n for n, e in self._entries.items() if not e.hidden)
            raise UnknownNameError(f"unknown {self.kind} '{name}'.{hint} Available: {shown}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def get(self, name: str, default: Any = None) -> Any:
        """As in any mapping: an unknown name is not an error."""
        return self._entries.get(name, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def resolve(self, name: str) -> Any:
        return load(self[name].target)


def load(target: str) -> Any:
    """What "module:attribute" names."""
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)
