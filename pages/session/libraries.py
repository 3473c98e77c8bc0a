"""The heavy imports of the bundled models, once a process: pages and workers wait here until they are there.

transformers is none of them; what needs it (models of other kinds) imports it under core.models.encoders.pretrained.TRANSFORMERS.  No Streamlit call is made here.
"""

from __future__ import annotations

import importlib
import sys
import threading

from core.settings import quiet_libraries

MODULES = (
    "core.systems.ambigprompt",
    "core.systems.one_pass",
    "core.systems.verdict",
    "core.systems.base.reader_generator",
    "core.models.seq2seq.fid",
    "core.models.encoders.sentence_encoder",
)
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
        finally:
            sys.setswitchinterval(usual)
        _there.set()
