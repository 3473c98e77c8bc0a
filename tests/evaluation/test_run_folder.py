"""Run folders: traces, what a kill leaves, who else is at work, reports of other versions; batches; number of parameters; plans."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from test_evaluation import TableSystem, reference

from core import types as t
from core.disk import locked, write_json
from core.engine import Engine
from core.errors import ConflictError, FormatError, InputError
from core.evaluation.folder import read_report, read_traces, run_states, state_of
from core.evaluation.parameters import parameters_of
from core.evaluation.plan import EvaluationPlan, run_plan
from core.evaluation.run import evaluate
from core.evaluation.summary import summary_of
from core.metrics.errors import BUCKETS
from core.settings import Settings
from core.trace import prediction_from_json

QUESTIONS = [reference(name, "Rome") for name in "abcdef"]


class Cities(TableSystem):
    """Answers when `together` questions are asked at the same time; remembers how many were."""

    def __init__(self, fails: str = "", together: int = 1) -> None:
        table = {name: RuntimeError("boom") if name in fails else ("Rome",) for name in "abcdef"}
        super().__init__(table, clarify=False)
        self.barrier, self.now, self.peak, self.lock = threading.Barrier(together), 0, 0, threading.Lock()

    def run(self, question: t.Question) -> Iterator[t.Event]:
        with self.lock:
            self.now += 1
            self.peak = max(self.peak, self.now)
        self.barrier.wait(60)
        with self.lock:
            self.now -= 1
        yield from super().run(question)


def test_traces_are_kept_and_read_back(tmp_path: Path) -> None:
    report = evaluate(Cities("c"), QUESTIONS, out_dir=tmp_path, traces=True, bootstrap=10)
    assert all("trace" not in row for row in report.rows)
    traces = dict(read_traces(tmp_path))
    assert sorted(traces) == ["a", "b", "d", "e", "f"]
    prediction = prediction_from_json(traces["a"])
    assert ([a.text for a in prediction.answers], len(prediction.events)) == (["Rome"], 3)


def test_a_kill_between_trace_and_row_loses_nothing(tmp_path: Path) -> None:
    evaluate(Cities(), QUESTIONS, out_dir=tmp_path, traces=True, bootstrap=10)
    rows, traces = tmp_path / "rows.jsonl", tmp_path / "traces.jsonl"
    rows.write_text("".join(rows.read_text().splitlines(keepends=True)[:3]))
    with traces.open("a") as stream:
        stream.write('{"id": "e", "tra')
    again = Cities()
    evaluate(again, QUESTIONS, out_dir=tmp_path, traces=True, bootstrap=10)
    assert again.asked == ["d", "e", "f"]
    assert sorted(dict(read_traces(tmp_path))) == list("abcdef")


def test_a_damaged_trace_is_named(tmp_path: Path) -> None:
    (tmp_path / "traces.jsonl").write_text('{"id": "a", "trace": "AAAA"}\n')
    with pytest.raises(FormatError, match=r"traces\.jsonl, line 1"):
        list(read_traces(tmp_path))


@pytest.mark.parametrize("batch", [2, 4])
def test_a_batch_keeps_the_order_and_survives_failures(batch: int, tmp_path: Path) -> None:
    system = Cities("be", together=2)
    report = evaluate(system, QUESTIONS, out_dir=tmp_path, batch=batch, bootstrap=10)
    assert [row["id"] for row in report.rows] == list("abcdef")
    assert [row["id"] for row in report.rows if row["error"]] == ["b", "e"]
    assert 2 <= system.peak <= batch
    assert [json.loads(line)["id"] for line in (tmp_path / "rows.jsonl").read_text().splitlines()] == list("abcdef")


def test_rows_have_error_buckets_and_the_report_its_summary() -> None:
    report = evaluate(Cities("c"), QUESTIONS, bootstrap=10, facts={"tags": {"ablation": "none"}})
    assert report.rows[0]["errors"] == dict.fromkeys(BUCKETS, 0)
    assert report.summary["cost"]["retriever_calls"] == 1
    assert (report.provenance["tags"], report.provenance["parameters"]) == ({"ablation": "none"}, None)
    assert report.scores["EM"]["all"] == 1.0


def test_judged_interpretations_are_counted_by_cell() -> None:
    judgments = [(True, True, True), (True, True, False), (False, False, False), (None, True, True)]
    interpretations = [dict(zip(("relevant", "answerable", "right"), judgment)) for judgment in judgments]
    cells = summary_of([{"error": None, "interpretations": interpretations}, {"error": "x"}])["judged"]
    assert cells["relevant and answerable"] == {"n": 2, "right": 1}
    assert cells["not relevant, not answerable"] == {"n": 1, "right": 0}
    assert summary_of([]) == {}


def test_a_second_evaluation_in_the_folder_is_refused(tmp_path: Path) -> None:
    with (
        ThreadPoolExecutor(1) as other,
        locked(tmp_path, "an evaluation"),
        pytest.raises(ConflictError, match="is in use: an evaluation in process "),
    ):
        other.submit(evaluate, Cities(), QUESTIONS, out_dir=tmp_path, bootstrap=10).result()
    assert evaluate(Cities(), QUESTIONS, out_dir=tmp_path, bootstrap=10).n == 6


@pytest.mark.parametrize("cut", [1, 40])
def test_the_question_of_a_torn_row_is_asked_again(tmp_path: Path, cut: int) -> None:
    evaluate(Cities(), QUESTIONS, out_dir=tmp_path, bootstrap=10)
    rows = tmp_path / "rows.jsonl"
    rows.write_bytes(rows.read_bytes()[:-cut])
    messages: list[str] = []
    again = Cities()
    report = evaluate(again, QUESTIONS, out_dir=tmp_path, bootstrap=10, say=messages.append)
    assert (again.asked, report.n) == (["f"], 6)
    incomplete, resumed = messages
    assert f'{rows}: the last row is incomplete (\'{{"id": "f"' in incomplete
    assert f"resuming in {tmp_path}: 5 " in resumed
    assert [json.loads(line)["id"] for line in rows.read_text().splitlines()] == list("abcdef")


def test_reports_of_other_versions_and_unfinished_runs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no run folder"):
        read_report(tmp_path)
    (tmp_path / "rows.jsonl").write_text("{}\n")
    with pytest.raises(InputError, match="has not finished"):
        read_report(tmp_path)
    good: dict[str, Any] = {"rows": [], "scores": {}, "intervals": {}, "provenance": {}, "timings": {}}
    for name in good:
        write_json(tmp_path / "report.json", {k: v for k, v in good.items() if k != name})
        with pytest.raises(FormatError, match=name):
            read_report(tmp_path)
    write_json(tmp_path / "report.json", good | {"rows": [{"id": "a", "error": None}]})
    with pytest.raises(FormatError, match=r"rows\[0\]"):
        read_report(tmp_path)
    (tmp_path / "report.json").write_text("[1, 2")
    with pytest.raises(FormatError, match="not JSON"):
        read_report(tmp_path)


def plan_of(tmp_path: Path, **more: Any) -> EvaluationPlan:
    path, shared = tmp_path / "questions.jsonl", {"answers": [["Rome"]], "passages": [{"title": "", "text": "Rome"}]}
    path.write_text("".join(json.dumps({"id": n, "question": f"Which {n}?", **shared}) + "\n" for n in "ab"))
    table = {"Which a?": ["Rome"], "Which b?": ["Oslo"]}
    return EvaluationPlan(questions=str(path), system="scripted", extra={"table": table}, clarify=False, **more)


def test_a_plan_runs_and_its_folder_remembers_it(tmp_path: Path) -> None:
    plan, out = plan_of(tmp_path, traces=True, tags={"training questions": 5}), tmp_path / "runs" / "one"
    progress: list[tuple[int, int]] = []
    report = run_plan(plan, Engine(Settings(home=tmp_path)), out, progress=lambda *p: progress.append(p))
    assert progress == [(0, 2), (1, 2), (2, 2)]
    assert report.scores["F1 answer"]["all"] == 0.5
    assert read_report(out) == json.loads(json.dumps(report.to_json()))
    (state,) = run_states(tmp_path / "runs")
    assert (state.name, state.rows, state.total, state.finished is not None) == ("one", 2, 2, True)
    assert EvaluationPlan.from_json(state.about) == plan
    for about in ({}, {**state.about, "tags": []}, {**state.about, "limit": "5"}):
        with pytest.raises(InputError, match="not of this version"):
            EvaluationPlan.from_json(about)
    assert state_of(tmp_path).about == {}


def test_another_run_does_not_overwrite_the_notes(tmp_path: Path) -> None:
    engine, out = Engine(Settings(home=tmp_path)), tmp_path / "runs" / "one"
    run_plan(plan_of(tmp_path), engine, out)
    before = (out / "about.json").read_text()
    with pytest.raises(InputError, match=r"\(settings"):
        run_plan(plan_of(tmp_path, top_k=3), engine, out)
    assert (out / "about.json").read_text() == before


def test_parameters_are_counted_once_and_without_the_retriever() -> None:
    torch = pytest.importorskip("torch")

    class Model:
        def __init__(self, network: Any) -> None:
            self.network = network

        def propose(self) -> None: ...

    class System:
        def __init__(self) -> None:
            shared = torch.nn.Linear(3, 2)  # 8
            self.model, self.also = Model(shared), {"again": [shared]}
            self.propose = Model(torch.nn.Linear(1, 1, bias=False)).propose  # 1, held by a bound method
            other = torch.nn.Linear(2, 2, bias=False)  # 4, held by a closure
            self.closed = lambda: other
            self.retriever = torch.nn.Linear(10, 10)

    assert parameters_of(System()) == 13
    assert parameters_of(Cities()) is None
