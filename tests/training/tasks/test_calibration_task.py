"""Calibrations: what of a run is labelled how, what is fitted on it, and that a run is not made again."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from core import types as t
from core.errors import InputError, NothingRetrievedError
from core.training.calibration import (
    CalibrationQuestion,
    RecordedRun,
    RecordedStep,
    cross_fitted,
    fit_calibration,
    labelled,
    read,
    record_runs,
    reliable,
)

GOLD = ((("Anna", "Anne"), ("Bert",)),)


def test_a_candidate_is_right_until_its_answer_was_given_and_eoi_where_nothing_is_left() -> None:
    turns = (
        RecordedStep((("Anne", 0.6), ("Anne Brown", 0.3), ("Carl", 0.1)), 0.1, "Anne"),
        RecordedStep((("Anna", 0.5), ("Bert", 0.4)), 0.2, "Bert"),
        RecordedStep((("Carl", 0.2),), 0.8, None),
    )
    run = RecordedRun("1", "who", GOLD, turns)
    answers, ends = labelled(run)
    assert [so for _, so in answers] == [True, False, False, True, False]  # of "Anne Brown" only the better reading counts
    assert [so for _, so in ends] == [False, False, True]
    assert [round(signals["later"]) for signals, _ in answers] == [0, 0, 1, 1, 1]
    assert [so for _, so in labelled(run, all_candidates=False)[0]] == [True, False, False]


def boastful(count: int, loops: bool = True, seed: int = 3) -> list[RecordedRun]:
    """Runs of a system whose candidates are right half as often as it says: each question's answer is one of its two candidates, or neither."""
    rng = random.Random(seed)
    out = []
    for i in range(count):
        p = rng.uniform(0.1, 0.95)
        right = rng.random() < p / 2
        turn = RecordedStep((("Anna", p), ("Carl", p / 20)), 1 - p if loops else 0.0, "Anna" if loops else None)
        then = (RecordedStep((("Carl", 0.02),), 0.9, None),) if loops else ()
        out.append(RecordedRun(str(i), "who", (((("Anna" if right else "Dora"),),),), (turn, *then)))
    return out


def test_who_promises_twice_too_much_is_calibrated() -> None:
    runs = boastful(600)
    error = reliable(runs, cross_fitted(runs))["answer"]
    assert error["before"] > 0.1  # half of the candidates are the second step's, of which nothing was promised
    assert error["after"] < 0.05
    once = fit_calibration(boastful(600, loops=False), "600 questions", "digest")
    assert (once.end, once.fitted_on, once.weights) == (None, "600 questions", "digest")
    assert set(once.answer.weights) == {"odds"}
    assert once.candidates([t.Candidate("Anna", 0.8)])[0].probability == pytest.approx(0.4, abs=0.08)


def test_where_everything_is_wrong_there_is_nothing_to_fit() -> None:
    wrong = [RecordedRun("1", "who", ((("Dora",),),), (RecordedStep((("Anna", 0.5),), 0.1, "Anna"),))]
    with pytest.raises(InputError, match="nothing to calibrate"):
        fit_calibration(wrong)


class Table:
    info = t.SystemInfo("table")

    def __init__(self) -> None:
        self.asked: list[str] = []

    def run(self, question: t.Question) -> Iterator[t.Event]:
        self.asked.append(question.text)
        if question.text == "nowhere":
            raise NothingRetrievedError("no passage matches")
        first = (t.Candidate("Anna", 0.6), t.Candidate("Bert", 0.2))
        yield t.StepFinished(t.Step(1, (), "", first, first[0], 0.1, 0.0), t.Answer("Anna", 0.6))
        yield t.StepFinished(t.Step(2, ("Anna",), "", first[1:], None, 0.9, 0.0, "enough"), None)


def test_runs_are_kept_and_not_made_again_and_a_failed_question_is_said(tmp_path: Path) -> None:
    questions = [CalibrationQuestion(name, t.Question(name), GOLD) for name in ("one", "nowhere", "two")]
    system, file, lines = Table(), tmp_path / "deep" / "runs.jsonl", list[str]()
    runs = record_runs(system, questions, file, lines.append)
    assert [run.id for run in runs] == ["one", "two"]
    assert lines == ["nowhere: no passage matches"]
    first = RecordedStep((("Anna", 0.6), ("Bert", 0.2)), 0.1, "Anna")
    assert runs[0].turns == (first, RecordedStep((("Bert", 0.2),), 0.9, None))
    with file.open("a") as cut:
        cut.write('{"id": "cut by a k')
    assert record_runs(system, questions, file) == runs == read(file)
    assert system.asked == ["one", "nowhere", "two", "nowhere"]


def test_a_kept_run_has_todays_references_and_is_made_again_for_another_question_passage_or_system(tmp_path: Path) -> None:
    """Another file or another --limit gives the same ids to others; an edited corpus leaves the words of a question as they were."""
    system, other, file = Table(), Table(), tmp_path / "runs.jsonl"
    other.info = t.SystemInfo("table", corpus="facts", corpus_digest="edited")
    runs = ((system, "ab"), (system, "ab"), (system, "aB"), (other, "aB"), (other, "AB"))
    for (asked, (text, passage)), gold in zip(runs, (GOLD, GOLD * 2, GOLD, GOLD, GOLD)):
        question = t.Question(text, passages=(t.Passage("0", "", passage),))
        (run,) = record_runs(asked, [CalibrationQuestion("0", question, gold)], file)
        assert (run.question, run.references) == (text, gold)
    assert (len(system.asked), len(other.asked), read(file)) == (2, 2, [run])


def test_of_a_system_that_reads_once_all_candidates_are_one_turn(tmp_path: Path) -> None:
    class Once(Table):
        def run(self, question: t.Question) -> Iterator[t.Event]:
            both = (t.Candidate("Anna", 0.6), t.Candidate("Bert", 0.2))
            for number, c in enumerate(both, 1):
                yield t.StepFinished(t.Step(number, (), "", both, c, 0.0, 0.0), t.Answer(c.text, c.probability))

    (run,) = record_runs(Once(), [CalibrationQuestion("1", t.Question("who"), GOLD)], tmp_path / "runs.jsonl")
    assert run.turns == (RecordedStep((("Anna", 0.6), ("Bert", 0.2)), 0.0, None),)
