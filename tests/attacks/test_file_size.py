"""`ulimit -f`: files may not grow beyond a size.  An export, a backup or a snapshot that does not fit says so in one line, leaves no half of
a file behind, and the database and what was written earlier are as they were."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import people
import pytest
from annotation_samples import multiple, project, take
from storage_samples import prediction

from core.settings import ROOT, Settings
from storage.records.annotation import GenerationWork
from storage.store import Store

LIMIT = 24 * 1024


@pytest.fixture
def full(settings: Settings, store: Store) -> Settings:
    """A database of more than the limit, closed, its log folded in."""
    by = people.anyone(store, "Mia")
    made = project(store, 30, by=by)
    for number in range(30):
        store.predictions.save_prediction(prediction(f"Question {number}? {os.urandom(2000).hex()}"))
        task = take(store, made, "Ada")
        answer = multiple(f"Ada {number} {os.urandom(400).hex()[:800]}"[:900], "Bob")
        store.submissions.submit(task.item, "Ada", "generation", GenerationWork(answer, note=os.urandom(900).hex()), seconds=1)
    store.close()
    return settings


def limited(settings: Settings, *command: str) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT))

    environment = {k: v for k, v in os.environ.items() if not k.startswith("AMBISCOPE_")}
    environment |= {"AMBISCOPE_HOME": str(settings.home)}
    argv = [sys.executable, "-m", "storage", *command]
    return subprocess.run(argv, cwd=ROOT, env=environment, preexec_fn=limit, capture_output=True, text=True, timeout=120)


def state(settings: Settings) -> dict[str, bytes]:
    """Every file of the home but SQLite's own notes."""
    return {
        str(p.relative_to(settings.home)): p.read_bytes()
        for p in settings.home.rglob("*")
        if p.is_file() and not p.name.endswith(("-wal", "-shm", ".lock"))
    }


def in_one_line(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode not in (0, -25), done  # refused, and not killed by the signal
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    assert len(lines) == 1, lines


COMMANDS: dict[str, Callable[[Path], list[str]]] = {
    "export": lambda out: ["export", "--format", "jsonl", "--out", str(out / "all.jsonl")],
    "training export": lambda out: ["export", "--format", "csv", "--out", str(out / "all.csv")],
    "backup": lambda out: ["backup"],
    "snapshot": lambda out: ["snapshot"],
}


@pytest.mark.parametrize("what", COMMANDS)
def test_what_does_not_fit_leaves_nothing_behind(full: Settings, tmp_path: Path, what: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    earlier = out / "all.jsonl"
    earlier.write_text("of an earlier export")
    before = state(full)
    done = limited(full, *COMMANDS[what](out))
    in_one_line(done)
    assert state(full) == before
    assert [(p.name, p.read_text()) for p in out.iterdir()] == [("all.jsonl", "of an earlier export")]
    with Store(full.url) as store:
        assert store.maintenance.health(full=True).ok
        assert len(store.submissions.submissions(store.projects.projects()[0].id, "Mia", stage="generation", limit=100)) == 30


def test_a_save_that_does_not_fit_changes_nothing(full: Settings) -> None:
    """The database itself may not grow: an import is refused whole."""
    source = full.home / "more.json"
    source.write_text(json.dumps([{"question": f"Question {n} {'long ' * 200}?"} for n in range(500)]))
    with Store(full.url) as store:
        before = store.maintenance.counts()["question"]
    done = limited(full, "import", str(source), "--format", "questions")
    with Store(full.url) as store:
        assert store.maintenance.health(full=True).ok
        assert store.maintenance.counts()["question"] == before
    if done.returncode:
        in_one_line(done)
