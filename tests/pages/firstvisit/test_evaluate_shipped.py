"""Evaluate before there are own runs: the shipped ones are shown as such, can be hidden and taken over, and never mix with one's own by themselves."""

from __future__ import annotations

import shutil
import sys
from itertools import islice
from pathlib import Path

import pytest
from annotate_helpers import fine
from page_helpers import TIMEOUT, Open, button, ended, texts
from streamlit.testing.v1 import AppTest
from test_evaluate import leaderboard, save, show

from benchmarks.shipped_runs import MAX_BYTES, write
from core.settings import Settings
from pages.evaluate.charts import CHARTS
from pages.server import launch
from pages.session import run_source
from pages.session.background import jobs_of
from storage.access.preferences import Preferences
from storage.shipped import beside, runs, traces
from storage.store import Store

pytestmark = pytest.mark.usefixtures("light")
OURS = "included with Ambiscope"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped runs, unpacked once."""
    folder = tmp_path_factory.mktemp("shipped")
    return beside.ensure_database(folder / "runs.db", lambda store: runs.load(store, traced=False))


@pytest.fixture
def unpacked(database: Path, settings: Settings) -> None:
    """An earlier visit has loaded the shipped runs."""
    folder = settings.home / "shipped"
    folder.mkdir(parents=True)
    shutil.copyfile(database, folder / f"runs-{runs.digest()}.db")


def loaded(open_app: Open) -> AppTest:
    return fine(ended(open_app("evaluate"), run_source.KIND))


def test_evaluate_opens_on_real_runs_that_are_not_ones_own(open_app: Open, store: Store) -> None:
    app = loaded(open_app)
    assert OURS in texts(app)
    assert set(leaderboard(app)["run"]) == set(runs.about().systems)
    assert len(leaderboard(app)) == len(runs.about().systems)  # over one question file: others cannot be compared with it
    app.multiselect(key="evaluate.shipped.questions").set_value([]).run()
    assert len(leaderboard(app)) == runs.about().runs
    assert store.evaluations.count_evaluations() == 0
    assert "Delete" not in [b.label for b in app.button]


@pytest.mark.usefixtures("unpacked")
def test_every_chart_has_something_to_draw(open_app: Open) -> None:
    app = loaded(open_app)
    # both need several trainings
    assert {c.menu for c in CHARTS} - set(app.selectbox(key="evaluate.kind").options) == {"Training-set size", "Ablations"}


@pytest.mark.usefixtures("unpacked")
@pytest.mark.parametrize("view", ["Two runs", "One run"])
def test_runs_are_looked_into(open_app: Open, view: str) -> None:
    app = fine(show(loaded(open_app), view))
    next(s for s in app.selectbox if s.label == "Show a question").select_index(0).run()
    assert "has no traces" not in texts(fine(app))


@pytest.mark.usefixtures("unpacked")
def test_hidden_they_stay_hidden_until_they_are_shown_again(open_app: Open, settings: Settings) -> None:
    app = loaded(open_app)
    button(app, "Hide").click().run()
    assert "No run is stored yet" in texts(app)
    assert "No run is stored yet" in texts(open_app("evaluate"))
    assert Preferences(settings.home).get("me", run_source.PREFERENCE) == run_source.HIDDEN
    app = button(open_app("evaluate"), "Show the example runs").click().run()
    assert OURS in texts(app)


def test_while_they_load_the_page_does_not_claim_that_there_is_none(
    open_app: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    over = tmp_path / "over"
    wait = f"import os, time\nwhile not os.path.exists({str(over)!r}): time.sleep(0.01)"
    monkeypatch.setattr(run_source, "SHORT_SECONDS", 0.0)
    monkeypatch.setattr(run_source, "UNPACK_COMMAND", (sys.executable, "-c", wait))
    try:
        app = open_app("evaluate")
        assert not [i for i in app.info if i.icon == ":material/bar_chart_off:"]
    finally:
        over.touch()
    ended(app, run_source.KIND)


def test_the_server_loads_them_before_anybody_visits(settings: Settings) -> None:
    launch.preload()
    (job,) = jobs_of(run_source.KIND).values()
    assert job.wait(TIMEOUT)
    assert job.error is None
    with Store(f"sqlite:///{settings.home}/shipped/runs-{runs.digest()}.db") as store:
        assert store.evaluations.count_evaluations() == runs.about().runs


@pytest.mark.usefixtures("unpacked")
def test_own_runs_are_shown_alone(open_app: Open, store: Store) -> None:
    save(store, label="my own")
    app = loaded(open_app)
    assert len(leaderboard(app)) == 1
    assert OURS not in texts(app)
    app = fine(ended(app.button_group(key=run_source.SOURCE_KEY).set_value(run_source.SHIPPED).run(), run_source.KIND))
    assert len(leaderboard(app)) == len(runs.about().systems)


def test_taken_over_they_are_runs_like_others(
    open_app: Open, store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    about, *first = islice(traces.read(runs.ARCHIVE), 3)  # all of them would take their time
    write([{**about, "runs": 1}, *first], tmp_path / "one.xz", MAX_BYTES)
    monkeypatch.setattr(runs, "ARCHIVE", tmp_path / "one.xz")
    app = loaded(open_app)
    button(app, "Copy to my runs").click().run()
    assert not app.exception
    (taken,) = store.evaluations.evaluations(10)
    row = store.evaluations.evaluation_rows(taken.id, 1)[0]
    assert store.evaluations.find_evaluation_trace(taken.id, row.question_id) is not None
    assert OURS not in texts(app)


def test_another_version_replaces_the_database(open_app: Open, settings: Settings) -> None:
    old = settings.home / "shipped" / "runs-0123.db"
    old.parent.mkdir(parents=True)
    old.write_bytes(b"of another version")
    loaded(open_app)
    assert [p.name for p in old.parent.glob("*.db")] == [f"runs-{runs.digest()}.db"]


def test_runs_that_cannot_be_loaded_are_told_and_the_page_works_on(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        run_source, "UNPACK_COMMAND", (sys.executable, "-c", "import sys; sys.exit('no shipped runs; get Ambiscope again')")
    )
    app = open_app("evaluate")
    assert not app.exception
    assert "get Ambiscope again" in app.error[0].value
    show(app, "Start and store")
    assert "Start evaluation" in [b.label for b in app.button]
