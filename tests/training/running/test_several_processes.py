"""Training in two processes on this machine, over gloo, as `accelerate launch` and `torchrun` start them.

Also the program of each process, a training with kept states (`core train seq2seq --repeat`): this file with BASE and OUT, and RANK, WORLD_SIZE,
MASTER_ADDR and MASTER_PORT in the environment.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from core.models.encoders.sentence_encoder import weights_of
from core.models.seq2seq.small import SmallConfig, make_small
from core.settings import ROOT
from core.training.data.examples import MultiExample
from core.training.fid import FidTask
from core.training.freezing import freeze
from core.training.options import TrainConfig
from core.training.seq2seq import saver
from core.training.trainer import fit

PASSAGES = tuple((place, f"the ball is {colour}") for place, colour in (("north", "red"), ("south", "blue"), ("east", "green")))
EXAMPLES = [MultiExample(f"colour of the {what} ?", PASSAGES, (("red",), ("blue",)), "made") for what in ("ball", "car")]


class Counted(FidTask):
    """Prints which batches were read, and the losses."""

    def loss(self, network: torch.nn.Module, batch: Any, device: torch.device) -> torch.Tensor:
        loss = super().loss(network, batch, device)
        print(batch[0].key, float(loss.detach()))
        return loss


def train(base: str, out: Path) -> None:
    torch.set_num_threads(1)
    sizes = {"inner": 16, "feed_forward": 32, "max_tokens": 48, "max_answer_tokens": 12}
    network, tokenizer = make_small(SmallConfig(base=base, target="step", **sizes))
    freeze(network, 2)
    task = Counted([(EXAMPLES, 1.0)], [], tokenizer, network.config, batch_tokens=600, collate=network.collate, repeat=1)
    config = TrainConfig(steps=6, warmup=1, evaluate_every=100, precision="fp32", device="cpu")
    fit(network, task, config, out, saver(network, tokenizer), lambda _: None)
    print(len(task.kept), weights_of(network))


def test_two_processes_train_one_network_with_kept_states(tiny_bert_folder: Path, tmp_path: Path) -> None:
    from serving import free_port

    shared = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    command = [sys.executable, __file__, str(tiny_bert_folder), str(tmp_path)]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environments = [{**os.environ, **shared, "WORLD_SIZE": "2", "RANK": n, "LOCAL_RANK": n} for n in ("0", "1")]
    processes = [subprocess.Popen(command, env=environment, cwd=ROOT, **pipes) for environment in environments]
    batches, kept, weights = [], [], []
    try:
        for process in processes:
            output, errors = process.communicate(timeout=600)
            assert process.returncode == 0, errors[-2000:]
            *losses, last = output.splitlines()
            batches.append(losses)
            kept.append(int(last.split()[0]))
            weights.append(last.split()[1])
    finally:
        for process in processes:
            process.kill()
    assert weights[0] == weights[1]  # their gradients were added up
    assert batches[0] != batches[1]  # over batches of their own
    assert min(kept) > 0
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [6]  # one process writes
    position = json.loads((tmp_path / "state" / "position.json").read_text())
    assert (position["step"], len(position["positions"])) == (6, 2)
    assert (tmp_path / "last" / "model.safetensors").exists()


if __name__ == "__main__":
    train(sys.argv[1], Path(sys.argv[2]))
