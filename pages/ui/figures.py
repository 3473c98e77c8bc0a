"""A figure of agreement as text, with its interval."""

from __future__ import annotations

from core.metrics.agreement.chance import Figure

UNDEFINED = "undefined"


def value(figure: Figure) -> str:
    return number(figure.value, figure.name)


def interval(figure: Figure) -> str:
    if figure.interval is None:
        return "" if figure.value is None else "too few questions"
    return " to ".join(number(end, figure.name) for end in figure.interval)


def value_with_interval(figure: Figure) -> str:
    """Value and interval in one cell."""
    return value(figure) if figure.interval is None else f"{value(figure)} ({interval(figure)})"


def number(figure: float | None, measure: str = "") -> str:
    """F1 in percent, as on every page; coefficients of agreement as they are."""
    if figure is None:
        return UNDEFINED
    return f"{100 * figure:.1f}" if "F1" in measure else f"{figure:.3f}"
