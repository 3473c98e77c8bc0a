"""The attacks use the home, the scripted system and the app of the page tests."""

from __future__ import annotations

import pytest
from annotation_samples import hash_quickly
from page_fixtures import annotate, app, corpus, fresh_process, light, open_app, settings, store
from serving import browser

__all__ = ["annotate", "app", "browser", "corpus", "fresh_process", "light", "open_app", "settings", "store"]


@pytest.fixture(autouse=True)
def no_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    """AppTest reads the metadata of all installed packages for each app, looking for components."""
    monkeypatch.setattr("streamlit.components.v2.manifest_scanner.scan_component_manifests", list)


@pytest.fixture(autouse=True)
def quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    hash_quickly(monkeypatch)
