"""Names that resolve lazily to `"module:attribute"`: listing ours imports nothing; an unknown name gets a suggestion and the list."""

from __future__ import annotations

import difflib
import importlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from core import plugins
from core.errors import AmbiscopeError, InputError, PluginError, UnknownNameError
from core.plugins import Plugin

E = TypeVar("E", bound="Entry")
MAX_NAME_CHARS = 60


@dataclass(frozen=True, slots=True)
class Entry:
    """The facts about a registered name that are known before it is used."""

    target: str | Callable[..., Any]  # "module:attribute", imported when it is used; or the function itself
    summary: str
    source: str = ""  # paper, section
    hidden: bool = field(default=False, kw_only=True)  # usable by name, not shown in menus (test doubles)

    def problem(self, name: str) -> str:
        """The reason why this entry can't have this name; empty if it can."""
        if not name.strip() or name != name.strip() or not name.isprintable() or len(name) > MAX_NAME_CHARS:
            return f"the name must be one line of 1 to {MAX_NAME_CHARS} characters, without spaces around it"
        return "" if self.summary else "the summary is empty"

    def import_targets(self) -> None:
        """Imports the targets that a plugin's entry names, so that one that can't be imported is in no list.  Raises whatever
        the import raises."""
        if not callable(load(self.target)):
            raise TypeError(f"{self.target} cannot be called")


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """ " Did you mean 'x'?" for a name that is close to one of `names`, else nothing."""
    close = difflib.get_close_matches(name, list(names), n=1, cutoff=0.5)
    return f" Did you mean '{close[0]}'?" if close else ""


class Registry(Mapping[str, E]):
    """Entries by name, ours first; `registry[name]` raises UnknownNameError with the names that are not hidden.

    `kind` is what they are called there.  `group`: plugins add to it (core.plugins); they are imported when the registry is first read.
    """

    def __init__(self, kind: str, entries: Mapping[str, E], group: str = "", entry_type: type[Entry] = Entry) -> None:
        self.kind, self.group, self.entry_type = kind, group, entry_type
        self._entries: dict[str, E] = {}
        self._plugins: list[Plugin] = []
        self._is_complete = not group
        self._lock = threading.RLock()
        for name, entry in entries.items():
            self._add(name, entry)

    def _add(self, name: str, entry: Any) -> None:
        """Registers one entry.  Raises InputError for another type of entry, a name that is used, and what the entry itself refuses."""
        if not isinstance(entry, self.entry_type):
            raise InputError(f"it is registered as {_type_name(entry)}; expected a {self.entry_type.__name__}")
        if name in self._entries:
            raise InputError(f"the name is used by {self.origin(name) or 'Ambiscope'}; choose another")
        if problem := entry.problem(name):
            raise InputError(problem)
        self._entries[name] = entry  # type: ignore[assignment]

    def _complete(self) -> dict[str, E]:
        """The entries including those of plugins.  A failing one is left out, and reported by `plugins`."""
        if not self._is_complete:
            with self._lock:
                pending, self._is_complete = not self._is_complete, True  # a plugin may read the registry while it is imported
                for offer in plugins.offers(self.group) if pending else ():
                    try:
                        entry = offer.load()
                        self._add(offer.name, entry)
                        entry.import_targets()
                        problem = ""
                    except InputError as error:
                        problem = str(error)
                    except (Exception, SystemExit) as error:
                        self._entries.pop(offer.name, None)
                        problem = plugins.describe(error)
                    self._plugins.append(Plugin(self.kind, offer.name, offer.origin, problem))
        return self._entries

    def plugins(self) -> list[Plugin]:
        """The names that plugins offered to this registry, including refused ones."""
        self._complete()
        return list(self._plugins)

    def origin(self, name: str) -> str:
        """The plugin that a name comes from; empty for ours."""
        return next((p.origin for p in self._plugins if p.name == name and not p.problem), "")

    @contextmanager
    def running(self, name: str) -> Iterator[None]:
        """Wraps calls of an entry's code, so that an unexpected error in a plugin becomes a PluginError that names it."""
        try:
            yield
        except AmbiscopeError:
            raise
        except Exception as error:
            if origin := self.origin(name):
                raise PluginError(f"{Plugin(self.kind, name, origin, plugins.describe(error))}") from error
            raise

    def __getitem__(self, name: str) -> E:
        entries = self._complete()
        if name in entries:
            return entries[name]
        available = ", ".join(n for n, entry in entries.items() if not entry.hidden)
        raise UnknownNameError(f"unknown {self.kind} '{name}'.{did_you_mean(name, entries)} Available: {available}")

    def get(self, name: str, default: Any = None) -> Any:
        return self._complete().get(name, default)

    def __contains__(self, name: object) -> bool:
        return name in self._complete()

    def __iter__(self) -> Iterator[str]:
        return iter(self._complete())

    def __len__(self) -> int:
        return len(self._complete())

    def resolve(self, name: str) -> Any:
        """The target of an entry, imported.  Raises UnknownNameError."""
        return load(self[name].target)


def load(target: str | Any) -> Any:
    """The object that "module:attribute" names, imported.  Anything else is returned unchanged."""
    if not isinstance(target, str):
        return target
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)


def problems(*registries: Registry[Any]) -> list[str]:
    """The problems of the plugins of these registries, one line each."""
    return [
        str(plugin) for plugin in (*plugins.broken_files(), *(p for r in registries for p in r.plugins())) if plugin.problem
    ]


def _type_name(value: object) -> str:
    return f"a {type(value).__name__}"
