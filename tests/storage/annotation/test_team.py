"""Team work: assignments, progress by person, comments, gold items among the work, error labels, items made of predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from annotation_samples import do, judge_all, project, questions, take, validate, work
from sqlalchemy import text
from storage_helpers import exported
from storage_samples import prediction

from core.errors import InputError, NotAllowedError, NotFoundError, StorageError
from core.types import Annotation
from storage.records.annotation import GenerationWork, JudgingWork
from storage.records.projects import ItemSummary, Project
from storage.store import Store


@pytest.fixture
def team(store: Store, quick_hashes: None) -> Store:
    """Mia manages, Vera validates; Ada, Bob and Cleo write."""
    store.people.add_person("Mia", "Mia", "manager", "a long password")
    store.people.add_person("Mia", "Vera", "validator")
    for name in ("Ada", "Bob", "Cleo"):
        store.people.add_person("Mia", name, "annotator")
    return store


def rows(store: Store, parts: Project) -> list[ItemSummary]:
    return store.items.items(parts.id, "Mia", stage=parts.stages[0], limit=100)


def nothing(store: Store, parts: Project, name: str) -> bool:
    return store.queue.next_item(parts.id, name, "generation") is None


def test_an_assigned_item_is_given_to_that_person_only_and_first(team: Store) -> None:
    parts = project(team, 2)
    first, second = (row.id for row in rows(team, parts))
    team.assignments.assign("Mia", parts.id, "generation", {1: ["Bob"]})
    assert [row.assigned for row in rows(team, parts)] == [(), ("Bob",)]
    assert do(team, parts, "Ada", "x").item == first
    assert nothing(team, parts, "Ada")
    assert team.queue.claim_item(second, "Ada", "generation") is None
    assert take(team, parts, "Bob").item == second
    team.queue.release_item(second, "Bob", "generation")
    assert nothing(team, parts, "Ada")
    team.assignments.assign("Mia", parts.id, "generation", {1: []})
    assert take(team, parts, "Ada").item == second


def test_what_is_assigned_to_some_keeps_only_their_slots(team: Store) -> None:
    parts = project(team, 1, annotators_per_item=2)
    team.assignments.assign("Mia", parts.id, "generation", {0: ["Bob"]})
    do(team, parts, "Ada", "x")
    assert nothing(team, parts, "Cleo")
    do(team, parts, "Bob", "y")
    assert team.items.progress(parts.id, "Mia")["generation"].done == 1


@pytest.mark.parametrize("leave", ["skips", "is deactivated", "is no validator any more"])
def test_an_item_whose_assignee_cannot_do_it_is_everybodys_again(team: Store, leave: str) -> None:
    parts = project(team, 1, stages=("generation", "validation"))
    team.people.add_person("Mia", "Val", "validator")
    do(team, parts, "Ada", "x")
    team.assignments.assign("Mia", parts.id, "validation", {0: ["Val"]})
    assert team.queue.next_item(parts.id, "Vera", "validation") is None
    if leave == "skips":
        team.queue.skip_item(take(team, parts, "Val", "validation").item, "Val", "validation", "not mine")
    elif leave == "is deactivated":
        team.people.set_active("Mia", "Val", False)
    else:
        team.people.set_role("Mia", "Val", "annotator")
    row = next(p for p in team.assignments.progress_by_person(parts.id, "Mia") if p.person == "Val")
    assert (row.works, row.unfinished) == ((True, 0) if leave == "skips" else (False, 1))
    assert take(team, parts, "Vera", "validation").state == "leased"
    team.assignments.unassign("Mia", parts.id, "Val")
    assigned = {p.person: p.assigned for p in team.assignments.progress_by_person(parts.id, "Mia")}
    assert assigned.get("Val", 0) == (1 if leave == "skips" else 0)  # what was finished stays on record


@pytest.mark.parametrize("state", ["leased", "returned"])
def test_an_item_is_not_kept_for_somebody_who_left(team: Store, state: str) -> None:
    parts = project(team, 1)
    item = do(team, parts, "Ada", "x").item
    if state == "leased":
        team.returns.undo(item, "Ada", "generation")
    else:
        team.returns.return_item(item, "Ada", "generation", "too few", by="Vera")
    assert nothing(team, parts, "Bob")
    team.people.set_active("Mia", "Ada", False)
    assert do(team, parts, "Bob", "y").item == item
    team.people.set_active("Mia", "Ada", True)
    assert nothing(team, parts, "Ada")
    assert team.items.progress(parts.id, "Mia")["generation"].done == 1


def test_progress_by_person_and_stage(team: Store) -> None:
    parts = project(team, 3, stages=("generation", "validation"))
    team.assignments.assign("Mia", parts.id, "generation", {0: ["Ada"], 2: ["Ada"]})
    item = do(team, parts, "Ada", "x").item
    take(team, parts, "Bob")
    take(team, parts, "Vera", "validation")
    validate(team, item, "Vera", work("x").annotation)
    ada, bob, vera = progress = team.assignments.progress_by_person(parts.id, "Vera")
    assert [(p.person, p.stage) for p in progress] == [("Ada", "generation"), ("Bob", "generation"), ("Vera", "validation")]
    assert (ada.assigned, ada.unfinished, ada.submitted, ada.seconds) == (2, 1, 1, 10.0)
    assert (bob.leased, vera.submitted) == (1, 1)


def test_wrong_assignments_change_nothing(team: Store) -> None:
    parts = project(team, 2)
    team.intake.add_items("Mia", parts.id, questions(1, start=10), gold=True)
    assign = team.assignments.assign
    refused: list[tuple[type[Exception], Callable[[], None]]] = [
        (InputError, lambda: assign("Mia", parts.id, "generation", {0: ["Bob"], 1: ["Ada", "Bob"]})),  # one slot
        (InputError, lambda: assign("Mia", parts.id, "judging", {0: ["Ada"]})),
        (InputError, lambda: assign("Mia", parts.id, "generation", {0: ["Bob"], 2: ["Ada"]})),  # gold
        (NotFoundError, lambda: assign("Mia", parts.id, "generation", {0: ["Bob"], 9: ["Ada"]})),
        (NotAllowedError, lambda: assign("Mia", parts.id, "generation", {0: ["Nobody"]})),
        (NotAllowedError, lambda: assign("Vera", parts.id, "generation", {0: ["Bob"]})),
    ]
    for error, call in refused:
        with pytest.raises(error):
            call()
    assert not any(row.assigned for row in rows(team, parts))


def texts(store: Store, item: str, reader: str) -> list[str]:
    return [c.text for c in store.comments.thread(item, reader).comments]


def test_comments_do_not_tell_annotators_what_others_answer(team: Store) -> None:
    parts = project(team, 1, annotators_per_item=2)
    item = take(team, parts, "Ada").item
    take(team, parts, "Bob")
    team.comments.comment(item, "Ada", "I say Natalie Wood.")
    team.comments.comment(item, "Mia", "Films count.")
    assert texts(team, item, "Ada") == texts(team, item, "Vera") == ["I say Natalie Wood.", "Films count."]
    assert texts(team, item, "Bob") == ["Films count."]
    assert texts(team, item, "Cleo") == []
    with pytest.raises(InputError, match="open the item"):
        team.comments.comment(item, "Cleo", "me too")
    with pytest.raises(InputError, match="finish your own work"):
        team.blindness.show_item(item, "Bob")
    do(team, parts, "Bob", "y")
    assert (texts(team, item, "Bob"), team.comments.thread(item, "Bob").hidden) == (["Films count."], 1)
    team.returns.undo(item, "Bob", "generation")  # nothing was seen: still possible
    assert team.comments.thread(item, "Bob").hidden == 0
    assert [row.comments for row in rows(team, parts)] == [2]
    with pytest.raises(InputError):
        team.comments.comment(item, "Ada", "  ")
    with pytest.raises(StorageError), team.database.writing() as session:
        session.execute(text("DELETE FROM comment"))


def test_an_empty_submission_opens_nothing_that_can_still_be_used(team: Store) -> None:
    """Submit, read, undo, submit again."""
    parts = project(team, 2, annotators_per_item=2)
    item = take(team, parts, "Ada").item
    team.comments.comment(item, "Ada", "I say Natalie Wood.")
    take(team, parts, "Bob")
    team.submissions.submit(item, "Bob", "generation", GenerationWork(Annotation("none")), seconds=1)
    team.blindness.show_item(item, "Bob")
    assert texts(team, item, "Bob") == ["I say Natalie Wood."]
    with pytest.raises(InputError, match="you have seen"):
        team.returns.undo(item, "Bob", "generation")
    with pytest.raises(InputError, match="you have seen"):
        team.submissions.submit(item, "Bob", "generation", work("Natalie Wood"), seconds=1)
    assert team.people.activity("Mia", action="others' words shown")[0].person == "Bob"
    # a validator may ask for another answer, knowing that
    team.returns.return_item(item, "Bob", "generation", "Look again.", "Vera")
    assert team.submissions.submit(item, "Bob", "generation", work("Natalie Wood"), seconds=1).counted


def test_who_has_seen_what_others_said_gets_no_further_work_on_the_item(team: Store) -> None:
    parts = project(team, 1)
    item = take(team, parts, "Ada").item
    do(team, parts, "Ada", "x")
    team.blindness.show_item(item, "Bob")  # nobody wants Bob's work on it
    version = team.projects.get_project(parts.id).version
    team.projects.update_project("Mia", parts.id, version, annotators_per_item=2)
    assert nothing(team, parts, "Bob")
    assert team.queue.claim_item(item, "Bob", "generation") is None
    assert take(team, parts, "Cleo").item == item


def test_comments_are_read_resolved_and_mention_people(team: Store) -> None:
    parts = project(team, 1)
    item = take(team, parts, "Ada").item
    team.comments.comment(item, "Ada", "Does the film count, @Vera?")
    (for_vera,) = team.waiting.of_person("Vera")
    assert (for_vera.comments, for_vera.mentions, for_vera.items) == (1, 1, (item,))
    assert team.waiting.of_person("Mia")[0].mentions == 0
    team.comments.mark_read(item, "Vera")
    assert team.waiting.of_person("Vera") == []
    team.comments.comment(item, "Vera", "Yes, @ada.")
    (for_ada,) = team.waiting.of_person("Ada")
    assert (for_ada.comments, for_ada.mentions, for_ada.assigned) == (1, 1, 0)
    question, answer = team.comments.thread(item, "Ada").comments
    with pytest.raises(InputError, match="only its author"):
        team.comments.resolve(answer.id, "Ada")
    team.comments.resolve(answer.id, "Mia")
    assert [c.resolved_by for c in team.comments.thread(item, "Ada").comments] == ["", "Mia"]
    assert team.waiting.of_person("Ada") == []  # what is resolved needs no reading
    team.comments.resolve(answer.id, "Mia", resolved=False)
    assert team.comments.thread(item, "Ada").unread == 1
    with pytest.raises(NotFoundError):
        team.comments.resolve(question.id, "Cleo")


def test_what_waits_for_a_person(team: Store) -> None:
    parts = project(team, 3)
    do(team, parts, "Ada", "x")
    item = rows(team, parts)[0].id
    team.returns.return_item(item, "Ada", "generation", "Look again.", "Vera")
    team.assignments.assign("Mia", parts.id, "generation", {1: ["Ada"]})
    (work_of_ada,) = team.waiting.of_person("Ada")
    assert (work_of_ada.name, dict(work_of_ada.returned), work_of_ada.assigned) == ("parts", {"generation": 1}, 1)
    assert team.waiting.of_person("Bob") == []
    team.projects.update_project("Mia", parts.id, 1, state="closed")
    assert team.waiting.of_person("Ada") == []


def test_a_manager_who_writes_answers_is_as_blind(team: Store) -> None:
    parts = project(team, 1, annotators_per_item=2)
    item = take(team, parts, "Ada").item
    team.comments.comment(item, "Ada", "I say Natalie Wood.")
    assert texts(team, item, "Mia") == ["I say Natalie Wood."]
    take(team, parts, "Mia")
    assert texts(team, item, "Mia") == []
    do(team, parts, "Mia", "x")
    assert len(texts(team, item, "Mia")) == 1


def test_gold_items_are_mixed_in_as_if_they_were_others(team: Store) -> None:
    parts = project(team, 40, gold_rate=0.5)
    team.intake.add_items("Mia", parts.id, questions(10, start=100), gold=True)
    gold = {row.id for row in rows(team, parts) if row.gold}
    is_gold: list[bool] = []
    for _ in range(20):
        task = take(team, parts, "Ada")
        assert take(team, parts, "Ada").item == task.item
        assert (task.slot, team.items.get_item(task.item, "Ada").gold) == (0, False)
        before = team.items.progress(parts.id, "Ada", "Ada")["generation"]
        sent = team.submissions.submit(task.item, "Ada", "generation", work("Somebody"), seconds=1)
        after = team.items.progress(parts.id, "Ada", "Ada")["generation"]
        assert (sent.counted, after.submitted - before.submitted, after.gold) == (True, 1, 0)
        is_gold.append(task.item in gold)
    assert not is_gold[0]
    count = sum(is_gold)
    assert 2 <= count <= 10
    done = next(i for i in gold if team.submissions.submission_history(i, "Ada", "generation", "Ada"))
    assert team.returns.undo(done, "Ada", "generation").state == "leased"
    team.submissions.submit(done, "Ada", "generation", work("Nobody"), seconds=1)
    assert all(line.details["counted"] for line in team.people.activity("Ada", action="item submitted", limit=500))
    # for managers they are gold, and they are no data
    everybody = team.items.progress(parts.id, "Mia")["generation"]
    assert (everybody.submitted, everybody.gold) == (20 - count, count)
    assert team.items.submitted(parts.id, "Ada", "generation") == 20 - count
    assert {s.score for s in team.submissions.submissions(parts.id, "Mia", limit=100) if s.item in gold} == {1.0, 0.0}


def test_a_gold_item_that_was_given_back_comes_again_like_others_and_others_comments_on_it_stay_hidden(team: Store) -> None:
    parts = project(team, 1, gold_rate=0.5)
    team.intake.add_items("Mia", parts.id, questions(1, start=100), gold=True)
    (gold,) = (row.id for row in rows(team, parts) if row.gold)
    for name in ("Ada", "Bob"):
        assert team.queue.claim_item(gold, name, "generation") is not None
        team.comments.comment(gold, name, f"from {name}")
    team.queue.release_item(gold, "Ada", "generation")
    do(team, parts, "Ada", "x")
    assert take(team, parts, "Ada").item == gold
    do(team, parts, "Ada", "x")
    assert texts(team, gold, "Ada") == ["from Ada"]


def test_gold_in_judging_compares_labels_with_the_right_answers(store: Store) -> None:
    store.predictions.save_prediction(prediction("Who played part 5?", ["Somebody", "b"], id="q5", system="fid"))
    parts = project(store, 0, stages=("judging",), systems=("fid",))
    store.intake.add_items("Mia", parts.id, questions(1, start=5), gold=True)
    (item,) = (row.id for row in rows(store, parts))
    store.queue.claim_item(item, "Ada", "judging")
    first, second = judge_all(store.reviews.judging_sheet(item, "Ada")).answers
    assert store.submissions.submit(item, "Ada", "judging", JudgingWork((first, second)), seconds=1).score == 0.5
    labels = {0: "correct", 1: "wrong"}
    right = JudgingWork(tuple(replace(a, verdict=labels[a.position]) for a in (first, second)))
    assert store.submissions.submit(item, "Ada", "judging", right, seconds=1).score == 1.0


def test_error_labels_of_the_project_are_given_beside_ours_and_exported(store: Store, tmp_path: Path) -> None:
    store.predictions.save_prediction(prediction("Who played part 0?", ["a"], id="q0", system="fid"))
    parts = project(store, 1, stages=("judging",), systems=("fid",), error_labels=["outdated source", "wrong film"])
    assert parts.error_labels == ("outdated source", "wrong film")
    item = take(store, parts, "Ada", "judging").item
    sheet = store.reviews.judging_sheet(item, "Ada")
    with pytest.raises(InputError, match="no error label"):
        store.submissions.submit(item, "Ada", "judging", judge_all(sheet, errors=("typo",)), seconds=1)
    sent = store.submissions.submit(
        item, "Ada", "judging", judge_all(sheet, "wrong", errors=("wrong film", "outdated source")), seconds=1
    )
    assert sent.content.answers[0].errors == ("wrong film", "outdated source")
    (row,) = exported(store, "csv", tmp_path / "out.csv")
    assert (row["verdict"], row["error_labels"]) == ("wrong", "wrong film | outdated source")
    for wrong in (["x", "X"], ["Correct"], [" "], ["a\nb"], [str(n) for n in range(30)]):
        with pytest.raises(InputError):
            store.projects.update_project("Mia", parts.id, 1, error_labels=wrong)


def test_a_prediction_becomes_an_item_with_what_was_struck_and_added(store: Store) -> None:
    saved = store.predictions.save_prediction(prediction("Who sang it?", ["a", "b", "c"], id="", system="fid"))
    parts = project(store, 1)
    item = store.intake.add_prediction("Mia", parts.id, saved, struck={1}, added=["d"])
    assert store.items.get_item(item, "Mia").predictions[0].prediction_id == saved
    assert [(s.text, s.position) for s in store.submissions.suggestions(item, "Ada")] == [("a", 0), ("c", 2), ("d", 3)]
    with pytest.raises(InputError, match="already"):
        store.intake.add_prediction("Mia", parts.id, saved)
    with pytest.raises(NotFoundError):
        store.intake.add_prediction("Mia", parts.id, "nope")
    judged = project(store, 0, name="judged", stages=("judging",), systems=("other",))
    with pytest.raises(InputError, match="not of fid"):
        store.intake.add_prediction("Mia", judged.id, saved)
    checked = project(store, 0, name="checked", stages=("validation",))
    item = store.intake.add_prediction("Mia", checked.id, saved, struck={0, 1})
    assert take(store, checked, "Vera", "validation").item == item
    shown = store.reviews.validation_input(item, "Vera").annotations  # as of a question file
    assert [(name, annotation.pairs[0].answers) for name, annotation in shown] == [("file 1", ("c",))]
    validate(store, item, "Vera", work("d").annotation)
    assert store.items.progress(checked.id, "Mia")["validation"].done == 1
