"""Figures as people read them."""

from __future__ import annotations

from core.metrics import COUNT_METRICS


def percent(value: float) -> str:
    return "<1%" if 0 < value < 0.01 else f"{value:.0%}"


def seconds(value: float) -> str:
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s"


def duration(value: float) -> str:
    """Of long work, in the two largest units that count.

    >>> duration(42.4), duration(61), duration(7_320)
    ('42 s', '1 min 1 s', '2 h 2 min')
    """
    total = round(value)
    if total < 60:
        return f"{total} s"
    return f"{total // 60} min {total % 60} s" if total < 3600 else f"{total // 3600} h {total % 3600 // 60} min"


def is_share(metric: str) -> bool:
    return metric not in COUNT_METRICS


def scaled(metric: str, value: float | None) -> float | None:
    """A share in percent, a count as it is: the one scale of every table and chart."""
    return 100 * value if value is not None and is_share(metric) else value


def format_score(metric: str, value: float | None, sign: str = "") -> str:
    """`sign`: "+" for a difference."""
    if value is None:
        return "–"
    return f"{scaled(metric, value):{sign}.{1 if is_share(metric) else 2}f}"


def axis(metric: str) -> str:
    return f"{metric} (%)" if is_share(metric) else metric
