"""`evaluate`: the report's figures, failures, resuming, and the folder's guards.  The system is a table, no model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from core import types as t
from core.errors import (
    CancelledError,
    CheckpointError,
    ConflictError,
    FormatError,
    InputError,
    NothingRetrievedError,
    StorageError,
)
from core.evaluation.report import Report
from core.evaluation.run import evaluate, first_answer_seconds
from core.metrics.judged import Grounding, JudgedInterpretation


def reference(name: str, *answers: str, has_passage: bool = False, **extra: Any) -> t.ReferenceQuestion:
    """`has_passage`: with one of its own."""
    pairs = tuple(t.QAPair(f"Which city in {a}?", (a,)) for a in answers)
    annotation = t.Annotation("single" if len(pairs) == 1 else "multiple", pairs)
    passages = (t.Passage(f"{name}#1", "", "Rome and Oslo"),) if has_passage else None
    return t.ReferenceQuestion(name, f"Which city {name}?", (annotation,), passages, extra)


class TableSystem:
    """Answers from a table; an exception in it is raised."""

    def __init__(self, table: dict[str, Any], clarify: bool = True, **info: Any) -> None:
        self.table, self.clarify, self.asked = table, clarify, list[str]()
        self.info = t.SystemInfo("table", info.pop("settings", {"top_k": 2}), **info)

    def run(self, question: t.Question) -> Iterator[t.Event]:
        self.asked.append(question.id)
        answers = self.table[question.id]
        passages = question.passages or (t.Passage("p1", "", "Rome is old"), t.Passage("p2", "", "so is Bonn"))
        retrieved = tuple(t.RetrievedPassage(p, rank, 1 / rank) for rank, p in enumerate(passages, 1))
        yield t.PassagesRetrieved(retrieved, 0.25, question.text)
        if isinstance(answers, BaseException):
            raise answers
        for number, text in enumerate(answers, 1):
            step = t.Step(number, (), "", (t.Candidate(text, 0.5),), t.Candidate(text, 0.5), 0.1, 0.5)
            evidence = t.Evidence(passages[0].id, 0, 4, "Rome")
            yield t.StepFinished(step, t.Answer(text, 0.5, (evidence,), number))
            if self.clarify:
                yield t.QuestionClarified(t.Clarification(text, f"Which city in {text}?", text == "Rome"), 0.1)
        yield t.Finished(1.0, "eoi")


QUESTIONS = [
    reference("a", "Rome", "Oslo", source="one", ambiguity="event references"),
    reference("b", "Rome", source="one"),
    reference("c", "Bonn", "Kiel", source="two", ambiguity="properties", wrong_answers=("Bern",), has_passage=True),
    reference("d", "Bern", source="two"),
]
TABLE: dict[str, Any] = {
    "a": ("Rome", "Oslo", "Nice"),
    "b": (),
    "c": ("Bonn", "Kiel"),
    "d": NothingRetrievedError("no passage matches"),
}


def run(table: dict[str, Any] = TABLE, questions: Sequence[t.ReferenceQuestion] = QUESTIONS, **options: Any) -> Report:
    return evaluate(TableSystem(table), questions, **{"bootstrap": 10, **options})


def without_timings(report: Report) -> dict[str, Any]:
    body = json.loads(json.dumps(report.to_json()))
    del body["timings"]
    for row in body["rows"]:
        del row["seconds"]
    for group in (*body["by_source"].values(), *body["by_ambiguity"].values()):
        del group["seconds_median"]
    return body  # type: ignore[no-any-return]


def test_the_figures_of_a_small_run() -> None:
    progress: list[tuple[int, int]] = []
    report = run(progress=lambda done, total: progress.append((done, total)))
    assert (report.n, report.failed) == (4, 1)
    assert progress == [(1, 4), (2, 4), (3, 4), (4, 4)]
    means = {
        "F1 answer": (0.8 + 0 + 1) / 3,  # a: 2 x 2 / (2 + 3); b: nothing said; c: all; d failed and counts nowhere
        "precision": (2 / 3 + 1) / 2,  # b has none
        "recall": 2 / 3,
        "answers": 5 / 3,
        "reference answers": 5 / 3,
        "R@2": 1.0,  # over a and b, which had to retrieve; c read its own passages
        "MRecall@2": 0.5,
        "RAMDocs": 1.0,
        "clarified": 1 / 4,  # right answers: Rome (passed), Oslo, Bonn, Kiel (not)
        "F1 edit-f1": (0.8 + 0 + 1) / 3,
        "Brier": 0.25,  # five answers were said with 0.5, and four of them are right
    }
    assert {name: report.scores[name]["all"] for name in means} == pytest.approx(means)
    assert (report.scores["F1 answer"]["multi"], report.scores["RAMDocs"]["multi"]) == (pytest.approx(0.9), 1.0)
    # [EOI] was said with 0.1 at five steps, and something was left at each
    reliability = report.summary["reliability"]
    assert list(reliability["answer"]["bins"]) == [{"low": 0.5, "high": 0.6, "n": 5, "said": 0.5, "so": 0.8}]
    assert (reliability["answer"]["error"], reliability["[EOI]"]["error"]) == (pytest.approx(0.3), pytest.approx(0.1))
    assert report.intervals["F1 answer"]["all"] is not None
    assert report.intervals["RAMDocs"]["all"] is None  # one question says nothing of the spread
    assert (report.by_source["one"]["n"], report.by_source["two"]["failed"]) == (2, 1)
    assert report.by_source["two"]["scores"]["F1 answer"]["all"] == 1.0
    assert set(report.by_ambiguity) == {"(none)", "event references", "properties"}
    assert report.timings["first_answer_seconds_median"] == 0.75
    assert report.timings["peak_memory_mb"] is None or report.timings["peak_memory_mb"] > 1


def test_a_failing_question_keeps_its_error_and_has_no_metrics() -> None:
    report = run({**TABLE, "a": RuntimeError("boom")})
    assert [row["error"] for row in report.rows] == ["RuntimeError: boom", None, None, "no passage matches"]
    assert "metrics" not in report.rows[0]
    without_answers = run(dict.fromkeys("abcd", ValueError("x")))
    assert without_answers.failed == 4
    assert without_answers.scores == {"F1 answer": {"all": None, "multi": None}}


class HalfJudge:
    """Fails at `a`, decides half of `b`, and all of the others."""

    about = MappingProxyType({"judge": "wild"})

    def judge(self, reference: Any, prediction: Any) -> Grounding:
        if reference.id == "a":
            raise TypeError("no text")
        half = reference.id == "b"
        interpretations = tuple(JudgedInterpretation("q", "a", "p1", True, m) for m in (True, None if half else False))
        return Grounding(interpretations, (True,), (True,), 2, 1, int(half), "match: 1 verdict for 2 questions" if half else "")


def test_a_judges_failure_leaves_the_systems_own_row(tmp_path: Path) -> None:
    table = {**TABLE, "d": ("Rome",)}
    plain, report = run(table), run(table, judge=HalfJudge(), out_dir=tmp_path)
    assert (report.failed, report.judge_failed, plain.judge_failed) == (0, 2, 0)
    errors = ["TypeError: no text", "match: 1 verdict for 2 questions", None, None]
    assert [row["judge_error"] for row in report.rows] == errors
    assert report.scores["F1 answer"] == plain.scores["F1 answer"]
    assert report.counts["F1 answer"] == plain.counts["F1 answer"]
    assert [row["metrics"]["ungrounded precision"] for row in report.rows] == [None, None, 0.5, 0.5]
    assert (report.counts["ungrounded precision"]["all"], report.counts["G-precision"]["all"]) == (2, 3)
    assert report.counts["ungrounded precision"]["multi"] == sum(row["ambiguous"] for row in report.rows[2:])
    assert len(report.problems) == 2  # judged incompletely, and the failed call
    assert json.loads(json.dumps(report.to_json()))["counts"] == report.counts
    again = TableSystem(table)
    evaluate(again, QUESTIONS, bootstrap=10, judge=HalfJudge(), out_dir=tmp_path)
    assert again.asked == ["a", "b"]  # only what could not be judged


def test_the_report_is_plain_json_and_the_same_for_the_same_seed() -> None:
    one, two = (run(seed=3, bootstrap=50) for _ in range(2))
    assert without_timings(one) == without_timings(two)
    json.dumps(one.to_json(), allow_nan=False)
    provenance = one.provenance
    assert (provenance["seed"], provenance["bootstrap"], provenance["sufficient_from"]) == (3, 50, 5)
    assert (provenance["system"]["name"], provenance["settings"]) == ("table", {"top_k": 2})
    assert all(provenance[name] for name in ("python", "torch", "transformers", "faiss"))
    assert {"gpu", "driver", "cuda"} <= provenance.keys()


def test_a_system_without_questions_has_no_question_metrics() -> None:
    report = evaluate(TableSystem(TABLE, clarify=False), QUESTIONS, bootstrap=10)
    assert not {"F1 bleu4", "clarified"} & report.scores.keys()
    assert report.rows[0]["metrics"]["F1 edit-f1"] is None


def test_limit_takes_the_first_questions() -> None:
    system = TableSystem(TABLE)
    assert evaluate(system, QUESTIONS, limit=2, bootstrap=10).n == 2
    assert system.asked == ["a", "b"]


def test_a_killed_run_goes_on_without_asking_twice(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run({**TABLE, "c": KeyboardInterrupt()}, out_dir=tmp_path)
    rows = tmp_path / "rows.jsonl"
    assert rows.read_text().count("\n") == 2
    uninterrupted = without_timings(run())
    for table, asked in ((TABLE, ["c", "d"]), ({"d": TABLE["d"]}, ["d"])):  # d failed
        system = TableSystem(table)
        resumed = evaluate(system, QUESTIONS, out_dir=tmp_path, bootstrap=10)
        assert system.asked == asked
        assert without_timings(resumed) == uninterrupted
    assert [json.loads(line)["id"] for line in rows.read_text().splitlines()] == ["a", "b", "c", "d"]


def test_a_reader_of_long_answers_with_other_weights_is_another_one(tmp_path: Path) -> None:
    readers: list[Any] = [SimpleNamespace(weights=digest, read=lambda question, text: "") for digest in ("d1", "d2")]
    for _ in range(2):
        run(out_dir=tmp_path, long_reader=("default", readers[0]))
    with pytest.raises(InputError, match=r"\(asqa_reader\)"):
        run(out_dir=tmp_path, long_reader=("default", readers[1]))


def test_a_service_that_comes_back_with_other_weights_ends_the_run(tmp_path: Path) -> None:
    class Restarted(TableSystem):
        def run(self, question: t.Question) -> Iterator[t.Event]:
            if question.id == "c":
                self.info = t.SystemInfo("table", {"top_k": 2}, checkpoint_digest="d2")
            yield from super().run(question)

    with pytest.raises(ConflictError, match="other weights"):
        evaluate(Restarted(TABLE), QUESTIONS, out_dir=tmp_path, bootstrap=10)
    assert [json.loads(line)["id"] for line in (tmp_path / "rows.jsonl").read_text().splitlines()] == ["a", "b"]


def test_folders_of_other_runs_and_damaged_ones_are_refused(tmp_path: Path) -> None:
    run(out_dir=tmp_path)
    other = TableSystem(TABLE, settings={"top_k": 3}, checkpoint_digest="d2", corpus_digest="c2")
    with pytest.raises(InputError, match=r"\(checkpoint_digest, corpus_digest, settings, system\)"):
        evaluate(other, QUESTIONS, out_dir=tmp_path, bootstrap=10)
    assert other.asked == []
    with pytest.raises(InputError, match=r"\(questions\)"):
        run(questions=QUESTIONS[:3], out_dir=tmp_path)
    about = tmp_path / "run.json"
    whole = about.read_text()
    about.write_text(json.dumps(json.loads(whole) | {"system": 3}))
    with pytest.raises(InputError, match="with other settings"):
        run(out_dir=tmp_path)
    about.write_text(whole)
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"id": "a", "error": null, "metrics": {"F1 answer": 1.0}}\n')
    with pytest.raises(FormatError, match="not a row of this version"):
        run(out_dir=tmp_path)
    rows.write_text("nonsense\n")
    with pytest.raises(FormatError, match="line 1"):
        run(out_dir=tmp_path)
    about.unlink()
    with pytest.raises(InputError, match=r"without its run\.json"):
        run(out_dir=tmp_path)


def test_a_full_disk_keeps_what_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", Mock(side_effect=OSError(28, "No space left on device")))
        with pytest.raises(StorageError, match="No space left"):
            run(out_dir=tmp_path)
    assert run(out_dir=tmp_path).n == 4


@pytest.mark.parametrize("error", [CancelledError("stop"), CheckpointError("damaged")])
def test_what_is_no_fault_of_the_question_ends_the_run(error: Exception) -> None:
    with pytest.raises(type(error)):
        run({**TABLE, "b": error})


def test_a_run_that_a_person_stopped_is_no_result(tmp_path: Path) -> None:
    class Stopped(TableSystem):
        def run(self, question: t.Question) -> Iterator[t.Event]:
            yield t.Finished(0.1, "stopped by a person")

    with pytest.raises(CancelledError, match="to resume"):
        evaluate(Stopped(TABLE), QUESTIONS, out_dir=tmp_path, bootstrap=10)
    assert not (tmp_path / "rows.jsonl").exists()


@pytest.mark.parametrize(
    ("questions", "options", "message"),
    [
        ([], {}, "no questions"),
        (QUESTIONS, {"limit": 0}, "the limit is 0"),
        (QUESTIONS, {"bootstrap": 0}, "bootstrap samples is 0"),
        (QUESTIONS, {"batch": 0}, "the batch is 0"),
        ([QUESTIONS[0], QUESTIONS[0]], {}, "two questions have the id 'a'"),
    ],
)
def test_bad_arguments_are_refused(questions: Any, options: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(questions=questions, **options)


def test_half_characters_and_wild_probabilities_can_be_written(tmp_path: Path) -> None:
    class Wild(TableSystem):
        def run(self, question: t.Question) -> Iterator[t.Event]:
            step = t.Step(1, (), "", (), None, 0.0, 0.1)
            yield t.StepFinished(step, t.Answer("Ro\ud800me", float("nan")))
            yield t.Finished(0.1, "eoi")

    report = evaluate(Wild(TABLE), QUESTIONS, out_dir=tmp_path, bootstrap=10)
    (answer,) = report.rows[0]["answers"]
    assert (answer["text"], answer["probability"]) == ("Ro?me", None)
    assert evaluate(Wild({}), QUESTIONS, out_dir=tmp_path, bootstrap=10).rows == report.rows


def test_time_to_the_first_answer_skips_what_a_person_pinned() -> None:
    def step(seconds: float, answer: t.Answer | None) -> t.StepFinished:
        return t.StepFinished(t.Step(1, (), "", (), None, 0.0, seconds), answer)

    events = (
        t.PassagesRetrieved((), 0.25, "q"),
        step(0.0, t.Answer("a", 1.0, pinned=True)),
        step(0.5, t.Answer("b", 1.0)),
        step(9.0, None),
    )
    assert first_answer_seconds(events) == 0.75
    assert first_answer_seconds(events[:2]) is None
