"""The evaluate page: empty, with one run, with many; starting, stopping and going on; comparing; charts and their data."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from annotate_helpers import fine
from page_helpers import ANSWERS, QUESTION, Open, button, ended, texts
from storage_samples import evaluation_report, save_report
from streamlit.testing.v1 import AppTest

from core import trace
from core import types as t
from core.errors import InputError
from core.evaluation import run as evaluation_run
from core.evaluation.plan import EvaluationPlan
from core.evaluation.published import published
from core.metrics.errors import BUCKETS
from core.settings import Settings
from pages.evaluate import compare, start_form
from pages.evaluate.charts import CHARTS, RELIABILITY, UNRANKED, ChartRequest
from pages.evaluate.data import VIEWS, names
from pages.session import run_source
from pages.session.background import jobs_of
from pages.ui import charts as drawing
from pages.ui.tables import csv
from storage.access.preferences import Preferences
from storage.store import Store

METRICS = ("F1 answer", "precision", "recall", "answers", "reference answers", "G-F1", "R@1", "R@10", "MRecall@10")


def save(store: Store, system: str = "fid", level: float = 0.5, *, label: str = "", **tags: Any) -> str:
    """A run of six questions, the last of which failed; the first has a trace."""
    values = (*(level + 0.05 * (number % 3) for number in range(5)), None)
    report = evaluation_report(
        values,
        system={"name": system, "checkpoint": "default", "checkpoint_digest": "ab" * 32},
        tags={name.replace("_", " "): value for name, value in tags.items()},
    )
    for number, (row, value) in enumerate(zip(report["rows"], values, strict=True)):
        row |= {"question": f"Question *{number}* of <b>bold</b>?", "references": [[["Rome", "Roma"], ["Oslo"]]]}
        row |= {"ambiguity": "properties" if number % 2 else None}
        if value is not None:
            row |= {"metrics": dict.fromkeys(METRICS, value), "errors": dict.fromkeys(BUCKETS, number % 2)}
    mean = report["scores"]["F1 answer"]["all"]
    interval = [mean - 0.05, mean + 0.05]
    report["scores"] = {metric: {"all": mean, "multi": mean} for metric in METRICS}
    report["intervals"] = {metric: {"all": interval, "multi": interval} for metric in METRICS}
    report["summary"] = {
        "cost": {"retriever_calls": 1.0, "model_calls": 2.0, "seconds": 0.4, "model_seconds": 0.3},
        "judged": {"relevant and answerable": {"n": 4, "right": 3}},
        "reliability": {
            "answer": {"n": 5, "error": 0.12, "bins": [{"low": 0.4, "high": 0.5, "n": 5, "said": 0.48, "so": 0.6}]},
            "[EOI]": {"n": 2, "error": 0.2, "bins": [{"low": 0.8, "high": 0.9, "n": 2, "said": 0.8, "so": 1.0}]},
        },
    }
    passage = t.RetrievedPassage(t.Passage("p1", "Film", "Rome is old"), 1, 1.0)
    step = t.Step(1, (), "", (t.Candidate("Rome", 0.9),), t.Candidate("Rome", 0.9), 0.1, 0.1)
    events = (t.PassagesRetrieved((passage,), 0.1, "q"), t.StepFinished(step, t.Answer("Rome", 0.9)), t.Finished(0.2, "eoi"))
    traces = [("q0", trace.to_json(trace.fold(t.Question("Question 0?"), t.SystemInfo("fid"), events)))]
    return save_report(store, report, system=system, label=label, traces=traces)


def show(app: AppTest, view: str) -> AppTest:
    return app.segmented_control(key="evaluate.view").set_value(view).run()


def leaderboard(app: AppTest) -> pd.DataFrame:
    table: pd.DataFrame = next(d.value for d in app.dataframe if "#" in d.value)
    return table


def field(app: AppTest, start: str) -> Any:
    """The selection whose key begins so."""
    return next(s for s in app.selectbox if s.key and s.key.startswith(start))


# ---------------------------------------------------------------- empty, one, many


def test_an_empty_database_says_what_to_do(open_app: Open, settings: Settings) -> None:
    Preferences(settings.home).put("me", run_source.PREFERENCE, run_source.HIDDEN)
    app = fine(open_app("evaluate"))
    assert "No run is stored yet" in texts(app)
    for view in VIEWS:
        fine(show(app, view))
    assert "There are no run folders" in texts(app)


def test_one_run(open_app: Open, store: Store) -> None:
    save(store, label="_first_ <i>run</i>")
    app = fine(open_app("evaluate"))
    table = leaderboard(app)
    assert list(table["run"]) == ["_first_ <i>run</i>"]
    assert table["F1 answer"][0] == pytest.approx(54.0)
    assert (table["95% interval"][0], table["n"][0], table["failed"][0]) == ("49.0 to 59.0", 5, 1)
    assert "A comparison needs two stored runs" in texts(fine(show(app, "Two runs")))
    app = fine(show(app, "One run"))
    assert "Questions 1 to 6 of 6" in texts(app)
    field(app, "evaluate.bucket.").set_value("missed").run()
    assert "Questions 1 to 2 of 2" in texts(fine(app))
    field(app, "evaluate.bucket.").set_value("").run()
    field(app, "evaluate.question.").set_value("q0").run()
    shown = texts(fine(app))
    assert "Question *0* of <b>bold</b>?" in shown  # as text, no markup
    assert "References: Rome / Roma; Oslo" in shown
    assert "Finished after" in shown  # the trace
    field(app, "evaluate.question.").set_value("q5").run()
    assert "no passage matches" in [e.value for e in app.error]


def kinds(app: AppTest) -> list[str]:
    return app.selectbox(key="evaluate.kind").options


def test_every_chart_with_data_is_offered_and_drawn(open_app: Open, store: Store) -> None:
    for i in range(3):
        system, ablation = ("fid", "none") if i else ("ambigprompt", "prompt")
        save(store, system, 0.2 * i, label=f"run {i}", training_questions=10**i, ablation=ablation)
    app = fine(open_app("evaluate"))
    assert set(kinds(app)) == {chart.menu for chart in CHARTS}
    for kind in kinds(app):
        app = fine(app.selectbox(key="evaluate.kind").set_value(kind).run())
        assert len(app.get("plotly_chart")) >= 1, kind
        assert len(app.get("download_button")) >= 1, kind
    app = fine(app.selectbox(key="evaluate.scope").set_value("multi").run())
    app.multiselect(key="evaluate.drawn").set_value([]).run()
    assert not fine(app).get("plotly_chart")


def test_charts_without_their_data_are_not_offered(open_app: Open, store: Store) -> None:
    save(store, "one-pass")
    save(store, "a-system-that-is-gone")
    app = fine(open_app("evaluate"))
    absent = {"Training-set size", "Ablations", "Zero-shot and decoding"}
    assert not absent & set(kinds(app))
    assert all(name in app.selectbox(key="evaluate.kind").help for name in absent)


def test_the_filters_narrow_the_table(open_app: Open, store: Store) -> None:
    save(store, "fid", label="alpha")
    save(store, "one-pass", 0.2, label="beta")
    app = fine(open_app("evaluate"))
    assert list(leaderboard(app)["run"]) == ["alpha", "beta"]  # the best first
    app.text_input(key="evaluate.text").set_value("BET").run()
    assert list(leaderboard(fine(app))["run"]) == ["beta"]
    app.multiselect(key="evaluate.systems").set_value(["fid"]).run()
    assert "No stored run matches" in texts(fine(app))


def test_a_mechanism_only_has_no_place_and_stands_below_the_others(open_app: Open, store: Store) -> None:
    save(store, "spanseqgen", 0.9)
    save(store, "fid", 0.5)
    app = fine(open_app("evaluate"))
    board = leaderboard(app)
    assert list(board["run"]) == ["fid", "spanseqgen"]
    assert list(board["note"]) == ["", "mechanism only"]
    assert board["#"].notna().tolist() == [True, False]
    bars = json.loads(app.get("plotly_chart")[0].proto.spec)["data"]
    assert {name for bar in bars for name in bar["y"]} == {"fid", f"spanseqgen{UNRANKED}"}


def test_renaming_and_deleting_a_run(open_app: Open, store: Store) -> None:
    saved = save(store)
    app = show(fine(open_app("evaluate")), "One run")
    app.text_input(key=f"evaluate.label.{saved}").set_value("the best")
    button(app, "Rename").click().run()
    assert [e.label for e in store.evaluations.evaluations() if e.id == saved] == ["the best"]
    button(app, "Delete").click().run()
    assert "tick the box first" in app.error[0].value
    app.checkbox(key=f"evaluate.sure.{saved}").check()
    button(app, "Delete").click().run()
    assert store.evaluations.count_evaluations() == 0
    assert "was deleted from the database" in texts(fine(app))


# ---------------------------------------------------------------- two runs


def test_two_runs_with_significance_and_both_traces(open_app: Open, store: Store) -> None:
    save(store, "fid", 0.2, label="weak")
    save(store, "ambigprompt", 0.8, label="strong")
    app = fine(show(fine(open_app("evaluate")), "Two runs"))
    table = next(d.value for d in app.dataframe if "verdict" in d.value).set_index("metric")
    row = table.loc["F1 answer"]
    assert (row["A - B"], int(row["n"])) == ("+60.0", 5)
    assert float(row["p (permutation)"]) < 0.2
    assert float(row["p (Holm)"]) >= float(row["p (permutation)"])
    assert set(table["verdict"]) == {"not significant"}  # few questions, and many metrics
    assert "A is better on 5 questions and B on 0; 0 of 5 are equal" in texts(app)
    app.selectbox(key="evaluate.pair").set_value("q0").run()
    shown = texts(fine(app))
    assert shown.count("Finished after") == 2
    assert "A: strong" in shown
    assert "B: weak" in shown


def test_two_runs_opens_on_the_default_system_and_the_best_other_one(store: Store, settings: Settings) -> None:
    ids = {system: save(store, system, level) for system, level in (("one-pass", 0.2), ("fid", 0.6), (settings.system, 0.5))}
    newest = list(store.evaluations.evaluations())
    assert compare.default_pair(newest, "F1 answer", "all") == (ids[settings.system], ids["fid"])
    assert compare.default_pair(newest[1:], "F1 answer", "all") == (ids["fid"], ids["one-pass"])


def test_the_lower_brier_score_is_the_better_one(
    open_app: Open, store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("test_evaluate.METRICS", ("Brier", "answers"))
    monkeypatch.setattr(compare, "MAX_P_VALUE", 2.0)  # five questions
    ids = {name: save(store, name, level) for name, level in (("one-pass", 0.7), ("fid", 0.3), (settings.system, 0.5))}
    assert compare.default_pair(list(store.evaluations.evaluations()), "Brier", "all") == (ids[settings.system], ids["fid"])
    app = fine(open_app("evaluate"))
    app.selectbox(key="evaluate.metric").set_value("Brier").run()
    assert list(leaderboard(fine(app))["run"]) == ["fid", settings.system, "one-pass"]
    app = fine(show(app, "Two runs"))
    verdicts = next(d.value for d in app.dataframe if "verdict" in d.value).set_index("metric")
    assert verdicts.loc["Brier", "verdict"] == "B is better"
    assert verdicts.loc["answers", "verdict"] == "A is higher"  # neither more nor fewer is better
    assert "Brier: A is better on 0 questions and B on 5" in texts(app)


# ---------------------------------------------------------------- starting, stopping, storing


@pytest.fixture
def questions(settings: Settings) -> Path:
    path = settings.home / "questions" / "mine.jsonl"
    path.parent.mkdir(parents=True)
    rows = [{"id": f"m{i}", "question": QUESTION, "answers": [[a] for a in ANSWERS]} for i in range(3)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def begin(app: AppTest, name: str = "Uploaded: mine.jsonl", layout: str | None = None) -> AppTest:
    app = show(app, "Start and store")
    app.selectbox(key="evaluate.new.questions").set_value(name)
    app.selectbox(key="evaluate.new.layout").set_value(layout)
    app.text_input(key="evaluate.new.tags").set_value("ablation=none")
    return button(app, "Start evaluation").click().run()


def test_an_evaluation_is_started_watched_and_stored(open_app: Open, corpus: str, questions: Path, store: Store) -> None:
    app = fine(ended(begin(fine(open_app("evaluate"))), "evaluations"))
    assert "is stored: 3 questions" in texts(app)
    (run,) = store.evaluations.evaluations()
    assert (run.system, run.n, run.failed, run.questions, run.corpus) == ("scripted", 3, 0, "mine.jsonl", corpus)
    assert run.mean("F1 answer") == 1.0
    assert run.tags == {"ablation": "none"}
    assert store.evaluations.find_evaluation_trace(run.id, "m0") is not None
    button(app, "Dismiss").click().run()
    assert "is stored" not in texts(fine(app))
    button(app, "Store").click().run()  # its folder: it is stored already
    assert "already stored" in texts(fine(app))
    assert store.evaluations.count_evaluations() == 1


def test_failed_questions_are_told_and_a_run_of_nothing_else_is_an_error(
    open_app: Open, corpus: str, questions: Path, store: Store
) -> None:
    row = {"question": QUESTION, "answers": [[a] for a in ANSWERS]}
    questions.write_text("".join(json.dumps(row | {"id": i, "passages": []}) + "\n" for i in "ab"))
    app = ended(begin(fine(open_app("evaluate"))), "evaluations")
    assert app.error
    assert "every question failed; the first one: the question has an empty list of passages" in texts(app)
    assert store.evaluations.count_evaluations() == 0
    app = button(app, "Dismiss").click().run()
    questions.write_text(json.dumps(row | {"id": "a"}) + "\n" + json.dumps(row | {"id": "b", "passages": []}) + "\n")
    app = fine(ended(begin(app), "evaluations"))
    assert "is stored: 2 questions" in texts(app)
    assert "1 of 2 questions failed; the first one: the question has an empty list of passages" in texts(app)


def test_a_stopped_evaluation_goes_on_where_it_stopped(
    open_app: Open, corpus: str, questions: Path, store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    real = evaluation_run.run_one

    def run_one(system: Any, question: Any, *rest: Any) -> Any:
        asked.append(question.id)
        if asked == ["m0", "m1"]:
            next(iter(jobs_of("evaluations").values())).stop()
        return real(system, question, *rest)

    monkeypatch.setattr(evaluation_run, "run_one", run_one)
    app = ended(begin(fine(open_app("evaluate"))), "evaluations")
    assert "you can resume it" in texts(app)
    assert asked == ["m0", "m1"]
    assert store.evaluations.count_evaluations() == 0
    (folder,) = settings.runs_dir.iterdir()
    assert len((folder / "rows.jsonl").read_text().splitlines()) == 1
    assert "stopped after 1 of 3 questions" in texts(app)
    next(b for b in app.button if b.key and b.key.startswith("evaluate.again.")).click().run()
    assert "is stored: 3 questions" in texts(fine(ended(app, "evaluations")))
    assert asked == ["m0", "m1", "m1", "m2"]  # the one that was being asked, once more
    assert store.evaluations.count_evaluations() == 1


def test_a_wrong_question_file_is_named_before_anything_starts(open_app: Open, corpus: str, questions: Path) -> None:
    questions.write_text('{"question": "Who?", "answers": [["x"]]}\n{"question": "Who?", "answers": []}\n')
    app = begin(fine(open_app("evaluate")))
    assert "mine.jsonl, line 2, field 'answers'" in app.error[0].value.replace("\\", "")


def test_a_file_that_can_be_read_in_two_ways_is_started_with_its_layout(
    open_app: Open, corpus: str, questions: Path, store: Store
) -> None:
    flat = json.dumps({"question": QUESTION, "answers": ["Oslo", "Christiania"]}).encode()
    app = show(fine(open_app("evaluate")), "Start and store")
    for layout, refused in (None, True), ("one-answer", False):
        app.file_uploader(key="evaluate.upload.file").set_value([("flat.jsonl", flat, "application/json")])
        app.selectbox(key="evaluate.upload.layout").set_value(layout)
        button(app, "Save question file").click().run()
        assert bool(app.error) == refused
        app.run()
    app = begin(app, "Uploaded: flat.jsonl")
    assert app.error
    app = fine(ended(begin(app, "Uploaded: flat.jsonl", "web-questions"), "evaluations"))
    assert "is stored: 1 question" in texts(app)
    assert store.evaluations.count_evaluations() == 1


def test_uploads_are_checked(open_app: Open, settings: Settings, store: Store) -> None:
    app = show(fine(open_app("evaluate")), "Start and store")
    first, second = (b'{"question": "%s?", "answers": [["x"]]}\n' % word for word in (b"Who", b"When"))
    for name, body, words in (
        ("../a b.jsonl", first, "a_b.jsonl: 1 question saved"),
        ("a b.jsonl", second, "1 question saved"),  # beside the first: runs and their `Resume` name the file
        ("a b.jsonl", first, "a_b.jsonl: 1 question saved"),
        ("bad.jsonl", b"{}\n", "of the layouts ambignq"),
    ):
        app.file_uploader(key="evaluate.upload.file").set_value([(name, body, "application/json")])
        button(app, "Save question file").click().run()
        assert words in texts(app).replace("\\", "")
    folder = settings.home / "questions"
    assert sorted(p.read_bytes() for p in folder.iterdir()) == sorted((first, second))
    assert (folder / "a_b.jsonl").read_bytes() == first
    assert not list((settings.home / "uploads").iterdir())


# ---------------------------------------------------------------- parts


def test_csv_is_safe_to_open() -> None:
    text = csv(pd.DataFrame({"=run": ["=1+1", "@x", "fine"], "value": [-1.5, 2.0, None]})).decode("utf-8-sig")
    assert text.splitlines() == ["'=run,value", "'=1+1,-1.5", "'@x,2.0", "fine,"]


def test_names_are_distinct(store: Store) -> None:
    save(store, "fid")
    save(store, "fid", 0.1)
    run_names = set(names(store.evaluations.evaluations()).values())
    assert len(run_names) == 2
    assert all(re.fullmatch(r"fid #[0-9a-f]{4}", name) for name in run_names)


def test_runs_whose_names_begin_alike_are_drawn_apart(store: Store) -> None:
    for number in range(3):
        save(store, "fid", 0.1 * number, label="after training from a snapshot of the first round" + " again" * (number == 0))
    runs = store.evaluations.evaluations()
    request = ChartRequest(runs, runs, names(runs), "F1 answer", "all", store)
    bars = drawing.figure(CHARTS[0].draw, CHARTS[0].frame(request), **CHARTS[0].marks).data
    assert [len(set(bar.y)) for bar in bars] == [3, 3]


def test_tags_are_read() -> None:
    assert start_form.tags("") == {}
    for bad in ("a", "=1", "a="):
        with pytest.raises(InputError, match="has no value"):
            start_form.tags(bad)
    with pytest.raises(InputError, match="finite"):  # no run folder could hold it
        EvaluationPlan("asked.jsonl", tags=start_form.tags("note=nan"))


def test_the_published_figures_are_the_papers() -> None:
    tables = {table.id: table for table in published()}
    assert tables["sun2023-table2-ambignq"].value("AmbigPrompt", "F1 answer", "multi") == 0.388
    assert tables["sun2023-table2-webqsp"].value("Refuel", "F1 answer") is None
    for metric, value in (cell for table in tables.values() for row in table.values.values() for cell in row.items()):
        if value is not None and metric[0] not in ("interpretations", "parameters", "seconds", "memory GB"):
            assert 0 < value < 1


def test_the_reliability_diagram_has_a_line_for_all_that_a_run_gives_probabilities_of(store: Store) -> None:
    save(store)
    runs = store.evaluations.evaluations()
    frame = RELIABILITY.frame(ChartRequest(runs, runs, names(runs), "F1 answer", "all", store))
    assert frame["probability of"].tolist() == ["answer", "[EOI]"]
    assert frame["right"].tolist() == [0.6, 1.0]
    assert (frame["calibration error"] < frame["by chance up to"]).tolist() == [True, True]
    assert len(drawing.figure(RELIABILITY.draw, frame, layout=RELIABILITY.layout, **RELIABILITY.marks).data) == 2


def test_one_run_shows_its_reliability_where_it_has_probabilities(open_app: Open, store: Store) -> None:
    save(store)
    assert len(show(fine(open_app("evaluate")), "One run").get("plotly_chart")) == 1
    bare = save_report(store, {"n": 1, "failed": 1, "rows": [], "scores": {}})
    app = show(fine(open_app("evaluate")), "One run")
    app.selectbox(key="evaluate.one").set_value(bare).run()
    assert not fine(app).get("plotly_chart")
