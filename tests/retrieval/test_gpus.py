"""FAISS on GPUs, with a simulated device: FAISS's own CPU index behind the names of its GPU build."""

from __future__ import annotations

import logging
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest

from core.errors import InputError
from core.models.encoders.sentence_encoder import Vectors
from core.retrieval import index as ix
from core.retrieval.gpus import CODE_BYTES, chosen_gpus, code_bytes, on_gpus


class Options:
    shard = useFloat16 = False


class Device:
    """A stand-in for a GPU index: it breaks when two threads search at once, and its memory holds `room` questions."""

    def __init__(self, index: Any, options: Options, gpus: list[int], room: int) -> None:
        self.index, self.options, self.gpus, self.room = index, options, gpus, room
        self.busy, self.batches = False, []

    def search(self, queries: Vectors, k: int) -> Any:
        assert not self.busy, "two searches at once on one GPU"
        if len(queries) > self.room:
            raise RuntimeError("Error in faiss::gpu::...: StandardGpuResources: alloc fail type TemporaryMemoryBuffer")
        self.busy = True
        time.sleep(0.005)
        self.batches.append(len(queries))
        results = self.index.search(queries, k)
        self.busy = False
        return results


Gpus = dict[str, Any]
Log = pytest.LogCaptureFixture


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Gpus:
    """Two GPUs; `copies` lists the indexes on them, `room` is the memory of the next."""
    state: Gpus = {"copies": [], "room": 10**6}

    def copy(resources: list[Any], index: Any, options: Options, numbers: list[int]) -> Device:
        assert len(resources) == len(numbers)
        if state["room"] == 0:
            raise RuntimeError("Error: out of memory")
        state["copies"].append(Device(index, options, numbers, state["room"]))
        return state["copies"][-1]

    monkeypatch.setattr(faiss, "StandardGpuResources", object, raising=False)
    monkeypatch.setattr(faiss, "GpuMultipleClonerOptions", Options, raising=False)
    monkeypatch.setattr(faiss, "index_cpu_to_gpu_multiple_py", copy, raising=False)
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 2)
    return state


def unit(count: int, dimension: int = 64) -> Vectors:
    raw = np.random.default_rng(3).normal(size=(count, dimension)).astype(np.float32)
    vectors: Vectors = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    return vectors


def opened(folder: Path, kind: str, device: str = "auto", spread: Any = "replicate") -> ix.VectorIndex:
    vectors = unit(400)
    vectors.tofile(folder / ix.VECTORS)
    ix.build_index(kind, vectors, folder / ix.INDEX)
    manifest = ix.IndexManifest("hashing", 64, 400, kind, "d" * 64, faiss.__version__, "2026-01-01T00:00:00+00:00")
    return ix.VectorIndex(folder, manifest, device, spread)


@pytest.mark.parametrize(
    ("device", "available", "expected"),
    [
        ("auto", 2, (0, 1)),
        ("cuda", 2, (0, 1)),
        ("cuda:1", 2, (1,)),
        ("cpu", 2, ()),
        ("mps", 2, ()),
        ("auto", 0, ()),
        ("cuda:7", 0, ()),
    ],
)
def test_faiss_takes_the_gpus_that_the_device_names(device: str, available: int, expected: tuple[int, ...]) -> None:
    assert chosen_gpus(device, available) == expected


@pytest.mark.parametrize("device", ["cuda:2", "cuda:x"])
def test_a_gpu_that_there_is_not(device: str) -> None:
    with pytest.raises(InputError, match=r"AMBISCOPE_DEVICE is 'cuda:.', and FAISS finds 2 GPU\(s\).*cuda:0 to cuda:1"):
        chosen_gpus(device, 2)


@pytest.mark.parametrize(("dimension", "size"), [(384, 48), (512, 64), (768, 96), (1024, 64), (64, 8), (100, 20), (7, 1)])
def test_a_code_has_a_length_that_a_gpu_can_search(dimension: int, size: int) -> None:
    assert code_bytes(dimension, dimension / 8) == size
    assert size in CODE_BYTES
    assert dimension % size == 0


@pytest.mark.parametrize("kind", ["flat", "ivfpq"])
def test_two_threads_never_search_a_gpu_at_once(tmp_path: Path, gpus: Gpus, kind: str) -> None:
    index = opened(tmp_path, kind)
    queries = unit(8)
    one_by_one = [index.search(queries[i : i + 1], 5)[0] for i in range(8)]
    with ThreadPoolExecutor(8) as pool:
        at_once = list(pool.map(lambda i: index.search(queries[i : i + 1], 5)[0], range(8)))
    assert index.gpus == (0, 1)
    for result, same in zip(one_by_one, at_once, strict=True):
        assert np.allclose(result, same)  # rows and scores


@pytest.mark.parametrize(
    ("spread", "numbers", "sharded"), [("replicate", [0, 1], False), ("shard", [0, 1], True), ("one", [0], False)]
)
def test_an_index_is_spread_as_asked(tmp_path: Path, gpus: Gpus, spread: str, numbers: list[int], sharded: bool) -> None:
    opened(tmp_path, "ivfpq", spread=spread)
    (copy,) = gpus["copies"]
    assert (copy.gpus, copy.options.shard, copy.options.useFloat16) == (numbers, sharded, True)


def test_without_room_the_cpu_goes_on(tmp_path: Path, gpus: Gpus, caplog: Log) -> None:
    index = opened(tmp_path, "ivfpq")
    gpus["copies"][0].room = 0
    with caplog.at_level(logging.WARNING):
        rows, _ = index.search(unit(1), 5)[0]
        index.search(unit(2), 5)
    assert len(rows) == 5
    assert caplog.text.count("searched on the CPU from now on") == 1


def test_an_index_that_does_not_fit_stays_on_the_cpu(tmp_path: Path, gpus: Gpus, caplog: Log) -> None:
    gpus["room"] = 0
    with caplog.at_level(logging.WARNING):
        index = opened(tmp_path, "flat")
    assert index.gpus == ()
    assert len(index.search(unit(1), 5)[0][0]) == 5
    assert "it cannot be copied to the GPUs (their memory is too small)" in caplog.text


@pytest.mark.parametrize(
    ("kind", "message"), [("hnsw", "FAISS has no HNSW index for GPUs"), ("codes", "its codes have 128 bytes")]
)
def test_what_gpus_do_not_know_stays_on_the_cpu(kind: str, message: str, gpus: Gpus, caplog: Log) -> None:
    index: Any = faiss.IndexHNSWFlat(8, 4) if kind == "hnsw" else faiss.IndexIVFPQ(faiss.IndexFlatIP(1024), 1024, 1, 128, 8)
    with caplog.at_level(logging.WARNING):
        assert on_gpus(index, (0,), "replicate") is None
    assert message in caplog.text
