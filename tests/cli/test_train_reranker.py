"""`python -m core train reranker`: on annotated questions, on questions that bring their passages, on both."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from core.cli import main
from core.engine import Engine
from core.models.ranking.calibration import Calibration, Platt, write_calibration
from core.models.ranking.features import FEATURES
from core.models.ranking.reranker import Weights, file_of, read_weights, write_weights
from core.models.span.checkpoints import save_span_network
from core.models.span.model import load_base
from core.models.span.network import SpanConfig, SpanNetwork
from core.settings import Settings
from core.systems.base.loop import LoopEnd
from core.systems.base.options import Options
from core.training.judgments import NearFit

NAMES = ("Anna", "Bert", "Cleo", "Dora", "Emil", "Fritz", "Greta", "Hugo", "Ida", "Jan", "Karl", "Lena")


@pytest.fixture
def checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AMBISCOPE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AMBISCOPE_VERIFIER", "off")
    folder = tmp_path / "answerer"
    config = SpanConfig()
    torch.manual_seed(0)  # the same candidates whichever tests ran before
    save_span_network(SpanNetwork(load_base(config.base), config), folder, {})
    zero = dict.fromkeys(FEATURES, 0.0)
    write_weights(folder, Weights(zero, zero, dict.fromkeys(FEATURES, 1.0), 3.0, "before"))
    return folder


def questions(path: Path) -> Path:
    rows = (
        {"question": f"Who won race {i}?", "passages": [{"title": "Race", "text": f"{name} won."}], "answers": [[name]]}
        for i, name in enumerate(NAMES)
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_questions_with_passages_fit_the_reranker_for_such_and_leave_the_other(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    arguments = [
        "train",
        "reranker",
        "--init",
        str(checkpoint),
        "--multi",
        str(questions(tmp_path / "own.jsonl")),
        "--out",
        str(out),
    ]
    assert main(arguments) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert report["own"]["fitted_on"] == "12 questions of own.jsonl"
    assert "retrieved" not in report
    assert report["own"]["cross_validated"]["f1"] >= report["own"]["plain"]["f1"]
    own, other = read_weights(out, "own"), read_weights(out)
    assert any(own.weights.values())
    assert other == read_weights(checkpoint)
    assert not (checkpoint / file_of("own")).exists()  # what it began from is left as it was


def test_annotated_questions_fit_the_reranker_for_retrieved_passages(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMBISCOPE_ENCODER", "hashing")
    folder = tmp_path / "races"
    folder.mkdir()
    lines = [f"{i}\t{name} won race {i} in the rain.\tRace {i}" for i, name in enumerate(NAMES)]
    (folder / "passages.tsv").write_text("\n".join(["id\ttext\ttitle", *lines]) + "\n", encoding="utf-8")
    asked = [
        {
            "id": str(i),
            "question": f"Who won race {i}?",
            "split": "held out",
            "annotations": [{"type": "singleAnswer", "answer": [name], "passages": [str(i)]}],
        }
        for i, name in enumerate(NAMES)
    ]
    (folder / "questions.json").write_text(json.dumps(asked), encoding="utf-8")
    out = tmp_path / "out"
    assert main(["train", "reranker", "--init", str(checkpoint), "--annotated", str(folder), "--out", str(out)]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert report["retrieved"]["fitted_on"] == "12 questions of races held out from training"
    found = read_weights(out)
    assert any(found.weights.values())
    assert set(found.first) == set(found.weights)
    assert not (out / file_of("own")).exists()


def test_judged_questions_fit_what_the_system_has_nearby(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = questions(tmp_path / "judged.jsonl")
    wrong = {"question": "Who won race 99?", "passages": [{"title": "Race", "text": "Otto won."}], "answers": []}
    with file.open("a") as lines:
        lines.write(json.dumps({**wrong, "negatives": ["Otto"], "answers_known": False}) + "\n")
    out = tmp_path / "out"
    arguments = ["train", "reranker", "--near", "--init", str(checkpoint), "--multi", str(file), "--out", str(out)]
    assert main(arguments) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    near = report["retrieved"]
    assert near["questions"] == 12
    assert near["kept"] == (near["after"] > near["before"])
    assert "own" not in report  # the checkpoint has none
    assert json.loads((out / "judgments.json").read_text()) == {"retrieved": near}
    fitted, before = read_weights(out), read_weights(checkpoint)
    assert (fitted != before) == near["kept"]
    assert fitted.fitted_on == ("before; then 13 judged questions of judged.jsonl" if near["kept"] else "before")
    assert main([*arguments, "--annotated", str(tmp_path)]) == 2
    assert "--near takes judged questions with their passages" in capsys.readouterr().err


@pytest.mark.parametrize("helps", [True, False], ids=["other rerankers", "the same rerankers"])
def test_a_fit_nearby_keeps_probabilities_calibrated(
    helps: bool, checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    zero = dict.fromkeys(FEATURES, 0.0)
    write_weights(checkpoint, Weights(zero, zero, dict.fromkeys(FEATURES, 1.0), 3.0, "before"), "own")

    def calibrated(answerer: Path) -> LoopEnd:
        engine = Engine(replace(Settings.from_env(), answerer=str(answerer)))
        system: Any = engine.system("ambiscope", None, Options(clarify=False), own_passages=True)
        end: LoopEnd = system.stopping
        return end

    place = calibrated(checkpoint).key
    never = Platt({"odds": 1.0}, -9.0)  # so that the judged questions mend it
    write_calibration(checkpoint, place.name, Calibration(never, never, "12 questions", place.weights))
    assert calibrated(checkpoint).calibration is not None

    def made(_runs: Any, present: Weights, *_: Any) -> NearFit:
        return NearFit(replace(present, bias=1.0) if helps else present, 12, 10.0, 0.4, 0.5 if helps else 0.4)

    monkeypatch.setattr("core.training.judgments.fit_near", made)
    out, judged = tmp_path / "out", questions(tmp_path / "judged.jsonl")
    arguments = ["train", "reranker", "--near", "--init", str(checkpoint), "--multi", str(judged), "--out", str(out)]
    assert main(arguments) == 0
    after = calibrated(out)
    assert (after.key.weights != place.weights) == helps  # other rerankers, so the earlier calibration would not be found
    said = json.loads((out / "judgments.json").read_text())["own"]["calibration"]
    assert said["kept"]
    assert said["after"] < said["before"]
    assert after.calibration.fitted_on == "12 questions; then 12 judged questions"
    assert after.calibration.answer.bias > never.bias


def test_without_questions_it_says_what_to_give(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "reranker", "--init", str(checkpoint)]) == 2
    assert "--annotated FOLDER" in capsys.readouterr().err
    empty = tmp_path / "empty.jsonl"
    empty.write_text('{"question": "Who?", "passages": [], "answers": [["Anna"]]}\n')
    assert main(["train", "reranker", "--init", str(checkpoint), "--multi", str(empty)]) == 2
    assert "no question of --multi has an answer and passages of its own" in capsys.readouterr().err


def test_a_system_that_reads_once_gets_weights_of_its_own(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMBISCOPE_ENCODER", "hashing")
    out, kept = tmp_path / "out", tmp_path / "kept.db"
    arguments = ["train", "reranker", "--system", "one-pass", "--reader", str(checkpoint), "--additions", "reranker"]
    arguments += ["--multi", str(questions(tmp_path / "own.jsonl")), "--out", str(out), "--keep", str(kept)]
    assert main(arguments) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (report["system"], list(report["own"])) == ("one-pass", ["fitted_on", "plain", "cross_validated"])
    found = read_weights(out, "own", "one-pass")
    assert not found.first  # there is no later step
    assert any(found.weights.values())
    assert kept.stat().st_size > 0


def test_a_system_without_additions_is_refused(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "reranker", "--system", "fid", "--multi", str(questions(tmp_path / "own.jsonl"))]) == 2
    assert "fid takes no additions; fit the rerankers of one of ambiscope, ambigprompt" in capsys.readouterr().err
