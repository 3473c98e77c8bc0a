"""Competence from what people wrote and judged, and exports in which people count by it."""

from __future__ import annotations

import json
from pathlib import Path

from annotation_samples import do, project
from storage_helpers import exported

from storage.analysis.agreement import quality
from storage.exchange.consensus import EQUAL, ContributedQuestion, Statement, Vote, consensus, holdings
from storage.exchange.exports.files import manifest_path
from storage.schema import engine
from storage.store import Store


def test_weights_outvote_a_majority() -> None:
    labels = {"Ada": "correct", "Bob": "wrong", "Cleo": "wrong"}
    votes = [Vote(name, "x", "", label, engine.now()) for name, label in labels.items()]
    assert consensus(votes, []).negatives == ("x",)
    weights = {**EQUAL, "Ada": (3.0, -3.0)}
    assert consensus(votes, [], weights).answers == (("x",),)


def test_who_wrote_an_answer_set_holds_no_other_answer_correct(store: Store) -> None:
    parts = project(store, 1, annotators_per_item=2)
    do(store, parts, "Ada", "x", "y")
    do(store, parts, "Bob", "y")
    sets = [s.content.annotation for s in store.submissions.submissions(parts.id, "Mia")]
    statements = [Statement(name, "generation", s) for name, s in zip(("Ada", "Bob"), sets, strict=True)]
    question = ContributedQuestion(1, "q", "Who?", [], statements)
    assert {(group, person): correct for group, person, correct in holdings(question)} == {
        (0, "Ada"): True,
        (1, "Ada"): True,
        (0, "Bob"): False,
        (1, "Bob"): True,
    }


def test_competence_is_shown_and_weighs(store: Store, tmp_path: Path) -> None:
    """Three people answer; Dan, alone, is wrong on all but a few."""
    parts = project(store, 14, annotators_per_item=3)
    for number in range(14):
        for name in ("Ada", "Bob", "Dan"):
            do(store, parts, name, "right" if name != "Dan" or number % 6 == 0 else f"wrong {number}")
    rows = {row.person: row for row in quality(store, "Mia", project=parts.id, samples=10).competence}
    assert (rows["Ada"].accuracy or 0) > 0.9 > 0.5 > (rows["Dan"].accuracy or 0)
    assert rows["Ada"].n > 20
    answers = {}
    for weighted in (False, True):
        file = tmp_path / f"{weighted}.jsonl"
        rows = exported(store, "training", file, project=parts.id, weighted=weighted)
        assert json.loads(manifest_path(file).read_text())["filters"]["weighted"] is weighted
        answers[weighted] = [row["answers"] for row in rows]
    assert sum(map(len, answers[False])) > sum(map(len, answers[True]))
    assert all(["right"] in sets for sets in answers[True])


def test_too_few_answers_tell_nothing(store: Store) -> None:
    parts = project(store, 1, annotators_per_item=2)
    do(store, parts, "Ada", "x")
    do(store, parts, "Bob", "x")
    (ada, bob) = quality(store, "Mia", project=parts.id, samples=10).competence
    assert (ada.person, ada.n, ada.accuracy, bob.gold_n) == ("Ada", 1, None, 0)
