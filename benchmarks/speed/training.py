"""Real tokens a second of a training step on a CPU: rows without padding (as `core train` computes them) against padded rows, in turn in one run.

    python -m benchmarks.speed.training [--steps 12] [--batch-tokens 4096] [--freeze 2]

The bundled reader and the bundled answering model on data/practice_facts, one core, forward pass, backward pass and optimiser.  Nothing is saved.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from core.models.loading.finding import find_checkpoint
from core.models.span.checkpoints import load_span_network
from core.models.span.network import SpanNetwork
from core.settings import ROOT
from core.training.answerer import AnswererTask
from core.training.data.held_out_passages import SHARE
from core.training.data.mixtures import annotated_examples, reader_rows_of_multi
from core.training.freezing import freeze
from core.training.options import TrainConfig
from core.training.reader import ReaderTask
from core.training.trainer import parameter_groups

ROUNDS = 3  # of each layout, in turn
EOI_SHARE = 0.25
CONTEXT = 9


@contextmanager
def layout(padded: bool) -> Iterator[None]:
    """How SpanNetwork computes its rows inside."""
    usual = SpanNetwork._packs
    if padded:
        SpanNetwork._packs = lambda self, batch: False  # type: ignore[method-assign]
    try:
        yield
    finally:
        SpanNetwork._packs = usual  # type: ignore[method-assign]


def measure(network: Any, task: Any, steps: int, frozen: int) -> dict[str, float]:
    """Tokens a second by layout, and the ratio."""
    freeze(network, frozen)
    network.train()
    groups = parameter_groups(network, TrainConfig())
    trained = [p for group in groups for p in group["params"] if p.requires_grad]
    optimiser = torch.optim.AdamW(groups)
    stream = task.batches(0, 0)
    batches = [next(stream)[1] for _ in range(steps)]

    def run() -> float:
        tokens, started = 0, time.perf_counter()
        for batch in batches:
            optimiser.zero_grad()
            task.loss(network, batch, torch.device("cpu")).backward()
            torch.nn.utils.clip_grad_norm_(trained, 1.0)
            optimiser.step()
            tokens += int(batch[0].mask.sum())
        return tokens / (time.perf_counter() - started)

    speeds: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(ROUNDS):
        for padded, found in speeds.items():
            with layout(padded):
                found.append(run())
    best = {padded: max(found) for padded, found in speeds.items()}
    real, all_ = (sum(count(b[0]) for b in batches) for count in (lambda b: int(b.mask.sum()), lambda b: b.mask.numel()))
    return {
        "padded tokens a second": round(best[True]),
        "packed tokens a second": round(best[False]),
        "ratio": round(best[False] / best[True], 2),
        "padding": round(all_ / real, 2),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--batch-tokens", type=int, default=4096)
    parser.add_argument("--freeze", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(1)
    examples, _ = annotated_examples(ROOT / "data" / "practice_facts", held_out=SHARE)
    makers: dict[str, Callable[[Any], Any]] = {
        "reader": lambda config: ReaderTask(reader_rows_of_multi(examples, 0, 2), [], config, args.batch_tokens),
        "answerer": lambda config: AnswererTask([(examples, 1.0)], [], config, "tune", CONTEXT, EOI_SHARE, args.batch_tokens),
    }
    for kind, make in makers.items():
        network = load_span_network(find_checkpoint("default", kind))
        print(json.dumps({kind: measure(network, make(network.config), args.steps, args.freeze)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
