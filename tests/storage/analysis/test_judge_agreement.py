"""Judges of evaluations beside people: what counts as the same thing, which verdicts count, and that nothing is a number without both."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import pytest
from storage_samples import prediction

from core import types as t
from core.metrics.agreement.tables import JudgeRow
from storage.analysis import judges
from storage.analysis.judges import NOBODY_JUDGED
from storage.results.standing import chunked
from storage.schema import engine
from storage.store import Store

QUESTION = "Who played Maria in West Side Story?"
JUDGE = {"judge": "language-model", "model": "tiny", "prompts": {"verify": 2, "match": 1}}


def interpretation(answer: str, supported: bool | None, passage: str = "p1", question: str = "Who?") -> dict[str, Any]:
    return {"question": question, "answer": answer, "passage_id": passage, "supported": supported, "matched": True}


def run(store: Store, *interpretations: Any, question: str = QUESTION, digest: str = "c0", judge: Any = JUDGE) -> str:
    row = {"id": "q0", "question": question, "error": None, "metrics": {"G-F1": 0.5}, "interpretations": list(interpretations)}
    report = {
        "n": 1,
        "rows": [row, {"id": "q1", "question": "Who else?", "error": "nothing was found", "metrics": {}}],
        "provenance": {"system": {"name": "rac", "corpus": "starter", "corpus_digest": digest}, "judge": judge},
    }
    scores = {"G-F1": {"all": 0.5, "multi": None}}
    return store.evaluations.save_evaluation(
        system="rac", corpus="starter", questions="dev.json", metrics=scores, report=report
    )


def agreement_of(store: Store, key: str) -> judges.JudgeAgreement:
    return judges.judge_agreement(store, [key], samples=50)[key]


def row_of(store: Store, *interpretations: Any, **more: Any) -> JudgeRow:
    """The row of a run with these interpretations."""
    return agreement_of(store, run(store, *interpretations, **more)).row


def judged(store: Store, *verdicts: Any, by: str = "Ada", **more: Any) -> str:
    """A prediction with these labels."""
    saved = store.predictions.save_prediction(prediction(**more))
    for position, verdict in enumerate(verdicts):
        store.labels.judge(saved, position, by, verdict)
    return saved


def test_without_words_of_people_it_is_undefined_and_says_why(store: Store) -> None:
    judged(store)  # a prediction alone says nothing
    agreement = agreement_of(store, run(store, interpretation("Natalie Wood", True), interpretation("Rachel Zegler", False)))
    assert agreement.about == JUDGE
    assert (agreement.row.judge, agreement.row.n) == ("language-model", 0)
    assert (agreement.row.kappa.value, agreement.row.kappa.interval, agreement.row.kappa.why) == (None, None, NOBODY_JUDGED)


def test_the_same_question_answer_and_passage_are_compared(store: Store) -> None:
    answers = ["Natalie Wood", "Rachel Zegler", "Carol Lawrence", "Nobody"]
    judged(store, "correct", "wrong", "unsupported", "correct", answers=answers)
    row = row_of(
        store,
        interpretation("natalie wood", True),  # equal after normalisation
        interpretation("Rachel Zegler", False),
        interpretation("Carol Lawrence", True),  # the judge alone
        interpretation("Nobody", True, passage="p2"),  # another passage
        interpretation("Somebody", True),  # nobody judged it
        question=f"  {QUESTION.upper()} ",
    )
    assert (row.n, row.table) == (3, (1, 1, 0, 1))
    assert row.kappa.value == pytest.approx(0.4)
    assert row.kappa.interval[0] <= 0.4 <= row.kappa.interval[1]


def test_people_have_a_majority_and_drafts_do_not_count(store: Store) -> None:
    one, other = judged(store, "correct"), judged(store, system="fid")
    store.labels.judge(one, 0, "Bob", "wrong")
    key = run(store, interpretation("Natalie Wood", False), interpretation("Rachel Zegler", True))
    assert agreement_of(store, key).row.n == 0  # a tie
    store.labels.judge(other, 0, "Cy", "unsupported")  # another system gave the same answer from the same passage
    assert agreement_of(store, key).row.table == (0, 0, 0, 1)
    store.labels.judge(other, 0, "Ada", "unsupported")  # she said so later than of the other one
    store.labels.judge(one, 1, "Ada", "correct", state="draft")
    store.labels.judge(other, 1, "Bob", "duplicate")
    row = agreement_of(store, key).row
    assert (row.table, row.kappa.value, bool(row.kappa.why)) == ((0, 0, 0, 1), None, True)  # both say no throughout
    store.labels.judge(one, 1, "Ada", "correct")
    assert agreement_of(store, key).row.kappa.value == 1.0


def test_of_two_labels_of_one_time_the_first_prediction_s_counts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    moment = engine.now()
    monkeypatch.setattr("storage.results.labels.now", lambda: moment)  # as on one judging sheet with two systems
    judged(store, "wrong", system="rac")
    judged(store, "correct", system="fid")
    assert row_of(store, interpretation("Natalie Wood", False)).table == (0, 0, 0, 1)


def test_another_corpus_is_another_thing(store: Store) -> None:
    judged(store, "correct")
    row = row_of(store, interpretation("Natalie Wood", True), digest="c1")
    assert (row.n, row.kappa.why) == (0, "no interpretation was judged by people and by this judge")
    unread = dataclasses.replace(prediction(), system=t.SystemInfo("fid", corpus="starter"))
    store.labels.judge(store.predictions.save_prediction(unread), 0, "Ada", "correct")
    assert row_of(store, interpretation("Natalie Wood", True), digest="").n == 1  # by name where there is no digest


def test_an_interpretation_without_passage_and_one_given_twice(store: Store) -> None:
    judged(store, "wrong", answers=["Natalie Wood"], passages=())
    judged(store, "correct", answers=["Natalie Wood"])
    row = row_of(
        store,
        interpretation("Natalie Wood", False, passage=""),
        interpretation("Natalie Wood", False, question="Who, first?"),
        interpretation("Natalie Wood", True, question="Who, second?"),
        interpretation("Natalie Wood", None, question="Who, third?"),  # the judge failed
    )
    assert row.table == (1, 0, 0, 1)


def test_reports_of_other_programs(store: Store) -> None:
    judged(store, "correct")
    odd = run(store, "text", {"supported": True}, {"answer": 5, "supported": "yes"}, judge="somebody")
    agreement = agreement_of(store, odd)
    assert (agreement.about, agreement.row.judge, agreement.row.n) == ({}, "unknown", 0)
    bare = store.evaluations.save_evaluation(system="x", corpus="y", questions="z", metrics={}, report={})
    assert agreement_of(store, bare).row.kappa.why == NOBODY_JUDGED
    assert judges.judge_agreement(store, ["0" * 32, bare]).keys() == {bare}
    assert judges.judge_agreement(store, []) == {}


def test_bounds_are_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    judged(store, "correct", "wrong")
    key = run(store, interpretation("Natalie Wood", True), interpretation("Rachel Zegler", False))
    whole = agreement_of(store, key)
    monkeypatch.setattr(judges, "MAX_LABELS", 1)
    monkeypatch.setattr(judges, "chunked", partial(chunked, size=1))
    part = agreement_of(store, key)
    assert [(a.truncated, a.row.n) for a in (whole, part)] == [(False, 2), (True, 1)]
