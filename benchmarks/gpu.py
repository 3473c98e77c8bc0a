"""What a GPU brings: each kind of work on the CPU and on the GPU, one question at a time and many, against the device's own peak.

    python -m benchmarks.gpu                        # this machine's devices; writes benchmarks/results/gpu.md
    python -m benchmarks.gpu --shape tiny --quick   # seconds, to try the path out; writes nothing

Random weights at the bundled shape (MiniLM: 6 layers of 384) and at the papers' (T5-base), passages of 160 tokens: time does not depend on what the
weights are.  Seconds are medians of runs in turn; a GPU is waited for.  Operations are counted by torch's FlopCounterMode; the peak is that of a
large bf16 product on a GPU, fp32 on a CPU, measured in the same run.  Where there is no GPU its columns say "not measured".
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.speed.loop_cost import ANSWER, SPLICED, t5_batch, t5_network, write
from core import disk
from core.settings import ROOT

PAGE = ROOT / "benchmarks" / "results" / "gpu.md"
TOKENS, PROMPT = 160, 24
SHAPES = {"tiny": (2, 64, 2), "bundled": (6, 384, 12)}  # layers, width, heads
BATCHES = (1, 4, 16, 64)  # questions at once
PASSAGES = (10, 20, 50, 100)
VECTORS, DIMENSION, RESULTS = 200_000, 384, 100
MOST_TOKENS = {"cuda": 200_000, "cpu": 20_000}  # of one pass; larger ones are left out
T5_SHARE = 5  # T5-base takes so many times the work of a token
Work = Callable[[], Any]


@dataclass(frozen=True)
class Row:
    work: str
    shape: str
    passages: int  # 0: none
    questions: int  # at once
    seconds: float  # of one question
    share: float | None  # of the device's peak


@cache
def span_network(shape: str, device: str) -> Any:
    from core.models.encoders.bert import Bert
    from core.models.span.network import SpanConfig, SpanNetwork

    layers, width, heads = SHAPES[shape]
    torch.manual_seed(0)
    config = SimpleNamespace(
        model_type="bert", vocab_size=30522, hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads,
        intermediate_size=4 * width, hidden_act="gelu", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        max_position_embeddings=512, type_vocab_size=2, layer_norm_eps=1e-12, pad_token_id=0,
    )  # fmt: skip
    return SpanNetwork(Bert(config), SpanConfig()).to(device).eval()


def row_batch(questions: int, passages: int, prompted: bool, device: str) -> Any:
    from core.models.span.network import RowBatch

    rows = passages + prompted
    ids = torch.randint(1, 30_000, (questions * rows, TOKENS), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids, dtype=torch.bool)
    spans = mask.clone()
    if prompted:
        mask.view(questions, rows, TOKENS)[:, 0, PROMPT:] = False
        spans.view(questions, rows, TOKENS)[:, 0] = False
    return RowBatch(ids * mask, torch.zeros_like(ids), mask, spans, spans, rows, PROMPT if prompted else 0, prompted).to(
        torch.device(device)
    )


def autocast(device: str) -> Any:
    return torch.autocast("cuda", torch.bfloat16, enabled=device.startswith("cuda"))


def span_work(shape: str, device: str, questions: int, passages: int) -> dict[str, Work]:
    network = span_network(shape, device)
    rows, prompted = row_batch(questions, passages, False, device), row_batch(questions, passages, True, device)

    def forward(batch: Any) -> None:
        with torch.inference_mode(), autocast(device):
            network(batch)

    def encode() -> None:
        with torch.inference_mode(), autocast(device):
            network.encode(rows)

    def answer_set() -> None:
        for _ in range(3):  # two answers and [EOI]
            forward(prompted)

    def train() -> None:
        with autocast(device):
            spans, nothing = network(prompted)
        (torch.logsumexp(spans.float().flatten(1), 1) - nothing).mean().backward()
        network.zero_grad(set_to_none=True)

    return {
        "encode": encode,
        "read": lambda: forward(rows),
        "step": lambda: forward(prompted),
        "answer set": answer_set,
        "training step": train,
    }


@cache
def fid_network(shape: str, device: str) -> Any:
    return t5_network("t5-base" if shape == "t5-base" else "t5-tiny").to(device)


def fid_work(shape: str, device: str, questions: int, passages: int) -> dict[str, Work]:
    from core.models.seq2seq.network import FidNetwork

    network = fid_network(shape, device)
    fid = FidNetwork(network.model, replace(network.config, prompting="separate"), network.eoi)
    plain, prompted = (t5_batch(questions, passages, TOKENS, prompt).to(torch.device(device)) for prompt in (0, PROMPT))

    def run(model: Any, batch: Any, tokens: int) -> None:
        with torch.inference_mode(), autocast(device):
            write(model, *model.encode(batch), tokens)

    return {"fid": lambda: run(fid, plain, SPLICED), "step": lambda: run(network, prompted, ANSWER)}


def faiss_work(device: str, questions: int, vectors: int) -> dict[str, Work]:
    import faiss

    from core.retrieval.gpus import chosen_gpus, on_gpus

    made = _indexes(vectors)
    queries = np.random.default_rng(1).normal(size=(questions, DIMENSION)).astype(np.float32)
    gpus = chosen_gpus(device, faiss.get_num_gpus() if hasattr(faiss, "StandardGpuResources") else 0)
    if device.startswith("cuda") and not gpus:
        return {}  # FAISS's CPU build
    found = {name: on_gpus(index, gpus, "one") or index for name, index in made.items()}
    return {f"FAISS {name}": (lambda index=index: index.search(queries, RESULTS)) for name, index in found.items()}


@cache
def _indexes(vectors: int) -> dict[str, Any]:
    import faiss

    rows = np.random.default_rng(0).normal(size=(vectors, DIMENSION)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    flat: Any = faiss.IndexFlatIP(DIMENSION)
    flat.add(rows)
    lists = max(1, int(vectors**0.5))
    ivfpq: Any = faiss.IndexIVFPQ(faiss.IndexFlatIP(DIMENSION), DIMENSION, lists, 48, 8, faiss.METRIC_INNER_PRODUCT)
    ivfpq.cp.min_points_per_centroid = ivfpq.pq.cp.min_points_per_centroid = 1
    ivfpq.train(rows[:: max(1, vectors // (40 * lists))])
    ivfpq.add(rows)
    ivfpq.nprobe = max(1, lists // 8)
    return {"flat": flat, "IVF-PQ": ivfpq}


def wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def timed(work: Work, device: str, repeats: int) -> float:
    seconds = []
    for _ in range(repeats + 1):  # the first one warms up
        wait(device)
        began = time.perf_counter()
        work()
        wait(device)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds[1:])


def peak(device: str, size: int) -> float:
    """Operations a second of a large matrix product: bf16 on a GPU, fp32 on a CPU."""
    a = torch.randn(size, size, device=device, dtype=torch.bfloat16 if device.startswith("cuda") else torch.float32)
    return 2 * size**3 / timed(lambda: a @ a, device, 5)


def operations(work: Work) -> int:
    with FlopCounterMode(display=False) as counter:
        work()
    return int(counter.get_total_flops())


def measured(device: str, shapes: list[str], quick: bool) -> Iterator[Row]:
    repeats = 1 if quick else 3
    best = peak(device, 512 if quick else 8192 if device.startswith("cuda") else 2048)
    for shape in shapes:
        for passages in PASSAGES[:1] if quick else PASSAGES:
            for questions in BATCHES[:2] if quick else BATCHES:
                most = MOST_TOKENS[torch.device(device).type] // (T5_SHARE if shape == "t5-base" else 1)
                if questions * passages * TOKENS > most:
                    continue
                jobs = (fid_work if shape.startswith("t5") else span_work)(shape, device, questions, passages)
                for name, work in jobs.items():
                    seconds = timed(work, device, repeats)
                    yield Row(name, shape, passages, questions, seconds / questions, operations(work) / seconds / best)
    for questions in BATCHES[:2] if quick else BATCHES:
        for name, work in faiss_work(device, questions, 2_000 if quick else VECTORS).items():
            yield Row(
                name, f"{2_000 if quick else VECTORS:,} vectors", 0, questions, timed(work, device, repeats) / questions, None
            )


def table(found: dict[str, list[Row]]) -> list[str]:
    """A line for each kind of work: milliseconds a question on the CPU and on the GPU, alone and at the best batch, and the share of the peak."""
    keys = list(dict.fromkeys((r.work, r.shape, r.passages) for rows in found.values() for r in rows))
    lines = [
        "| work | shape | passages | CPU, alone | CPU, best batch | GPU, alone | GPU, best batch | GPU against CPU | share of the GPU's peak |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for key in keys:
        cells: list[str] = []
        alone: dict[str, float] = {}
        share = "not measured"
        for device in ("cpu", "cuda"):
            rows = [r for r in found.get(device, []) if (r.work, r.shape, r.passages) == key]
            if not rows:
                cells += ["not measured"] * 2
                continue
            first, best = min(rows, key=lambda r: r.questions), min(rows, key=lambda r: r.seconds)
            alone[device] = best.seconds
            cells += [
                f"{1000 * first.seconds:.2f} ms",
                f"{1000 * best.seconds:.2f} ms ({best.questions}: {first.seconds / best.seconds:.2f} times)",
            ]
            if device == "cuda":
                share = f"{100 * best.share:.0f}%" if best.share is not None else ""
        gain = f"{alone['cpu'] / alone['cuda']:.1f} times" if len(alone) == 2 else "not measured"
        lines.append(f"| {' | '.join([key[0], key[1], str(key[2] or ''), *cells, gain, share])} |")
    return lines


def devices() -> list[str]:
    return ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--shape",
        action="append",
        choices=["tiny", "t5-tiny", "bundled", "t5-base"],
        help="may be given again (default: bundled, t5-base)",
    )
    parser.add_argument("--quick", action="store_true", help="one run of the smallest sizes; writes no page")
    args = parser.parse_args()
    shapes = args.shape or ["bundled", "t5-base"]
    found: dict[str, list[Row]] = {}
    for device in devices():
        found[device] = []
        for row in measured(device, shapes, args.quick):
            found[device].append(row)
            print(
                f"{device}: {row.work}, {row.shape}, {row.passages} passages, {row.questions} at once: {1000 * row.seconds:.2f} ms a question",
                flush=True,
            )
    lines = table(found)
    print("\n".join(lines))
    if not args.quick:
        disk.write_text(PAGE, page(lines))


def page(lines: list[str]) -> str:
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "none at hand: its columns are not measured"
    return f"""# GPUs

`python -m benchmarks.gpu` measures each kind of work on the CPU and on the GPU, one question at a time ("alone") and several
in one pass ("best batch": how many, and how many times as fast a question is then). Random weights, passages of {TOKENS}
tokens, medians of three.

- CPU: {torch.get_num_threads()} threads, fp32. GPU: {gpu}.
- torch {torch.__version__}.

A CPU's passes have at most {MOST_TOKENS["cpu"]:,} tokens, at T5-base's size a fifth of that: from 50 passages on, and at T5-base's
size, its best batch is the only one, a question alone.

What runs on a GPU is tested on a simulated one: which GPUs FAISS takes, one search at a time, too little memory
(`tests/retrieval/test_gpus.py`, `tests/models/encoders/test_device.py`).

{chr(10).join(lines)}
"""


if __name__ == "__main__":
    main()
