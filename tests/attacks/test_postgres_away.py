"""PostgreSQL refused, stopped or restarted in the middle: one line says so, nothing acknowledged is lost, and the next call works again."""

from __future__ import annotations

import itertools
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import people
import pg8000
import pytest
from annotate_helpers import make_project
from page_helpers import QUESTION, Open
from serving import until
from sqlalchemy import text
from sqlalchemy.engine import make_url
from storage_samples import prediction

from core.errors import OutcomeUnknownError, StorageError
from storage.store import Store

BIN = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)
pytestmark = pytest.mark.skipif(BIN is None, reason="no PostgreSQL is installed")
SCRIPT = Path(__file__).parents[2] / ".ci" / "postgres"


class Cluster:
    """A server of this test's own, that goes away and comes back on the same port."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        found = make_url(url)
        settings = {"listen_addresses": "127.0.0.1", "port": found.port, "unix_socket_directories": folder, "fsync": "off"}
        with (folder / "data" / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
        self.restart()  # .ci/postgres starts one that may lose the last commits; from here on it keeps them

    def _control(self, *command: str) -> None:
        assert BIN is not None
        argv = [str(BIN / "pg_ctl"), "-D", str(self.folder / "data"), *command]
        argv = ["runuser", "-u", "postgres", "--", *argv] if os.getuid() == 0 else argv
        subprocess.run(argv, check=True, capture_output=True, timeout=60, cwd="/")

    def stop(self) -> None:
        self._control("-m", "immediate", "-w", "stop")

    def start(self) -> None:
        self._control("-w", "-t", "30", "-l", str(self.folder / "log"), "start")

    def restart(self) -> None:
        self.stop()
        self.start()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    made = subprocess.run([SCRIPT, "start"], capture_output=True, text=True, timeout=300)
    if made.returncode == 3:
        pytest.skip(made.stderr.strip())
    folder, url = made.stdout.split()
    try:
        yield Cluster(Path(folder), url)
    finally:
        subprocess.run([SCRIPT, "stop", folder], timeout=120)


@pytest.fixture
def away(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """The app's database is on the cluster, which runs."""
    monkeypatch.setenv("AMBISCOPE_DATABASE_URL", cluster.url.replace("ambiscope@", "ambiscope:a-secret-word@"))
    yield cluster
    if not (cluster.folder / "data" / "postmaster.pid").exists():
        cluster.start()


@pytest.fixture
def remote(away: Cluster) -> Iterator[Store]:
    with Store(os.environ["AMBISCOPE_DATABASE_URL"]) as store:
        yield store


def refused(act: Callable[[], object]) -> str:
    with pytest.raises(StorageError) as error:
        act()
    said = str(error.value)
    assert "\n" not in said
    assert "a-secret-word" not in said
    return said


def test_a_restart_in_the_middle_of_a_save_changes_nothing(remote: Store, away: Cluster) -> None:
    before = len(remote.predictions.recent_predictions(100))

    def interrupted() -> None:
        with remote.database.writing() as session:
            session.execute(text("INSERT INTO annotator (name, created) VALUES ('half', now())"))
            away.restart()
            session.execute(text("SELECT 1"))

    assert "nothing was changed" in refused(interrupted)
    assert "half" not in remote.people.annotators()
    assert len(remote.predictions.recent_predictions(100)) == before
    remote.predictions.save_prediction(prediction(), key="afterwards")


@pytest.mark.usefixtures("light")
def test_pages_say_so_and_come_back(open_app: Open, remote: Store, away: Cluster, corpus: str) -> None:
    if not remote.projects.projects():
        make_project(remote, people.anyone(remote), questions=(QUESTION,))
    app = open_app("annotate")
    assert not app.exception
    away.stop()
    for page in ("annotate", "manage", "quality", "health", "evaluate", "explore"):
        app = app.switch_page(f"pages/{page}/page.py").run()
        assert not app.exception, page
        assert app.error, page
        for error in app.error:
            assert "An unexpected error occurred" not in error.value
            assert "secret" not in error.value
    away.start()
    for page in ("annotate", "manage", "quality", "health", "evaluate", "explore"):
        app = app.switch_page(f"pages/{page}/page.py").run()
        assert not app.exception, page
        assert not app.error, (page, [e.value for e in app.error])


@pytest.mark.parametrize("error", [pg8000.InterfaceError("network error"), BrokenPipeError(32, "Broken pipe")])
def test_an_outcome_that_nobody_can_tell_is_not_called_unchanged(
    remote: Store, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    dialect, question = remote.database.engine.dialect, f"lost {type(error).__name__}?"
    commit = dialect.do_commit

    def do_commit(connection: Any) -> None:
        monkeypatch.setattr(dialect, "do_commit", commit)
        commit(connection)
        raise error

    monkeypatch.setattr(dialect, "do_commit", do_commit)
    with pytest.raises(OutcomeUnknownError) as caught:
        remote.predictions.save_prediction(prediction(question), key=question)
    assert "nothing was changed" not in str(caught.value)
    assert "a-secret-word" not in str(caught.value)
    saved = remote.predictions.save_prediction(prediction(question), key=question)
    assert [p.question for p in remote.predictions.recent_predictions(500)].count(question) == 1
    assert remote.predictions.get_prediction(saved)


@pytest.mark.parametrize("broken", [ConnectionResetError, BrokenPipeError, ConnectionRefusedError])
def test_a_connection_that_breaks_in_the_driver_is_told_too(remote: Store, broken: type[OSError]) -> None:
    def act() -> None:
        with remote.database.writing():
            raise broken(104, "Connection reset by peer")

    assert "nothing was changed" in refused(act)


def test_what_was_acknowledged_is_there_after_restarts(remote: Store, away: Cluster) -> None:
    """Two writers save without a pause while the server is stopped dead twice; each saves before, between and after."""
    acknowledged: dict[str, list[tuple[str, str]]] = {"first": [], "second": []}
    refusals: list[str] = []
    failures: list[BaseException] = []
    over = threading.Event()

    def save(name: str) -> None:
        for number in itertools.count():
            if over.is_set():
                return
            question = f"{name} {number}?"
            try:
                saved = remote.predictions.save_prediction(prediction(question), key=f"{name}-{number}")
            except StorageError as error:
                refusals.append(str(error))
                over.wait(0.05)
            except BaseException as error:
                failures.append(error)
                return
            else:
                acknowledged[name].append((saved, question))

    def wait_for_saves() -> None:
        counts = {name: len(saves) for name, saves in acknowledged.items()}
        until(lambda: failures or all(len(saves) >= counts[name] + 2 for name, saves in acknowledged.items()))

    writers = [threading.Thread(target=save, args=(name,)) for name in acknowledged]
    for writer in writers:
        writer.start()
    try:
        for _ in range(2):
            wait_for_saves()
            away.restart()
        wait_for_saves()
    finally:
        over.set()
        for writer in writers:
            writer.join(30)
    assert failures == []
    for saved, question in itertools.chain(*acknowledged.values()):
        assert remote.predictions.get_prediction(saved).prediction.question.text == question
    assert all("\n" not in refusal and "secret" not in refusal for refusal in refusals)
