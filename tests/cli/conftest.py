"""The fixtures of `command_line`."""

from __future__ import annotations

from command_line import home, run

__all__ = ["home", "run"]
