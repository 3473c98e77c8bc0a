"""`python -m core train calibration`: what it writes, and that the system takes it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from command_line import Run, write_jsonl

from core.models.loading.files import digest
from core.models.ranking.calibration import FILE, read_calibration
from core.settings import ROOT

NAMES = ("Anna", "Bert", "Cleo", "Dora", "Emil", "Fritz", "Greta", "Hugo", "Ida", "Jan", "Karl", "Lena")


@pytest.fixture
def reader(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The bundled reader in a folder of its own, without a calibration."""
    folder = home / "reader"
    shutil.copytree(ROOT / "checkpoints" / "minilm", folder)
    (folder / FILE).unlink(missing_ok=True)
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
    return write_jsonl(path, *rows)


def test_a_calibration_is_fitted_and_used_beside_its_weights(run: Run, reader: Path, home: Path) -> None:
    multi, fitted = questions(home / "own.jsonl"), home / "out" / "reader"
    code, out, _ = run("train", "calibration", "--systems", "dpr-threshold", "--multi", multi, "--out", "out")
    report = json.loads(out.splitlines()[-1])
    assert (code, report["reading dpr"]["answer"]["n"] >= len(NAMES)) == (0, True)
    calibration = read_calibration(fitted, "reading dpr", digest(reader))
    assert (calibration.fitted_on, calibration.end) == ("12 questions of own.jsonl", None)
    assert not (reader / FILE).exists()  # where the weights lie nothing is written
    shutil.copyfile(fitted / FILE, reader / FILE)
    code, out, _ = run("evaluate", "--system", "dpr-threshold", "--questions", multi, "--json")
    report = json.loads(out)
    assert (code, report["summary"]["reliability"]["answer"]["n"] >= len(NAMES)) == (0, True)
    assert report["provenance"]["settings"]["calibration"]["fitted_on"] == "12 questions of own.jsonl"


def test_a_mixture_has_questions_over_a_corpus_without_an_answer_and_with_their_own_passages(
    run: Run, reader: Path, home: Path
) -> None:
    folder = home / "races"
    folder.mkdir()
    pairs = [
        {
            "question": f"Who won race {i} in Town {i}?",
            "split": "held out",
            "annotations": [{"type": "singleAnswer", "answer": [name], "passages": [f"race{i}"]}],
        }
        for i, name in enumerate(NAMES)
    ]
    (folder / "questions.json").write_text(json.dumps(pairs), encoding="utf-8")
    rows = [f"race{i}\t{name} won race {i} in Town {i} in the rain.\tRace {i}" for i, name in enumerate(NAMES)]
    (folder / "passages.tsv").write_text("\n".join(["id\ttext\ttitle", *rows]) + "\n", encoding="utf-8")
    words = ["--systems", "dpr-threshold", "--annotated", folder, "--multi", questions(home / "own.jsonl"), "--out", "out"]
    assert run("train", "calibration", *words)[0] == 0
    runs = [json.loads(line) for file in sorted((home / "out" / "runs").iterdir()) for line in file.read_text().splitlines()]
    without = [r for r in runs if r["references"] == [[]]]
    assert (len(runs), len(without)) == (27, 3)
    assert all(r["turns"][0]["candidates"] for r in without)
    fitted_on = read_calibration(home / "out" / "reader", "reading dpr", digest(reader)).fitted_on
    assert fitted_on == "27 questions of races (held out), own.jsonl"
