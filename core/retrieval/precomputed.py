"""Precomputed vectors of the starter corpus, so that the first start need not encode it.

`data/starter/vectors.safetensors` holds each passage's digest and its vector in float16 under the name of the encoder that made it; other texts
(the file was edited) are encoded as usual.  Made anew by `python -m benchmarks.starter_vectors`; a test compares it with the encoder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from core import disk
from core.models.encoders.sentence_encoder import Encoder, EncodeStats, Kind, Vectors, passage_text
from core.types import Passage

FILE = "vectors.safetensors"
_DIGEST_BYTES = 16


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()[:_DIGEST_BYTES]


class PrecomputedEncoder:
    """Looks up passage vectors; `inner` loads the encoder for other passages and for questions when it is first needed."""

    def __init__(self, name: str, vectors: dict[bytes, Vectors], inner: Callable[[], Encoder]) -> None:
        self.name, self._vectors, self._inner = name, vectors, inner
        self.stats = EncodeStats()

    @property
    def dimension(self) -> int:
        return len(next(iter(self._vectors.values())))

    def encode(self, texts: Sequence[str], kind: Kind = "passage") -> Vectors:
        known = [self._vectors.get(_key(text)) for text in texts] if kind == "passage" else []
        found = [v for v in known if v is not None]
        if not texts or len(found) < len(texts):
            return self._inner().encode(texts, kind)
        return np.stack(found)


def load_precomputed(folder: Path, encoder: str, inner: Callable[[], Encoder]) -> PrecomputedEncoder | None:
    """None if the folder has no vectors of this encoder, or damaged ones: then everything is encoded."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(folder / FILE, framework="np") as file:
            if (file.metadata() or {}).get("encoder") != encoder:
                return None
            keys, raw = file.get_tensor("digests"), file.get_tensor("vectors")
    except (OSError, SafetensorError):
        return None
    if keys.dtype != np.uint8 or keys.shape != (len(raw), _DIGEST_BYTES) or raw.ndim != 2 or not len(raw):
        return None
    vectors: NDArray[np.float32] = raw.astype(np.float32)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)  # float16 rounds their length
    return PrecomputedEncoder(encoder, {bytes(k): v for k, v in zip(keys, vectors)}, inner)


def write_precomputed(folder: Path, passages: Iterable[Passage], encoder: Encoder) -> Path:
    """Raises StorageError."""
    from safetensors.numpy import save

    texts = [passage_text(p) for p in passages]
    digests = np.frombuffer(b"".join(map(_key, texts)), dtype=np.uint8).reshape(len(texts), _DIGEST_BYTES)
    tensors = {"digests": digests, "vectors": encoder.encode(texts).astype(np.float16)}
    disk.write_bytes(folder / FILE, save(tensors, metadata={"encoder": encoder.name}))
    return folder / FILE
