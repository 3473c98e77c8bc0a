"""Plugins for one test: the registries as they are in a process that has read none."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from core import plugins
from core.metrics import METRICS
from core.retrieval.readers import READERS
from core.systems import SYSTEMS
from storage.exchange.exports.formats import FORMATS


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """plugin(text, name="my_plugin.py"): a file with this text, which AMBISCOPE_PLUGINS names beside those of earlier calls."""
    paths: list[Path] = []
    for registry in (SYSTEMS, METRICS, READERS, FORMATS):
        ours = {name: entry for name, entry in registry.items() if not registry.origin(name)}
        for attribute, value in (("_entries", ours), ("_plugins", []), ("_is_complete", False)):
            monkeypatch.setattr(registry, attribute, value)
    for cached in (plugins._module, plugins._entry_points):
        cached.cache_clear()

    def add(text: str, name: str = "my_plugin.py") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        monkeypatch.delitem(sys.modules, path.stem, raising=False)
        paths.append(path)
        monkeypatch.setenv("AMBISCOPE_PLUGINS", os.pathsep.join(map(str, paths)))
        return path

    return add
