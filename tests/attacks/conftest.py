"""The attacks use the home, the scripted system and the app of the page tests."""

from __future__ import annotations

from page_fixtures import annotate, app, corpus, fresh_process, light, open_app, settings, store
from serving import browser

__all__ = ["annotate", "app", "browser", "corpus", "fresh_process", "light", "open_app", "settings", "store"]
