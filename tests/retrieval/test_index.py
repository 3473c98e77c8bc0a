"""The dense index: exact cosines for every kind, padding, resuming, manifests that do not fit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import faiss
import numpy as np
import pytest
from small_disks import small_files

from core.errors import IndexMismatchError
from core.models.encoders.sentence_encoder import HashingEncoder, Vectors
from core.retrieval import index as ix

TEXTS = [f"passage number {i} about topic {i % 17} and thing {i % 5}" for i in range(300)]


def manifest(kind: str = "flat", count: int = 300, dimension: int = 64) -> ix.IndexManifest:
    return ix.IndexManifest("hashing", dimension, count, kind, "d" * 64, faiss.__version__, "2026-01-01T00:00:00+00:00")


def write(
    folder: Path,
    encoder: HashingEncoder,
    texts: Sequence[str] = TEXTS,
    digest: str = "d" * 64,
    dtype: ix.VectorDtype = "float32",
) -> int:
    return ix.write_vectors(folder, lambda a, b: texts[a:b], len(texts), encoder, digest, lambda done, total: None, dtype)


def opened(folder: Path, kind: str, count: int = 300) -> ix.VectorIndex:
    texts = TEXTS[:count]
    write(folder, HashingEncoder(), texts)
    ix.build_index(kind, ix.open_vectors(folder, count, 64), folder / ix.INDEX)
    return ix.VectorIndex(folder, manifest(kind, count))


def brute(query: Vectors, count: int = 300) -> Vectors:
    cosines: Vectors = np.sort(HashingEncoder().encode(TEXTS[:count]) @ query)[::-1]
    return cosines


@pytest.mark.parametrize("kind", ix.KINDS)
def test_scores_are_the_true_cosines_best_first(tmp_path: Path, kind: str) -> None:
    index = opened(tmp_path, kind)
    queries = HashingEncoder().encode(["passage number 7 about topic 7", "thing 3"], "query")
    for query, (rows, scores) in zip(queries, index.search(queries, 5), strict=True):
        assert len(rows) == 5
        assert np.allclose(scores, HashingEncoder().encode([TEXTS[r] for r in rows]) @ query, atol=1e-6)
        assert np.all(np.diff(scores) <= 0)
        assert scores[0] == pytest.approx(brute(query)[0], abs=1e-5 if kind == "flat" else 0.15)
        if kind == "flat":
            assert np.allclose(scores, brute(query)[:5], atol=1e-6)
            assert np.allclose(index.similarities(query, rows), scores, atol=1e-6)


@pytest.mark.parametrize("kind", ix.KINDS)
@pytest.mark.parametrize("count", [0, 1, 2, 40, 257])
def test_k_larger_than_the_corpus(tmp_path: Path, kind: str, count: int) -> None:
    rows, scores = opened(tmp_path, kind, count).search(HashingEncoder().encode(["topic 3"], "query"), 1000)[0]
    assert sorted(rows.tolist()) == list(range(count))  # each once: FAISS's padding is no passage
    assert len(scores) == count


class Interrupted(HashingEncoder):
    """Fails at the n-th shard, as a kill would."""

    def __init__(self, shards: int) -> None:
        super().__init__()
        self.shards = shards

    def encode(self, texts, kind="passage"):
        self.shards -= 1
        if self.shards < 0:
            raise KeyboardInterrupt
        return super().encode(texts, kind)


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ix, "SHARD_TEXTS", 64)


def test_the_room_for_the_vectors_is_reserved_before_they_are_made(tmp_path: Path) -> None:
    with small_files(70_000), pytest.raises(OSError, match=r"76\.8 kB are needed, which is over the file size limit"):
        write(tmp_path, Interrupted(0))


@pytest.mark.usefixtures("small_shards")
def test_resumed_vectors_are_the_same(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, Interrupted(2))
    with (tmp_path / ix.VECTORS).open("ab") as f:
        f.write(b"half a shard")  # what a kill in the middle of a write leaves
    assert write(tmp_path, HashingEncoder()) == 128
    assert np.array_equal(ix.open_vectors(tmp_path, 300, 64), HashingEncoder().encode(TEXTS))


@pytest.mark.usefixtures("small_shards")
@pytest.mark.parametrize(
    ("digest", "encoder", "damaged"),
    [("e", "hashing", ""), ("d", "another", ""), ("d", "hashing", ix.PROGRESS), ("d", "hashing", ix.VECTORS)],
)
def test_vectors_of_something_else_are_not_resumed(tmp_path: Path, digest: str, encoder: str, damaged: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, Interrupted(2))
    if damaged:
        (tmp_path / damaged).write_text("{damaged")
    hashing = HashingEncoder()
    hashing.name = encoder
    assert write(tmp_path, hashing, digest=digest * 64) == 0
    assert np.array_equal(ix.open_vectors(tmp_path, 300, 64), HashingEncoder().encode(TEXTS))


def test_progress_of_another_precision_is_not_that_of_a_new_file(tmp_path: Path) -> None:
    write(tmp_path, HashingEncoder())
    (tmp_path / ix.VECTORS).unlink()
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, Interrupted(0), dtype="float16")
    assert write(tmp_path, HashingEncoder(), dtype="float16") == 0
    assert np.allclose(ix.open_vectors(tmp_path, 300, 64, "float16"), HashingEncoder().encode(TEXTS), atol=1e-3)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("encoder", "other", "encoder: the index has other, the settings .* say hashing"),
        ("dimension", 32, "dimension: the index has 32, the encoder gives 64"),
        ("count", 299, "count: the index has 299, the passages are 300"),
        ("kind", "tree", "kind: the index is 'tree', known are flat, ivfpq, hnsw"),
        ("digest", "e" * 64, "digest: the index has eeeeeeeeeeee, the passages have dddddddddddd"),
        ("faiss_version", "99.0", "faiss_version: the index was written by 99.0"),
        ("format", 2, "format: the index has 2"),
    ],
)
def test_each_difference_is_named_with_the_command(field: str, value: object, message: str) -> None:
    with pytest.raises(IndexMismatchError, match=f"(?s){message}.*python -m core index --passages FILE --name mine"):
        ix.check_manifest(
            replace(manifest(), **{field: value}), encoder="hashing", dimension=64, count=300, digest="d" * 64, name="mine"
        )


@pytest.mark.parametrize("content", ["{broken", "[]", "{}", json.dumps({"encoder": 3})])
def test_damaged_manifest(tmp_path: Path, content: str) -> None:
    (tmp_path / ix.MANIFEST).write_text(content)
    with pytest.raises(IndexMismatchError, match="again"):
        ix.IndexManifest.load(tmp_path)


def test_index_file_missing_damaged_or_of_another_kind_or_count(tmp_path: Path) -> None:
    def refused(kind: str, message: str) -> None:
        with pytest.raises(IndexMismatchError, match=message):
            ix.VectorIndex(tmp_path, manifest(kind))

    opened(tmp_path, "hnsw")
    refused("ivfpq", "the manifest says ivfpq, 300 and 64")
    path = tmp_path / ix.INDEX
    ix.build_index("hnsw", ix.open_vectors(tmp_path, 300, 64)[:260], path)
    refused("hnsw", "IndexHNSWFlat of 260 vectors")
    path.write_bytes(path.read_bytes()[:100])
    refused("hnsw", "missing or damaged")
    path.unlink()
    refused("hnsw", "missing or damaged")
