"""The evaluate page: empty, with one run, with many; starting, stopping and going on; comparing; charts and their data."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from page_helpers import ANSWERS, QUESTION, button, texts
from streamlit.testing.v1 import AppTest

from core.evaluation.published import published
from core.settings import Settings
from pages.evaluate import source, start_form
from pages.evaluate.charts import CHARTS, RELIABILITY, ChartRequest
from pages.evaluate.data import VIEWS, names
from pages.jobs.background import jobs_of
from pages.ui import charts as drawing
from pages.ui.tables import csv
from storage.access.preferences import Preferences
from storage.store import Store

Open = Callable[..., AppTest]
METRICS = ("F1 answer", "precision", "recall", "answers", "reference answers", "G-F1", "R@1", "R@10", "MRecall@10")
BUCKETS = ("missed", "spurious", "alias_mismatch", "duplicate", "stopped_early", "ran_on", "not_retrieved")


def save(store: Store, system: str = "fid", level: float = 0.5, *, label: str = "", n: int = 6, **tags: Any) -> str:
    rows = []
    for i in range(n):
        value = min(1.0, level + 0.05 * (i % 3))
        rows.append(
            {
                "id": f"q{i}",
                "question": f"Question *{i}* of <b>bold</b>?",
                "source": "asqa" if i % 2 else "quotesum",
                "ambiguity": "properties" if i % 2 else None,
                "ambiguous": i % 2 == 0,
                "references": [[["Rome", "Roma"], ["Oslo"]]],
                "error": None if i != 5 else "no passage matches",
                "answers": [{"text": "=Rome", "probability": 0.9, "passages": ["p1"], "question": None, "passed": None}],
                "metrics": dict.fromkeys(METRICS, value),
                "errors": dict.fromkeys(BUCKETS, i % 2),
                "weights": {},
                "seconds": 0.1 + i,
            }
        )
        if i == 5:
            for name in ("answers", "metrics", "errors"):
                del rows[-1][name]
    kept = [r["metrics"]["F1 answer"] for r in rows if "metrics" in r]
    means = {m: {s: sum(kept) / len(kept) for s in ("all", "multi")} for m in METRICS}
    report = {
        "n": n,
        "failed": 1,
        "rows": rows,
        "scores": means,
        "intervals": {m: {s: [v - 0.05, v + 0.05] for s, v in by.items()} for m, by in means.items()},
        "timings": {"seconds_median": 0.4, "seconds_p95": 2.0, "peak_memory_mb": 800.0},
        "provenance": {
            "system": {"name": system, "checkpoint": "default", "checkpoint_digest": "ab" * 32},
            "commit": "c0ffee",
            "seed": 0,
            "parameters": 33_000_000,
            "tags": {name.replace("_", " "): value for name, value in tags.items()},
            "settings": {"top_k": 10},
        },
        "summary": {
            "cost": {"retriever_calls": 1.0, "model_calls": 2.0, "seconds": 0.4, "model_seconds": 0.3},
            "judged": {"relevant and answerable": {"n": 4, "right": 3}},
            "reliability": {
                "answer": {"n": 5, "error": 0.12, "bins": [{"low": 0.4, "high": 0.5, "n": 5, "said": 0.48, "so": 0.6}]},
                "[EOI]": {"n": 2, "error": 0.2, "bins": [{"low": 0.8, "high": 0.9, "n": 2, "said": 0.8, "so": 1.0}]},
            },
        },
    }
    return store.evaluations.save_evaluation(
        system=system,
        corpus="small",
        questions="dev.json",
        metrics=means,
        report=report,
        label=label,
        traces=[(rows[0]["id"], _trace())],
    )


def _trace() -> dict[str, Any]:
    from core import trace
    from core import types as t

    passage = t.RetrievedPassage(t.Passage("p1", "Film", "Rome is old"), 1, 1.0)
    step = t.Step(1, (), "", (t.Candidate("Rome", 0.9),), t.Candidate("Rome", 0.9), 0.1, 0.1)
    events = (t.PassagesRetrieved((passage,), 0.1, "q"), t.StepFinished(step, t.Answer("Rome", 0.9)), t.Finished(0.2, "eoi"))
    body: dict[str, Any] = trace.to_json(trace.fold(t.Question("Question 0?"), t.SystemInfo("fid"), events))
    return body


def show(app: AppTest, view: str) -> AppTest:
    return app.segmented_control(key="evaluate.view").set_value(view).run()


def fine(app: AppTest) -> AppTest:
    assert not app.exception
    assert not app.error, [e.value for e in app.error]
    return app


# ---------------------------------------------------------------- empty, one, many


def test_an_empty_database_says_what_to_do(open_app: Open, settings: Settings) -> None:
    Preferences(settings.home).put("me", source.PREFERENCE, source.HIDDEN)
    app = fine(open_app("evaluate"))
    assert "No run is stored yet" in texts(app)
    for view in VIEWS:
        fine(show(app, view))
    assert "There are no run folders" in texts(app)  # no run folders


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
    app.selectbox(key=re_key(app, "evaluate.bucket.")).set_value("missed").run()
    assert "Questions 1 to 2 of 2" in texts(fine(app))
    app.selectbox(key=re_key(app, "evaluate.bucket.")).set_value("").run()
    app.selectbox(key=re_key(app, "evaluate.question.")).set_value("q0").run()
    seen = texts(fine(app))
    assert "Question *0* of <b>bold</b>?" in seen  # as text, no markup
    assert "References: Rome / Roma; Oslo" in seen
    assert "Finished after" in seen  # the trace
    app.selectbox(key=re_key(app, "evaluate.question.")).set_value("q5").run()
    assert "no passage matches" in [e.value for e in app.error]


def leaderboard(app: AppTest) -> pd.DataFrame:
    found: pd.DataFrame = next(d.value for d in app.dataframe if "#" in d.value)
    return found


def re_key(app: AppTest, start: str) -> str:
    return next(s.key for s in app.selectbox if s.key and s.key.startswith(start))


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
    assert not {"Training-set size", "Ablations", "Zero-shot and decoding"} & set(kinds(app))


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
    board = leaderboard(fine(open_app("evaluate")))
    assert list(board["run"]) == ["fid", "spanseqgen"]
    assert list(board["note"]) == ["", "mechanism only"]
    assert board["#"].notna().tolist() == [True, False]


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
    assert table.loc["F1 answer", "A - B"] == "+60.0"
    assert int(table.loc["F1 answer", "n"]) == 5
    assert float(table.loc["F1 answer", "p (permutation)"]) < 0.2
    assert float(table.loc["F1 answer", "p (Holm)"]) >= float(table.loc["F1 answer", "p (permutation)"])
    assert set(table["verdict"]) == {"not significant"}  # few questions, and many metrics
    assert "A is better on 5 questions and B on 0; 0 of 5 are equal" in texts(app)
    app.selectbox(key="evaluate.pair").set_value("q0").run()
    seen = texts(fine(app))
    assert seen.count("Finished after") == 2
    assert "A: strong" in seen
    assert "B: weak" in seen


# ---------------------------------------------------------------- starting, stopping, storing


@pytest.fixture
def questions(settings: Settings) -> Path:
    path = settings.home / "questions" / "mine.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"id": f"m{i}", "question": QUESTION, "answers": [[a] for a in ANSWERS]} for i in range(3)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def begin(app: AppTest, name: str = "Uploaded: mine.jsonl", layout: str | None = None) -> AppTest:
    app = show(app, "Start and store")
    app.selectbox(key="evaluate.new.questions").set_value(name)
    app.selectbox(key="evaluate.new.layout").set_value(layout)
    app.text_input(key="evaluate.new.tags").set_value("ablation=none")
    return button(app, "Start evaluation").click().run()


def until(app: AppTest, found: Callable[[AppTest], bool]) -> AppTest:
    end = time.monotonic() + 60
    while not found(app):
        assert time.monotonic() < end, texts(app)
        time.sleep(0.1)
        app.run()
    return app


def test_an_evaluation_is_started_watched_and_stored(open_app: Open, corpus: str, questions: Path, store: Store) -> None:
    app = fine(begin(fine(open_app("evaluate"))))
    app = fine(until(app, lambda a: "is stored: 3 questions" in texts(a)))
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
    app = until(begin(fine(open_app("evaluate"))), lambda a: bool(a.error))
    assert "every question failed; the first one: the question has an empty list of passages" in texts(app)
    assert store.evaluations.count_evaluations() == 0
    app = button(app, "Dismiss").click().run()
    questions.write_text(json.dumps(row | {"id": "a"}) + "\n" + json.dumps(row | {"id": "b", "passages": []}) + "\n")
    app = fine(until(begin(app), lambda a: "is stored: 2 questions" in texts(a)))
    assert "1 of 2 questions failed; the first one: the question has an empty list of passages" in texts(app)


def test_a_stopped_evaluation_goes_on_where_it_stopped(
    open_app: Open, corpus: str, questions: Path, store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    from core.evaluation import run as evaluation_run

    asked: list[str] = []
    real, stop_at = evaluation_run.run_one, {"m1"}

    def run_one(system: Any, question: Any, *rest: Any) -> Any:
        asked.append(question.id)
        if question.id in stop_at:
            stop_at.clear()
            next(iter(jobs_of("evaluations").values())).stop()
        return real(system, question, *rest)

    monkeypatch.setattr(evaluation_run, "run_one", run_one)
    app = begin(fine(open_app("evaluate")))
    app = until(app, lambda a: "you can resume it" in texts(a))
    assert asked == ["m0", "m1"]
    assert store.evaluations.count_evaluations() == 0
    (folder,) = settings.runs_dir.iterdir()
    assert len((folder / "rows.jsonl").read_text().splitlines()) == 1
    assert "stopped after 1 of 3 questions" in texts(app)
    next(b for b in app.button if b.key and b.key.startswith("evaluate.again.")).click().run()
    app = fine(until(app, lambda a: "is stored: 3 questions" in texts(a)))
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
    app = begin(app, "Uploaded: flat.jsonl", "web-questions")
    app = fine(until(app, lambda a: "is stored: 1 question" in texts(a)))
    assert store.evaluations.count_evaluations() == 1


def test_uploads_are_checked(open_app: Open, settings: Settings, store: Store) -> None:
    app = show(fine(open_app("evaluate")), "Start and store")
    good = b'{"question": "Who?", "answers": [["x"]]}\n'
    for name, body, words in (
        ("a b.jsonl", good, "a_b.jsonl: 1 question saved"),
        ("bad.jsonl", b"{}\n", "a row needs 'answers'"),
    ):
        app.file_uploader(key="evaluate.upload.file").set_value([(name, body, "application/json")])
        button(app, "Save question file").click().run()
        assert words in texts(app).replace("\\", "")
    assert [p.name for p in (settings.home / "questions").iterdir()] == ["a_b.jsonl"]
    assert not list((settings.home / "uploads").iterdir())


# ---------------------------------------------------------------- parts


def test_csv_is_safe_to_open() -> None:
    text = csv(pd.DataFrame({"=run": ["=1+1", "@x", "fine"], "value": [-1.5, 2.0, None]})).decode("utf-8-sig")
    assert text.splitlines() == ["'=run,value", "'=1+1,-1.5", "'@x,2.0", "fine,"]


def test_names_are_distinct(store: Store) -> None:
    save(store, "fid")
    save(store, "fid", 0.1)
    found = names(store.evaluations.evaluations())
    assert len(set(found.values())) == 2
    assert all(re.fullmatch(r"fid #[0-9a-f]{4}", name) for name in found.values())


def test_tags_are_read() -> None:
    assert start_form.tags("") == {}
    for bad in ("a", "=1", "a="):
        with pytest.raises(Exception, match="has no value"):
            start_form.tags(bad)


def request(store: Store) -> ChartRequest:
    runs = store.evaluations.evaluations()
    return ChartRequest(runs, runs, names(runs), "F1 answer", "all", store)


def test_the_published_figures_are_the_papers() -> None:
    found = {t.id: t for t in published()}
    assert found["sun2023-table2-ambignq"].value("AmbigPrompt", "F1 answer", "multi") == 0.388
    assert found["sun2023-table2-webqsp"].value("Refuel", "F1 answer") is None
    assert found["sun2023-table4"].value("RECTIFY", "EM") == 0.548
    assert found["lee2025-table2"].value("VerDICt (GPT-4o)", "G-F1") == 0.7082
    shares = [
        v
        for t in found.values()
        for row in t.values.values()
        for (m, _), v in row.items()
        if v is not None and m not in ("interpretations", "parameters", "seconds", "memory GB")
    ]
    assert len(shares) > 150
    assert all(0 < v < 1 for v in shares)


def test_the_reliability_diagram_has_a_line_for_all_that_a_run_gives_probabilities_of(store: Store) -> None:
    save(store)
    frame = RELIABILITY.frame(request(store))
    assert frame["probability of"].tolist() == ["answer", "[EOI]"]
    assert frame["right"].tolist() == [0.6, 1.0]
    assert (frame["calibration error"] < frame["by chance up to"]).tolist() == [True, True]
    assert len(drawing.figure(RELIABILITY.draw, frame, layout=RELIABILITY.layout, **RELIABILITY.marks).data) == 2


def test_one_run_shows_its_reliability_where_it_has_probabilities(open_app: Open, store: Store) -> None:
    save(store)
    assert len(show(fine(open_app("evaluate")), "One run").get("plotly_chart")) == 1
    bare = store.evaluations.save_evaluation(
        system="fid", corpus="small", questions="dev.json", metrics={}, report={"n": 1, "failed": 1, "rows": [], "scores": {}}
    )
    app = show(fine(open_app("evaluate")), "One run")
    app.selectbox(key="evaluate.one").set_value(bare).run()
    assert not fine(app).get("plotly_chart")
