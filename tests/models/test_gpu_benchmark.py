"""The benchmark of GPUs: its path on the CPU, and its table with and without a GPU."""

from __future__ import annotations

import pytest

from benchmarks import gpu
from benchmarks.gpu import Row


@pytest.mark.parametrize(("make", "shape"), [(gpu.span_work, "tiny"), (gpu.fid_work, "t5-tiny")])
def test_every_kind_of_work_runs_and_counts_its_operations(make: object, shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "TOKENS", 32)
    for name, work in make(shape, "cpu", 2, 2).items():  # type: ignore[operator]
        assert gpu.operations(work) > 10**6, name


def test_a_machine_without_a_gpu_says_so() -> None:
    rows = [Row("read", "bundled", 10, 1, 0.2, 0.5), Row("read", "bundled", 10, 4, 0.1, 0.6)]
    line = gpu.table({"cpu": rows})[-1]
    assert (
        line
        == "| read | bundled | 10 | 200.00 ms | 100.00 ms (4: 2.00 times) | not measured | not measured | not measured | not measured |"
    )


def test_a_gpu_stands_beside_the_cpu() -> None:
    rows = {
        "cpu": [Row("read", "bundled", 10, 1, 0.2, 0.5)],
        "cuda": [Row("read", "bundled", 10, 1, 0.02, 0.1), Row("read", "bundled", 10, 64, 0.002, 0.41)],
    }
    assert gpu.table(rows)[-1].endswith("| 20.00 ms | 2.00 ms (64: 10.00 times) | 100.0 times | 41% |")
