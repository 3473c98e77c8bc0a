"""Ambiscope's core: retrieval, models, systems, metrics and training. Knows no user interface and no database.

`from core import Engine, Question, evaluate` is the door for other programs (docs/python.md). It loads a name when it is asked
for: `import core` imports nothing else. Our own code imports a name from where it is defined.
"""

import importlib
from typing import Any

__version__ = "1.0.0"  # the one place: pyproject.toml and the pages read it

DOOR = {"Engine": "core.engine", "Question": "core.types", "evaluate": "core.evaluation.plan"}


def __getattr__(name: str) -> Any:
    if name not in DOOR:
        raise AttributeError(f"module 'core' has no attribute '{name}'; it offers {', '.join(DOOR)}")
    return getattr(importlib.import_module(DOOR[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *DOOR])
