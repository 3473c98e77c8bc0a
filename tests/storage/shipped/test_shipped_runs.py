"""The runs that come with Ambiscope: packed and unpacked they are the same, small, and of the weights that are here."""

from __future__ import annotations

import dataclasses
import json
import lzma
from pathlib import Path

import pytest

from benchmarks import shipped_runs
from core import types as t
from core.engine import Engine
from core.errors import CancelledError, FormatError, StorageError
from core.evaluation.folder import read_report, read_traces
from core.evaluation.plan import EvaluationPlan, run_plan
from core.installation.requirements import check
from core.retrieval.library import CorpusLibrary
from core.settings import Settings
from core.systems import SYSTEMS
from core.trace import prediction_from_json, to_json
from storage.shipped import runs, traces
from storage.store import Store

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
    (folder / "questions.jsonl").write_text("".join(json.dumps(q) + "\n" for q in QUESTIONS), encoding="utf-8")
    return tmp_path / "repository"


@pytest.fixture
def run(root: Path, tmp_path: Path) -> Path:
    """A run folder of the scripted system, with traces."""
    settings = Settings(home=tmp_path / "home", encoder="hashing", system="scripted", corpus="small")
    CorpusLibrary(settings).create("small", [root / "data" / "small" / "passages.tsv"])
    table = {"Who played Maria?": ["Anna Alder", "Clara Cedar"], "When was the film?": ["1961"]}
    plan = EvaluationPlan(
        str(root / "data" / "small" / "questions.jsonl"), system="scripted", corpus="small", traces=True, extra={"table": table}
    )
    run_plan(plan, Engine(settings), tmp_path / "run")
    return tmp_path / "run"


def about(**changes: object) -> runs.ArchiveInfo:
    info = runs.ArchiveInfo("0123456789abcdef", shipped_runs.weights(), ["scripted"], 0, 1)
    return dataclasses.replace(info, **changes)  # type: ignore[arg-type]


def test_what_is_packed_comes_back(run: Path, root: Path, tmp_path: Path) -> None:
    out = tmp_path / "runs.jsonl.xz"
    size = shipped_runs.pack([run], about(), out, root)
    assert size == out.stat().st_size
    assert runs.about(out) == about()
    with Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        assert runs.load(store, out, root) == 1
        assert runs.load(store, out, root) == 1  # each once
        (stored,) = store.evaluations.evaluations(10)
        assert (stored.system, stored.questions, stored.n) == ("scripted", "small", 2)
        report = read_report(run)
        assert stored.mean("F1 answer") == pytest.approx(report["scores"]["F1 answer"]["all"], rel=1e-5)
        for name, trace in read_traces(run):
            found = store.evaluations.find_evaluation_trace(stored.id, name)
            wanted = prediction_from_json(shipped_runs.rounded(trace))
            assert prediction_from_json(found) == wanted
            assert runs.trace("scripted", "small", name, out, root) == wanted
        assert runs.trace("scripted", "small", "no such question", out, root) is None
        assert runs.trace("no such system", "small", "q1", out, root) is None


def test_runs_are_kept_as_they_were_packed(run: Path, root: Path, tmp_path: Path) -> None:
    before, after = tmp_path / "before.jsonl.xz", tmp_path / "after.jsonl.xz"
    shipped_runs.pack([run], about(), before, root)
    kept = list(runs.packed(before))
    assert len(kept) == 1
    shipped_runs.pack([run], about(runs=2), after, root, unchanged=kept)
    assert list(runs.packed(after)) == [*kept, *kept]
    assert runs.trace("scripted", "small", "q1", after, root) == runs.trace("scripted", "small", "q1", before, root)


def test_a_passage_of_the_corpus_is_named_and_another_one_kept() -> None:
    known = {"p1": {"id": "p1", "title": "T", "text": "as in the corpus"}}
    found = tuple(
        t.RetrievedPassage(t.Passage(i, "T", text), n, 0.5)
        for n, (i, text) in enumerate([("p1", "as in the corpus"), ("p1x", "of another one")], 1)
    )
    prediction = t.Prediction(
        t.Question("q"),
        t.SystemInfo("s"),
        (),
        (),
        (),
        found,
        0.25,
        (t.PassagesRetrieved(found, 0.1, "q"), t.Finished(0.25, "done")),
    )
    small = shipped_runs.slim(to_json(prediction), known)
    assert [p["passage"] for p in small["events"][0]["passages"]] == [
        "p1",
        {"id": "p1x", "title": "T", "text": "of another one"},
    ]
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


def test_loading_can_be_stopped(run: Path, root: Path, tmp_path: Path) -> None:
    shipped_runs.pack([run], about(), tmp_path / "out.xz", root)

    def stop(done: int, total: int) -> None:
        raise CancelledError("stopped")

    with Store(f"sqlite:///{tmp_path / 'a.db'}") as store, pytest.raises(CancelledError):
        runs.load(store, tmp_path / "out.xz", root, stop)


# ---------------------------------------------------------------- those of the repository


def test_the_shipped_runs_are_of_the_weights_that_are_here() -> None:
    changed = shipped_runs.out_of_date(runs.about().weights)
    assert not changed, f"checkpoints {', '.join(changed)} changed: make the shipped runs anew: {runs.COMMAND}"


def test_the_shipped_runs_are_small_and_load(tmp_path: Path) -> None:
    assert runs.ARCHIVE.stat().st_size <= shipped_runs.MAX_BYTES
    info = runs.about()
    with Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        assert runs.load(store, traced=False) == info.runs
        found = store.evaluations.evaluations(100)
        assert {r.system for r in found} == set(info.systems)
        for one in found:
            row = store.evaluations.evaluation_rows(one.id, 1)[0]
            found = runs.trace(one.system, one.questions, row.question_id)
            assert found.question.text == row.question


def test_every_system_that_needs_no_more_than_the_repository_is_among_them() -> None:
    info = runs.about()
    if info.limit:
        pytest.skip(f"a sample of the first {info.limit} questions; the whole: {runs.COMMAND}")

    def ready(needs: tuple[str, ...]) -> bool:
        try:
            for need in needs:
                check(need, Settings())
        except Exception:
            return False
        return True

    assert set(info.systems) == {name for name, entry in SYSTEMS.items() if not entry.hidden and ready(entry.needs)}
