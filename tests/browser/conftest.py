"""What the browser tests share."""

from __future__ import annotations

from serving import browser

__all__ = ["browser"]
