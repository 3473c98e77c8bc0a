"""The benchmark of what judged questions bring, in both orders: at random, and the least certain first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.training.judged import main, margin_of, table, uncertain_first
from core.models.ranking.calibration import Calibration, Platt
from core.training.calibration import RecordedRun, RecordedStep


@pytest.fixture
def without_verifier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMBISCOPE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AMBISCOPE_VERIFIER", "off")


def test_a_run_is_as_certain_as_its_least_certain_step_up_to_its_end() -> None:
    steps = (
        RecordedStep((("Rome", 0.9),), 0.1, "Rome"),
        RecordedStep((("Oslo", 0.4),), 0.6, None),  # the run ends here
        RecordedStep((("Bern", 0.5),), 0.5, None),
    )
    run = RecordedRun("0", "Where?", "made", (), steps)
    assert margin_of(run, None) == pytest.approx(0.2)
    same = Platt({"odds": 1.0}, 0.0)
    assert margin_of(run, Calibration(same, same)) == pytest.approx(0.2)  # |2 x 0.4 - 1|
    assert margin_of(run, Calibration(Platt({"odds": 1.0}, 0.4054651), same)) == pytest.approx(
        0.0, abs=1e-6
    )  # Oslo is even then


def test_the_least_certain_of_a_draw_come_first() -> None:
    certain = {0: 0.9, 1: 0.1, 2: 0.5, 3: 0.3, 4: 0.0}
    assert uncertain_first([0, 1, 2, 3, 4], certain) == [1, 3, 2, 0]  # 4 is not among the draw's first four fifths


def test_the_table_has_both_orders_and_what_the_one_brings_more() -> None:
    rows = [
        {"source": "made", "count": 0, "draw": 0, "f1": [0.5, 0.5]},
        {"source": "made", "count": 25, "draw": 0, "kept": True, "f1": [0.5, 0.6]},  # of before there were orders
        {"source": "made", "count": 25, "draw": 0, "order": "uncertain", "kept": True, "f1": [0.7, 0.8]},
    ]
    _, _, random, uncertain = table(rows, 1)
    assert random.startswith("| made | 25 | random | 1 of 1 | 50.0 | 55.0 | +5.0")
    assert uncertain.startswith("| made | 25 | uncertain | 1 of 1 | 50.0 | 75.0 | +25.0")
    assert "| +20.0 [" in uncertain


def test_both_orders_are_measured_on_the_same_questions(
    tmp_path: Path, without_verifier: None, capsys: pytest.CaptureFixture[str]
) -> None:
    names = "Anna Bert Cleo Dora Emil Fritz Greta Hugo Ida Jan Karl Lena Mia Nora Otto Paul".split()
    rows = (
        {
            "question": f"Who won race {i}?",
            "source": "made",
            "passages": [{"title": "Race", "text": f"{n} won."}],
            "answers": [[n]],
        }
        for i, n in enumerate(names)
    )
    file, out = tmp_path / "train.jsonl", tmp_path / "out"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    arguments = ["--multi", str(file), "--out", str(out), "--source", "made", "--pool", "14", "--test", "2"]
    assert main([*arguments, "--counts", "10", "--draws", "1"]) == 0
    assert main([*arguments, "--counts", "10", "--draws", "1", "--order", "random", "uncertain"]) == 0  # goes on
    kept = [json.loads(line) for line in (out / "rows.jsonl").read_text().splitlines()]
    assert [(r["count"], r.get("order")) for r in kept] == [(0, None), (10, "random"), (10, "uncertain")]
    assert capsys.readouterr().out.splitlines()[-1].startswith("| made | 10 | uncertain |")


def test_questions_judged_on_a_corpus_are_asked_after_a_fit_to_the_others(
    tmp_path: Path, without_verifier: None, capsys: pytest.CaptureFixture[str]
) -> None:
    towns = "Rome Oslo Bern Cairo Lima Paris Riga Sofia Delhi Tokyo Lagos Quito Dakar Hanoi".split()
    folder = tmp_path / "towns"
    folder.mkdir()
    rows = [{"question": f"Where was race {i} won?", "passages": [], "answers": [[t]]} for i, t in enumerate(towns)]
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    passages = [f"p{i}\tRace {i} was won in {t}.\tRace {i}\n" for i, t in enumerate(towns)]
    (folder / "passages.tsv").write_text("id\ttext\ttitle\n" + "".join(passages), encoding="utf-8")
    assert main(["--by-hand", str(folder), "--out", str(tmp_path / "out"), "--draws", "2"]) == 0
    *questions, all_of_them = capsys.readouterr().out.splitlines()
    assert [q.split("\t")[2] for q in questions] == [r["question"] for r in rows]
    assert all_of_them.startswith("14 questions, F1 ")
    assert all_of_them.endswith("of 10 kept")
