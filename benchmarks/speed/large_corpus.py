"""What a corpus of millions costs: vectors and passages simulated by rule, built as `core index` builds them, and searched.

    python -m benchmarks.speed.large_corpus [--sizes 10000 100000 1000000] [--parts vectors search words start] [--page FILE]

Vectors: 384 dimensions, a mixture of 2,048 Gaussians around centres of the same spectrum (the j-th of its axes has the weight j^-0.7), of length
1, in float16.  The file is written block by block, each from a seed of its own, so that a killed run goes on and nothing is held.  Passages: 100
words of a vocabulary of 300,000 with Zipf frequencies.  Questions are further draws.  Recall@100 is against a scan of all vectors.

Each part runs in a process of its own.  Seconds are CPU seconds, since other work on the machine does not count there; milliseconds are given by
the clock too.  Memory is the process's own (RssAnon) and with mapped files (VmRSS).
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.models.encoders.sentence_encoder import EncodeStats, Kind, Vectors, passage_text
from core.retrieval import index as ix
from core.retrieval import ivfpq, short_names
from core.retrieval import words as word_index
from core.retrieval.corpus import PassageStore, PassageWriter
from core.retrieval.library import CorpusLibrary
from core.settings import ROOT, Settings, quiet_libraries
from core.types import Passage

WIKIPEDIA = 21_015_324
DIMENSION, CENTRES, FALL = 384, 2048, 0.7
BLOCK = 16_384  # vectors of one seed
QUESTIONS, K = 200, 100
VOCABULARY, WORDS = 300_000, 100
SYLLABLES = [c + v for c in "bcdfghjklmnprstvwz" for v in ("a", "e", "i", "o", "u", "an", "er", "or", "el", "in")]
COMMON = (
    "the of and in to a was is for on as with by he at from his it an were which are this also be had has first its one".split()
)
NAME = "simulated"


class Mixture:
    """Draws of the mixture; the same seed gives the same ones everywhere."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        weights = np.arange(1, DIMENSION + 1) ** -FALL
        self._weights = (weights / np.linalg.norm(weights)).astype(np.float32)
        self._axes = np.linalg.qr(rng.standard_normal((DIMENSION, DIMENSION)))[0].astype(np.float32)
        self._centres = self._spread(rng, CENTRES)

    def _spread(self, rng: np.random.Generator, count: int) -> Vectors:
        drawn: Vectors = (rng.standard_normal((count, DIMENSION), dtype=np.float32) * self._weights) @ self._axes
        return drawn

    def draw(self, seed: int, count: int) -> Vectors:
        """Unit vectors (count, d)."""
        rng = np.random.default_rng([1, seed])
        found = self._centres[rng.integers(0, CENTRES, count)] + self._spread(rng, count)
        unit: Vectors = found / np.linalg.norm(found, axis=1, keepdims=True)
        return unit


class SimulatedEncoder:
    """Gives questions draws of the mixture, in place of an encoder."""

    name, dimension, stats = NAME, DIMENSION, EncodeStats()

    def __init__(self) -> None:
        self._mixture = Mixture()

    def encode(self, texts: Any, kind: Kind = "passage") -> Vectors:
        return np.concatenate([self._mixture.draw(hash_of(text), 1) for text in texts])


def hash_of(text: str) -> int:
    return int.from_bytes(text.encode()[:6].ljust(6), "big")


def word(rank: int) -> str:
    if rank < len(COMMON):
        return COMMON[rank]
    rank, out = rank + len(SYLLABLES), ""
    while rank:
        rank, digit = divmod(rank, len(SYLLABLES))
        out += SYLLABLES[digit]
    return out


def ranks(rng: np.random.Generator, shape: tuple[int, int], least: int = 1) -> NDArray[np.int64]:
    """Zipf: the density of a rank is 1 / rank."""
    return np.exp(np.log(least) + rng.random(shape) * np.log(VOCABULARY / least)).astype(np.int64) - 1


def passages(count: int) -> Iterator[Passage]:
    known = [word(rank) for rank in range(VOCABULARY)]
    for start in range(0, count, BLOCK):
        rng = np.random.default_rng([2, start])
        size = min(BLOCK, count - start)
        titles, texts = ranks(rng, (size, 2), 1000), ranks(rng, (size, WORDS))
        for row, (title, text) in enumerate(zip(titles, texts, strict=True), start):
            yield Passage(str(row + 1), " ".join(known[r].title() for r in title), " ".join([known[r] for r in text]))


def questions() -> list[str]:
    rng = np.random.default_rng(3)
    return [f"{i} " + " ".join(word(int(r)) for r in row) for i, row in enumerate(ranks(rng, (QUESTIONS, 6), 100))]


def memory() -> dict[str, float]:
    """MB of this process: its own, with mapped files, and the most it ever had."""
    found = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines())
    return {
        name: int(found[key].split()[0]) / 1024
        for name, key in (("own", "RssAnon"), ("with files", "VmRSS"), ("most", "VmHWM"))
    }


def timed(work: Callable[[int], Any]) -> dict[str, float]:
    """Milliseconds of a question by clock and by CPU: medians of a second round, whose files are warm; and by clock of the first."""
    rounds = []
    for _ in range(2):
        rounds.append((clock := [], cpu := []))
        for number in range(QUESTIONS):
            started = time.perf_counter(), time.process_time()
            work(number)
            clock.append(1e3 * (time.perf_counter() - started[0]))
            cpu.append(1e3 * (time.process_time() - started[1]))
    return {
        "first_ms": median(rounds[0][0]),
        "ms": median(clock),
        "cpu_ms": median(cpu),
        "ms_p95": sorted(clock)[int(0.95 * len(clock))],
    }


# ---------------------------------------------------------------- the parts, each a process


def settings(home: Path) -> Settings:
    return Settings(home=home, encoder=NAME, index_kind="ivfpq", large_corpus=1, device="cpu", threads=1)


def vectors(folder: Path, count: int) -> dict[str, Any]:
    """The file of vectors and the index."""
    import faiss

    folder.mkdir(parents=True, exist_ok=True)
    mixture, path = Mixture(), folder / ix.HALVES
    with path.open("ab") as file:
        done = file.tell() // (2 * DIMENSION) // BLOCK * BLOCK
        file.truncate(min(done, count) * 2 * DIMENSION)
        for start in range(done, count, BLOCK):
            file.write(mixture.draw(start, min(BLOCK, count - start)).astype(np.float16).tobytes())
    stored = ix.open_vectors(folder, count, DIMENSION, "float16")
    started = time.process_time()
    ix.build_index("ivfpq", stored, folder / ix.INDEX, {"encoder": NAME})
    ivfpq.clear(folder / ix.INDEX)
    seconds = time.process_time() - started
    built = memory()["most"]
    ix.Manifest(NAME, DIMENSION, count, "ivfpq", "", faiss.__version__, "", ix.FORMATS["float16"], "float16").save(folder)
    size = (folder / ix.INDEX).stat().st_size / count
    return {"build_s": seconds, "build_MB": built, "index_bytes": size, "vector_bytes": 2 * DIMENSION}


def recall(folder: Path, count: int) -> dict[str, Any]:
    """The share of the exact top 100 that the index finds."""
    index = ix.VectorIndex(folder, ix.Manifest.load(folder), "cpu")
    asked = Mixture().draw(2**40, QUESTIONS)
    _, exact = index._scan(asked, min(K, count))
    found = [rows for rows, _ in index.search(asked, K)]
    return {"recall": sum(len(set(a.tolist()) & set(b.tolist())) for a, b in zip(exact, found, strict=True)) / exact.size}


def search(folder: Path, count: int) -> dict[str, Any]:
    """Top 100 of the index in a fresh process."""
    before = memory()["own"]
    index = ix.VectorIndex(folder, ix.Manifest.load(folder), "cpu")
    asked = Mixture().draw(2**40, QUESTIONS)
    return timed(lambda i: index.search(asked[i : i + 1], K)) | {"MB_before": before} | memory()


def words(folder: Path, count: int) -> dict[str, Any]:
    """The passage store and BM25."""
    started = time.process_time()
    with PassageWriter(folder) as writer:
        for passage in passages(count):
            writer.add(passage)
        writer.finish(fingerprint=[], source="by rule", files=[], rejected=[])
    stored = time.process_time() - started
    store, started = PassageStore(folder), time.process_time()
    held = [memory()["own"]]
    word_index.build(
        map(passage_text, store), count, folder / word_index.FOLDER, lambda done, total: held.append(memory()["own"])
    )
    seconds = time.process_time() - started
    built = memory()["most"]
    index, asked = word_index.WordIndex(folder / word_index.FOLDER, count), questions()
    size = sum(p.stat().st_size for p in (folder / word_index.FOLDER).iterdir()) / count
    times = timed(lambda i: found.best(K) if (found := index.search(asked[i])) else None)
    rows = np.random.default_rng(0).integers(0, count, QUESTIONS)
    by_row = timed(lambda i: store[int(rows[i])])["ms"] * 1e3
    by_id = timed(lambda i: store.get(str(rows[i] + 1)))["ms"] * 1e3
    return {
        "store_s": stored,
        "build_s": seconds,
        "build_own_MB": max(held),
        "build_MB": built,
        "bytes": size,
        "row_us": by_row,
        "id_us": by_id,
        **times,
    }


def start(folder: Path, count: int) -> dict[str, Any]:
    """A corpus of both opened as the app opens it, and asked."""
    store = PassageStore(folder)
    manifest = ix.Manifest.load(folder)
    replace(manifest, digest=store.digest, count=count).save(folder)
    if not (folder / short_names.FILE).exists():
        short_names.build(store, count, folder / short_names.FILE)
    del store
    home = folder.parent.parent
    library, begun, before = CorpusLibrary(settings(home), SimulatedEncoder()), time.perf_counter(), memory()["own"]
    corpus = library.open(folder.name)
    corpus.warm()
    opened = time.perf_counter() - begun
    after, asked = memory(), questions()
    times = timed(lambda i: corpus.search(asked[i], K, "hybrid"))
    return {"open_s": opened, "open_MB": after["own"] - before, "open_MB_files": after["with files"], **times, **memory()}


PARTS: dict[str, tuple[Callable[[Path, int], dict[str, Any]], ...]] = {
    "vectors": (vectors,),
    "search": (recall, search),
    "words": (words,),
    "start": (start,),
}


def commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def measured(home: Path, size: int, stage: str) -> dict[str, Any]:
    argv = [sys.executable, "-m", "benchmarks.speed.large_corpus", "--home", str(home), "--sizes", str(size), "--stage", stage]
    threads = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "2")}
    done = subprocess.run(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, **threads})
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def page(results: dict[str, Any]) -> str:
    """Tables of results by size and stage, with what 21 million would take by the linear cost."""
    sizes = sorted({int(key.split()[0]) for key in results})
    lines = []
    for stage, columns in COLUMNS.items():
        rows = [
            (size, results.get(f"{size} recall", {}) | results[f"{size} {stage}"])
            for size in sizes
            if f"{size} {stage}" in results
        ]
        if not rows:
            continue
        lines += [f"\n## {TITLES[stage]}\n", f"| passages | {' | '.join(columns.values())} |", f"|--:|{'--:|' * len(columns)}"]
        lines += [f"| {size:,} | {' | '.join(f'{of[c]:.4g}' if c in of else '' for c in columns)} |" for size, of in rows]
        size, of = rows[-1]
        if "build_s" in of and size < WIKIPEDIA:
            lists = ivfpq.lists_of(WIKIPEDIA) / ivfpq.lists_of(size) if stage == "vectors" else 1.0
            hours = (of["build_s"] + of.get("store_s", 0)) * WIKIPEDIA / size * lists / 3600
            lines.append(f"\n21 million not run here: {hours:.1f} CPU hours by the linear cost" + ALSO.get(stage, "."))
    return "\n".join(lines)


TITLES = {
    "vectors": "Building the index of vectors",
    "search": "Searching it",
    "words": "Passages and BM25",
    "start": "A whole corpus",
}
ALSO = {"vectors": f", each vector compared with {ivfpq.lists_of(WIKIPEDIA):,} lists."}
COLUMNS = {
    "vectors": {"build_s": "CPU seconds", "build_MB": "most MB", "index_bytes": "index, bytes a passage", "vector_bytes": "vectors, bytes"},
    "search": {"recall": "recall@100", "first_ms": "ms the first time", "ms": "ms, median", "ms_p95": "p95", "cpu_ms": "CPU ms", "own": "MB of its own", "with files": "MB with mapped files"},
    "words": {"store_s": "passages, CPU seconds", "build_s": "BM25, CPU seconds", "build_own_MB": "most MB of its own", "build_MB": "with mapped files", "bytes": "BM25, bytes a passage", "ms": "top 100, ms", "ms_p95": "p95", "cpu_ms": "CPU ms", "row_us": "passage by row, µs", "id_us": "by id, µs"},
    "start": {"open_s": "opened, s", "open_MB": "MB more of its own", "open_MB_files": "MB with files", "first_ms": "hybrid top 100, ms the first time", "ms": "again, ms", "ms_p95": "p95", "cpu_ms": "CPU ms", "with files": "MB after 400 questions"},
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000], help=f"passages, up to {WIKIPEDIA}"
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--home", type=Path, default=ROOT / "var" / "large_corpus", help="folder of the corpora; kept")
    parser.add_argument("--page", type=Path, help="write the tables to this file")
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    args = parser.parse_args()
    quiet_libraries()
    if args.stage:
        import faiss

        faiss.omp_set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        stage = next(s for stages in PARTS.values() for s in stages if s.__name__ == args.stage)
        print(json.dumps(stage(args.home / "corpora" / f"c{args.sizes[0]}", args.sizes[0])))
        return 0
    args.home.mkdir(parents=True, exist_ok=True)
    kept = args.home / "results.json"
    results: dict[str, Any] = {}
    for size in args.sizes:
        for stage in (stage.__name__ for part in args.parts for stage in PARTS[part]):
            now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
            found = measured(args.home, size, stage) | {"commit": commit(), "at": now}
            results = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
            results[f"{size} {stage}"] = found
            kept.write_text(json.dumps(results, indent=1), encoding="utf-8")
            print(f"{size:,} {stage}: {found}", flush=True)
    text = page(results)
    print(text)
    if args.page:
        args.page.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
