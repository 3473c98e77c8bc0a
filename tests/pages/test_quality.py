"""The quality page: what it says of an empty store, a journey from judgments to a snapshot, and the loop with a stand-in."""

from __future__ import annotations

from typing import Any

import pytest
from annotate_helpers import predict
from page_helpers import QUESTION, Open, button, ended, texts
from storage_samples import annotate

from core import types as t
from core.errors import AmbiscopeError
from core.settings import Settings
from pages.quality import tables, training_loop
from storage.analysis.agreement import quality
from storage.analysis.loop import Difference, LoopOptions, LoopResult
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
    assert (snapshot.note, snapshot.filters["pseudonyms"]) == ("first round", True)
    files = store.exports.snapshot_files(1, settings.home / "snapshots")
    assert "Ada" not in files["csv"].read_text(encoding="utf-8-sig")
    app.multiselect(key="quality.people").set_value(["Ada"]).run()
    assert not app.exception
    assert app.dataframe[0].value.set_index("Measure").loc["answer F1", "Value"] == "undefined"


def test_a_snapshot_without_its_files_hides_nothing_else(open_app: Open, store: Store, settings: Settings) -> None:
    fill(store)
    folder = settings.home / "snapshots"
    for _ in range(2):
        store.exports.take_snapshot(folder)
    (folder / "0002").rename(folder / "elsewhere")
    app = open_app("quality")
    assert not app.exception
    assert any("0002" in str(e.value) for e in app.error)
    assert [s.value for s in app.subheader] == ["Snapshots", "Training loop"]
    assert app.text_input(key="quality.loop.name").value
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


def test_the_loop_button(open_app: Open, store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(store)
    loops: list[LoopOptions] = []

    def stand_in(_store: Store, _settings: Settings, options: LoopOptions, *, progress: Any) -> LoopResult:
        loops.append(options)
        progress("training: step 3", 0.5)
        if options.out.name == "loop-broken":
            raise AmbiscopeError("train answerer failed (exit 1): no room")
        d = Difference("F1 answer", 0.4, 0.5, 40, 0.1, (0.02, 0.18), 0.01)
        return LoopResult(1, "/weights/best", "a", "b", "better", (d,), 40, 2, 7)

    monkeypatch.setattr(training_loop, "run_loop", stand_in)
    app = open_app("quality")
    app.text_input(key="quality.loop.name").set_value("../not a name")
    button(app, "Train and evaluate").click().run()
    assert "is not a valid name" in texts(app)
    for name, outcome in (
        ("broken", "no room"),
        ("first", "The new model is better"),
        ("loop-first", "The new model is better"),
    ):
        app.text_input(key="quality.loop.name").set_value(name)
        app.number_input(key="quality.loop.minutes").set_value(5)
        ended(button(app, "Train and evaluate").click().run(), "loops")
        assert outcome in texts(app)
        button(app, "Dismiss").click().run()
        assert outcome not in texts(app)
    assert (loops[1].out, loops[1].minutes, loops[1].steps) == (settings.runs_dir / "loop-first", 5.0, None)
    assert loops[2] == loops[1]  # by the name that its job had
