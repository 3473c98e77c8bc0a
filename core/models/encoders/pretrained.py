"""The only loader of third-party models and tokenizers, in the formats of transformers and sentence-transformers.

Code that comes with a model never runs: every load sets `trust_remote_code=False`, because by default transformers asks on the terminal and
waits.  Its errors, and torch's, advise relaxing this; ours must not (`reason`).
"""

from __future__ import annotations

import pickle
import re
import threading
from typing import Any

from core.errors import CheckpointError

# held by a thread while it imports from transformers and while it loads with it: transformers imports its modules lazily, and two threads that
# trigger this at the same time see incomplete ones
TRANSFORMERS = threading.RLock()
_LOOSEN = re.compile(r"trust_remote_code|weights_only|safe_globals|allow_pickle|can still be loaded", re.IGNORECASE)
_NAMED = re.compile(r"GLOBAL ([\w.]+)")


def reason(error: BaseException) -> str:
    """A library's error message in one line, without advice to allow code execution."""
    text = str(error).strip()
    if isinstance(error, pickle.UnpicklingError) or _LOOSEN.search(text):
        if "trust_remote_code" in text:
            return "it needs its own code, which is never run here"
        named = _NAMED.search(text)
        return f"it holds more than tensors: {named[1]}" if named else "it holds more than tensors, or is damaged"
    return text.splitlines()[0] if text else type(error).__name__


def pretrained(kind: str, source: object, **options: Any) -> Any:
    """`transformers.<kind>.from_pretrained(source, **options)`.  `source`: a folder or a hub name.

    Raises CheckpointError if the model needs its own code or its weights hold more than tensors; other errors of transformers pass through.
    """
    with TRANSFORMERS:
        import transformers

        try:
            return getattr(transformers, kind).from_pretrained(source, trust_remote_code=False, **options)
        except (ValueError, RuntimeError, pickle.UnpicklingError) as error:
            raise _refused(source, error) from None


def sentence_transformer(source: str, device: str) -> Any:
    """A SentenceTransformer.  Raises CheckpointError as `pretrained` does."""
    with TRANSFORMERS:
        from sentence_transformers import SentenceTransformer

        try:
            return SentenceTransformer(source, device=device, trust_remote_code=False)
        except (ValueError, RuntimeError, pickle.UnpicklingError) as error:
            raise _refused(source, error) from None


def _refused(source: object, error: Exception) -> Exception:
    """A CheckpointError for a refused model, else the error itself."""
    if not isinstance(error, pickle.UnpicklingError) and not _LOOSEN.search(str(error)):
        return error
    return CheckpointError(
        f"model '{source}' cannot be loaded: {reason(error)}; "
        "use a model whose architecture is part of transformers, with safetensors weights"
    )
