"""A cache for weights that are loaded once per process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def loaded_once(models: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Caches the last `models` results of a loader by its arguments, one of which must change with the weights (their digest).

    Two threads that ask for the same weights load them once.
    """

    def decorate(load: Callable[P, R]) -> Callable[P, R]:
        cached, loading = lru_cache(models)(load), threading.Lock()

        @wraps(load)
        def once(*args: P.args, **kwargs: P.kwargs) -> R:
            with loading:
                return cached(*args, **kwargs)  # type: ignore[arg-type]

        return once

    return decorate
