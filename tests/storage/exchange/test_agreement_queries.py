"""The data of the Quality page: counted contributions, reported bounds, permissions; competence, and exports that weigh people by it."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random

import pytest
from annotation_samples import Clock, do, multiple, project, single, work
from sqlalchemy import text
from storage_helpers import exported
from storage_samples import prediction

from core.errors import NotAllowedError, NotFoundError
from storage.analysis import agreement
from storage.analysis.agreement import quality
from storage.exchange import votes
from storage.exchange.consensus import EQUAL, ContributedQuestion, Statement, Vote, consensus, holdings
from storage.exchange.exports.files import manifest_path
from storage.records.annotation import JudgedAnswer, JudgingWork
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
    # against the validated set, which is ambigprompt's own
    assert {name: (s.final.value, s.final.n) for name, s in systems.items()} == {"ambigprompt": (1.0, 1), "fid": (0.5, 1)}
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
        rows = exported(store, "training", file, project=parts.id, weighted=weighted, answers="all")
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


# ---------------------------------------------------------------- once more, from raw rows


@pytest.mark.sqlite  # the raw rows are those of its columns
def test_figures_of_the_page_are_those_of_the_raw_rows(store: Store, clock: Clock) -> None:
    """A second implementation reads tables and bodies with SQL and JSON alone: F1 and kappa of one-word answers, minutes, shares of the types."""
    chance, words = Random(7), ("Rome", "Oslo", "Bern", "Kiel")
    systems = ("fid",)
    for number in range(12):
        store.predictions.save_prediction(
            prediction(f"Who played part {number}?", words[:3], id=f"q{number}", system="fid", clarified=False)
        )
    parts = project(store, 12, annotators_per_item=2, stages=("generation", "judging"), systems=systems)
    for item in store.items.items(parts.id, "Mia", stage="generation"):
        for person in ("Ada", "Bob"):
            clock.pass_(minutes=97)
            store.queue.claim_item(item.id, person, "generation")
            content = work(*chance.sample(words, chance.randint(0, 3)))
            store.submissions.submit(item.id, person, "generation", content, seconds=chance.randint(5, 200))
            if chance.random() < 0.3:
                store.submissions.submit(item.id, person, "generation", work("Rome"), seconds=11)
            store.queue.claim_item(item.id, person, "judging")
            sheet = store.reviews.judging_sheet(item.id, person)
            judged = JudgingWork(
                tuple(
                    JudgedAnswer(a.prediction_id, a.position, chance.choice(("correct", "wrong")))
                    for a in sheet.sides[0].answers
                )
            )
            store.submissions.submit(item.id, person, "judging", judged, seconds=20)
    returned = store.items.items(parts.id, "Mia", stage="generation")[0].id
    store.returns.return_item(returned, "Ada", "generation", "no", by="Val")

    page = quality(store, "Mia", project=parts.id, samples=5)

    with store.database.reading() as session:
        rows = session.execute(
            text(
                "SELECT s.item_id, s.stage, a.name, s.body, s.seconds, s.version, s.created, t.state, t.version AS current, t.slot "
                "FROM submission s JOIN annotator a ON a.id = s.annotator_id "
                "JOIN task t ON t.item_id = s.item_id AND t.stage = s.stage AND t.annotator_id = s.annotator_id"
            )
        ).all()
    counted = [r for r in rows if r.version == r.current and r.state == "submitted" and r.slot is not None]
    written: dict[int, dict[str, set[str]]] = {}
    labels: dict[str, list[str]] = {}
    kinds: Counter[str] = Counter()
    for row in sorted(counted, key=lambda r: r.name):
        body = json.loads(row.body)
        if row.stage == "generation":
            written.setdefault(row.item_id, {})[row.name] = {p["answers"][0] for p in body["annotation"]["pairs"]}
            kinds[body["annotation"]["type"]] += 1
        for answer in body.get("answers", ()):
            labels.setdefault(f"{answer['prediction_id']}{answer['position']}", []).append(answer["verdict"])
    f1s = [
        2 * len(a & b) / (len(a) + len(b)) if a or b else 1.0
        for a, b in (sets.values() for sets in written.values() if len(sets) == 2)
    ]
    assert len(f1s) == 11
    assert page.figures[1].value == pytest.approx(sum(f1s) / len(f1s))

    both = [tuple(two) for two in labels.values()]
    observed = sum(a == b for a, b in both) / len(both)
    correct = [sum(two[i] == "correct" for two in both) / len(both) for i in (0, 1)]
    expected = correct[0] * correct[1] + (1 - correct[0]) * (1 - correct[1])
    assert page.labels.value == pytest.approx((observed - expected) / (1 - expected))

    minutes: Counter[tuple[str, str]] = Counter()
    items: Counter[tuple[str, str]] = Counter()
    for row in rows:
        minutes[row.created[:10], row.name] += row.seconds / 60
        items[row.created[:10], row.name] += row.version == 1
    assert len({day for day, _ in minutes}) > 1
    assert {(d.day, d.person): (d.items, pytest.approx(d.minutes)) for d in page.days} == {
        key: (items[key], minutes[key]) for key in minutes
    }
    assert {row.type: row.count for row in page.types if row.count} == dict(kinds)
    (guidelines,) = page.guidelines
    assert (guidelines.version, guidelines.n, guidelines.figures[1].value) == (0, 11, page.figures[1].value)
