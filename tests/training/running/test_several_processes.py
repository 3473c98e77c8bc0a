"""Training in two processes on this machine, over gloo, as `accelerate launch` and `torchrun` start them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from serving import free_port

from core.settings import ROOT

PROGRAM = ROOT / "tests" / "fakes" / "two_processes.py"


def run(base: Path, out: Path, steps: int) -> list[dict[str, Any]]:
    """The reports of two processes, by rank."""
    shared = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    command = [sys.executable, str(PROGRAM), str(base), str(out), str(steps)]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environments = [{**os.environ, **shared, "WORLD_SIZE": "2", "RANK": n, "LOCAL_RANK": n} for n in ("0", "1")]
    processes = [subprocess.Popen(command, env=environment, cwd=ROOT, **pipes) for environment in environments]
    reports = []
    try:
        for process in processes:
            output, errors = process.communicate(timeout=600)
            assert process.returncode == 0, errors[-2000:]
            reports.append(json.loads(output.splitlines()[-1]))
    finally:
        for process in processes:
            process.kill()
    return sorted(reports, key=lambda report: report["rank"])


def test_two_processes_train_one_network_with_kept_states(tiny_bert_folder: Path, tmp_path: Path) -> None:
    first, second = run(tiny_bert_folder, tmp_path / "run", 6)
    assert (first["of"], second["of"]) == (2, 2)
    assert first["weights"] == second["weights"]  # their gradients were added up
    assert first["seen"] != second["seen"]  # over batches of their own
    assert min(first["kept"], second["kept"]) > 0
    rows = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [6]  # one process writes
    position = json.loads((tmp_path / "run" / "state" / "position.json").read_text())
    assert (position["step"], len(position["positions"])) == (6, 2)
    assert (tmp_path / "run" / "last" / "model.safetensors").exists()
