"""The version of this installation."""

from __future__ import annotations

import re
from functools import cache

from core.settings import ROOT


@cache
def application_version() -> str:
    """The newest heading of the change log."""
    try:
        text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    except OSError:
        return "unknown"
    match = re.search(r"^## \[?([^\]\n]+)\]?", text, re.MULTILINE)
    return match.group(1).strip() if match else "unknown"
