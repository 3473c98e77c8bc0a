"""The real app on an empty home: the fixtures of `page_fixtures`."""

from __future__ import annotations

from page_fixtures import annotate, app, corpus, fresh_process, light, open_app, settings, store

__all__ = ["annotate", "app", "corpus", "fresh_process", "light", "open_app", "settings", "store"]
