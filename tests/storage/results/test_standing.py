"""The contribution that counts if somebody made several: in two projects, in a project and on Explore, withdrawn."""

from __future__ import annotations

from pathlib import Path

from annotation_samples import judge_all, multiple, project, single, take, work
from sqlalchemy import select
from storage_samples import annotate, earlier_labels, prediction

from core import types as t
from storage.records.projects import Project
from storage.results.standing import annotated, labelled, submitted
from storage.schema import tables
from storage.store import Store


def standing(store: Store) -> dict[str, t.Annotation]:
    """Annotator -> the annotation that counts, of the only question."""
    with store.database.reading() as session:
        (question,) = session.scalars(select(tables.Question.id))
        return {a.annotator: a.annotation for a in annotated(session, [question], submitted(session, [question]))}


def send(store: Store, parts: Project, *answers: str) -> str:
    item = store.items.items(parts.id, "Mia", stage="generation")[0].id
    store.queue.claim_item(item, "Ada", "generation")
    store.submissions.submit(item, "Ada", "generation", work(*answers), seconds=5)
    return item


def test_of_two_projects_the_latest_submission_counts(store: Store) -> None:
    first, second = project(store, 1, name="first"), project(store, 1, name="second")
    one = send(store, first, "x")
    other = send(store, second, "y", "z")
    assert standing(store) == {"Ada": multiple("y", "z")}
    send(store, first, "w")
    assert standing(store) == {"Ada": single("w")}
    store.returns.return_item(one, "Ada", "generation", "no", by="Vera")
    assert standing(store) == {"Ada": multiple("y", "z")}  # returned work does not count, the other still does
    store.returns.undo(other, "Ada", "generation")
    assert standing(store) == {}


def test_of_a_file_and_a_project_the_latest_counts(store: Store) -> None:
    parts = project(store, 1)
    annotate(store, "q0", "Ada", single("filed"))
    assert standing(store) == {"Ada": single("filed")}
    item = send(store, parts, "x")
    assert standing(store) == {"Ada": single("x")}
    store.returns.return_item(item, "Ada", "generation", "no", by="Vera")
    assert standing(store) == {"Ada": single("filed")}


def judging(store: Store) -> tuple[str, str]:
    """Ada holds both answers of a prediction correct in a project: (item, prediction)."""
    saved = store.predictions.save_prediction(prediction("Who played part 0?", ["a", "b"], id="q0", system="fid"))
    parts = project(store, 1, stages=("judging",), systems=("fid",))
    item = take(store, parts, "Ada", "judging").item
    store.submissions.submit(item, "Ada", "judging", judge_all(store.reviews.judging_sheet(item, "Ada")), seconds=5)
    return item, saved


def labels_of(store: Store, saved: str) -> list[str | None]:
    return [j.verdict for j in store.labels.judgments(saved, "Ada")]


def test_of_explore_and_a_project_the_latest_counts(store: Store, tmp_path: Path) -> None:
    item, saved = judging(store)
    assert labels_of(store, saved) == ["correct", "correct"]
    shown = store.labels.judgments(saved, "Ada")[0]
    assert store.labels.judge(saved, 0, "Ada", "correct", expected_version=7) == shown  # equal: nothing is stored
    assert store.maintenance.counts()["judgment"] == 0
    changed = store.labels.judge(saved, 0, "Ada", "wrong", expected_version=shown.version)
    assert labels_of(store, saved) == ["wrong", "correct"]
    assert changed == store.labels.judgments(saved, "Ada")[0]
    assert store.labels.judge(saved, 0, "Ada", "duplicate", "twice") == store.labels.judgments(saved, "Ada")[0]
    store.labels.judge(saved, 0, "Ada", "wrong")
    assert store.exports.export("csv", tmp_path / "x.csv").counts["judging"] == 2
    sheet = judge_all(store.reviews.judging_sheet(item, "Ada"), "duplicate")
    store.submissions.submit(item, "Ada", "judging", sheet, seconds=1)
    assert labels_of(store, saved) == ["duplicate", "duplicate"]
    store.returns.return_item(item, "Ada", "judging", "again", by="Vera")
    assert labels_of(store, saved) == ["wrong"]


def test_a_label_of_a_project_is_taken_back_on_explore(store: Store) -> None:
    _, saved = judging(store)
    version = store.labels.judgments(saved, "Ada")[0].version
    assert store.labels.clear_judgment(saved, 0, "Ada", expected_version=version)
    assert labels_of(store, saved) == ["correct"]
    assert [(r.verdict, r.cleared) for r in earlier_labels(store, saved, 0, "Ada")] == [("correct", True)]
    assert not store.labels.clear_judgment(saved, 0, "Ada")
    store.labels.judge(saved, 1, "Ada", None, "not sure", "draft")
    assert [(j.position, j.state) for j in store.labels.judgments(saved, "Ada")] == [(1, "draft")]
    with store.database.reading() as session:
        (question,) = session.scalars(select(tables.Question.id))
        assert not [label for label in labelled(session, [question], submitted(session, [question])) if label.counts]
    store.labels.judge(saved, 0, "Ada", "wrong", expected_version=0)
    assert labels_of(store, saved) == ["wrong", None]
