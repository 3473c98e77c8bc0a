"""Reuses known vectors, so that only new texts are encoded: those that come with the starter corpus, and those of the corpus
that a build replaces.

`data/starter/vectors.safetensors` holds each passage's digest and its vector in float16 under the name of the encoder that made it.  Rewritten by
`python -m benchmarks.starter_vectors`; a test compares it with the encoder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core import disk
from core.errors import AmbiscopeError
from core.models.encoders.sentence_encoder import Encoder, TextKind, Vectors, passage_text
from core.retrieval.corpus import PassageStore
from core.retrieval.index import IndexManifest, open_vectors
from core.types import Passage

FILE = "vectors.safetensors"
MAX_PASSAGES = 1_000_000  # of the earlier corpus: their digests are held in memory, 100 bytes each
_DIGEST_BYTES = 16


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()[:_DIGEST_BYTES]


class KnownVectors:
    """An encoder that looks passages up.  `inner` loads the encoder for other passages and for questions when it is first
    needed."""

    def __init__(self, name: str, rows: dict[bytes, int], vectors: NDArray[Any], inner: Callable[[], Encoder]) -> None:
        """`rows`: the row in `vectors` (n, d) for each text's digest."""
        self.name, self._rows, self._vectors, self._inner = name, rows, vectors, inner

    @property
    def dimension(self) -> int:
        return int(self._vectors.shape[1])

    def encode(self, texts: Sequence[str], kind: TextKind = "passage") -> Vectors:
        if kind != "passage":
            return self._inner().encode(texts, kind)
        known_rows = {i: row for i, text in enumerate(texts) if (row := self._rows.get(_key(text))) is not None}
        out = np.empty((len(texts), self.dimension), dtype=np.float32)
        out[list(known_rows)] = self._vectors[list(known_rows.values())]
        if new := [i for i in range(len(texts)) if i not in known_rows]:
            out[new] = self._inner().encode([texts[i] for i in new], "passage")
        return out


def load_precomputed(folder: Path, encoder: str, inner: Callable[[], Encoder]) -> KnownVectors | None:
    """The vectors in a folder; None if it has none of this encoder, or damaged ones.  Then everything is encoded."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(folder / FILE, framework="np") as file:
            if (file.metadata() or {}).get("encoder") != encoder:
                return None
            keys, raw = file.get_tensor("digests"), file.get_tensor("vectors")
    except (OSError, SafetensorError):
        return None
    vectors: NDArray[np.float32] = raw.astype(np.float32)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)  # float16 rounds their length
    return KnownVectors(encoder, {bytes(k): row for row, k in enumerate(keys)}, vectors, inner)


def write_precomputed(folder: Path, passages: Iterable[Passage], encoder: Encoder) -> Path:
    """Raises StorageError."""
    from safetensors.numpy import save

    texts = [passage_text(p) for p in passages]
    digests = np.frombuffer(b"".join(map(_key, texts)), dtype=np.uint8).reshape(len(texts), _DIGEST_BYTES)
    tensors = {"digests": digests, "vectors": encoder.encode(texts).astype(np.float16)}
    disk.write_bytes(folder / FILE, save(tensors, metadata={"encoder": encoder.name}))
    return folder / FILE


def reusing(earlier: Path, encoder: Encoder) -> Encoder:
    """An encoder that takes what it can from the corpus in the folder `earlier`.  It is `encoder` itself if there is nothing to
    take: no complete corpus, another encoder, or too many passages."""
    try:
        manifest = IndexManifest.load(earlier)
        if (manifest.encoder, manifest.dimension) != (encoder.name, encoder.dimension) or manifest.count > MAX_PASSAGES:
            return encoder
        store = PassageStore(earlier)
        if store.digest != manifest.digest:
            return encoder
        vectors = open_vectors(earlier, len(store), manifest.dimension, manifest.stored)
        rows = {_key(passage_text(passage)): row for row, passage in enumerate(store)}
    except (AmbiscopeError, OSError):
        return encoder
    return KnownVectors(encoder.name, rows, vectors, lambda: encoder)
