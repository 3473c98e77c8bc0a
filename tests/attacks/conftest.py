"""The attacks use the page tests' home, scripted system and app."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

_path = Path(__file__).parents[1] / "pages" / "conftest.py"
_spec = importlib.util.spec_from_file_location("page_fixtures", _path)
assert _spec is not None
assert _spec.loader is not None
_shared = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_shared)

fresh_process, settings, corpus, open_app, app = (
    _shared.fresh_process,
    _shared.settings,
    _shared.corpus,
    _shared.open_app,
    _shared.app,
)
store, light, annotate = _shared.store, _shared.light, _shared.annotate


@pytest.fixture(autouse=True)
def no_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    """AppTest reads the metadata of all installed packages for each app, looking for components."""
    monkeypatch.setattr("streamlit.components.v2.manifest_scanner.scan_component_manifests", list)
