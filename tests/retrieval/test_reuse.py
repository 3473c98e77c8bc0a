"""A rebuild encodes what changed and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.models.encoders.sentence_encoder import HashingEncoder, passage_text
from core.retrieval import reuse
from core.retrieval.library import CorpusLibrary
from core.settings import Settings


class Counting(HashingEncoder):
    """Notes the passages that it encodes."""

    def __init__(self) -> None:
        super().__init__()
        self.encoded: list[str] = []

    def encode(self, texts: Any, kind: Any = "passage") -> Any:
        self.encoded += texts if kind == "passage" else []
        return super().encode(texts, kind)


def write(folder: Path, *words: str) -> Path:
    folder.mkdir(exist_ok=True)
    for number, word in enumerate(words):
        (folder / f"{number}.md").write_text(f"# Title {number}\nA text about {word}.\n")
    return folder


def test_unchanged_passages_keep_their_vectors(tmp_path: Path, settings: Settings) -> None:
    encoder = Counting()
    library = CorpusLibrary(settings, encoder)
    library.create("docs", [write(tmp_path / "docs", "ships", "trains", "planes")])
    assert len(encoder.encoded) == 3
    encoder.encoded.clear()
    library.create("docs", [write(tmp_path / "docs", "ships", "cars", "planes", "bikes")], replace=True)
    assert encoder.encoded == ["Title 1. A text about cars.", "Title 3. A text about bikes."]
    corpus = library.open("docs")
    assert np.allclose(corpus.vectors, HashingEncoder().encode([passage_text(p) for p in corpus.store]))
    assert corpus.search("a text about cars", 1, "dense")[0].passage.id == "1.md"


def test_vectors_of_another_encoder_or_of_a_damaged_corpus_are_not_taken(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = Counting()
    library = CorpusLibrary(settings, encoder)
    assert reuse.reusing(tmp_path / "none", encoder) is None
    library.create("docs", [write(tmp_path / "docs", "ships", "trains")])
    folder = settings.corpora_dir / "docs"
    assert reuse.reusing(folder, encoder) is not None
    assert reuse.reusing(folder, HashingEncoder(32)) is None
    monkeypatch.setattr(reuse, "MAX_PASSAGES", 1)
    assert reuse.reusing(folder, encoder) is None
    monkeypatch.undo()
    (folder / "vectors.f32").write_bytes(b"")
    assert reuse.reusing(folder, encoder) is None
