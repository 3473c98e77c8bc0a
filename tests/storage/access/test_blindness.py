"""One rule decides who may see whose labels, comments and runs, through a session as a page has it."""

from __future__ import annotations

import pytest
from annotation_samples import judge_all, project, take
from storage_samples import prediction

from core.errors import InputError
from storage.access.blindness import BlindError
from storage.access.sign_ins import Visitor
from storage.records.projects import Project
from storage.store import SessionStore, Store

PASSWORD = "a long password"


@pytest.fixture
def run(store: Store, quick_hashes: None) -> str:
    """A prediction of one system, which Ann and Ben judge blind; Mia manages."""
    store.people.add_person("Mia", "Mia", "manager", PASSWORD)
    for name in ("Ann", "Ben"):
        store.people.add_person("Mia", name, "annotator", PASSWORD)
    return store.predictions.save_prediction(prediction("Who played part 0?", ["a", "b"], id="q0", system="fid"))


@pytest.fixture
def blind(store: Store, run: str) -> Project:
    return project(store, 1, stages=("judging",), systems=("fid",), annotators_per_item=2)


def through(store: Store, name: str) -> SessionStore:
    visitor: Visitor = store.people.sign_in(name, PASSWORD)
    return SessionStore(store, lambda: visitor)


def judge(store: Store, parts: Project, name: str) -> str:
    item = take(store, parts, name, "judging").item
    store.submissions.submit(item, name, "judging", judge_all(store.reviews.judging_sheet(item, name)), seconds=1)
    return item


def people(store: SessionStore, run: str) -> set[str]:
    return {judgment.annotator for judgment in store.labels.judgments(run)}


def test_a_blind_judge_learns_neither_labels_nor_systems(store: Store, run: str, blind: Project) -> None:
    judge(store, blind, "Ben")
    ann = through(store, "Ann")
    for _ in ("before it is opened", "while it is open"):
        assert people(ann, run) == set()
        assert ann.predictions.recent_predictions() == []
        with pytest.raises(BlindError) as refused:
            ann.predictions.get_prediction(run)
        assert not refused.value.can_show
        item = take(store, blind, "Ann", "judging").item
    assert [link.system for link in ann.items.get_item(item, "Ann").predictions] == [""]
    assert ann.items.passages_read(item, "Ann")
    with pytest.raises(InputError, match="finish your own work"):
        ann.blindness.show_prediction(run, "Ann")

    judge(store, blind, "Ann")
    assert people(ann, run) == {"Ann"}
    with pytest.raises(BlindError) as refused:
        ann.predictions.get_prediction(run)
    assert refused.value.can_show
    ann.blindness.show_prediction(run, "Ann")
    assert people(ann, run) == {"Ann", "Ben"}
    assert ann.predictions.get_prediction(run).prediction.system.name == "fid"
    with pytest.raises(InputError, match="you have seen"):
        ann.returns.undo(item, "Ann", "judging")
    with pytest.raises(InputError, match="you have seen"):
        ann.labels.judge(run, 0, "Ann", "wrong")  # a label of Explore would count in place of the judging
    with pytest.raises(InputError, match="you have seen"):
        ann.labels.clear_judgment(run, 0, "Ann")


def test_a_manager_is_blind_while_the_item_is_open(store: Store, run: str, blind: Project) -> None:
    item = judge(store, blind, "Ben")
    mia = through(store, "Mia")
    assert people(mia, run) == {"Ben"}
    take(store, blind, "Mia", "judging")
    assert people(mia, run) == set()
    assert mia.submissions.submissions(blind.id, "Mia") == []
    with pytest.raises(InputError):
        mia.submissions.submission_history(item, "Ben", "judging", "Mia")
    with pytest.raises(BlindError):
        mia.predictions.get_prediction(run)
    mia.queue.release_item(item, "Mia", "judging")
    assert people(mia, run) == {"Ben"}
    assert len(mia.submissions.submissions(blind.id, "Mia")) == 1


def test_labels_are_hidden_while_the_same_question_is_to_be_written(store: Store, run: str) -> None:
    project(store, 1, annotators_per_item=2)
    store.labels.judge(run, 0, "Ben", "correct")
    ann = through(store, "Ann")
    assert people(ann, run) == set()
    ann.labels.judge(run, 1, "Ann", "wrong")
    assert people(ann, run) == {"Ann"}
    assert ann.predictions.get_prediction(run)  # its system is no secret: nobody judges it
    assert people(through(store, "Mia"), run) == {"Ann", "Ben"}


def test_a_question_that_is_in_no_project_hides_nothing(store: Store, run: str) -> None:
    store.labels.judge(run, 0, "Ben", "correct")
    assert people(through(store, "Ann"), run) == {"Ben"}
