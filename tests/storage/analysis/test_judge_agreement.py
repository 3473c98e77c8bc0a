"""Judges of evaluations beside people: what counts as the same thing, which verdicts count, and that nothing is a number without both."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import pytest
from storage_samples import prediction

from core import types as t
from storage.analysis import judges
from storage.analysis.judges import NOBODY
from storage.results.standing import chunked
from storage.schema import engine
from storage.store import Store

QUESTION = "Who played Maria in West Side Story?"
JUDGE = {"judge": "language-model", "model": "tiny", "prompts": {"verify": 2, "match": 1}}


def said(answer: str, supported: bool | None, passage: str = "p1", question: str = "Who?") -> dict[str, Any]:
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


def found(store: Store, key: str) -> judges.JudgeAgreement:
    return judges.judge_agreement(store, [key], samples=50)[key]


def test_without_words_of_people_it_is_undefined_and_says_why(store: Store) -> None:
    key = run(store, said("Natalie Wood", True), said("Rachel Zegler", False))
    agreement = found(store, key)
    assert agreement.about == JUDGE
    assert (agreement.row.judge, agreement.row.n) == ("language-model", 0)
    assert (agreement.row.kappa.value, agreement.row.kappa.interval, agreement.row.kappa.why) == (None, None, NOBODY)
    store.predictions.save_prediction(prediction())
    assert found(store, key).row.kappa.why == NOBODY  # a prediction alone says nothing


def test_the_same_question_answer_and_passage_are_compared(store: Store) -> None:
    mine = store.predictions.save_prediction(prediction(answers=["Natalie Wood", "Rachel Zegler", "Carol Lawrence", "Nobody"]))
    for position, verdict in enumerate(("correct", "wrong", "unsupported", "correct")):
        store.labels.judge(mine, position, "Ada", verdict)
    key = run(
        store,
        said("natalie wood", True),  # equal after normalisation
        said("Rachel Zegler", False),
        said("Carol Lawrence", True),  # the judge alone
        said("Nobody", True, passage="p2"),  # another passage
        said("Somebody", True),  # nobody judged it
        question=f"  {QUESTION.upper()} ",
    )
    row = found(store, key).row
    assert row.table == (1, 1, 0, 1)
    assert row.n == 3
    assert row.kappa.value == pytest.approx(0.4)
    assert row.kappa.interval[0] <= 0.4 <= row.kappa.interval[1]


def test_people_have_a_majority_and_drafts_do_not_count(store: Store) -> None:
    one = store.predictions.save_prediction(prediction(), key="1")
    other = store.predictions.save_prediction(prediction(system="fid"), key="2")
    for who, verdict in (("Ada", "correct"), ("Bob", "wrong")):
        store.labels.judge(one, 0, who, verdict)  # type: ignore[arg-type]
    key = run(store, said("Natalie Wood", False), said("Rachel Zegler", True))
    assert found(store, key).row.n == 0  # a tie
    store.labels.judge(other, 0, "Cy", "unsupported")  # another system gave the same answer from the same passage
    assert found(store, key).row.table == (0, 0, 0, 1)
    store.labels.judge(other, 0, "Ada", "unsupported")  # she said so later than of the other one
    store.labels.judge(one, 1, "Ada", "correct", state="draft")
    store.labels.judge(other, 1, "Bob", "duplicate")
    row = found(store, key).row
    assert row.table == (0, 0, 0, 1)
    assert row.kappa.value is None  # both say no throughout
    assert row.kappa.why
    store.labels.judge(one, 1, "Ada", "correct")
    assert found(store, key).row.kappa.value == 1.0


def test_of_two_labels_of_one_time_the_first_prediction_s_counts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    moment = engine.now()
    monkeypatch.setattr("storage.results.labels.now", lambda: moment)  # as on one judging sheet with two systems
    for system, verdict in (("rac", "wrong"), ("fid", "correct")):
        store.labels.judge(store.predictions.save_prediction(prediction(system=system)), 0, "Ada", verdict)  # type: ignore[arg-type]
    assert found(store, run(store, said("Natalie Wood", False))).row.table == (0, 0, 0, 1)


def test_another_corpus_is_another_thing(store: Store) -> None:
    mine = store.predictions.save_prediction(prediction())
    store.labels.judge(mine, 0, "Ada", "correct")
    row = found(store, run(store, said("Natalie Wood", True), digest="c1")).row
    assert (row.n, row.kappa.why) == (0, "no interpretation was judged by people and by this judge")
    unread = dataclasses.replace(prediction(), system=t.SystemInfo("fid", corpus="starter"))
    store.labels.judge(store.predictions.save_prediction(unread), 0, "Ada", "correct")
    assert found(store, run(store, said("Natalie Wood", True), digest="")).row.n == 1  # by name where there is no digest


def test_an_interpretation_without_passage_and_one_given_twice(store: Store) -> None:
    bare = store.predictions.save_prediction(prediction(answers=["Natalie Wood"], passages=()))
    store.labels.judge(bare, 0, "Ada", "wrong")
    full = store.predictions.save_prediction(prediction(answers=["Natalie Wood"]))
    store.labels.judge(full, 0, "Ada", "correct")
    key = run(
        store,
        said("Natalie Wood", False, passage=""),
        said("Natalie Wood", False, question="Who, first?"),
        said("Natalie Wood", True, question="Who, second?"),
        said("Natalie Wood", None, question="Who, third?"),  # the judge failed
    )
    assert found(store, key).row.table == (1, 0, 0, 1)


def test_reports_of_other_programs(store: Store) -> None:
    mine = store.predictions.save_prediction(prediction())
    store.labels.judge(mine, 0, "Ada", "correct")
    odd = run(store, "text", {"supported": True}, {"answer": 5, "supported": "yes"}, judge="somebody")
    agreement = found(store, odd)
    assert agreement.about == {}
    assert (agreement.row.judge, agreement.row.n) == ("unknown", 0)
    bare = store.evaluations.save_evaluation(system="x", corpus="y", questions="z", metrics={}, report={})
    assert found(store, bare).row.kappa.why == NOBODY
    assert judges.judge_agreement(store, ["0" * 32, bare]).keys() == {bare}
    assert judges.judge_agreement(store, []) == {}


def test_bounds_are_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = store.predictions.save_prediction(prediction())
    store.labels.judge(mine, 0, "Ada", "correct")
    store.labels.judge(mine, 1, "Ada", "wrong")
    key = run(store, said("Natalie Wood", True), said("Rachel Zegler", False))
    assert not found(store, key).truncated
    assert found(store, key).row.n == 2
    monkeypatch.setattr(judges, "MAX_LABELS", 1)
    monkeypatch.setattr(judges, "chunked", partial(chunked, size=1))
    assert found(store, key).truncated
    assert found(store, key).row.n == 1
