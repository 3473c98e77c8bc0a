"""evaluate --out, compare, import-evaluation, retrieval-eval, datasets and download on the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import Run, write_jsonl

from core.datasets import download
from core.disk import LOCK
from core.evaluation import plan
from storage.__main__ import main as storage


def questions(folder: Path, count: int = 4) -> Path:
    passages = [{"id": "p", "title": "T", "text": "0 1 2 3: Rome and Oslo."}]
    answered = {"answers": [["Rome"], ["Oslo"]], "passages": passages}
    return write_jsonl(
        folder / "questions.jsonl", *({"id": f"q{i}", "question": f"Which {i}?", **answered} for i in range(count))
    )


def table(*answers: str, count: int = 4) -> dict[str, list[str]]:
    return {f"Which {i}?": list(answers) for i in range(count)}


def evaluate(questions: Path, out: Path, answers: dict[str, list[str]]) -> list[str]:
    words = ["evaluate", "--questions", str(questions), "--out", str(out), "--no-clarify", "--json"]
    return [*words, "--set", f"table={json.dumps(answers)}"]


def test_two_runs_are_made_compared_and_stored(run: Run, home: Path) -> None:
    for name, answers in (("good", ("Rome", "Oslo")), ("poor", ("Bonn",))):
        out = home / "home" / "runs" / name
        words = evaluate(questions(home), out, table(*answers))
        code, text, err = run(*words, "--traces", "--tag", "training questions=7")
        assert (code, err) == (0, "")
        assert json.loads(text) == json.loads((out / "report.json").read_text())
        files = {"run.json", "about.json", "rows.jsonl", "traces.jsonl", "report.json"}
        assert {p.name for p in out.iterdir() if p.name != LOCK} == files
    code, text, err = run("compare", "good", "poor", "--samples", 200, "--json")  # names under AMBISCOPE_HOME/runs
    assert (code, err) == (0, "")
    comparison = json.loads(text)
    assert (comparison["common"], len(comparison["questions"])) == (4, 4)
    assert comparison["metrics"]["F1 answer"]["all"]["difference"] == 1.0
    assert run("compare", "good", "poor", "--samples", 200, "--json")[1] == text  # the same seed
    code, text, _ = run("compare", "good", "poor", "--samples", 50)
    assert (code, "+100.0" in text) == (0, True)
    assert run("compare", "good", "nowhere")[0] == 2
    code, _, err = run("compare", "good", "poor", "--metric", "F2")
    assert (code, "do not both have the metric 'F2'" in err) == (2, True)
    code, text, err = run("import-evaluation", "good", "--label", "mine", "--json", main=storage)
    assert (code, err) == (0, "")
    assert json.loads(text) | {"id": ""} == {"id": "", "system": "scripted", "n": 4, "new": True}
    code, text, _ = run("import-evaluation", home / "home" / "runs" / "good", main=storage)
    assert (code, "already stored" in text) == (0, True)
    assert run("import-evaluation", home, main=storage)[0] == 2


def test_questions_that_were_trained_on_are_not_asked(run: Run, home: Path) -> None:
    trained = write_jsonl(home / "training.jsonl", {"id": "x", "question": "WHICH\u00a0 1", "passages": [], "answers": []})
    light = home / "light.json"
    pairs = [{"question": "Which 2?", "answer": ["Rome"]}]
    light.write_text(json.dumps([{"question": "Which?", "annotations": [{"type": "multipleQAs", "qaPairs": pairs}]}]))
    words = evaluate(questions(home), home / "run", table("Rome"))
    code, text, _ = run(*words, "--exclude", trained, "--exclude", light)
    assert (code, [row["id"] for row in json.loads(text)["rows"]]) == (0, ["q0", "q3"])
    code, _, err = run(*words, "--exclude", trained)  # other questions are another run
    assert (code, "other settings (questions)" in err) == (2, True)
    code, _, err = run(*evaluate(questions(home), home / "none", {}), "--exclude", home / "questions.jsonl")
    assert (code, "all 4 questions are in the excluded files" in err) == (2, True)
    assert run(*words, "--exclude", home / "nowhere.jsonl")[0] == 2


def test_retrievers_are_measured_and_stored_like_runs(run: Run, home: Path) -> None:
    assert run("index", "--passages", "facts.tsv")[0] == 0
    row = {"id": "a", "question": "Who played Maria?", "answers": [["Natalie Wood"], ["Rachel Zegler"]]}
    words = ("retrieval-eval", "--questions", write_jsonl(home / "q.jsonl", row), "--corpus", "facts")
    code, text, err = run(*words, "--k", "1,2,3", "--out", "runs", "--json")
    assert (code, err) == (0, "")
    reports = json.loads(text)
    assert set(reports) == {"dense", "bm25", "hybrid"}
    scores = reports["bm25"]["scores"]
    assert (scores["MRecall@2"], scores["R@1"]["all"]) == ({"all": 1.0, "multi": 1.0}, 1.0)
    code, text, _ = run("import-evaluation", "runs/retrieval-bm25", "--json", main=storage)
    assert (code, json.loads(text)["system"]) == (0, "retrieval bm25")
    assert run(*words, "--k", "0")[0] == 2
    assert run(*words, "--retrievers", "magic")[0] == 2


def test_data_sets_are_listed_with_their_licence(run: Run) -> None:
    code, text, _ = run("datasets", "--json")
    listing: dict[str, Any] = json.loads(text)
    assert code == 0
    for data in listing["datasets"]:
        assert data["licence"]
        assert all(url.startswith("https://") for url in (data["homepage"], *data["urls"]))
        assert (bool(data["urls"]), data["files"]) == (True, [])
    assert set(listing["layouts"]) >= {"ambignq", "asqa", "ramdocs", "webqsp", "nq-open", "rows"}
    assert "CC BY-SA 3.0" in run("datasets")[1]


def test_a_download_says_licence_and_size_first(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(url: str, target: Path, *, progress: Any, **_: Any) -> str:
        progress(0, 3_100_000)
        target.write_text('{"question": "Who?", "gold_answers": ["x"], "documents": [{"text": "x", "type": "correct"}]}\n')
        return "ab"

    monkeypatch.setattr(download, "fetch", fetch)
    code, text, err = run("download", "ramdocs", "--json")
    assert (code, "licence MIT" in err, "3.1 MB, into" in err) == (0, True, True)
    (file,) = json.loads(text)["files"]
    assert run("datasets", "--json")[1].count(json.dumps(file)) == 1


def test_a_repeated_evaluation_reports_the_deviation(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system answers all questions right in one run and none in the other, which then has no precision."""
    tables = iter([table("Rome", "Oslo"), table()])
    run_plan = plan.run_plan

    def sampled(chosen: plan.EvaluationPlan, *parts: Any, **more: Any) -> Any:
        return run_plan(replace(chosen, extra={"table": next(tables)}), *parts, **more)

    monkeypatch.setattr(plan, "run_plan", sampled)
    code, out, _ = run("evaluate", "--questions", questions(home), "--repeat", 2, "--no-clarify", "--out", "out", "--json")
    report = json.loads(out)
    repeats, name = report["repeats"], "F1 answer"
    assert (code, repeats["n"]) == (0, 2)
    assert report["scores"][name]["all"] == pytest.approx(1.0)
    assert (repeats["mean"][name]["all"], repeats["mean"]["precision"]["all"]) == (0.5, 1.0)
    assert (repeats["deviation"][name]["all"], repeats["deviation"]["precision"]["all"]) == (pytest.approx(0.5**0.5), None)
    assert sorted(f.name for f in (home / "out").iterdir() if f.is_dir()) == ["repeat-1", "repeat-2"]
