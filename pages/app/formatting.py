"""Figures as people read them."""

from __future__ import annotations


def percent(value: float) -> str:
    return "<1%" if 0 < value < 0.01 else f"{value:.0%}"


def seconds(value: float) -> str:
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s"
