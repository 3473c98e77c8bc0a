"""The door for other programs: what docs/python.md shows runs as it stands there, and asks the same functions as the command line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import core
from core import cli
from core.engine import Engine
from core.errors import InputError, UnknownNameError
from core.evaluation.plan import evaluate
from core.settings import ROOT, Settings
from core.types import Finished, PassagesRetrieved, Question

BLOCKS = re.findall(r"(?ms)^```python\n(.*?)^```$", (ROOT / "docs" / "python.md").read_text(encoding="utf-8"))
PASSAGES = (
    ("1", "Natalie Wood played Maria in the film West Side Story of 1961.", "West Side Story (film)"),
    ("2", "Rachel Zegler played Maria in Steven Spielberg's film West Side Story of 2021.", "West Side Story (2021)"),
    ("3", "Basalt is a dark rock.", "Basalt"),
)
ASKED = {"question": "Who played Maria in West Side Story?", "answers": [["Natalie Wood"], ["Rachel Zegler"]]}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_thread: None) -> Path:
    """A working folder with a small corpus, which is the default, and the files that the examples name."""
    monkeypatch.chdir(tmp_path)
    for name, value in {"HOME": str(tmp_path / "home"), "ENCODER": "hashing", "DEVICE": "cpu", "CORPUS": "small"}.items():
        monkeypatch.setenv(f"AMBISCOPE_{name}", value)
    table = "id\ttext\ttitle\n" + "".join("\t".join(row) + "\n" for row in PASSAGES)
    (tmp_path / "rocks.tsv").write_text(table)
    (tmp_path / "questions.jsonl").write_text(json.dumps(ASKED) + "\n")
    Engine().library.create("small", [tmp_path / "rocks.tsv"])
    return tmp_path


@pytest.mark.slow
def test_the_examples_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    outputs = []
    for block in BLOCKS:
        exec(compile(block, "docs/python.md", "exec"), names)
        outputs.append(capsys.readouterr().out)
    answers, passages, _, other_corpus, report, mistake = outputs
    assert [word for word in ("Natalie Wood", "Rachel Zegler", "read in: West Side Story") if word not in answers] == []
    assert "3 passages to read" in passages
    assert names["prediction"].answers[0].pinned
    assert "basalt" in other_corpus.lower()
    assert "1 questions, 0 failed" in report
    assert "has no option 'top_kk'" in mistake


@pytest.mark.slow
def test_the_command_line_says_the_same(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["ask", ASKED["question"], "--json", "--top-k", "2"]) == 0
    rows = json.loads(capsys.readouterr().out)["answers"]
    prediction = Engine().ask(ASKED["question"], top_k=2)
    expected = [(a.text, prediction.question_of(a.text)) for a in prediction.answers]
    assert [(row["text"], row["question"]) for row in rows] == expected
    assert cli.main(["evaluate", "--questions", "questions.jsonl", "--no-clarify", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scores"] == evaluate(None, "questions.jsonl", clarify=False).scores


def test_a_stream_ends_with_finished_and_folds_to_what_ask_returns(folder: Path) -> None:
    engine = Engine(system="scripted")
    events = list(engine.stream("Who played Maria?"))
    assert (type(events[0]), type(events[-1])) == (PassagesRetrieved, Finished)
    assert [type(e) for e in engine.ask("Who played Maria?").events] == [type(e) for e in events]


def test_settings_are_changed_by_name(folder: Path) -> None:
    engine = Engine(corpus="mine", top_k=20, home=folder / "elsewhere")
    expected = replace(Settings.from_env(), corpus="mine", top_k=20, home=folder / "elsewhere")
    assert (engine.settings, expected.encoder) == (expected, "hashing")
    with pytest.raises(InputError, match="AMBISCOPE_CORPS"):
        Engine(corps="mine")
    with pytest.raises(InputError, match="settings or changes"):
        Engine(engine.settings, top_k=3)


def test_bad_input_is_refused_before_the_first_event(folder: Path) -> None:
    engine = Engine(system="scripted")
    with pytest.raises(InputError, match="the question is empty"):
        engine.stream(" ")
    with pytest.raises(InputError, match="pinned and banned"):
        engine.ask(Question("Who?", pinned=("a",), banned=("A",)))
    with pytest.raises(UnknownNameError):
        engine.ask("Who?", system="ambiscop")
    with pytest.raises(InputError, match=r"takes no 'limits'\. Did you mean 'limit'"):
        evaluate("scripted", "questions.jsonl", limits=5)


@pytest.mark.slow
def test_the_door_opens_lazily_and_leads_to_what_it_names() -> None:
    heavy = ("torch", "transformers", "faiss", "streamlit", "sqlalchemy", "numpy")
    code = (
        "import core, sys\n"
        f"assert not [m for m in {heavy} if m in sys.modules]\n"
        "assert not [m for m in sys.modules if m.startswith('core.')]\n"
        "from core import Engine, Question, evaluate\n"
        f"assert not [m for m in {heavy[:-1]} if m in sys.modules]\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    for name, module in core.EXPORTS.items():
        assert getattr(core, name).__module__ == module
        assert name in dir(core)
    with pytest.raises(ImportError):
        from core import Engines  # type: ignore[attr-defined]  # noqa: F401
