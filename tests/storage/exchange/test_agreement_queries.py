"""What feeds the quality page: which words count, bounds that are told, who may ask; competence, and exports that weigh people by it."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from annotation_samples import do, multiple, project, single
from storage_helpers import exported

from core.errors import NotAllowedError, NotFoundError
from storage.analysis import agreement
from storage.analysis.agreement import quality
from storage.exchange import votes
from storage.exchange.consensus import EQUAL, ContributedQuestion, Statement, Vote, consensus, holdings
from storage.exchange.exports.files import manifest_path
from storage.results.standing import chunked
from storage.schema import engine
from storage.store import Store


def test_the_figures_of_a_project(worked: Store) -> None:
    (parts,) = worked.projects.projects()
    whole = quality(worked, "Mia", project=parts.id, samples=20)
    alpha, f1, types, _ = whole.figures
    assert (f1.n, f1.value) == (2, 0.75)  # one of two answers shared, and the same single answer
    assert (alpha.n, types.value) == (2, 1.0)
    assert [(r.first, r.second, r.n) for r in whole.pairs] == [("Ada", "Bob", 2)]
    assert (whole.labels.n, whole.labels.value, whole.question_labels.value) == (4, 1.0, 1.0)  # both judges said the same
    assert whole.preferences.value is None  # one item, one word: chance is certain
    assert {t.type: t.count for t in whole.types} == {"multiple": 2, "single": 2, "none": 0}
    assert {t.person: t.n for t in whole.times} == {"Ada": 3, "Bob": 3, "Val": 1}
    systems = {s.system: s for s in whole.systems}
    labels = {name: s.labels for name, s in systems.items()}
    assert labels == {"ambigprompt": {"correct": 2}, "fid": {"correct": 1, "wrong": 1}}
    assert systems["ambigprompt"].f1.value == pytest.approx((1.0 + 0.5) / 2)  # against Ada's, against Bob's
    assert whole.missing == {"ambigprompt": 1, "fid": 1}  # Maria Lopez, whom both judges added to the one sheet
    assert {j.judge: j.n for j in whole.judges}["round trip passed: the question fits"] == 4
    assert whole.truncated == ()
    assert quality(worked, "Mia", samples=20).figures == whole.figures


def test_a_further_form_of_a_given_answer_was_not_missing(worked: Store) -> None:
    (parts,) = worked.projects.projects()
    item = next(i.id for i in worked.items.items(parts.id, "Mia", stage="judging") if i.question == "Who played part 0?")
    added = {item: {("natalie wood", "n wood"), ("r zegler", "rachel zegler"), ("nobody",)}}
    with worked.database.reading() as session:
        assert agreement._missing(session, added) == {"ambigprompt": 1, "fid": 1}  # fid gave Nobody, ambigprompt Rachel Zegler


def test_people_and_time_narrow_the_figures(worked: Store) -> None:
    alone = quality(worked, "Mia", people=("Ada",), samples=20)
    assert (alone.figures[1].value, bool(alone.figures[1].why)) == (None, True)
    assert {t.person for t in alone.times} == {"Ada"}
    later = quality(worked, "Mia", since=engine.now() + timedelta(hours=1), samples=20)
    assert (later.items, later.types, later.systems) == ((), (), ())
    with pytest.raises(NotFoundError):
        quality(worked, "Mia", project="nowhere")


def test_bounds_are_told(worked: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("MAX_ITEMS", 1), ("MAX_LABELS", 2), ("MAX_TIMES", 3), ("chunked", partial(chunked, size=1))):
        monkeypatch.setattr(agreement, name, value)
    monkeypatch.setattr(votes, "chunked", partial(chunked, size=1))
    part = quality(worked, "Mia", samples=20)
    assert (part.figures[1].n, part.labels.n, sum(t.n for t in part.times), len(part.truncated)) == (1, 2, 3, 3)


def test_annotators_may_not_see_it(store: Store) -> None:
    store.people.add_person("Mia", "Mia", "manager", password="long enough")
    store.people.add_person("Mia", "Ada", "annotator")
    store.people.add_person("Mia", "Val", "validator")
    with pytest.raises(NotAllowedError):
        quality(store, "Ada")
    assert quality(store, "Val", samples=5).figures[0].why


def test_weights_outvote_a_majority() -> None:
    labels = {"Ada": "correct", "Bob": "wrong", "Cleo": "wrong"}
    votes = [Vote(name, "x", "", label, engine.now()) for name, label in labels.items()]
    assert consensus(votes, []).negatives == ("x",)
    weights = {**EQUAL, "Ada": (3.0, -3.0)}
    assert consensus(votes, [], weights).answers == (("x",),)


def test_who_wrote_an_answer_set_holds_no_other_answer_correct() -> None:
    statements = [Statement("Ada", "generation", multiple("x", "y")), Statement("Bob", "generation", single("y"))]
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
