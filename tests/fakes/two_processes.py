"""A program: one of several processes that train a small encoder-decoder with kept states (`core train seq2seq --repeat`).

`python tests/fakes/two_processes.py BASE OUT STEPS` with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as torchrun and accelerate set them.
Prints its rank, the positions of its batches, and a digest of its last weights.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn

from core.models.encoders.sentence_encoder import weights_of
from core.models.seq2seq.small import SmallConfig, make_small
from core.training.data.examples import MultiExample
from core.training.fid import FidTask
from core.training.freezing import freeze
from core.training.options import TrainConfig
from core.training.seq2seq import saver
from core.training.trainer import fit

COLOURS = (
    ("north", "the ball is red"),
    ("south", "the ball is blue"),
    ("east", "the ball is green"),
    ("west", "the car is white"),
)
EXAMPLES = [
    MultiExample(f"colour of the {what} ?", COLOURS, (("red",), ("blue",), ("green",)), "made") for what in ("ball", "car")
]


class Counted(FidTask):
    """Notes which batches were read, and the losses."""

    def loss(self, network: nn.Module, batch: Any, device: torch.device) -> torch.Tensor:
        loss = super().loss(network, batch, device)
        seen.append([*batch[0].key, round(float(loss.detach()), 5)])
        return loss


seen: list[list[float]] = []


def main(base: str, out: str, steps: int) -> None:
    from accelerate import PartialState

    torch.set_num_threads(1)
    network, tokenizer = make_small(
        SmallConfig(base=base, inner=16, feed_forward=32, max_tokens=48, max_answer_tokens=12, target="step")
    )
    freeze(network, 2)
    task = Counted([(EXAMPLES, 1.0)], [], tokenizer, network.config, batch_tokens=600, collate=network.collate, repeat=1)
    config = TrainConfig(steps=steps, lr=3e-3, head_lr=3e-3, warmup=1, evaluate_every=100, precision="fp32", device="cpu")
    fit(network, task, config, Path(out), saver(network, tokenizer), lambda _: None)
    state = PartialState()
    figures = {"rank": state.process_index, "of": state.num_processes, "seen": seen, "kept": len(task.kept)}
    print(json.dumps(figures | {"weights": weights_of(network)}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
