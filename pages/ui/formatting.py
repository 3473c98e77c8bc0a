"""Formats figures for people."""

from __future__ import annotations

from datetime import UTC, datetime

from core.metrics import better_of, entry_of
from core.text import time_text


def seconds(value: float) -> str:
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s"


def local_time(stamp: str) -> str:
    """An ISO time (UTC if it names no zone) in this machine's zone, as all pages show times; empty for none."""
    if not stamp:
        return ""
    time = datetime.fromisoformat(stamp)
    return time_text(time if time.tzinfo else time.replace(tzinfo=UTC))


def duration(value: float) -> str:
    """A duration of long work, in its two largest non-zero units.

    >>> duration(42.4), duration(61), duration(7_320)
    ('42 s', '1 min 1 s', '2 h 2 min')
    """
    total = round(value)
    if total < 60:
        return f"{total} s"
    return f"{total // 60} min {total % 60} s" if total < 3600 else f"{total // 3600} h {total % 3600 // 60} min"


def is_share(metric: str) -> bool:
    return not entry_of(metric).is_count


def scaled(metric: str, value: float | None) -> float | None:
    """A share in percent and a count unchanged, the one scale of every table and chart."""
    return 100 * value if value is not None and is_share(metric) else value


def format_score(metric: str, value: float | None, sign: str = "") -> str:
    """`sign`: "+" for a difference."""
    if value is None:
        return "–"
    return f"{scaled(metric, value):{sign}.{1 if is_share(metric) else 2}f}"


def axis(metric: str) -> str:
    """The metric's label with its unit, and the better direction."""
    better = better_of(metric)
    return f"{metric}{' (%)' if is_share(metric) else ''}{f', {better} is better' if better else ''}"
