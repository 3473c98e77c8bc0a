"""The vectors that come with the starter corpus: the encoder's own, used where they fit and ignored where they do not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from core.models.encoders.sentence_encoder import EncodeStats, HashingEncoder, Kind, Vectors, load_encoder, passage_text
from core.retrieval.library import STARTER, CorpusLibrary
from core.retrieval.precomputed import FILE, load_precomputed, write_precomputed
from core.settings import ROOT, Settings
from core.types import Passage

PASSAGES = [Passage(str(i), f"Title {i}", f"The text of passage {i}.") for i in range(5)]


class Refusing:
    """An encoder that must not be asked."""

    name, dimension, stats = "hashing", 384, EncodeStats()

    def encode(self, texts: Sequence[str], kind: Kind = "passage") -> Vectors:
        raise AssertionError("encoded although the vectors are there")


def test_known_passages_are_looked_up_and_others_encoded(tmp_path: Path) -> None:
    inner = HashingEncoder()
    write_precomputed(tmp_path, PASSAGES, inner)
    found = load_precomputed(tmp_path, inner.name, Refusing)
    texts = [passage_text(p) for p in PASSAGES]
    assert np.allclose(found.encode(texts), inner.encode(texts), atol=1e-3)
    assert np.allclose(np.linalg.norm(found.encode(texts), axis=1), 1.0, atol=1e-6)
    mixed = load_precomputed(tmp_path, inner.name, lambda: inner)
    assert np.allclose(mixed.encode(["something else"]), inner.encode(["something else"]))
    assert np.allclose(mixed.encode(texts[:1], "query"), inner.encode(texts[:1], "query"))


@pytest.mark.parametrize("damage", ["missing", "garbage", "other encoder"])
def test_what_does_not_fit_is_left_aside(tmp_path: Path, damage: str) -> None:
    if damage == "garbage":
        (tmp_path / FILE).write_bytes(b"\x00" * 64)
    elif damage == "other encoder":
        write_precomputed(tmp_path, PASSAGES, HashingEncoder())
    assert load_precomputed(tmp_path, "minilm", Refusing) is None


def test_the_bundled_vectors_are_the_encoders(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    library = CorpusLibrary(settings)
    corpus = library.open(STARTER)  # all of them are known: nothing is encoded
    assert library._encoder is None
    real = load_encoder(settings)
    known = load_precomputed(ROOT / "data" / "starter", "minilm", Refusing)
    texts = [passage_text(corpus.store[i]) for i in range(0, len(corpus.store), 97)]
    assert np.allclose(known.encode(texts), real.encode(texts), atol=2e-3)
