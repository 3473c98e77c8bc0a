"""The quality page: what it says of an empty store, a journey from judgments to a snapshot, and retraining with a stand-in."""

from __future__ import annotations

from typing import Any

import pytest
from annotate_helpers import make_project, predict
from annotation_samples import do
from page_helpers import QUESTION, Open, button, ended, texts
from storage_samples import annotate

from core import types as t
from core.errors import AmbiscopeError
from core.metrics.significance.compare import compare_values
from core.settings import Settings
from pages.quality import tables
from pages.session import retraining
from pages.session.snapshots import summary
from storage.analysis.agreement import quality
from storage.analysis.retraining import Retrained
from storage.store import Store

PAIRS = (t.QAPair("Who played her in 1961?", ("Natalie Wood",)), t.QAPair("Who played her in 2021?", ("Rachel Zegler",)))


def fill(store: Store) -> None:
    saved = store.predictions.save_prediction(predict(QUESTION))
    question = store.predictions.get_prediction(saved).question_id
    for person, verdicts in (("Ada", ("correct", "correct", "wrong")), ("Bob", ("correct", "wrong", "wrong"))):
        for position, verdict in enumerate(verdicts):
            store.labels.judge(saved, position, person, verdict)  # type: ignore[arg-type]
    annotate(store, question, "Ada", t.Annotation("multiple", PAIRS))
    annotate(store, question, "Bob", t.Annotation("single", PAIRS[:1]))
    other = store.predictions.save_prediction(predict("Where?", ("Paris",)))
    for person in ("Ada", "Bob"):
        annotate(store, store.predictions.get_prediction(other).question_id, person, t.Annotation("none"))


def test_without_own_work_an_example_is_shown_and_says_so(open_app: Open, store: Store) -> None:
    app = open_app("quality")
    assert not app.exception
    assert "This is an example" in texts(app)
    assert "There is no snapshot yet." in texts(app)
    assert set(app.dataframe[0].value["Value"]) != {"undefined"}
    counts = store.maintenance.counts()
    assert not any(counts[table] for table in ("annotator", "question", "prediction"))
    app.selectbox(key="quality.project").set_value("").run()
    assert not app.exception


def test_one_persons_work_is_told_apart_from_zero(open_app: Open, store: Store) -> None:
    key = store.predictions.save_prediction(predict(QUESTION))
    store.labels.judge(key, 0, "me", "correct")
    app = open_app("quality")
    assert not app.exception
    assert "This is an example" not in texts(app)
    assert "No question has been annotated by two people yet." in texts(app)
    shown = app.toggle(key="quality.example.show").set_value(True).run()
    assert not shown.exception
    assert "This is an example" in texts(shown)
    app.toggle(key="quality.example.show").set_value(False).run()
    overall = app.dataframe[0].value
    assert set(overall["Value"]) == {"undefined"}
    assert all(overall["Why undefined"])


def test_from_judgments_to_a_snapshot(open_app: Open, store: Store, settings: Settings) -> None:
    fill(store)
    app = open_app("quality")
    assert not app.exception
    overall = {row["Measure"]: row for row in app.dataframe[0].value.to_dict("records")}
    assert (overall["answer F1"]["n"], overall["answer F1"]["Value"]) == (2, "83.3")  # 2/3 and 1
    assert overall["kappa of labels"]["n"] == 3
    app.text_input(key="quality.snapshot.note").set_value("first round")
    app.checkbox(key="quality.snapshot.pseudonyms").set_value(True)
    ended(button(app, "Take snapshot").click().run(), "snapshots")
    assert "Snapshot 1 was taken." in texts(app)
    (snapshot,) = store.exports.snapshots()
    assert (snapshot.note, snapshot.filters["pseudonyms"], snapshot.filters["answers"]) == ("first round", True, "final")
    files = store.exports.snapshot_files(1, settings.home / "snapshots")
    assert "Ada" not in files["csv"].read_text(encoding="utf-8-sig")
    app.multiselect(key="quality.people").set_value(["Ada"]).run()
    assert not app.exception
    assert app.dataframe[0].value.set_index("Measure").loc["answer F1", "Value"] == "undefined"


def test_a_snapshot_of_all_contributions_and_what_a_final_one_leaves_out(open_app: Open, store: Store) -> None:
    project = make_project(store, stages=("generation", "validation"), thresholds={"must_read": 0})
    do(store, project, "Ada", "Carol")
    app = open_app("manage")
    app.segmented_control(key="manage.section").set_value("Export").run()
    for number, answers in enumerate(("final", "all"), 1):
        app.segmented_control(key="quality.snapshot.answers").set_value(answers)
        ended(button(app, "Take snapshot").click().run(), "snapshots")
        assert f"Snapshot {number} was taken." in texts(app)
    everything, final = store.exports.snapshots()
    assert (final.filters["answers"], everything.filters["answers"]) == ("final", "all")
    assert final.counts["ambignq"]["items_waiting_for_validation"] == final.counts["ambignq"]["items_unfinished"] == 1
    assert summary(final).endswith("Left out: 1 unfinished, 1 waiting for validation.")
    assert (everything.counts["csv"]["generation"], everything.counts["ambignq"]["annotations"]) == (1, 1)


def test_days_are_drawn(open_app: Open, store: Store) -> None:
    project = make_project(store, thresholds={"must_read": 0})
    do(store, project, "Ada", "Carol")
    app = open_app("quality")
    app.selectbox(key="quality.project").set_value(project.id).run()
    for measure in tables.DAY_MEASURES:
        app.segmented_control(key="quality.days.measure").set_value(measure).run()
        assert not app.exception
    (row,) = next(shown.value for shown in app.dataframe if "Minutes" in shown.value).to_dict("records")
    assert (row["Person"], row["Items"]) == ("Ada", 1)


def test_a_snapshot_without_its_files_hides_nothing_else(open_app: Open, store: Store, settings: Settings) -> None:
    fill(store)
    folder = settings.home / "snapshots"
    for _ in range(2):
        store.exports.take_snapshot(folder)
    (folder / "0002").rename(folder / "elsewhere")
    app = open_app("quality")
    assert not app.exception
    assert any("0002" in str(e.value) for e in app.error)
    assert [s.value for s in app.subheader] == ["Snapshots", "Retraining"]
    assert app.number_input(key="quality.retraining.minutes").value
    app.selectbox(key="quality.snapshot.number").set_value(1).run()
    assert not app.error


def test_tables_of_the_page(store: Store) -> None:
    fill(store)
    report = quality(store, "me", samples=20)
    (row,) = tables.systems(report)
    assert (row["System"], row["wrong"], row["missing answers"]) == ("scripted", 1, 0)  # a tie is nobody's word
    assert {item["Question"] for item in tables.items(report)} == {QUESTION, "Where?"}
    assert tables.periods_chart(report) is None  # one period is no line
    assert tables.systems_chart(report) is not None
    assert tables.types_chart(report) is not None
    assert tables.pairs(report)[0]["Other person"] == "Bob"


def test_retraining_from_the_page(open_app: Open, store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(store)
    begun: list[tuple[int, float]] = []

    def stand_in(_store: Store, _settings: Settings, snapshot: int, minutes: float, progress: Any) -> Retrained:
        begun.append((snapshot, minutes))
        progress("training", 0.5)
        if len(begun) == 1:
            raise AmbiscopeError("train failed (exit 1): no room")
        difference = compare_values([0.5, 0.6, 0.7], [0.4, 0.4, 0.4], samples=50)
        return Retrained(snapshot, 7, "/weights/best", "a", "b", "better", difference)

    monkeypatch.setattr(retraining, "retrain", stand_in)
    app = open_app("quality")
    app.number_input(key="quality.retraining.minutes").set_value(5)
    ended(button(app, "Train and evaluate").click().run(), "trainings")
    assert "no room" in texts(app)
    ended(button(app, "Resume").click().run(), "trainings")
    assert "The new model is better" in texts(app)
    assert begun == [(1, 5.0), (1, 5.0)]  # with the snapshot that was taken
    button(app, "Dismiss").click().run()
    assert "The new model is better" not in texts(app)
    app.selectbox(key="quality.retraining.snapshot").set_value(1)
    ended(button(app, "Train and evaluate").click().run(), "trainings")
    assert (begun[2:], len(store.exports.snapshots())) == ([(1, 5.0)], 1)
