"""The only loader of third-party models and tokenizers, in the formats of transformers and sentence-transformers.

Code that comes with a model never runs: every load sets `trust_remote_code=False`, because by default transformers asks on the terminal and
waits.  Its errors, and torch's, advise relaxing this; ours must not (`reason`).
"""

from __future__ import annotations

import pickle
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from core.errors import CheckpointError

# held by a thread while it imports from transformers and while it loads with it: transformers imports its modules lazily, and two threads that
# trigger this at the same time see incomplete ones
TRANSFORMERS = threading.RLock()
_LOOSEN = re.compile(r"trust_remote_code|weights_only|safe_globals|allow_pickle|can still be loaded", re.IGNORECASE)
_UNSAFE_GLOBAL = re.compile(r"GLOBAL ([\w.]+)")


def reason(error: BaseException) -> str:
    """A library's error message in one line, without advice to allow code execution."""
    text = str(error).strip()
    if isinstance(error, pickle.UnpicklingError) or _LOOSEN.search(text):
        if "trust_remote_code" in text:
            return "it needs its own code, which is never run here"
        match = _UNSAFE_GLOBAL.search(text)
        return f"it holds more than tensors: {match[1]}" if match else "it holds more than tensors, or is damaged"
    return text.splitlines()[0] if text else type(error).__name__


def pretrained(kind: str, source: object, **options: Any) -> Any:
    """`transformers.<kind>.from_pretrained(source, **options)`.  `source`: a folder or a hub name.

    Raises CheckpointError if the model needs its own code or its weights hold more than tensors; other errors of transformers pass through.
    """
    with TRANSFORMERS, _refusals(source):
        import transformers

        return getattr(transformers, kind).from_pretrained(source, trust_remote_code=False, **options)


def sentence_transformer(source: str, device: str) -> Any:
    """A SentenceTransformer.  Raises CheckpointError as `pretrained` does."""
    with TRANSFORMERS, _refusals(source):
        from sentence_transformers import SentenceTransformer

        return SentenceTransformer(source, device=device, trust_remote_code=False)


@contextmanager
def _refusals(source: object) -> Iterator[None]:
    try:
        yield
    except (ValueError, RuntimeError, pickle.UnpicklingError) as error:
        if not isinstance(error, pickle.UnpicklingError) and not _LOOSEN.search(str(error)):
            raise
        raise CheckpointError(
            f"model '{source}' cannot be loaded: {reason(error)}; "
            "use a model whose architecture is part of transformers, with safetensors weights"
        ) from None
