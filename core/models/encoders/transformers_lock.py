"""A lock for importing transformers.  It imports its modules lazily, and two threads that trigger this at the same time see incomplete modules.

with TRANSFORMERS:
    from transformers import AutoModel

    model = AutoModel.from_pretrained(folder)
"""

from __future__ import annotations

import threading

TRANSFORMERS = threading.RLock()  # held by a thread while it imports from transformers and while it loads with it
