"""Fixtures of the browser tests."""

from __future__ import annotations

from serving import browser

__all__ = ["browser"]
