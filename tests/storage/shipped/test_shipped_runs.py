"""The runs that come with Ambiscope: packed and unpacked they are the same, small, and of the weights that are here."""

from __future__ import annotations

import dataclasses
import lzma
from pathlib import Path
from typing import Any

import pytest
from storage_helpers import put_lines
from storage_samples import passage

from benchmarks import shipped_runs
from core import types as t
from core.engine import Engine
from core.errors import CancelledError, FormatError, StorageError
from core.evaluation.folder import read_report, read_traces
from core.evaluation.plan import EvaluationPlan, run_plan
from core.json_io import read as read_json
from core.retrieval.library import CorpusLibrary
from core.settings import Settings
from core.systems import MEASURED
from core.trace import prediction_from_json, to_json
from storage.shipped import runs, traces
from storage.store import Store

pytestmark = pytest.mark.sqlite
ROWS = [("p1", "Film", "Anna Alder played Maria in 1961."), ("p2", "Remake", "Clara Cedar played Maria in 2021.")]
QUESTIONS = [
    {"id": "q1", "question": "Who played Maria?", "answers": [["Anna Alder"], ["Clara Cedar"]]},
    {"id": "q2", "question": "When was the film?", "answers": [["1961"]]},
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with one folder of questions and passages."""
    folder = tmp_path / "repository" / "data" / "small"
    folder.mkdir(parents=True)
    rows = "".join(f"{i}\t{text}\t{title}\n" for i, title, text in ROWS)
    (folder / "passages.tsv").write_text("id\ttext\ttitle\n" + rows, encoding="utf-8")
    put_lines(folder / "questions.jsonl", *QUESTIONS)
    return tmp_path / "repository"


@pytest.fixture
def run(root: Path, tmp_path: Path) -> Path:
    """A run folder of the scripted system, with traces."""
    settings, folder = Settings(home=tmp_path / "home", encoder="hashing"), root / "data" / "small"
    CorpusLibrary(settings).create("small", [folder / "passages.tsv"])
    table = {q["question"]: [answer for (answer,) in q["answers"]] for q in QUESTIONS}
    questions = str(folder / "questions.jsonl")
    plan = EvaluationPlan(questions, system="scripted", corpus="small", traces=True, extra={"table": table})
    run_plan(plan, Engine(settings), tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def packed(run: Path, root: Path, tmp_path: Path) -> Path:
    shipped_runs.pack([run], about(), tmp_path / "runs.jsonl.xz", root)
    return tmp_path / "runs.jsonl.xz"


def about(**changes: object) -> runs.ArchiveInfo:
    info = runs.ArchiveInfo("0123456789abcdef", shipped_runs.weights(), ["scripted"], 0, 1)
    return dataclasses.replace(info, **changes)


def test_what_is_packed_comes_back(run: Path, packed: Path, root: Path, store: Store) -> None:
    assert runs.about(packed) == about()
    assert runs.load(store, packed, root) == 1
    assert runs.load(store, packed, root) == 1  # each once
    (stored,) = store.evaluations.evaluations(10)
    assert (stored.system, stored.questions, stored.n) == ("scripted", "small", 2)
    report = read_report(run)
    assert stored.mean("F1 answer") == pytest.approx(report["scores"]["F1 answer"]["all"], rel=1e-5)
    for name, trace in read_traces(run):
        expected = prediction_from_json(shipped_runs.rounded(trace))
        assert prediction_from_json(store.evaluations.find_evaluation_trace(stored.id, name)) == expected
        assert runs.trace("scripted", "small", name, packed, root) == expected
    assert runs.trace("scripted", "small", "no such question", packed, root) is None
    assert runs.trace("no such system", "small", "q1", packed, root) is None


def test_runs_stay_as_they_were_packed(run: Path, packed: Path, root: Path, tmp_path: Path) -> None:
    (body,) = runs.packed(packed)
    again = tmp_path / "again.jsonl.xz"
    size = shipped_runs.pack([run], about(runs=2), again, root, unchanged=[body])
    assert size == again.stat().st_size
    assert list(runs.packed(again)) == [body, body]
    assert runs.trace("scripted", "small", "q1", again, root) == runs.trace("scripted", "small", "q1", packed, root)


def test_a_passage_of_the_corpus_is_named_and_another_one_kept() -> None:
    known = {"p1": {"id": "p1", "title": "Title 1", "text": "as in the corpus"}}
    foreign = {"id": "p2", "title": "Title 2", "text": "of another one"}
    passages = (passage(1, "as in the corpus"), passage(2, "of another one"))
    events = (t.PassagesRetrieved(passages, 0.1, "q"), t.Finished(0.25, "done"))
    prediction = t.Prediction(t.Question("q"), t.SystemInfo("s"), (), (), (), passages, 0.25, events)
    small = shipped_runs.slim(to_json(prediction), known)
    assert [p["passage"] for p in small["events"][0]["passages"]] == ["p1", foreign]
    assert traces.expand(small, known) == prediction
    with pytest.raises(FormatError, match="p1"):
        traces.expand(small, {})


def test_a_file_that_is_too_large_is_not_written(
    run: Path, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipped_runs, "MAX_BYTES", 100)
    with pytest.raises(StorageError, match="at most 100"):
        shipped_runs.pack([run], about(), tmp_path / "out.xz", root)
    assert not (tmp_path / "out.xz").exists()


@pytest.mark.parametrize("body", [b"", b"x", lzma.compress(b"{"), lzma.compress(b'{"other": 1}\n')])
def test_a_damaged_file_is_told(tmp_path: Path, body: bytes) -> None:
    path = tmp_path / "runs.jsonl.xz"
    path.write_bytes(body)
    with pytest.raises(FormatError, match="get Ambiscope again"):
        runs.about(path)
    with pytest.raises(StorageError, match="cannot be read"):
        runs.about(tmp_path / "none.xz")


def test_loading_can_be_stopped(packed: Path, root: Path, store: Store) -> None:
    def stop(done: int, total: int) -> None:
        raise CancelledError("stopped")

    with pytest.raises(CancelledError):
        runs.load(store, packed, root, stop)


# ---------------------------------------------------------------- those of the repository


def test_the_shipped_runs_are_of_the_weights_that_are_here() -> None:
    # the shipped runs' disambiguated questions are older than the writer, as docs/systems.md says; their answers do not depend on it
    changed = set(shipped_runs.out_of_date(runs.about().weights)) - {"writer"}
    assert not changed, f"checkpoints {', '.join(changed)} changed: make the shipped runs again: {runs.COMMAND}"


def test_the_shipped_runs_are_small_and_load(store: Store) -> None:
    assert runs.ARCHIVE.stat().st_size <= shipped_runs.MAX_BYTES
    info = runs.about()
    assert runs.load(store, traced=False) == info.runs
    evaluations = store.evaluations.evaluations(100)
    assert {e.system for e in evaluations} == set(info.systems)
    for evaluation in evaluations:
        (row,) = store.evaluations.evaluation_rows(evaluation.id, 1)
        assert runs.trace(evaluation.system, evaluation.questions, row.question_id).question.text == row.question


def test_every_system_that_needs_no_more_than_the_repository_is_among_them() -> None:
    info = runs.about()
    if info.limit:
        pytest.skip(f"a sample of the first {info.limit} questions; the whole: {runs.COMMAND}")

    # the run of refuel was of a former version, and is gone; the present one was not asked yet
    assert set(shipped_runs.bundled()) - set(info.systems) <= {"refuel"}
    assert set(info.systems) <= set(shipped_runs.bundled())


def test_what_is_said_of_each_system_is_what_its_run_says() -> None:
    assert read_json(MEASURED) == shipped_runs.measured(runs.packed(traced=False))


def scored(name: str, *answers: str, f1: float, seconds: float = 1.0) -> dict[str, Any]:
    """A run over ambiguous questions whose answers are letters, a string for each question."""
    rows = [{"id": str(i), "ambiguous": True, "answers": [{"text": a} for a in texts]} for i, texts in enumerate(answers)]
    rows.append({"id": "single", "ambiguous": False, "answers": []})
    report = {"rows": rows, "scores": {"F1 answer": {"multi": f1}}, "timings": {"seconds_median": seconds}}
    return {"report": {**report, "provenance": {"system": {"name": name}, "questions": "small"}}}


def test_a_system_that_changes_next_to_nothing_is_a_mechanism_only() -> None:
    pass_, fid = scored("dpr-threshold", "ab", "cd", "ef", f1=0.6), scored("fid", "ab", "cd", "ef", f1=0.4)
    others = [
        scored("jpr", "ab", "cd", "fe", f1=0.9),  # the same sets
        scored("rectify", "ab", "cd", "xy", f1=0.59),  # other sets, and the same F1
        scored("fid-multi", "ab", "cd", "xyz", f1=0.45),
        scored("spanseqgen", "ab", "xy", "ef", f1=0.29),
        scored("disambig-first", "a", "c", "e", f1=0.5),
        scored("ambiscope", "ab", "cd", "ef", f1=0.6, seconds=4.0),  # starts from no other system
    ]
    rows = shipped_runs.measured([pass_, fid, *others])
    assert {name for name, row in rows.items() if "mechanism_only" in row} == {"jpr", "rectify", "spanseqgen", "disambig-first"}
    assert rows["ambiscope"]["seconds"] == 4.0
    with pytest.raises(StorageError, match="fid"):
        shipped_runs.measured([pass_, others[2]])
