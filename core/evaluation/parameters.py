"""Counts the parameters of a system: all reachable networks, each once."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from typing import Any

_CORPUS = ("retriever", "corpus", "parts", "settings")  # attributes of retrieval, which is not counted
_MAX_OBJECTS = 20_000  # objects visited; a system has a few dozen


def parameters_of(system: object) -> int | None:
    """The number of parameters in all torch modules of a system, without retrieval; None if there are none (an endpoint, a
    table).

    Shared weights count once.  Follows attributes, containers, partial functions and closures of this package's objects.
    """
    torch = sys.modules.get("torch")
    if torch is None:  # no network was ever loaded
        return None
    sizes: dict[int, int] = {}
    visited: set[int] = set()
    todo: list[Any] = [system]
    while todo and len(visited) < _MAX_OBJECTS:
        item = todo.pop()
        if id(item) in visited:
            continue
        visited.add(id(item))
        if isinstance(item, torch.nn.Module):
            sizes.update((id(p), p.numel()) for p in item.parameters())
        else:
            todo.extend(_below(item))
    return sum(sizes.values()) or None


def _below(item: Any) -> list[Any]:
    """The contents of an object.  Only our own objects, containers and functions are followed."""
    if isinstance(item, Mapping):
        return list(item.values())
    if isinstance(item, list | tuple | set | frozenset):
        return list(item) if len(item) < 1000 else []  # long ones are data
    if isinstance(item, functools.partial):
        return [item.func, *item.args, *item.keywords.values()]
    if (bound := getattr(item, "__self__", None)) is not None and callable(item):
        return [bound]
    if (cells := getattr(item, "__closure__", None)) is not None:
        return [c.cell_contents for c in cells if _filled(c)]
    kind = type(item)
    if not kind.__module__.startswith(("core", "tests", "test_", "__main__")):
        return []
    slots = [name for k in kind.__mro__ for name in getattr(k, "__slots__", ())]
    attributes = {**getattr(item, "__dict__", {}), **{name: getattr(item, name, None) for name in slots}}
    return [value for name, value in attributes.items() if name.strip("_") not in _CORPUS]


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True
