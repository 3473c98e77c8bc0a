"""Task arithmetic between an answering model and its reader."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from core.errors import CheckpointError, InputError
from core.training.weights.averaging import average
from core.training.weights.merging import merge


def folder(path: Path, value: float, size: int = 3) -> Path:
    path.mkdir()
    save_file({"encoder.w": torch.full((size,), value), "head.w": torch.full((2,), value)}, path / "model.safetensors")
    (path / "config.json").write_text(json.dumps({"kind": "span"}))
    return path


def test_the_encoder_moves_by_the_share_and_the_head_stays(tmp_path: Path) -> None:
    own, old, new = (folder(tmp_path / name, value) for name, value in (("a", 1.0), ("b", 2.0), ("c", 4.0)))
    assert merge(own, old, new, 0.5, tmp_path / "out") == 1
    found = load_file(tmp_path / "out" / "model.safetensors")
    assert found["encoder.w"].tolist() == [2.0, 2.0, 2.0]
    assert found["head.w"].tolist() == [1.0, 1.0]
    assert json.loads((tmp_path / "out" / "config.json").read_text())["about"]["merged"]["share"] == 0.5


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    own, old, other = folder(tmp_path / "a", 1.0), folder(tmp_path / "b", 2.0), folder(tmp_path / "c", 4.0, size=5)
    with pytest.raises(CheckpointError, match="do not share"):
        merge(own, old, other, 0.5, tmp_path / "out")
    with pytest.raises(CheckpointError, match="cannot be read"):
        merge(own, old, tmp_path / "nowhere", 0.5, tmp_path / "out")
    with pytest.raises(InputError, match="share"):
        merge(own, old, old, float("nan"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_mean_of_two_trainings(tmp_path: Path) -> None:
    old, new, other = folder(tmp_path / "a", 1.0), folder(tmp_path / "b", 2.0), folder(tmp_path / "c", 4.0, size=5)
    assert average(old, new, 0.75, tmp_path / "out") == 2
    found = load_file(tmp_path / "out" / "model.safetensors")
    assert found["encoder.w"].tolist() == [1.75] * 3
    assert found["head.w"].tolist() == [1.75] * 2
    about = json.loads((tmp_path / "out" / "config.json").read_text())
    assert about["kind"] == "span"
    assert about["about"]["averaged"]["share"] == 0.75
    with pytest.raises(CheckpointError, match="not of one network"):
        average(old, other, 0.5, tmp_path / "wrong")
    with pytest.raises(CheckpointError, match="cannot be read"):
        average(old, tmp_path / "nowhere", 0.5, tmp_path / "wrong")
    with pytest.raises(InputError, match="share"):
        average(old, new, 1.5, tmp_path / "wrong")
    assert not (tmp_path / "wrong").exists()
