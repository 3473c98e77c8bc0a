"""evaluate --out, compare, import-evaluation, retrieval-eval, datasets and download on the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core import cli
from core.disk import LOCK
from core.settings import ROOT
from storage.__main__ import main as storage

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [n for n in os.environ if n.startswith("AMBISCOPE_")]:
        monkeypatch.delenv(name)
    for name, value in {"HOME": str(tmp_path / "home"), "SYSTEM": "scripted", "ENCODER": "hashing"}.items():
        monkeypatch.setenv(f"AMBISCOPE_{name}", value)
    return tmp_path


@pytest.fixture
def run(home: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def go(*words: object, main: Callable[..., int] = cli.main) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([str(w) for w in words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return go


def questions(folder: Path, count: int = 4) -> Path:
    path = folder / "questions.jsonl"
    passages = [{"id": "p", "title": "T", "text": "0 1 2 3: Rome and Oslo."}]
    rows = [
        {"id": f"q{i}", "question": f"Which {i}?", "answers": [["Rome"], ["Oslo"]], "passages": passages} for i in range(count)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def table(*answers: str, count: int = 4) -> str:
    return "table=" + json.dumps({f"Which {i}?": list(answers) for i in range(count)})


def test_two_runs_are_made_compared_and_stored(run: Run, home: Path) -> None:
    path = questions(home)
    for name, said in (("good", ("Rome", "Oslo")), ("poor", ("Bonn",))):
        out = home / "home" / "runs" / name
        code, text, err = run(
            "evaluate",
            "--questions",
            path,
            "--out",
            out,
            "--set",
            table(*said),
            "--traces",
            "--tag",
            "training questions=7",
            "--no-clarify",
            "--json",
        )
        assert (code, err) == (0, "")
        assert json.loads(text) == json.loads((out / "report.json").read_text())
        assert {p.name for p in out.iterdir() if p.name != LOCK} == {
            "run.json",
            "about.json",
            "rows.jsonl",
            "traces.jsonl",
            "report.json",
        }
    code, text, err = run("compare", "good", "poor", "--samples", 200, "--json")  # names under AMBISCOPE_HOME/runs
    assert (code, err) == (0, "")
    found = json.loads(text)
    assert found["common"] == 4
    assert found["metrics"]["F1 answer"]["all"]["difference"] == 1.0
    assert len(found["questions"]) == 4
    assert run("compare", "good", "poor", "--samples", 200, "--json")[1] == text  # the same seed
    code, text, _ = run("compare", "good", "poor", "--samples", 50)
    assert code == 0
    assert "+100.0" in text
    assert run("compare", "good", "nowhere")[0] == 2
    code, _, err = run("compare", "good", "poor", "--metric", "F2")
    assert (code, "do not both have the metric 'F2'" in err) == (2, True)
    code, text, err = run("import-evaluation", "good", "--label", "mine", "--json", main=storage)
    assert (code, err) == (0, "")
    assert json.loads(text) | {"id": ""} == {"id": "", "system": "scripted", "n": 4, "new": True}
    code, text, _ = run("import-evaluation", home / "home" / "runs" / "good", main=storage)
    assert (code, "already stored" in text) == (0, True)
    assert run("import-evaluation", home, main=storage)[0] == 2


@pytest.mark.slow
def test_a_killed_evaluation_goes_on_and_asks_nothing_twice(run: Run, home: Path) -> None:
    """A real process, killed by the system in the middle of its work."""
    path, out = questions(home, 400), home / "out"
    words = [
        "evaluate",
        "--questions",
        str(path),
        "--out",
        str(out),
        "--set",
        table("Rome", count=400),
        "--no-clarify",
        "--json",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "core", *words],
        cwd=ROOT,
        env={**os.environ},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    rows, end = out / "rows.jsonl", time.monotonic() + 120
    while not (rows.exists() and rows.read_bytes().count(b"\n") >= 3):
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = [line for line in rows.read_text().splitlines(keepends=True) if line.endswith("\n")]
    code, text, _ = run(*words)
    assert code == 0
    after = rows.read_text().splitlines(keepends=True)
    assert after[: len(before)] == before  # what was answered was not asked again
    assert [json.loads(line)["id"] for line in after] == [f"q{i}" for i in range(400)]
    assert json.loads(text)["n"] == 400


def test_retrievers_are_measured_and_stored_like_runs(run: Run, home: Path) -> None:
    facts = home / "facts.tsv"
    facts.write_text(
        "id\ttext\ttitle\np1\tNatalie Wood played Maria.\tFilm\np2\tRachel Zegler played Maria.\tRemake\np3\tBasalt is dark.\tRock\n"
    )
    assert run("index", "--passages", facts)[0] == 0
    path = home / "q.jsonl"
    path.write_text(
        json.dumps({"id": "a", "question": "Who played Maria?", "answers": [["Natalie Wood"], ["Rachel Zegler"]]}) + "\n"
    )
    out = home / "runs"
    code, text, err = run("retrieval-eval", "--questions", path, "--corpus", "facts", "--k", "1,2,3", "--out", out, "--json")
    assert (code, err) == (0, "")
    found = json.loads(text)
    assert set(found) == {"dense", "bm25", "hybrid"}
    assert found["bm25"]["scores"]["MRecall@2"] == {"all": 1.0, "multi": 1.0}
    assert found["bm25"]["scores"]["R@1"]["all"] == 1.0
    code, text, _ = run("import-evaluation", out / "retrieval-bm25", "--json", main=storage)
    assert (code, json.loads(text)["system"]) == (0, "retrieval bm25")
    assert run("retrieval-eval", "--questions", path, "--corpus", "facts", "--k", "0")[0] == 2
    assert run("retrieval-eval", "--questions", path, "--corpus", "facts", "--retrievers", "magic")[0] == 2


def test_data_sets_are_listed_with_their_licence(run: Run) -> None:
    code, text, _ = run("datasets", "--json")
    found: dict[str, Any] = json.loads(text)
    assert code == 0
    assert all(d["licence"] and d["urls"] and d["files"] == [] for d in found["datasets"])
    assert set(found["layouts"]) >= {"ambignq", "asqa", "ramdocs", "webqsp", "nq-open", "rows"}
    assert "CC BY-SA 3.0" in run("datasets")[1]
    code, _, err = run("download", "ambignq-lite")
    assert (code, "Did you mean 'ambignq-light'" in err) == (2, True)


def test_a_download_says_licence_and_size_first(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from core.datasets import download as module

    def fetch(url: str, target: Path, *, progress: Any, **_: Any) -> str:
        progress(0, 3_100_000)
        target.write_text('{"question": "Who?", "gold_answers": ["x"], "documents": [{"text": "x", "type": "correct"}]}\n')
        return "ab"

    monkeypatch.setattr(module, "fetch", fetch)
    code, text, err = run("download", "ramdocs", "--json")
    assert code == 0
    assert "licence MIT" in err
    assert "3.1 MB, into" in err
    (file,) = json.loads(text)["files"]
    assert run("datasets", "--json")[1].count(json.dumps(file)) == 1


def test_a_repeated_evaluation_reports_the_deviation(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system answers all questions right in one run and half of each in the other."""
    from core.evaluation import plan

    tables = iter([table("Rome", "Oslo"), table("Rome")])
    original = plan.run_plan

    def sampled(chosen: plan.EvaluationPlan, *parts: Any, **more: Any) -> Any:
        return original(
            replace(chosen, extra=json.loads("{" + next(tables).replace("table=", '"table":', 1) + "}")), *parts, **more
        )

    monkeypatch.setattr(plan, "run_plan", sampled)
    code, out, _ = run(
        "evaluate", "--questions", questions(home), "--repeat", 2, "--no-clarify", "--out", home / "out", "--json"
    )
    report = json.loads(out)
    name = "F1 answer"
    assert code == 0
    assert report["scores"][name]["all"] == pytest.approx(1.0)
    assert report["repeats"]["n"] == 2
    assert report["repeats"]["mean"][name]["all"] == pytest.approx((1 + 2 / 3) / 2)
    assert report["repeats"]["deviation"][name]["all"] == pytest.approx((1 - 2 / 3) / 2**0.5)
    assert sorted(f.name for f in (home / "out").iterdir() if f.is_dir()) == ["repeat-1", "repeat-2"]


def test_a_number_of_repeats_is_checked(run: Run, home: Path) -> None:
    code, _, error = run("evaluate", "--questions", questions(home), "--repeat", 0)
    assert code != 0
    assert "--repeat" in error
