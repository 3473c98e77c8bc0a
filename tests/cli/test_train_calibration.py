"""`python -m core train calibration`: what it writes, and that the system takes it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from core.cli import main
from core.engine import Engine
from core.models.loading.files import digest
from core.models.ranking.calibration import FILE, Calibration, Platt, read_calibration, write_calibration
from core.settings import ROOT, Settings
from core.systems.base.options import Options
from core.systems.base.rescoring import Rescoring
from core.systems.base.selection import CalibrationKey
from core.systems.base.system import SystemParts

NAMES = ("Anna", "Bert", "Cleo", "Dora", "Emil", "Fritz", "Greta", "Hugo", "Ida", "Jan", "Karl", "Lena")


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The bundled reader in a folder of its own, without a calibration."""
    folder = tmp_path / "reader"
    shutil.copytree(ROOT / "checkpoints" / "reader", folder)
    (folder / FILE).unlink(missing_ok=True)
    monkeypatch.setenv("AMBISCOPE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AMBISCOPE_READER", str(folder))
    return folder


def questions(path: Path) -> Path:
    rows = (
        {
            "question": f"Who won race {i}?",
            "passages": [{"title": f"Race {i}", "text": f"{name} won race {i} in the rain, ahead of {NAMES[i - 1]}."}],
            "answers": [[name]],
        }
        for i, name in enumerate(NAMES)
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_calibration_is_fitted_and_makes_the_rule_possible(
    reader: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own, out = questions(tmp_path / "own.jsonl"), tmp_path / "out"
    asked = ["evaluate", "--system", "dpr-threshold", "--questions", str(own), "--set", "stop=expected-f1", "--json"]
    assert main(asked) == 2  # not yet
    assert "core train calibration" in capsys.readouterr().err
    arguments = ["train", "calibration", "--systems", "dpr-threshold", "--multi", str(own), "--out", str(out)]
    assert main(arguments) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert report["reading dpr own"]["answer"]["n"] >= len(NAMES)
    found = read_calibration(out / "reader", "reading dpr own", digest(reader))
    assert found.fitted_on == "12 questions of own.jsonl"
    assert found.end is None
    assert not (reader / FILE).exists()  # where the weights lie nothing is written
    shutil.copyfile(out / "reader" / FILE, reader / FILE)
    assert main(asked) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["summary"]["reliability"]["answer"]["n"] >= len(NAMES)
    assert row["provenance"]["settings"]["extra"]["stop"] == "expected-f1"
    assert row["provenance"]["settings"]["calibration"]["fitted_on"] == "12 questions of own.jsonl"


def test_questions_with_passages_have_a_calibration_of_their_own(
    reader: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fitted with --multi it stands beside that of retrieved passages, and each is taken for its questions."""

    def used(**how: Any) -> str:
        system: Any = Engine(Settings.from_env()).system("dpr-threshold", "starter", Options(clarify=False), **how)
        return system.stopping.calibration.fitted_on if system.stopping.calibration else "none"

    assert used(own_passages=True) == "none"
    retrieved = Calibration(Platt({"odds": 1.0}, 0.0), None, "practice", digest(reader))
    write_calibration(reader, "reading dpr", retrieved)
    assert used(own_passages=True) == "practice"  # better than none: only who chose the passages differs
    arguments = ["train", "calibration", "--systems", "dpr-threshold", "--multi", str(questions(tmp_path / "own.jsonl"))]
    assert main([*arguments, "--out", str(tmp_path / "fitted")]) == 0
    fitted = read_calibration(tmp_path / "fitted" / "reader", "reading dpr own", digest(reader))
    assert fitted is not None
    write_calibration(reader, "reading dpr own", fitted)
    assert used(own_passages=True) == "12 questions of own.jsonl"
    assert used() == "practice"
    capsys.readouterr()


def test_a_reranker_of_own_passages_tells_them_apart_already() -> None:
    parts = SystemParts(Settings(), None)
    key = CalibrationKey("ambiscope own_verified", "answerer", "w")
    assert Rescoring(parts, kind="own_verified").own_key(key) == key
    assert Rescoring(parts, kind="retrieved").own_key(key).fallback == key.name


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "either --annotated FOLDER"),
        (["--systems", "no-such", "--multi", __file__], "no-such"),
        (["--skip", "-1"], "--skip is -1"),
    ],
)
def test_what_is_wrong_is_said(
    arguments: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMBISCOPE_HOME", str(tmp_path / "home"))
    assert main(["train", "calibration", *arguments]) == 2
    assert says in capsys.readouterr().err
