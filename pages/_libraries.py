"""The heavy imports, once a process and in one thread at a time: transformers, imported by two at once, is found half made.

No Streamlit call is made here: workers wait for the libraries as pages do.
"""

from __future__ import annotations

import importlib
import sys
import threading

from core.cli import quiet_libraries

MODULES = (
    "core.systems.ambigprompt",
    "core.systems.one_pass",
    "core.systems.verdict",
    "core.models.fid",
    "core.retrieval.encoder",
)
LAZY = ("AutoTokenizer",)  # what models of other kinds than the bundled ones need is imported with the first of them
SWITCH = 0.0005  # seconds (Python's own is 0.005): while imports keep Python busy, a page that is drawn gets its turn at once
_lock, _there = threading.Lock(), threading.Event()


def loaded() -> bool:
    return _there.is_set()


def load() -> None:
    """Returns when all are imported, by whichever thread came first."""
    with _lock:
        if _there.is_set():
            return
        quiet_libraries()
        usual = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH)
        try:
            for module in MODULES:
                importlib.import_module(module)
            transformers = importlib.import_module("transformers")
            for name in LAZY:
                getattr(transformers, name)
        finally:
            sys.setswitchinterval(usual)
        _there.set()
