"""The slow imports of the bundled models, once per process.  Pages and workers wait here until they are finished.

transformers is not among them; models of other kinds import it under core.models.loading.pretrained.TRANSFORMERS.  No Streamlit call is made here.
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
SWITCH_SECONDS = 0.0005  # between threads (Python's default is 0.005), so that pages are drawn promptly during the imports
_lock, _imported = threading.Lock(), threading.Event()


def loaded() -> bool:
    return _imported.is_set()


def load() -> None:
    """Returns when all are imported, by this thread or an earlier one."""
    with _lock:
        if _imported.is_set():
            return
        quiet_libraries()
        default = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_SECONDS)
        try:
            for module in MODULES:
                importlib.import_module(module)
        finally:
            sys.setswitchinterval(default)
        _imported.set()
