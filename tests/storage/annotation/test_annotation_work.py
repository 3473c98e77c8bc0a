"""Projects, drafts, submissions, validation and judging: what is stored and what comes back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from annotation_samples import do, judge_all, multiple, project, single, states, take, validate, work
from storage_samples import prediction

from core import types as t
from core.errors import CancelledError, ConflictError, InputError
from storage.analysis.answering import Answering
from storage.records.annotation import (
    DraftConflictError,
    GenerationWork,
    MissingAnswer,
    SourcesChangedError,
    SubmissionConflictError,
    SuggestionUse,
    ValidationWork,
)
from storage.records.projects import GuidelineExample, Project
from storage.store import Store


def test_a_project_comes_back_as_it_was_made(store: Store) -> None:
    parts = store.projects.create_project(
        "Mia",
        " Films ",
        stages=("judging", "generation"),
        corpus="starter",
        systems=("ambigprompt", "fid"),
        annotators_per_item=3,
        order="random",
        seed=7,
        reference_date=date(2018, 1, 1),
        thresholds={"must_read": 2},
        guidelines="# Read",
        examples=(
            GuidelineExample(False, "Who?", t.Annotation("multiple", (t.QAPair("Who else?", ("x",)),)), "one pair only"),
        ),
    )
    assert store.projects.get_project(parts.id) == parts == store.projects.find_project_named("Films")
    assert (parts.stages, parts.thresholds["must_read"], parts.thresholds["alias_words"]) == (("generation", "judging"), 2, 7)
    assert store.projects.projects() == [parts]
    assert store.projects.projects("closed") == []
    for wrong in (
        {"name": "Films"},
        {"name": "two\nlines"},
        {"name": " "},
        {"name": "x" * 10_000},
        {"name": "x", "stages": ()},
        {"name": "x", "stages": ("judging",)},
        {"name": "x", "annotators_per_item": 0},
        {"name": "x", "order": "best"},
        {"name": "x", "thresholds": {"speed": 1}},
        {"name": "x", "systems": ("a", "b", "c")},
        {"name": "x", "lease_minutes": 0},
        {"name": "x", "gold_rate": 2},
    ):
        with pytest.raises(InputError):
            store.projects.create_project("Mia", **wrong)
    assert store.maintenance.counts()["project"] == 1


def test_every_version_of_the_guidelines_is_kept(store: Store) -> None:
    parts = project(store, 1)
    assert store.projects.guidelines(parts.id) is None
    first = store.projects.save_guidelines("Mia", parts.id, "Read.", expected_version=0)
    assert store.projects.save_guidelines("Mia", parts.id, "Read.") == first  # equal content: no new version
    item = do(store, parts, "Ada", "x").item
    example = GuidelineExample(True, "Who?", single(), "one answer")
    second = store.projects.save_guidelines("Mia", parts.id, "Read twice.", [example], expected_version=1)
    assert store.projects.guidelines(parts.id) == second
    assert store.projects.guideline_versions(parts.id) == [second, first]
    with pytest.raises(ConflictError, match="version 2"):
        store.projects.save_guidelines("Bob", parts.id, "Mine.", expected_version=1)
    assert store.submissions.submission_history(item, "Ada", "generation", "Ada")[0].guidelines == 1  # what was shown


def test_predictions_are_linked_and_uncertain_ones_come_first(store: Store) -> None:
    for number, answers in ((0, ["a"]), (1, ["a", "b", "c"]), (2, ["a", "b"])):
        store.predictions.save_prediction(prediction(f"Who played part {number}?", answers, id=f"q{number}", system="fid"))
    newest = store.predictions.save_prediction(prediction("Who played part 0?", ["z"], id="q0", system="fid"))
    parts = project(store, 4, systems=("fid",), order="uncertainty")
    items = store.items.items(parts.id, "Mia", stage="generation")
    assert [(i.position, i.margin is None) for i in items] == [(0, False), (1, False), (2, False), (3, True)]
    item = store.items.get_item(items[0].id, "Ada")
    assert [(p.system, p.prediction_id) for p in item.predictions] == [("fid", newest)]
    assert [(s.text, s.probability) for s in store.submissions.suggestions(item.id, "Ada")] == [("z", 0.9)]


def test_calibrated_predictions_are_sorted_by_the_step_nearest_to_even_odds(store: Store) -> None:
    """Uncalibrated, what counts is how far the best candidate is from [EOI]: 0.2 and 0.4 here; calibrated, how far from even odds."""
    for number, best in ((0, 0.3), (1, 0.5)):
        answer = prediction(f"Who played part {number}?", ["a"], id=f"q{number}", system="fid")
        step = replace(answer.steps[0], candidates=(t.Candidate("a", best),), eoi_probability=0.1)
        events = tuple(replace(e, step=step) if isinstance(e, t.StepFinished) else e for e in answer.events)
        for calibration in (None, {"fitted_on": "practice"}):
            info = replace(answer.system, settings={"calibration": calibration})
            store.predictions.save_prediction(replace(answer, system=info, steps=(step,), events=events))
    parts = project(store, 2, systems=("fid",), order="uncertainty")
    items = store.items.items(parts.id, "Mia", stage="generation")
    assert {i.position: i.margin for i in items} == {0: pytest.approx(0.4), 1: pytest.approx(0.0)}
    assert take(store, parts, "Ada").question_id == "q1"


def test_drafts_of_two_windows_conflict_and_show_both(store: Store) -> None:
    parts = project(store, 1)
    item = take(store, parts, "Ada").item
    assert store.drafts.find_draft(item, "Ada", "generation") is None
    first = store.drafts.save_draft(item, "Ada", "generation", {"t": 1}, expected_version=0)
    assert store.drafts.save_draft(item, "Ada", "generation", {"t": 1}, expected_version=0) == first  # equal: a rerun
    store.drafts.save_draft(item, "Ada", "generation", {"t": 2}, expected_version=1)
    with pytest.raises(DraftConflictError) as caught:
        store.drafts.save_draft(item, "Ada", "generation", {"t": 3}, expected_version=1)
    assert (caught.value.mine, caught.value.theirs.body, caught.value.theirs.version) == ({"t": 3}, {"t": 2}, 2)
    store.submissions.submit(item, "Ada", "generation", work("x"), seconds=1)
    with pytest.raises(DraftConflictError) as caught:  # a window that does not know that the other submitted
        store.drafts.save_draft(item, "Ada", "generation", {"t": 3}, expected_version=2)
    assert caught.value.theirs.submitted
    with pytest.raises(InputError, match="NUL"):
        store.drafts.save_draft(item, "Ada", "generation", {"t": "\0"})
    with pytest.raises(InputError, match="characters"):
        store.drafts.save_draft(item, "Ada", "generation", {"t": "x" * 2_000_001})


def test_searches_and_opened_passages_are_logged(store: Store) -> None:
    parts = project(store, 1, thresholds={"must_read": 2})
    item = take(store, parts, "Ada").item
    for query in ("west side", "west side", "story", "west side"):
        store.drafts.log_search(item, "Ada", "generation", query)
    store.drafts.log_view(item, "Ada", "generation", "p1", "West Side Story")
    with pytest.raises(InputError, match="open 2 passages"):
        store.submissions.submit(item, "Ada", "generation", work("x"), seconds=1)
    store.drafts.log_view(item, "Ada", "generation", "p2", "West Side Story")
    log = store.submissions.submit(item, "Ada", "generation", work("x"), seconds=1).log
    assert [e.query or e.passage_id for e in log.events] == ["west side", "story", "west side", "p1", "p2"]
    assert log.viewed_passage_ids == ("p1", "p2")
    assert store.drafts.interactions(item, "Ada", "generation") == log


def test_a_submission_comes_back_whole(store: Store) -> None:
    parts = project(store, 1, reference_date=date(2018, 1, 1))
    item = take(store, parts, "Ada").item
    pairs = (
        t.QAPair("Who played it last?", ("Natalie Wood", "N. Wood"), ("p1",)),
        t.QAPair("When was it in Japan?", ("1/2 of a/b",)),
    )
    content = GenerationWork(t.Annotation("multiple", pairs), (SuggestionUse("p", 0, "Somebody", "rejected"),), note="hard")
    sent = store.submissions.submit(item, "Ada", "generation", content, seconds=12.5)
    assert replace(sent.content, warnings=()) == content
    warnings = "; ".join(sent.content.warnings)
    for sign in ("depends on when it is asked", "asks 'when'", "Separate aliases"):
        assert sign in warnings
    assert (sent.seconds, sent.counted, sent.version) == (12.5, True, 1)
    assert store.submissions.submit(item, "Ada", "generation", content, seconds=3) == sent  # a rerun
    store.drafts.save_draft(item, "Ada", "generation", {"t": "changed, and changed back"})
    assert store.submissions.submit(item, "Ada", "generation", content, seconds=3) == sent
    assert store.drafts.find_draft(item, "Ada", "generation").submitted
    assert store.submissions.submissions(parts.id, "Ada", annotator="Ada") == [sent]
    assert store.maintenance.counts()["annotation"] == 0  # a submission has one home
    with pytest.raises(SubmissionConflictError) as caught:
        store.submissions.submit(item, "Ada", "generation", work("y"), seconds=1, expected_version=0)
    assert caught.value.theirs == sent


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (GenerationWork(t.Annotation("none", single().pairs)), "'No answer' was chosen"),
        (GenerationWork(multiple("x", "y", question="who PLAYED part 0 ?")), "the prompt question"),
        (ValidationWork(single()), "takes GenerationWork"),
        (work(), "60 s at least"),
    ],
)
def test_what_the_checks_refuse_is_not_stored(store: Store, content: GenerationWork, words: str) -> None:
    parts = project(store, 1, thresholds={"must_read": 0, "min_seconds_no_pairs": 60})
    item = take(store, parts, "Ada").item
    with pytest.raises(InputError, match=words):
        store.submissions.submit(item, "Ada", "generation", content, seconds=59)
    assert store.maintenance.counts()["submission"] == 0
    assert store.submissions.submit(item, "Ada", "generation", work(), seconds=60).counted


def test_people_see_their_own_annotation_beside_the_final_one(store: Store) -> None:
    parts = project(store, 2, annotators_per_item=2, stages=("generation", "validation"))
    item = do(store, parts, "Ada", "Wood", "Zegler").item
    do(store, parts, "Bob", "wood")
    assert take(store, parts, "Vera", "validation").item == item
    shown = store.reviews.validation_input(item, "Vera")
    assert [name for name, _ in shown.annotations] == ["Ada", "Bob"]
    assert store.reviews.mine_and_final(item, "Bob").final is None
    final = multiple("Wood", "Zegler")
    validate(store, item, "Vera", final, note="both films")
    review = store.reviews.mine_and_final(item, "Bob")
    assert (review.mine, review.final, review.note, review.automatic) == (single("wood"), final, "both films", False)
    with pytest.raises(InputError, match="nothing of yours"):
        store.reviews.mine_and_final(item, "Cleo")
    (submission,) = store.submissions.submissions(parts.id, "Mia", stage="validation")
    assert submission.content.sources == (("Ada", 1), ("Bob", 1))


def test_identical_annotations_are_validated_by_themselves(store: Store) -> None:
    parts = project(store, 1, annotators_per_item=2, stages=("generation", "validation"))
    item = do(store, parts, "Ada", "Wood", "Zegler").item
    do(store, parts, "Bob", "Zegler", "Wood")
    validations = store.submissions.submissions(parts.id, "Mia", stage="validation")
    assert [(s.annotator, s.automatic, s.counted) for s in validations] == [("automatic validation", True, True)]
    assert states(store, parts, "validation") == ["done"]
    assert store.reviews.mine_and_final(item, "Ada").automatic
    with pytest.raises(InputError, match="could be returned"):  # to nobody: no person could take the item any more
        store.returns.return_item(item, "automatic validation", "validation", "no", by="Mia")
    store.submissions.submit(item, "Bob", "generation", work("Wood"), seconds=1)  # and not any more
    assert states(store, parts, "validation") == ["open"]
    assert store.submissions.submissions(parts.id, "Mia", stage="validation") == []
    store.returns.undo(item, "Bob", "generation")
    assert states(store, parts, "validation") == ["done"]
    assert [p.name for p in store.people.people("Mia")] == ["Mia", "Ada", "Bob"]


def test_numbers_that_a_sign_tells_apart_are_validated(store: Store) -> None:
    parts = project(store, 2, annotators_per_item=2, stages=("generation", "validation"))
    for answers in (("1.5 million", "15 million"), ("10,000", "10000")):
        for name, answer in zip(("Ada", "Bob"), answers, strict=True):
            do(store, parts, name, answer)
    assert sorted(states(store, parts, "validation")) == ["done", "open"]


def test_annotations_that_change_while_they_are_validated_are_a_conflict(store: Store) -> None:
    parts = project(store, 1, annotators_per_item=2, stages=("generation", "validation"))
    item = do(store, parts, "Ada", "x").item
    do(store, parts, "Bob", "y")
    take(store, parts, "Vera", "validation")
    shown = store.reviews.validation_input(item, "Vera")
    store.submissions.submit(item, "Bob", "generation", work("z"), seconds=1)
    with pytest.raises(SourcesChangedError):
        store.submissions.submit(item, "Vera", "validation", ValidationWork(single("x"), sources=shown.sources), seconds=1)
    store.returns.return_item(item, "Bob", "generation", "look again", by="Vera")
    with pytest.raises(SourcesChangedError):
        store.submissions.submit(item, "Vera", "validation", ValidationWork(single("x")), seconds=1)


def test_validators_get_other_peoples_items_first(store: Store) -> None:
    parts = project(store, 2, stages=("generation", "validation"))
    mine = do(store, parts, "Vera", "x").item
    other = do(store, parts, "Ada", "y").item
    assert take(store, parts, "Vera", "validation").item == other
    validate(store, other, "Vera", single("y"))
    assert take(store, parts, "Vera", "validation").item == mine


def test_judging_is_blind_shuffled_and_stored_with_its_verdicts(store: Store) -> None:
    ids = {}
    for system, answers in (("fid", ["a", "b", "c"]), ("ambigprompt", ["x"])):
        ids[system] = store.predictions.save_prediction(prediction("Who played part 0?", answers, id="q0", system=system))
    parts = project(store, 2, stages=("judging",), systems=("fid", "ambigprompt"), annotators_per_item=20)
    orders = set()
    for number in range(12):
        name = f"p{number}"
        task = take(store, parts, name, "judging")
        sheet = store.reviews.judging_sheet(task.item, name)
        assert sheet == store.reviews.judging_sheet(task.item, name)  # a reload shows the same
        assert {s.name for s in sheet.sides} == {"a", "b"}
        assert not any(system in repr(sheet) for system in ids)
        assert [p.id for p in sheet.passages] == ["p1", "p2"]
        orders.add(tuple(tuple(a.text for a in side.answers) for side in sheet.sides))
        sent = store.submissions.submit(task.item, name, "judging", judge_all(sheet, preference="a"), seconds=3)
        assert sent.content.preferred == sheet.sides[0].prediction_id
    assert len(orders) > 3
    assert store.queue.next_item(parts.id, "p0", "judging") is None  # the other item has no predictions
    assert store.maintenance.counts()["judgment"] == 0
    assert len(store.labels.judgments(ids["fid"])) == 12 * 3
    assert {j.verdict for j in store.labels.judgments(ids["fid"], "p3")} == {"correct"}


def test_judging_must_be_complete(store: Store) -> None:
    store.predictions.save_prediction(prediction("Who played part 0?", ["a", "b"], id="q0", system="fid"))
    other = store.predictions.save_prediction(prediction("Something else?", ["a"]))
    parts = project(store, 1, stages=("judging",), systems=("fid",))
    item = take(store, parts, "Ada", "judging").item
    whole = judge_all(store.reviews.judging_sheet(item, "Ada"), missing=(MissingAnswer("c", ("see",)),), note="n")
    first, second = whole.answers
    for wrong, words in (
        (replace(whole, answers=(first,)), "1 of 2 answers"),
        (replace(whole, answers=(first, first)), "twice"),
        (replace(whole, answers=(first, replace(second, question=None))), "judge it too"),
        (replace(whole, answers=(*whole.answers, replace(first, prediction_id=other))), "not part of this item"),
        (replace(whole, preference="a"), "one answer set only"),
        (replace(whole, missing=(MissingAnswer(" "),)), "empty"),
        (replace(whole, missing=(MissingAnswer("c"), MissingAnswer("The C"))), "twice"),
    ):
        with pytest.raises(InputError, match=words):
            store.submissions.submit(item, "Ada", "judging", wrong, seconds=1)
    assert store.submissions.submit(item, "Ada", "judging", whole, seconds=1).counted


def test_items_that_nobody_can_judge_yet(store: Store) -> None:
    parts = project(store, 2, stages=("judging",), systems=("fid",))
    first, second = store.items.items(parts.id, "Mia", stage="judging")
    assert store.intake.unanswered("Mia", parts.id) == {first.id, second.id}
    store.intake.save_for_item("Mia", first.id, prediction(first.question, ["a"], id="q0", system="fid"))
    assert store.intake.unanswered("Mia", parts.id) == {second.id}
    assert store.intake.unanswered("Mia", parts.id, [first.id]) == frozenset()


def test_other_systems_are_judged_where_nobody_has_begun(store: Store) -> None:
    for number, system in ((0, "fid"), (1, "fid"), (0, "rac"), (1, "rac")):
        store.predictions.save_prediction(prediction(f"Who played part {number}?", ["a"], id=f"q{number}", system=system))
    parts = project(store, 2, stages=("judging",), systems=("fid",))
    begun = take(store, parts, "Ada", "judging").item
    store.projects.update_project("Mia", parts.id, 1, systems=("rac",))
    items = [i.id for i in store.items.items(parts.id, "Mia", stage="judging")]
    assert store.intake.unanswered("Mia", parts.id) == set(items) - {begun}
    store.intake.link_predictions("Mia", parts.id)
    linked = {i: [p.system for p in store.items.get_item(i, "Mia").predictions] for i in items}
    assert linked == {i: ["fid" if i == begun else "rac"] for i in items}


def test_the_same_systems_in_another_order_are_linked_once(store: Store) -> None:
    store.predictions.save_prediction(prediction("Who played part 0?", ["a"], id="q0", system="fid"))
    parts = project(store, 1, stages=("judging",), systems=("fid", "rac"))
    store.projects.update_project("Mia", parts.id, 1, systems=("rac", "fid"))
    assert store.intake.link_predictions("Mia", parts.id) == 0
    store.predictions.save_prediction(prediction("Who played part 0?", ["b"], id="q0", system="rac"))
    assert store.intake.link_predictions("Mia", parts.id) == 1
    item = take(store, parts, "Ada", "judging").item
    work = judge_all(store.reviews.judging_sheet(item, "Ada"), preference="tie")
    assert store.submissions.submit(item, "Ada", "judging", work, seconds=1).counted


# ---------------------------------------------------------------- a system's answers


def test_an_answer_is_linked_with_its_saving_and_nothing_else_is_looked_at(store: Store) -> None:
    parts = project(store, 3, systems=("ambigprompt", "fid"), order="uncertainty")
    first, second, _ = store.items.items(parts.id, "Mia", stage="generation")
    answer = prediction(first.question, ["Ann"], id="q0", system="fid")
    other = store.predictions.save_prediction(prediction(second.question, ["Ben"], id="q1", system="fid"))  # not linked yet
    assert store.intake.save_for_item("Mia", first.id, answer, key="run-1") is True
    assert store.intake.save_for_item("Mia", first.id, answer, key="run-1") is False  # again: nothing new
    assert store.intake.save_for_item("Mia", first.id, prediction(first.question, ["Eve"], id="q0", system="fid")) is False
    (linked,) = store.items.get_item(first.id, "Mia").predictions
    assert (linked.system, store.predictions.get_prediction(linked.prediction_id).prediction.answers[0].text) == ("fid", "Ann")
    assert not store.items.get_item(second.id, "Mia").predictions
    assert store.items.items(parts.id, "Mia", stage="generation")[0].margin is not None  # its place in the queue is computed
    activities = store.people.activity("Mia", action="predictions linked")
    assert [(a.details["item"], a.details["linked"]) for a in activities] == [(first.id, 1)]
    before = store.maintenance.counts()["prediction"]
    for wrong, words in (
        (prediction(second.question, id="q1", system="fid"), "another question"),
        (prediction(first.question, id="q0", system="rac"), "no system of the project"),
    ):
        with pytest.raises(InputError, match=words):
            store.intake.save_for_item("Mia", first.id, wrong)
    with pytest.raises(ConflictError, match="another run"):
        store.intake.save_for_item("Mia", second.id, prediction(second.question, id="q1", system="fid"), key="run-1")
    assert store.maintenance.counts()["prediction"] == before  # nothing half stored
    assert store.intake.link_predictions("Mia", parts.id) == 1
    assert store.items.get_item(second.id, "Mia").predictions[0].prediction_id == other


def answering(
    store: Store, parts: Project, asked: Callable[[t.Question], object], system: str = "fid", **options: Any
) -> Answering:
    """A run of a system that finds no answer; `asked` hears each question."""

    class System:
        info = t.SystemInfo("fid")

        def run(self, question: t.Question) -> Iterator[t.Event]:
            asked(question)
            yield t.Finished(0.1, "eoi")

    return Answering(store, parts, system, "Mia", lambda own: System(), **options)


def test_each_item_has_its_answer_while_the_next_one_is_asked(store: Store) -> None:
    parts = project(store, 4, systems=("fid",))
    items = store.items.items(parts.id, "Mia", stage="generation")
    answered: list[int] = []

    def asked(question: t.Question) -> None:
        answered.append(sum(bool(store.items.get_item(i.id, "Mia").predictions) for i in items))
        if question.id == "q1":
            raise InputError("it cannot be read")

    run = answering(store, parts, asked, limit=3)
    run.answer_items()
    assert answered == [0, 1, 1]
    assert (run.total, run.answered, run.linked, run.failures, run.part) == (3, 2, 2, 1, 1.0)
    assert run.failed == [("Who played part 1?", "it cannot be read")]
    again = answering(store, parts, asked)
    with pytest.raises(CancelledError, match="kept"):
        again.answer_items(stopping=lambda: again.answered + again.failures == 1)
    assert again.total == 2  # the one that failed, and the one beyond the limit


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"system": "rac"}, r"no system of the project parts \(fid\)"),
        ({"limit": 0}, "at least 1"),
        ({"batch": 0}, "the batch is 0"),
    ],
)
def test_wrong_runs_are_refused(store: Store, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        answering(store, project(store, 1, systems=("fid",)), print, **options)


def test_items_are_answered_several_at_a_time(store: Store) -> None:
    parts = project(store, 5, systems=("fid",))
    meeting = threading.Barrier(2)
    run = answering(store, parts, lambda question: question.id in ("q0", "q1") and meeting.wait(60), batch=2)
    run.answer_items()
    assert (run.total, run.answered, run.failures) == (5, 5, 0)


def test_a_system_taken_out_of_the_project_ends_the_run_and_loses_no_answer(store: Store) -> None:
    parts = project(store, 3, systems=("fid",))
    texts: list[str] = []

    def asked(question: t.Question) -> None:
        texts.append(question.text)
        if len(texts) == 2:
            store.projects.update_project("Mia", parts.id, store.projects.get_project(parts.id).version, systems=())

    run = answering(store, parts, asked)
    with pytest.raises(InputError, match="no system of the project"):
        run.answer_items()
    assert (len(texts), run.answered, run.failures) == (2, 1, 0)
    assert {p.question for p in store.predictions.recent_predictions()} == set(texts)
