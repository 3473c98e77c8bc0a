"""Two Ray nodes encode passages against one process held to the same cores a worker.

    python -m benchmarks.speed.service.cluster [--shards 8] [--size 2048] [--rounds 3]
    python -m benchmarks.speed.service.cluster --shards 24 --size 64 --together       where other work takes the cores

Both nodes are of this machine, one CPU each, as `ray start --num-cpus 1` makes them; the one process has one thread.  They take turns, so that
both see about the same load of the machine.  The seconds of the nodes hold everything: workers start, load the encoder, and shards and vectors
travel; those of the process hold the encoding alone.  A second ratio is of shards a second once both workers have given their first: what a
long corpus comes to.  The vectors are compared bit by bit.

With `--together`, the process encodes at the same time as the nodes, over and over, and shards a second of both are compared while both run: what
else the machine does takes as much of the one as of each node.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from core.cluster.connect import connected
from core.cluster.jobs import encoding
from core.models.encoders.sentence_encoder import Encoder, Vectors, load_encoder, passage_text
from core.retrieval.index import SHARD
from core.retrieval.readers import read_passages
from core.retrieval.readers.lines import Limits
from core.settings import ROOT, Settings, quiet_libraries, quiet_ray

NODES = 2
STORE = 100 * 2**20  # bytes of shared memory a node


def shards_of(count: int, size: int) -> list[list[str]]:
    """The starter's passages, again and again with another word at the end, so that no two shards are equal."""
    path = ROOT / "data" / "starter" / "passages.tsv"
    texts = [passage_text(p) for p in read_passages(path, Limits.for_own_files(Settings()), lambda _: None)]
    return [[f"{texts[(n * size + i) % len(texts)]} {n}" for i in range(size)] for n in range(count)]


def together(encoder: Encoder, nodes: Iterator[Vectors], shards: list[list[str]]) -> tuple[float, float]:
    """Shards a second of (the process, the nodes), from each one's first to its last shard while all of them run."""
    own: list[float] = []
    stop = threading.Event()

    def alone() -> None:
        while not stop.is_set():
            encoder.encode(shards[len(own) % len(shards)])
            own.append(time.perf_counter())

    thread = threading.Thread(target=alone)
    thread.start()
    try:
        came = [time.perf_counter() for _ in nodes]
    finally:
        stop.set()
        thread.join()
    came = came[NODES - 1 : 1 - NODES]  # from where all nodes run to where one has nothing left
    own = [moment for moment in own if came[0] <= moment <= came[-1]]
    return (len(own) - 1) / (own[-1] - own[0]), (len(came) - 1) / (came[-1] - came[0])


def main(argv: Sequence[str] | None = None) -> int:
    quiet_libraries()
    quiet_ray()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, default=8, help="more than the nodes (default: %(default)s)")
    parser.add_argument(
        "--size", type=int, default=SHARD, help="passages of a shard (default: %(default)s, as `core index` has it)"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--together", action="store_true", help="both at the same time, for a machine that is not quiet")
    args = parser.parse_args(argv)
    settings = Settings(device="cpu", threads=1)
    encoder, shards = load_encoder(settings), shards_of(args.shards, args.size)
    encoder.encode(shards[0][:64])
    ratios = []
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ray", dir="/tmp", ignore_cleanup_errors=True))
        (Path(folder) / "ray").mkdir()
        os.environ["RAY_TMPDIR"] = folder
        os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 - Ray reads it so; as the one process, not the 15 of Ray
        from ray.cluster_utils import Cluster

        nodes = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": STORE, "include_dashboard": False}
        )
        stack.callback(nodes.shutdown)
        for _ in range(NODES):
            nodes.add_node(num_cpus=1, object_store_memory=STORE)
        cluster = stack.enter_context(connected(nodes.address, settings))
        assert cluster is not None
        print(
            f"{cluster.workers} nodes; {args.shards} shards of {args.size} passages; load of the machine {os.getloadavg()[0]:.1f}"
        )
        if args.together:
            process, both = together(encoder, encoding(cluster, encoder)(iter(shards), len(shards)), shards)
            print(
                f"shards a second at the same time: one process {process:.3f}, two nodes {both:.3f}: {both / process:.2f} times"
            )
        for _ in range(0 if args.together else args.rounds):
            began = time.perf_counter()
            one = [encoder.encode(shard) for shard in shards]
            alone = time.perf_counter() - began
            began = time.perf_counter()
            two, came = [], []
            for vectors in encoding(cluster, encoder)(iter(shards), len(shards)):
                two.append(vectors)
                came.append(time.perf_counter() - began)
            whole = came[-1]
            ratios.append(alone / whole)
            later = (args.shards - NODES) / (whole - came[NODES - 1]) * alone / args.shards
            same = all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
            print(f"one process {alone:.1f} s, two nodes {whole:.1f} s: {ratios[-1]:.2f} times, {later:.2f} once they run")
            print(f"first shards of the nodes after {came[NODES - 1]:.1f} s; vectors equal: {same}", flush=True)
    median = f"median {statistics.median(ratios):.2f} times; " if ratios else ""
    print(f"{median}load of the machine {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
