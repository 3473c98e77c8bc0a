from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reading_fakes import WordEncoder

from core.cli import main
from core.errors import CheckpointError, InputError
from core.models.encoders import sentence_encoder as encoders
from core.models.ranking.ambiguity import AmbiguityModel, find_ambiguity, load_ambiguity, save_ambiguity
from core.training.ambiguity import fit


def row(question: str, *clarified: str) -> dict[str, Any]:
    """A question of AmbigNQ: ambiguous with clarified questions, else with a single answer."""
    annotation: dict[str, Any] = {"type": "singleAnswer", "answer": ["x"]}
    if clarified:
        pairs = [{"question": text, "answer": [str(i)]} for i, text in enumerate(clarified)]
        annotation = {"type": "multipleQAs", "qaPairs": pairs}
    return {"question": question, "annotations": [annotation]}


FILMS = [f"when did film {i} come out" for i in range(8)]
QUESTIONS = [
    *(row(film, f"{film} in theaters?", f"{film} on dvd?") for film in FILMS),
    *(row(f"when did shop {i} open") for i in range(8)),
    row("who sang it", "Who sang the 1990 song it?", "Who sang it first in a rare recording?"),
]


def write(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.write_text(json.dumps([{"id": str(number), **question} for number, question in enumerate(rows)]))
    return path


def test_training_tells_the_questions_apart(tmp_path: Path) -> None:
    file = write(tmp_path / "train.json", QUESTIONS * 3)
    fitted = fit(file, write(tmp_path / "dev.json", QUESTIONS), WordEncoder())  # type: ignore[arg-type]
    assert fitted.figures["dev_accuracy"] >= 16 / 17  # the vectors know nothing of "who sang it"
    assert fitted.figures["dev_majority"] == pytest.approx(9 / 17, abs=1e-4)
    model = AmbiguityModel(fitted.weights, fitted.bias, WordEncoder())  # type: ignore[arg-type]
    assert model.probability("When did it come out?") > 0.5 > model.probability("when did it open")
    for few in (QUESTIONS[:3], QUESTIONS[7:9]):  # of the two kinds in the second, one is held out
        with pytest.raises(InputError, match="both needed"):
            fit(write(tmp_path / "few.json", few), None, WordEncoder())  # type: ignore[arg-type]


def test_command_and_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(encoders, "load_encoder", lambda settings: WordEncoder())
    monkeypatch.setenv("AMBISCOPE_HOME", str(tmp_path / "home"))
    file, out = write(tmp_path / "train.json", QUESTIONS * 3), tmp_path / "out"
    assert main(["train", "ambiguity", "--ambignq", str(file), "--ambignq-dev", str(file), "--out", str(out)]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["dev_questions"] == 51
    assert sum(f.stat().st_size for f in out.iterdir()) < 1_000_000
    assert str(tmp_path) not in (out / "config.json").read_text()  # a checkpoint travels
    model, digest = load_ambiguity(str(out))
    assert model.probability("When did it come out?") > 0.5
    assert load_ambiguity(str(out))[0] is model
    save_ambiguity(out, np.zeros(2, np.float32), 0.0, {})
    assert load_ambiguity(str(out))[1] != digest
    assert load_ambiguity(str(out))[0].probability("When did it come out?") == 0.5
    assert main(["train", "ambiguity"]) == 2
    assert "--ambignq" in capsys.readouterr().err


def test_damaged_and_missing_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoders, "load_encoder", lambda settings: WordEncoder())
    with pytest.raises(CheckpointError, match="train ambiguity"):
        find_ambiguity(str(tmp_path))
    save_ambiguity(tmp_path, np.zeros(3, np.float32), 0.0, {})
    with pytest.raises(CheckpointError, match="vectors of 2"):
        load_ambiguity(str(tmp_path))
    (tmp_path / "model.safetensors").write_text("x")
    with pytest.raises(CheckpointError, match="damaged"):
        load_ambiguity(str(tmp_path))
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match="incomplete"):
        load_ambiguity(str(tmp_path))
    (tmp_path / "config.json").write_text('{"kind": "span"}')
    with pytest.raises(CheckpointError, match="kind span"):
        find_ambiguity(str(tmp_path))
