"""`python -m storage`: exit codes, one line of error, clean JSON."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from storage_samples import fill

from core import types as t
from core.settings import ROOT
from storage.__main__ import main
from storage.schema.creation import head
from storage.store import Store

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filled")
    with Store(f"sqlite:///{folder / 'ambiscope.db'}") as store:
        fill(store)
    return folder


@pytest.fixture
def home(filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An AMBISCOPE_HOME with some rows, in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AMBISCOPE_DATABASE_URL", raising=False)
    folder = tmp_path / "home"
    monkeypatch.setenv("AMBISCOPE_HOME", str(folder))
    shutil.copytree(filled, folder)
    return folder


@pytest.mark.slow
def test_the_real_command(tmp_path: Path) -> None:
    environment = {"AMBISCOPE_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "storage", *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=environment)

    done = run("export", "--format", "ambignq", "--out", str(tmp_path / "out.json"), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["counts"]["questions"] == 0
    failed = run("import", "missing.json")
    words = "missing.json cannot be read (No such file or directory); give the path of an existing file"
    assert (failed.returncode, failed.stdout, failed.stderr) == (2, "", f"error: {words}\n")


def test_filters_are_options_of_an_export(home: Path, tmp_path: Path, capsys: Capture) -> None:
    out = str(tmp_path / "out")
    assert main(["export", "--format", "ambignq", "--out", out, "--annotator", "Bob", "--answers", "all", "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert (body["filters"]["annotators"], body["filters"]["answers"]) == (["Bob"], "all")
    assert body["counts"]["annotations"] == 1


def test_move_to_another_home(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    out = tmp_path / "all.jsonl"
    assert main(["export", "--format", "jsonl", "--out", str(out)]) == 0
    printed = capsys.readouterr()
    assert (str(out) in printed.out, printed.err) == (True, "")
    monkeypatch.setenv("AMBISCOPE_HOME", str(tmp_path / "second"))
    assert main(["import", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["stored"]["judgment"] == 6


def test_a_backup_is_made_checked_and_put_back(home: Path, tmp_path: Path, capsys: Capture) -> None:
    assert main(["backup", str(tmp_path / "b.db")]) == 0
    assert main(["backup", "--json"]) == 0
    assert main(["restore", str(tmp_path / "b.db")]) == 0
    assert "kept in" in capsys.readouterr().out
    assert main(["check", "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert body["ok"]
    assert body["counts"]["prediction"] == 2
    assert main(["check"]) == 0
    assert f"intact, schema {head()}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "COMMAND"),
        (["export", "--format", "xls", "--out", "x"], 2, "xls"),
        (["export", "--format", "fid", "--out", "x", "--project", "nowhere"], 2, "nowhere"),
        (["loop", "--out", "x"], 2, "storage loop was removed: take a snapshot"),
        (["export", "--format", "fid", "--out", "/dev/null/x"], 5, "cannot be written"),
        (["answer", "--project", "nowhere", "--system", "fid"], 2, "no project 'nowhere'"),
        (["import", "nowhere"], 2, "nowhere"),
        (["backup", "/dev/null"], 2, "exists"),
    ],
)
def test_errors_are_one_line_and_a_code(home: Path, capsys: Capture, arguments: list[str], code: int, words: str) -> None:
    assert main(arguments) == code
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n"), printed.err[:7]) == ("", 1, "error: ")
    assert words in printed.err
    assert [p.name for p in Path.cwd().iterdir()] == ["home"]


def test_snapshots_from_the_command_line(home: Path, capsys: Capture) -> None:
    assert main(["snapshot", "--format", "training", "--format", "csv", "--note", "round 1", "--pseudonyms"]) == 0
    assert f"snapshot 1 in {home / 'snapshots' / '0001'}" in capsys.readouterr().out
    assert main(["snapshots", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["snapshots"]
    assert (row["number"], row["note"], set(row["counts"])) == (1, "round 1", {"training", "csv"})
    assert main(["snapshots", "--check", "1"]) == 0
    assert "is unchanged: 2 files" in capsys.readouterr().out


def test_questions_come_into_a_project_from_the_command_line(home: Path, capsys: Capture) -> None:
    with Store(f"sqlite:///{home / 'ambiscope.db'}") as store:
        films = store.projects.create_project("Mia", "films")
    file = home / "q.txt"
    file.write_text("Who ran?\nWho won?\n", encoding="utf-8")
    assert main(["add-questions", str(file), "--project", "films", "--by", "Mia", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "project": films.id,
        "added": 2,
        "known": 0,
        "linked": 0,
        "unmatched": [],
    }
    assert main(["add-questions", str(file), "--project", "films", "--by", "Mia", "--gold"]) == 2
    assert "q.txt: question 1: a gold item needs a reference" in capsys.readouterr().err
    assert main(["add-questions", str(home / "none.txt"), "--project", "films", "--by", "Mia"]) == 2
    assert "cannot read" in capsys.readouterr().err


def test_a_system_answers_a_project_from_the_command_line(home: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.commands.index.SAY_SECONDS", 0)
    passages = (t.Passage("p1", "The play", "Arthur Miller wrote it in 1953."),)
    asked = [t.ReferenceQuestion(word, f"Who wrote {word} play?", (), passages) for word in ("the", "this", "that")]
    with Store(f"sqlite:///{home / 'ambiscope.db'}") as store:
        plays = store.projects.create_project("me", "Plays", systems=("scripted",))
        store.intake.add_items("me", plays.id, asked)
        command = ["answer", "--project", "Plays", "--system", "scripted"]
        assert main([*command, "--limit", "2", "--no-clarify", "--json"]) == 0
        printed = capsys.readouterr()
        body = json.loads(printed.out)
        assert (body["project"], body["answered"], body["linked"], body["failed"]) == (plays.id, 2, 2, 0)
        assert "answering: 2 of 2" in printed.err
        assert main(["answer", "--project", plays.id, "--system", "scripted"]) == 0
        assert "Plays: 1 questions answered by scripted; 1 predictions linked" in capsys.readouterr().out
        last, *others = (store.predictions.get_prediction(p.id).prediction for p in store.predictions.recent_predictions(3))
        assert last.clarifications
        assert not any(answered.clarifications for answered in others)
        store.intake.add_items("me", plays.id, [t.ReferenceQuestion("?", "??!", (), passages)])
        assert main(command) == 1
        assert "every question failed; first failure: '??!'" in capsys.readouterr().err
