"""`python -m core train verifier`: trains, writes a checkpoint that loads, goes on from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.cli import main
from core.models.encoders import packaged
from core.models.loading.finding import find_verifier
from core.models.ranking.verifier import load_verifier_network


@pytest.fixture(autouse=True)
def tiny_base(tiny_mpnet_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    real = packaged.packaged_folder
    monkeypatch.setattr(packaged, "packaged_folder", lambda n: tiny_mpnet_folder if n == packaged.MPNET else real(n))
    monkeypatch.setenv("AMBISCOPE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AMBISCOPE_DEVICE", "cpu")
    return tiny_mpnet_folder


def questions(path: Path) -> Path:
    rows = (
        {
            "question": "who wrote it ?",
            "passages": [{"title": "Book", "text": f"{name} wrote the book in the town."}],
            "answers": [[name]],
        }
        for name in ("Anna", "Bert", "Cleo")
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_checkpoint_is_written_and_trained_on(tmp_path: Path, tiny_base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    multi, out = str(questions(tmp_path / "multi.jsonl")), tmp_path / "out"
    # the precision of the other training tests: accelerate keeps that of the process's first one
    plain = ["train", "verifier", "--multi", multi, "--precision", "fp32"]
    assert main([*plain, "--steps", "2", "--out", str(out)]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["step"] == 2
    written = find_verifier(str(out / "last"))
    assert load_verifier_network(written, tiny_base).config.base == "mpnet"
    assert main([*plain, "--steps", "1", "--init", str(written), "--out", str(tmp_path / "more")]) == 0
