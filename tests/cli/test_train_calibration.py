"""`python -m core train calibration`: what it writes, and that the system takes it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from core.cli import main
from core.models.loading.files import digest
from core.models.ranking.calibration import FILE, read_calibration
from core.settings import ROOT

NAMES = ("Anna", "Bert", "Cleo", "Dora", "Emil", "Fritz", "Greta", "Hugo", "Ida", "Jan", "Karl", "Lena")


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The bundled reader in a folder of its own, without a calibration."""
    folder = tmp_path / "reader"
    shutil.copytree(ROOT / "checkpoints" / "minilm", folder)
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


def test_a_calibration_is_fitted_and_used_beside_its_weights(
    reader: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own, out = questions(tmp_path / "own.jsonl"), tmp_path / "out"
    asked = ["evaluate", "--system", "dpr-threshold", "--questions", str(own), "--json"]
    arguments = ["train", "calibration", "--systems", "dpr-threshold", "--multi", str(own), "--out", str(out)]
    assert main(arguments) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert report["reading dpr"]["answer"]["n"] >= len(NAMES)
    found = read_calibration(out / "reader", "reading dpr", digest(reader))
    assert found.fitted_on == "12 questions of own.jsonl"
    assert found.end is None
    assert not (reader / FILE).exists()  # where the weights lie nothing is written
    shutil.copyfile(out / "reader" / FILE, reader / FILE)
    assert main(asked) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["summary"]["reliability"]["answer"]["n"] >= len(NAMES)
    assert row["provenance"]["settings"]["calibration"]["fitted_on"] == "12 questions of own.jsonl"


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
