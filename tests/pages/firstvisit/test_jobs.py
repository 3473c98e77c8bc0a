"""Long work in one place: shown with the time it takes, stopped by those who may, closed when it ended; and snapshots as such work."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from page_helpers import TIMEOUT, Open, button, texts
from streamlit.testing.v1 import AppTest

from core.errors import CancelledError, InputError
from pages.session import background as jobs
from pages.session.actions import ERROR
from pages.session.snapshots import snapshot_job
from storage.exchange.filters import Filters
from storage.store import Store


class Held(jobs.BackgroundJob):
    """Goes as far as it is let."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__(self._work_on, "A long one", stopped="it was stopped; it can go on")
        self.go_on, self._error = threading.Event(), error
        self.start()

    def _work_on(self, _: jobs.BackgroundJob) -> None:
        self.progress(1, 4, "the first quarter")
        self.go_on.wait(TIMEOUT)
        self.stop_if_asked()
        if self._error is not None:
            raise self._error


@pytest.fixture
def held() -> Iterator[Held]:
    job = Held()
    jobs.jobs_of("builds")["films"] = job
    yield job
    job.go_on.set()
    job.wait(TIMEOUT)


def progress(app: AppTest) -> str:
    return str([p.proto.text for p in app.get("progress")]).replace("\\", "")


def test_a_job_is_shown_stopped_and_closed_wherever_it_was_started(held: Held, open_app: Open) -> None:
    app, other = open_app("jobs"), open_app("explore")
    assert "the first quarter" in progress(app)
    assert "Index A long one" in texts(app).replace("*", "")
    assert "1 running: see Jobs" in str([link.proto.label for link in other.get("page_link")])
    button(app, "Stop A long one").click().run()
    assert held.stopping
    assert "stopping" in progress(app)
    held.go_on.set()
    assert held.wait(TIMEOUT)
    app = open_app("jobs")  # after a reload
    assert "it can go on" in texts(app)
    button(app, "Dismiss").click().run()
    assert "Nothing is running" in texts(app)
    assert not jobs.jobs_of("builds")


def test_what_failed_and_what_ended_is_told(open_app: Open) -> None:
    jobs.jobs_of("evaluations")["bad"] = bad = Held(InputError("a wrong question"))
    jobs.jobs_of("trainings")["training"] = good = Held()
    for job in (bad, good):
        job.go_on.set()
        assert job.wait(TIMEOUT)
    app = open_app("jobs")
    assert "a wrong question" in texts(app)
    assert ["A long one" in s.value for s in app.success] == [True]


def test_a_job_that_ends_and_is_dismissed_while_it_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """In another tab."""

    def script() -> None:
        from pages.session import background as jobs

        job = jobs.BackgroundJob(lambda job: None, "A short one").start()
        assert job.wait(180)
        jobs.jobs_of("builds")["films"] = job
        for _ in jobs.reports("builds"):
            jobs.close("builds", "films")

    assert not AppTest.from_function(script, default_timeout=TIMEOUT).run().exception
    left = iter((5.0, None))
    monkeypatch.setattr(jobs.BackgroundJob, "seconds_left", property(lambda job: next(left)))
    assert "about 5 s left" in jobs.progress_text(jobs.BackgroundJob(lambda job: None, "A long one"))


def test_who_may_not_stop_it_sees_it_all_the_same(held: Held, ann: None, open_app: Open) -> None:
    app = open_app("jobs")
    assert not app.exception
    assert "the first quarter" in progress(app)
    assert "Stop A long one" not in [b.label for b in app.button]
    with pytest.MonkeyPatch.context() as patch:  # nor by calling it
        patch.setattr("streamlit.session_state", state := {})
        jobs.stop("builds", "films")
    assert not held.stopping
    assert "needs the role manager" in str(state[ERROR])


def test_time_left_is_reckoned_from_what_was_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that goes on begins far along: what was done before took none of its time."""
    clock = [0.0]
    monkeypatch.setattr("pages.session.background.time.monotonic", lambda: clock[0])
    job = jobs.BackgroundJob(lambda job: None, "never started")
    assert job.seconds_left is None
    job.share = 0.5
    assert job.seconds_left is None
    clock[0], job.share = 10.0, 0.6
    assert job.seconds_left == pytest.approx(40.0)


def test_a_stopped_snapshot_leaves_nothing(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "snapshots"
    job = snapshot_job(store, folder, Filters(), "")
    job.stop()
    assert job.start().wait(TIMEOUT)
    assert isinstance(job.error, CancelledError)
    assert not list(folder.iterdir())
    assert not store.exports.snapshots()
