"""`python -m benchmarks.ambignq`: its table, what stands beside it, and data of another version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import ambignq, tables
from benchmarks.shipped_runs import write


def report(values: dict[str, float | None], commit: str = "a" * 40) -> dict[str, Any]:
    """A question without a value failed; those whose id begins with m have several answers."""
    rows = [
        {"id": i, "ambiguous": i.startswith("m")}
        | ({"error": "no", "metrics": None} if v is None else {"error": None, "metrics": {"F1 answer": v}})
        for i, v in values.items()
    ]
    mean = sum(v or 0 for v in values.values()) / len(values)
    scores = {"F1 answer": {"all": mean, "multi": None}, "F1 bleu4": {"all": 0.25, "multi": None}}
    about = {"commit": commit, "changed_since_commit": False}
    failed = sum(v is None for v in values.values())
    return {"rows": rows, "scores": scores, "failed": failed, "timings": {"seconds_median": 0.5}, "provenance": about}


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_table_has_paired_differences_published_figures_and_marks() -> None:
    reports = {
        "dpr-threshold": report({"m1": 0.5, "m2": 0.5, "s1": 1.0}),
        "spanseqgen": report({"m1": 1.0, "m2": 1.0, "s1": 1.0}),
        "ambigprompt": report({"m1": 1.0, "m2": None, "s1": 1.0}),
    }
    head, _, *lines = map(cells, ambignq.table(reports, {"m1"}, "AmbigNQ").splitlines())
    rows = {line[0]: dict(zip(head, line, strict=True)) for line in lines}
    assert list(rows) == ["`dpr-threshold`", "`ambigprompt` (1 failed)", "`spanseqgen` (mechanism only)"]
    row = rows["`ambigprompt` (1 failed)"]
    assert row["F1 all"].startswith("66.7 ")  # a failed question counts
    assert row["answerable"].startswith("100.0")
    assert row["against dpr-threshold"].startswith("0.0 [")
    assert row["the same, answerable"].startswith("50.0")
    assert (row["BLEU-4"], row["EDIT-F1"], row["published F1"]) == ("25.0", "undefined", "48.7 / 38.8")
    assert rows["`dpr-threshold`"]["against dpr-threshold"] == ""


def test_notes_name_several_commits_and_seen_questions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    faults = ["mpnet: 3 questions of ambignq/dev_light.json are in multi/train.jsonl.gz, such as 'x'"]
    monkeypatch.setattr(ambignq, "training_faults", lambda checkpoint, folders: faults if checkpoint.name == "mpnet" else [])
    runs = {"one-pass": report({"a": 1.0}), "fid": report({"a": 1.0}, "b" * 40)}
    notes = list(ambignq.notes(runs, "ambignq/dev_light.json", tmp_path, "others"))
    assert "aaaaaaaaaa, bbbbbbbbbb: these runs are not of one commit" in notes[0]
    assert faults[0] in notes[-1]
    assert len(list(ambignq.notes(runs, "open/webquestions.jsonl", tmp_path, "others"))) == 2  # another set was not seen


def test_data_that_are_missing_or_of_another_version_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ambignq.main(["--data", str(tmp_path)]) == 2
    assert "dev_light.json" in capsys.readouterr().err
    (tmp_path / "ambignq").mkdir()
    (tmp_path / "passages").mkdir()
    (tmp_path / "passages" / "wiki.tsv.gz").touch()
    row = {"id": "1", "question": "q", "annotations": [{"type": "singleAnswer", "answer": ["a"]}]}
    (tmp_path / "ambignq" / "dev_light.json").write_text(json.dumps([row]))
    assert ambignq.main(["--data", str(tmp_path)]) == 2
    assert "1,001" in capsys.readouterr().err


def test_stored_figures_have_no_text_and_fill_the_tables(tmp_path: Path) -> None:
    reports = {}
    for name, value in (("dpr-threshold", 0.5), ("fid", 0.25)):
        body = report({"m1": value, "s1": value})
        body["rows"] = [{**row, "question": "who sang it", "answers": [{"text": "Ann"}]} for row in body["rows"]]
        body["provenance"] = {**body["provenance"], "system": {"name": name}}
        reports[name] = ambignq.slim({**body, "intervals": {}}, ["m1"])
    file = tmp_path / "ambignq.jsonl.xz"
    write(reports.values(), file, 100_000)
    stored = ambignq.packed(file)
    assert not {"who sang it", "Ann"} & set(json.dumps(stored).split('"'))
    assert ambignq.packed(tmp_path / "none.xz") == []
    wikipedia = {r["provenance"]["system"]["name"]: r for r in stored}
    marks = "<!-- table: {} -->\n{}\n<!-- end of table -->"
    table = tables.updated(marks.format("ambignq", "| old |"), {}, wikipedia)
    assert [line.split("|")[1].strip() for line in table.splitlines()[3:-1]] == ["`dpr-threshold`", "`fid`"]
    readme = marks.format("readme", "| name | AmbigNQ | starter |\n|---|--:|--:|\n| `fid` | 1.0 |  |\n| `rac` |  | none |")
    assert "| `fid` | 25.0 |  |\n| `rac` |  | none |" in tables.updated(readme, {}, wikipedia)
    assert tables.updated(marks.format("ambignq", "| old |"), {}, {}) == marks.format("ambignq", "| old |")
