"""What a team needs: assignments, progress by person, comments, gold items among the work, error labels, items made of predictions."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from annotation_samples import do, judge_all, project, questions, take, validate, work
from sqlalchemy import text
from storage_samples import prediction

from core.annotating.labels import Label
from core.errors import InputError, NotAllowedError, NotFoundError, StorageError
from storage.records.annotation import JudgedAnswer, JudgingWork, ShownAnswer
from storage.records.projects import Project
from storage.store import Store

SECRET = "a long password"


@pytest.fixture
def team(store: Store, quick_passwords: None) -> Store:
    """Mia manages, Vera validates; Ada, Bob and Cleo write."""
    for name, role in (
        ("Mia", "manager"),
        ("Vera", "validator"),
        ("Ada", "annotator"),
        ("Bob", "annotator"),
        ("Cleo", "annotator"),
    ):
        store.people.add_person("Mia", name, role, SECRET if name == "Mia" else None)  # type: ignore[arg-type]
    return store


@pytest.fixture
def quick_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.access.passwords.hashed", lambda password: "unused")


def items(store: Store, made: Project) -> list[str]:
    return [item.id for item in store.items.items(made.id, "Mia", stage=made.stages[0])]


def nothing(store: Store, made: Project, name: str) -> bool:
    return store.queue.next_item(made.id, name, "generation") is None


# ---------------------------------------------------------------- assignments


def test_an_assigned_item_is_given_to_that_person_only_and_first(team: Store) -> None:
    made = project(team, 2)
    first, second = items(team, made)
    team.assignments.assign("Mia", made.id, "generation", {1: ["Bob"]})
    assert [i.assigned for i in team.items.items(made.id, "Mia", stage="generation")] == [(), ("Bob",)]
    assert do(team, made, "Ada", "x").item == first
    assert nothing(team, made, "Ada")
    assert team.queue.claim_item(second, "Ada", "generation") is None
    assert take(team, made, "Bob").item == second
    team.queue.release_item(second, "Bob", "generation")
    assert nothing(team, made, "Ada")
    team.assignments.assign("Mia", made.id, "generation", {1: []})
    assert take(team, made, "Ada").item == second


def test_what_is_assigned_to_some_keeps_only_their_slots(team: Store) -> None:
    made = project(team, 1, annotators_per_item=2)
    team.assignments.assign("Mia", made.id, "generation", {0: ["Bob"]})
    do(team, made, "Ada", "x")
    assert nothing(team, made, "Cleo")
    do(team, made, "Bob", "y")
    assert team.items.progress(made.id, "Mia")["generation"].done == 1


@pytest.mark.parametrize("leave", ["skips", "is deactivated", "is no validator any more"])
def test_an_item_whose_assignee_cannot_do_it_is_everybodys_again(team: Store, leave: str) -> None:
    made = project(team, 1, stages=("generation", "validation"))
    team.people.add_person("Mia", "Val", "validator", None)
    do(team, made, "Ada", "x")
    team.assignments.assign("Mia", made.id, "validation", {0: ["Val"]})
    assert team.queue.next_item(made.id, "Vera", "validation") is None
    if leave == "skips":
        team.queue.skip_item(take(team, made, "Val", "validation").item, "Val", "validation", "not mine")
    elif leave == "is deactivated":
        team.people.set_active("Mia", "Val", False)
    else:
        team.people.set_role("Mia", "Val", "annotator")
    row = next(p for p in team.assignments.progress_by_person(made.id, "Mia") if p.person == "Val")
    assert (row.works, row.unfinished) == ((True, 0) if leave == "skips" else (False, 1))
    assert take(team, made, "Vera", "validation").state == "leased"
    team.assignments.unassign("Mia", made.id, "Val")
    rows = {p.person: p.assigned for p in team.assignments.progress_by_person(made.id, "Mia")}
    assert rows.get("Val", 0) == (1 if leave == "skips" else 0)  # what was finished stays on record


def test_progress_by_person_and_stage(team: Store) -> None:
    made = project(team, 3, stages=("generation", "validation"))
    team.assignments.assign("Mia", made.id, "generation", {0: ["Ada"], 2: ["Ada"]})
    item = do(team, made, "Ada", "x").item
    take(team, made, "Bob")
    take(team, made, "Vera", "validation")
    validate(team, item, "Vera", work("x").annotation)
    found = {(p.person, p.stage): p for p in team.assignments.progress_by_person(made.id, "Vera")}
    assert list(found) == [("Ada", "generation"), ("Bob", "generation"), ("Vera", "validation")]
    ada = found["Ada", "generation"]
    assert (ada.assigned, ada.unfinished, ada.submitted, ada.seconds) == (2, 1, 1, 10.0)
    assert (found["Bob", "generation"].leased, found["Vera", "validation"].submitted) == (1, 1)


def test_wrong_assignments_change_nothing(team: Store) -> None:
    made = project(team, 2)
    team.intake.add_items("Mia", made.id, questions(1, start=10), gold=True)
    assign = team.assignments.assign
    refused: list[tuple[type[Exception], Callable[[], None]]] = [
        (InputError, lambda: assign("Mia", made.id, "generation", {0: ["Bob"], 1: ["Ada", "Bob"]})),  # one slot
        (InputError, lambda: assign("Mia", made.id, "judging", {0: ["Ada"]})),
        (InputError, lambda: assign("Mia", made.id, "generation", {0: ["Bob"], 2: ["Ada"]})),  # gold
        (NotFoundError, lambda: assign("Mia", made.id, "generation", {0: ["Bob"], 9: ["Ada"]})),
        (NotAllowedError, lambda: assign("Mia", made.id, "generation", {0: ["Nobody"]})),
        (NotAllowedError, lambda: assign("Vera", made.id, "generation", {0: ["Bob"]})),
    ]
    for error, call in refused:
        with pytest.raises(error):
            call()
    assert not any(i.assigned for i in team.items.items(made.id, "Mia", stage="generation"))


# ---------------------------------------------------------------- comments


def texts(store: Store, item: str, who: str) -> list[str]:
    return [c.text for c in store.comments.comments(item, who)]


def test_comments_do_not_tell_annotators_what_others_answer(team: Store) -> None:
    made = project(team, 1, annotators_per_item=2)
    item = take(team, made, "Ada").item
    take(team, made, "Bob")
    team.comments.comment(item, "Ada", "I say Natalie Wood.")
    team.comments.comment(item, "Mia", "Films count.")
    assert texts(team, item, "Ada") == texts(team, item, "Vera") == ["I say Natalie Wood.", "Films count."]
    assert texts(team, item, "Bob") == ["Films count."]
    assert texts(team, item, "Cleo") == []
    with pytest.raises(InputError, match="open the item"):
        team.comments.comment(item, "Cleo", "me too")
    do(team, made, "Bob", "y")
    assert len(texts(team, item, "Bob")) == 2
    team.returns.undo(item, "Bob", "generation")
    assert texts(team, item, "Bob") == ["Films count."]
    (row,) = team.items.items(made.id, "Mia", stage="generation")
    assert row.comments == 2
    with pytest.raises(InputError):
        team.comments.comment(item, "Ada", "  ")
    with pytest.raises(StorageError), team.database.writing() as session:
        session.execute(text("DELETE FROM comment"))


def test_a_manager_who_writes_answers_is_as_blind(team: Store) -> None:
    made = project(team, 1, annotators_per_item=2)
    item = take(team, made, "Ada").item
    team.comments.comment(item, "Ada", "I say Natalie Wood.")
    assert texts(team, item, "Mia") == ["I say Natalie Wood."]
    take(team, made, "Mia")
    assert texts(team, item, "Mia") == []
    do(team, made, "Mia", "x")
    assert len(texts(team, item, "Mia")) == 1


# ---------------------------------------------------------------- gold items among the work


def test_gold_items_are_mixed_in_as_if_they_were_others(team: Store) -> None:
    made = project(team, 40, gold_rate=0.5)
    team.intake.add_items("Mia", made.id, questions(10, start=100), gold=True)
    gold = {i.id for i in team.items.items(made.id, "Mia", stage="generation", limit=100) if i.gold}
    seen: list[bool] = []
    for _ in range(20):
        task = take(team, made, "Ada")
        assert take(team, made, "Ada").item == task.item
        assert (task.slot, team.items.get_item(task.item, "Ada").gold) == (0, False)
        before = team.items.progress(made.id, "Ada", "Ada")["generation"]
        sent = team.submissions.submit(task.item, "Ada", "generation", work("Somebody"), seconds=1)
        after = team.items.progress(made.id, "Ada", "Ada")["generation"]
        assert (sent.counted, after.submitted - before.submitted, after.gold) == (True, 1, 0)
        seen.append(task.item in gold)
    assert not seen[0]
    assert 2 <= sum(seen) <= 10
    done = next(iter(i for i in gold if team.submissions.submission_history(i, "Ada", "generation", "Ada")))
    assert team.returns.undo(done, "Ada", "generation").state == "leased"
    team.submissions.submit(done, "Ada", "generation", work("Nobody"), seconds=1)
    lines = team.people.activity("Ada", limit=500)
    details = [sorted(line.details.items()) for line in lines if line.action == "item submitted"]
    assert all(("counted", True) in line for line in details)
    # for managers they are gold, and they are no data
    everybody = team.items.progress(made.id, "Mia")["generation"]
    assert (everybody.submitted, everybody.gold) == (20 - sum(seen), sum(seen))
    assert team.items.submitted(made.id, "Ada", "generation") == 20 - sum(seen)
    scores = {s.score for s in team.submissions.submissions(made.id, "Mia", limit=100) if s.item in gold}
    assert scores == ({1.0, 0.0} if sum(seen) > 1 else {0.0})


def test_a_gold_item_that_was_given_back_comes_again_like_others_and_others_comments_on_it_stay_hidden(team: Store) -> None:
    made = project(team, 1, gold_rate=0.5)
    team.intake.add_items("Mia", made.id, questions(1, start=100), gold=True)
    (gold,) = (i.id for i in team.items.items(made.id, "Mia", stage="generation") if i.gold)
    for name in ("Ada", "Bob"):
        assert team.queue.claim_item(gold, name, "generation") is not None
        team.comments.comment(gold, name, f"from {name}")
    team.queue.release_item(gold, "Ada", "generation")
    do(team, made, "Ada", "x")
    assert take(team, made, "Ada").item == gold
    do(team, made, "Ada", "x")
    assert texts(team, gold, "Ada") == ["from Ada"]


def test_gold_in_judging_compares_labels_with_the_right_answers(store: Store) -> None:
    store.predictions.save_prediction(prediction("Who played part 5?", ["Somebody", "b"], id="q5", system="fid"))
    made = project(store, 0, stages=("judging",), systems=("fid",))
    store.intake.add_items("Mia", made.id, questions(1, start=5), gold=True)
    (item,) = items(store, made)
    store.queue.claim_item(item, "Ada", "judging")
    sheet = store.reviews.judging_sheet(item, "Ada")
    assert store.submissions.submit(item, "Ada", "judging", judge_all(sheet), seconds=1).score == 0.5
    right = JudgingWork(tuple(_judged(a) for side in sheet.sides for a in side.answers))
    assert store.submissions.submit(item, "Ada", "judging", right, seconds=1).score == 1.0


def _judged(shown: ShownAnswer) -> JudgedAnswer:
    label: Label = "correct" if shown.text == "Somebody" else "wrong"
    return JudgedAnswer(shown.prediction_id, shown.position, label, None if shown.question is None else "fits")


# ---------------------------------------------------------------- error labels


def test_error_labels_of_the_project_are_given_beside_ours(store: Store) -> None:
    store.predictions.save_prediction(prediction("Who played part 0?", ["a"], id="q0", system="fid"))
    made = project(store, 1, stages=("judging",), systems=("fid",), error_labels=["outdated source", "wrong film"])
    assert made.error_labels == ("outdated source", "wrong film")
    item = take(store, made, "Ada", "judging").item
    sheet = store.reviews.judging_sheet(item, "Ada")
    with pytest.raises(InputError, match="no error label"):
        store.submissions.submit(item, "Ada", "judging", judge_all(sheet, errors=("typo",)), seconds=1)
    sent = store.submissions.submit(item, "Ada", "judging", judge_all(sheet, "wrong", errors=("wrong film",)), seconds=1)
    assert isinstance(sent.content, JudgingWork)
    assert sent.content.answers[0].errors == ("wrong film",)
    for wrong in (["x", "X"], ["Correct"], [" "], ["a\nb"], [str(n) for n in range(30)]):
        with pytest.raises(InputError):
            store.projects.update_project("Mia", made.id, 1, error_labels=wrong)


# ---------------------------------------------------------------- from Explore


def test_a_prediction_becomes_an_item_with_what_was_struck_and_added(store: Store) -> None:
    saved = store.predictions.save_prediction(prediction("Who sang it?", ["a", "b", "c"], id="", system="fid"))
    made = project(store, 1)
    item = store.intake.add_prediction("Mia", made.id, saved, struck={1}, added=["d"])
    assert store.items.get_item(item, "Mia").predictions[0].prediction_id == saved
    assert [(s.text, s.position) for s in store.submissions.suggestions(item, "Ada")] == [("a", 0), ("c", 2), ("d", 3)]
    with pytest.raises(InputError, match="already"):
        store.intake.add_prediction("Mia", made.id, saved)
    with pytest.raises(NotFoundError):
        store.intake.add_prediction("Mia", made.id, "nope")
    judged = project(store, 0, name="judged", stages=("judging",), systems=("other",))
    with pytest.raises(InputError, match="not of fid"):
        store.intake.add_prediction("Mia", judged.id, saved)
    checked = project(store, 0, name="checked", stages=("validation",))
    item = store.intake.add_prediction("Mia", checked.id, saved, struck={0, 1})
    assert take(store, checked, "Vera", "validation").item == item
    assert [a.pairs[0].answers for _, a in store.reviews.validation_input(item, "Vera").annotations] == [("c",)]
