"""The vectors of unchanged passages: taken from the corpus that a build replaces, so that a rebuild encodes only what changed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from core.errors import AmbiscopeError
from core.models.encoders.sentence_encoder import Encoder, Vectors, passage_text
from core.retrieval.corpus import PassageStore
from core.retrieval.index import Encode, Manifest, open_vectors

MAX_PASSAGES = 1_000_000  # of the earlier corpus: their digests are held in memory, 100 bytes each


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()


def reusing(earlier: Path, encoder: Encoder) -> Encode | None:
    """An `Encode` that takes what it can from the corpus in the folder `earlier`; None where there is nothing to take: no complete corpus, another
    encoder, or too many passages."""
    try:
        manifest = Manifest.load(earlier)
        if (manifest.encoder, manifest.dimension) != (encoder.name, encoder.dimension) or manifest.count > MAX_PASSAGES:
            return None
        store = PassageStore(earlier)
        if len(store) != manifest.count or store.digest != manifest.digest:
            return None
        vectors = open_vectors(earlier, manifest.count, manifest.dimension, manifest.stored)
        rows = {_digest(passage_text(passage)): row for row, passage in enumerate(store)}
    except (AmbiscopeError, OSError):
        return None

    def encode(shards: Iterator[Sequence[str]], count: int) -> Iterator[Vectors]:
        return (_shard(texts, rows, vectors, encoder) for texts in shards)

    return encode


def _shard(texts: Sequence[str], rows: dict[bytes, int], vectors: NDArray[np.generic], encoder: Encoder) -> Vectors:
    """The vectors (n, d) of a shard, of which those of unknown texts are encoded."""
    known = [rows.get(_digest(text)) for text in texts]
    out = np.empty((len(texts), encoder.dimension), dtype=np.float32)
    same = [at for at, row in enumerate(known) if row is not None]
    new = [at for at, row in enumerate(known) if row is None]
    out[same] = vectors[[row for row in known if row is not None]]
    if new:
        out[new] = encoder.encode([texts[at] for at in new], "passage")
    return out
