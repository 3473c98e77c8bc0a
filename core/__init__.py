"""Ambiscope's core: retrieval, models, systems, metrics and training. Knows no user interface and no database.

`from core import Engine, Question, evaluate` is the interface for other programs (docs/python.md). Each name is loaded on first use:
`import core` imports nothing else. Our own code imports a name from where it is defined.
"""

import importlib
from typing import Any

__version__ = "1.0.0"  # the one place: pyproject.toml and the pages read it

EXPORTS = {"Engine": "core.engine", "Question": "core.types", "evaluate": "core.evaluation.plan"}


def __getattr__(name: str) -> Any:
    if name not in EXPORTS:
        raise AttributeError(f"module 'core' has no attribute '{name}'; it offers {', '.join(EXPORTS)}")
    return getattr(importlib.import_module(EXPORTS[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *EXPORTS])
