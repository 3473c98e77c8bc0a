"""The Papers page: worked examples that are asked on Explore, tables beside our runs, and runs that it starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from annotate_helpers import fine
from page_helpers import Open, ended, texts
from streamlit.testing.v1 import AppTest
from test_evaluate import save

from core import cli
from core import types as t
from core.engine import SystemStatus
from core.evaluation.plan import evaluate
from core.evaluation.published import EXAMPLES, examples, published
from core.settings import Settings
from core.systems import SYSTEMS, options_of
from core.text import find_spans
from pages.explore import pasted
from pages.explore.paper_answers import compared
from pages.papers import tables
from pages.session import run_source
from pages.session.background import jobs_of
from storage.access.preferences import Preferences
from storage.store import Store

Page = Callable[[], AppTest]


@pytest.fixture
def page(open_app: Open, settings: Settings, corpus: str) -> Page:
    """Without the shipped runs, which take a while to load."""
    Preferences(settings.home).put("me", run_source.PREFERENCE, run_source.HIDDEN)
    return lambda: fine(open_app("papers"))


# ---------------------------------------------------------------- worked examples


@pytest.mark.parametrize("example", examples(), ids=lambda e: str(e.id))
def test_each_answer_of_a_worked_example_is_in_its_passages(example: Any) -> None:
    (annotation,) = example.annotations
    for pair in annotation.pairs:
        assert any(find_spans(p.text, alias) for p in example.passages for alias in pair.answers), pair.answers
    assert pasted.passages_of("\n\n".join(f"# {p.title}\n{p.text}" for p in example.passages))
    assert example.extra["published"]


def test_the_worked_examples_can_be_scored(settings: Settings, tmp_path: Path) -> None:
    report = evaluate("scripted", EXAMPLES, out_dir=tmp_path / "run", clarify=False)
    assert (report.n, report.failed) == (len(examples()), 0)
    assert 0 < report.scores["F1 answer"]["all"] < 1  # the scripted system takes capitalised words, some of which are right
    assert len(report.rows) == len(examples())


@pytest.mark.parametrize("example", examples(), ids=lambda e: str(e.id))
def test_one_click_asks_a_worked_example_beside_the_papers_answers(page: Page, store: Store, example: Any) -> None:
    app = page()
    fine(app.segmented_control(key="papers.paper").set_value(example.extra["paper"]).run())
    fine(app.button(key=f"papers.ask.{example.id}").click().run())
    (row,) = store.predictions.recent_predictions(5)
    stored = store.predictions.get_prediction(row.id).prediction
    assert stored.question.text == example.question
    assert [(p.title, p.text) for p in stored.question.passages or ()] == [(p.title, p.text) for p in example.passages]
    shown = texts(app)
    assert all(answer in shown for answers in example.extra["published"].values() for answer in answers)
    assert any(mark in shown for mark in ("matched", "missed"))


def test_the_papers_answers_and_ours_are_marked() -> None:
    example = next(e for e in examples() if e.id == "ambigprompt-table-8")
    ours = [
        t.Answer("aki", 0.9),
        t.Answer("Kissy", 0.5, (t.Evidence("p", 0, 12, "Kissy Suzuki"),)),
        t.Answer("Helga Brandt", 0.4),
    ]
    rows = {row.text: (row.published, row.mark) for row in compared(example, ours)}
    assert list(example.extra["published"]) == ["FiD", "AmbigPrompt", "people"]
    assert rows == {
        "Aki": ((False, True, True), "matched"),
        "Akiko Wakabayashi": ((True, True, True), "missed"),
        "Kissy Suzuki": ((False, True, True), "matched"),
        "Mie Hama": ((False, False, True), "missed"),
        "yasuko nagazumi": ((False, True, False), ""),
        "Helga Brandt": ((False, False, False), "added"),
    }


# ---------------------------------------------------------------- tables


@pytest.mark.parametrize("table", [t for t in published() if t.command], ids=lambda t: t.id)
def test_what_repeats_a_table_exists(table: Any) -> None:
    for spec in table.systems.values():
        name, _, options = spec.partition(" ")
        assert name in SYSTEMS
        options_of(name).read(name, dict(part.split("=", 1) for part in options.split()))
    words = table.command.split()
    if words[2] == "core":
        assert cli.parser().parse_args(words[3:]).run
    assert table.takes


def test_our_runs_are_in_a_table_of_their_own(page: Page, store: Store) -> None:
    save(store, "rectify", 0.5)
    save(store, "rectify", 0.6)  # the newest counts
    save(store, "verdict", 0.7)
    app = page()
    theirs, ours = (frame.value for frame in app.dataframe)
    assert theirs[""].tolist() == ["JPR", "RECTIFY", "DPR", "SpanSeqGen", "FiD-Base", "Refuel", "AmbigPrompt"]
    assert theirs["F1 answer"].tolist()[1] == "52.1"
    assert ours[["", "F1 answer", "questions"]].values.tolist() == [["RECTIFY", "64.0", "dev.json (6) over small"]]


def test_a_run_with_options_belongs_to_its_own_row(store: Store) -> None:
    save(store, "verdict", 0.5)
    save(store, "verdict", 0.6, variant="clustering=conservative")
    table = next(t for t in published() if t.id == "lee2025-table4")
    rows = tables.ours(table, list(store.evaluations.evaluations(10)))
    without = " (without a language model, no relaxing of the question and no clustering)"
    assert [row["system"] for row in rows] == [f"verdict{without}", f"verdict clustering=conservative{without}"]


def test_a_button_runs_the_systems_of_a_table_here(page: Page, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    table = next(t for t in published() if t.id == "sun2023-table2-ambignq")
    monkeypatch.setattr("pages.papers.tables._split", lambda spec: ("scripted" if spec == "jpr" else "gone", ""))
    app = page()
    assert any("ambignq-light" in e.value for e in app.info)  # its own questions are not here
    app.number_input(key="papers.sun2023-table2-ambignq.limit").set_value(2)
    next(b for b in app.button if b.label.startswith("Run ")).click()
    monkeypatch.setattr("pages.session.shared.systems", lambda: [SystemStatus("scripted", "", (), "", True)])
    app = fine(ended(app.run(), tables.KIND))
    job = jobs_of(tables.KIND)[table.id]
    assert (job.error, job.result) == (None, [])
    (run,) = store.evaluations.evaluations(5)
    assert (run.system, run.n, run.corpus) == ("scripted", 2, "small")
    assert app.success


@pytest.mark.parametrize("gone", ["pages.session.evaluations.question_files", "pages.session.shared.systems"])
def test_a_table_without_its_question_file_or_a_ready_system_starts_nothing(
    page: Page, monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    app = page()
    monkeypatch.setattr(gone, dict)
    next(b for b in app.button if b.label.startswith("Run ")).click().run()
    assert not app.exception
    assert len(app.error) == 1
    assert not jobs_of(tables.KIND)
