"""The systems that a page offers, and the meaning of their options on every page."""

from __future__ import annotations

from collections.abc import Sequence

from core.engine import SystemStatus

MAX_PASSAGES = 200  # that a person can have a system read
COVERAGE_HELP = "Refuses answers whose document does not mention the names, numbers, years and quoted titles of the question."


def ready_systems(statuses: Sequence[SystemStatus], default: str) -> list[str]:
    """Names to choose from, the default first; a hidden system can be chosen only by being the default."""
    names = [s.name for s in statuses if s.ready]
    is_hidden = default not in [s.name for s in statuses]
    return sorted([default, *names] if is_hidden else names, key=lambda name: name != default)
