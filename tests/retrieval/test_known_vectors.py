"""Known vectors, which come with the starter corpus or are those of an earlier build: used where they fit and ignored where they do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.models.encoders.sentence_encoder import HashingEncoder, TextKind, Vectors, load_encoder, passage_text
from core.retrieval import known_vectors
from core.retrieval.known_vectors import FILE, load_precomputed, reusing, write_precomputed
from core.retrieval.library import STARTER, BuildOptions, CorpusLibrary
from core.settings import ROOT, Settings
from core.types import Passage

Tree = Callable[[str, dict[str, str]], Path]
PASSAGES = [Passage(str(i), f"Title {i}", f"The text of passage {i}.") for i in range(5)]


class Refusing:
    """An encoder that must not be asked."""

    name, dimension = "hashing", 384

    def encode(self, texts: Sequence[str], kind: TextKind = "passage") -> Vectors:
        raise AssertionError("encoded although the vectors are there")


def test_known_passages_are_looked_up_and_others_encoded(tmp_path: Path) -> None:
    inner = HashingEncoder()
    write_precomputed(tmp_path, PASSAGES, inner)
    known = load_precomputed(tmp_path, inner.name, Refusing)
    texts = [passage_text(p) for p in PASSAGES]
    assert np.allclose(known.encode(texts), inner.encode(texts), atol=1e-3)
    assert np.allclose(np.linalg.norm(known.encode(texts), axis=1), 1.0, atol=1e-6)
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


class Counting(HashingEncoder):
    """Notes the passages that it encodes."""

    def __init__(self) -> None:
        super().__init__()
        self.encoded: list[str] = []

    def encode(self, texts: Any, kind: Any = "passage") -> Any:
        self.encoded += texts if kind == "passage" else []
        return super().encode(texts, kind)


def texts_about(*subjects: str) -> dict[str, str]:
    return {f"{n}.md": f"# Title {n}\nA text about {subject}.\n" for n, subject in enumerate(subjects)}


def test_unchanged_passages_keep_their_vectors(tree: Tree, settings: Settings) -> None:
    encoder = Counting()
    library = CorpusLibrary(settings, encoder)
    library.create("docs", [tree("docs", texts_about("ships", "trains", "planes"))])
    assert len(encoder.encoded) == 3
    encoder.encoded.clear()
    library.create("docs", [tree("docs", texts_about("ships", "cars", "planes", "bikes"))], options=BuildOptions(replace=True))
    assert encoder.encoded == ["Title 1. A text about cars.", "Title 3. A text about bikes."]
    corpus = library.open("docs")
    assert np.allclose(corpus.vectors, HashingEncoder().encode([passage_text(p) for p in corpus.store]))
    assert corpus.search("a text about cars", 1, "dense")[0].passage.id == "1.md"


def test_vectors_of_another_encoder_or_of_a_damaged_corpus_are_not_taken(
    tmp_path: Path, tree: Tree, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = Counting()
    library = CorpusLibrary(settings, encoder)
    assert reusing(tmp_path / "none", encoder) is encoder
    library.create("docs", [tree("docs", texts_about("ships", "trains"))])
    folder = settings.corpora_dir / "docs"
    assert reusing(folder, encoder) is not encoder
    other = HashingEncoder(32)
    assert reusing(folder, other) is other
    monkeypatch.setattr(known_vectors, "MAX_PASSAGES", 1)
    assert reusing(folder, encoder) is encoder
    monkeypatch.undo()
    (folder / "vectors.f32").write_bytes(b"")
    assert reusing(folder, encoder) is encoder
