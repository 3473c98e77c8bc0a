"""Question files to choose from, and evaluations in background jobs, shared by Evaluate and Papers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from core.datasets.catalogue import DATASETS, downloaded
from core.engine import Engine
from core.errors import CancelledError, InputError
from core.evaluation.plan import EvaluationPlan, run_plan
from pages.session import background as jobs
from pages.session import shared
from storage.results.run_folders import ImportedRun, import_run
from storage.store import Store

if TYPE_CHECKING:
    from core.serve.remote import RemoteEngine

SUFFIXES = ["json", "jsonl", "gz"]  # of question files
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


def question_files() -> dict[str, Path]:
    """The starter's questions, downloaded data sets and uploaded files, by name."""
    settings = shared.settings()
    files = {"Starter questions": settings.starter_dir / "questions.json"}
    for name in DATASETS:
        files |= {f"{name}: {path.name}": path for path in downloaded(settings.home, name)}
    uploaded = settings.home / "questions"
    if uploaded.is_dir():
        files |= {f"Uploaded: {p.name}": p for p in sorted(uploaded.iterdir()) if p.suffix.lstrip(".") in SUFFIXES}
    return {name: path for name, path in files.items() if path.is_file()}


def question_file(name: str) -> Path:
    """One of `question_files`.  Raises InputError if it no longer exists."""
    if (path := question_files().get(name)) is None:
        raise InputError("this question file no longer exists; choose another one")
    return path


def folder_for(runs_dir: Path, plan: EvaluationPlan) -> Path:
    """A new run folder named after the time, the system and the question file."""
    stem = _UNSAFE.sub("-", f"{plan.system}-{Path(plan.questions).stem}")[:60].strip("-")
    base = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{stem}"
    number = 1
    while (folder := runs_dir / (base if number == 1 else f"{base}-{number}")).exists():
        number += 1
    return folder


def run_and_store(
    job: jobs.BackgroundJob,
    plan: EvaluationPlan,
    engine: Engine | RemoteEngine,
    store: Store,
    folder: Path,
    progress: Callable[[int, int], None],
    label: str = "",
) -> tuple[ImportedRun, Sequence[str]]:
    """Runs an evaluation in a background job.  Returns the stored run and its problems.  `progress`: as `run_plan`'s.

    Raises AmbiscopeError, CancelledError.
    """

    def progress_or_stop(done: int, total: int) -> None:
        progress(done, total)
        if done < total:
            job.stop_if_asked()

    try:
        report = run_plan(plan, engine, folder, progress=progress_or_stop, cancelled=lambda: job.stopping)
    except CancelledError:
        raise CancelledError(job.stopped) from None
    report.demand()
    job.stage = "storing the run"
    return import_run(store.evaluations, folder, label), report.problems
