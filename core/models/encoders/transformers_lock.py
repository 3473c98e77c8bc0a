"""One thread at a time imports transformers: its modules are imported when a name is first asked for, or a model first loaded, and two threads that
do so at once find them half made.

    with TRANSFORMERS:
        from transformers import AutoModel

        model = AutoModel.from_pretrained(folder)
"""

from __future__ import annotations

import threading

TRANSFORMERS = threading.RLock()  # held by a thread while it imports from transformers and while it loads with it
