"""An evaluation in a worker thread: it goes on when the browser leaves, can be stopped, and goes on later where it stopped."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from core.engine import Engine
from core.errors import CancelledError
from core.evaluation.plan import EvaluationPlan, run_plan
from pages.jobs.worker import Worker
from pages.session import shared
from storage.results.run_folders import ImportedRun, import_run
from storage.store import Store

if TYPE_CHECKING:
    from core.serve.remote import RemoteEngine

_STOPPED = "the evaluation was stopped; its answers are kept, and you can resume it"
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


def folder_for(runs_dir: Path, plan: EvaluationPlan) -> Path:
    """A new run folder named after the time, the system and the question file."""
    stem = _UNSAFE.sub("-", f"{plan.system}-{Path(plan.questions).stem}")[:60].strip("-")
    base = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{stem}"
    number = 1
    while (found := runs_dir / (base if number == 1 else f"{base}-{number}")).exists():
        number += 1
    return found


class Evaluation(Worker):
    """`result` is set when the run is stored."""

    result: ImportedRun | None = None
    problems: Sequence[str] = ()  # what went wrong in a run that is stored all the same

    def __init__(
        self, engine: Engine | RemoteEngine, store: Callable[[], Store], plan: EvaluationPlan, folder: Path, label: str = ""
    ) -> None:
        super().__init__(f"evaluate-{folder.name}")
        self.plan, self.folder, self.label = plan, folder, label
        self.title, self.stage = label or folder.name, "loading the model and the questions"
        self._engine, self._store = engine, store
        self.start()

    def _progress(self, done: int, total: int) -> None:
        self.share, self.stage = done / total if total else None, f"{done:,} of {total:,} questions"
        if self.stopping and done < total:
            raise CancelledError(_STOPPED)

    def work(self) -> None:
        try:
            report = run_plan(self.plan, self._engine, self.folder, progress=self._progress, cancelled=lambda: self.stopping)
        except CancelledError:
            raise CancelledError(_STOPPED) from None
        report.demand()
        self.stage = "storing the run"
        self.problems = report.problems
        self.result = import_run(self._store().evaluations, self.folder, self.label)


def running() -> dict[str, Evaluation]:
    """Evaluations that this process has begun, by the name of their run folder."""
    return shared.running("evaluations")
