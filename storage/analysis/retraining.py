"""*Retrain on my labels*: trains the answering model on a snapshot and compares it with the bundled one on other questions.

The steps after the snapshot are commands of `python -m core`, each in a separate process: `train answerer`, `evaluate` with either model, and the
comparison of both runs.  A folder belongs to one snapshot and one training time; what is finished there is not repeated, and the commands resume their own work.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from core import json_io
from core.disk import plain_or_gz
from core.errors import AmbiscopeError, InputError, StorageError
from core.evaluation.folder import read_report, state_of
from core.metrics.significance.compare import MetricDifference, compare_runs
from core.settings import ROOT, Settings, child_environment
from storage.results.evaluation_rows import object_of
from storage.results.run_folders import import_run
from storage.store import StoreParts

PRACTICE = ROOT / "data" / "practice"  # trained on beside the snapshot, so that nothing is forgotten
BASE_ANSWERER = "default"  # the answering model that the training starts from
TRAINING = "--rank 16 --lr 2e-4 --head-lr 5e-5 --steps 1000000 --evaluate-every 100"  # low-rank adapters begin at zero
COMPARED_SYSTEM = "ambigprompt"  # the system over the answering model alone
MIN_ANSWERED = 10  # judged questions with a correct answer that a training needs
TRAINING_MINUTES = 30.0  # of a training, by default
DECIDING_METRIC = "F1 answer"  # that decides
POLL_SECONDS = 0.5
END_SECONDS = 60.0  # between asking a process to end and ending it: a training saves its state

StepProgress = Callable[[str, float | None], None]  # (what is being done, its share or None); an exception stops the work
# (command, environment, log file, watch): `watch` is called repeatedly; an exception in it ends the process
RunCommand = Callable[[list[str], Mapping[str, str], Path, Callable[[], None]], None]


@dataclass(frozen=True, slots=True)
class Retrained:
    """`verdict`: better, worse, or undecided (the interval contains 0).  `checkpoint`: the one to use from now on, that from before if the new one is worse.
    `before` and `after` are ids of stored evaluations.  `difference`: of the answers' F1, a after and b before; None if no question has one in both runs."""

    snapshot: int
    questions: int  # trained on
    checkpoint: str
    before: str
    after: str
    verdict: str
    difference: MetricDifference | None

    def words(self) -> str:
        if self.difference is None or not (c := self.difference.comparison).n:
            return "No question has an F1 in both runs, so the models cannot be compared."
        interval = f", 95% interval {c.interval[0]:+.3f} to {c.interval[1]:+.3f}" if c.interval else ""
        conclusion = {
            "better": "The new model is better",
            "worse": "The new model is worse and is not kept",
            "undecided": "No difference is shown",
        }[self.verdict]
        return (
            f"{conclusion}: F1 {self.difference.b:.3f} before, {self.difference.a:.3f} after ({c.difference:+.3f}{interval}) "
            f"on {c.n} questions that are not in snapshot {self.snapshot}."
        )


def run_command(command: list[str], environment: Mapping[str, str], log: Path, watch: Callable[[], None]) -> None:
    """Runs a command from the repository's folder to its end.  `log` gets its output.

    Raises AmbiscopeError with the command's error if it fails, StorageError if the log cannot be written, and what `watch` raises.
    """
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as file:
            process = subprocess.Popen(command, cwd=ROOT, env=dict(environment), stdout=file, stderr=subprocess.STDOUT)
    except OSError as e:
        raise StorageError(f"{log}: cannot be written, or the command not started ({e.strerror or e})") from e
    try:
        while (code := process.poll()) is None:
            watch()
            time.sleep(POLL_SECONDS)
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    if code:
        printed = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
        errors = [line for line in printed if line.startswith("error:")]
        message = (errors or printed or ["it printed nothing"])[-1][:500]
        raise AmbiscopeError(f"{log.stem} failed (exit {code}): {message} (its output: {log})")


def retrain(
    store: StoreParts, settings: Settings, snapshot: int, minutes: float, progress: StepProgress, run: RunCommand = run_command
) -> Retrained:
    """Trains on a snapshot, evaluates the model before and after, stores both evaluations and compares them.  Call it again to
    resume.

    Raises InputError with too few judged questions, NotFoundError for an unknown snapshot, StorageError for a changed one, AmbiscopeError for a command
    that failed, and what `progress` raises.
    """
    files = store.exports.snapshot_files(snapshot, settings.home / "snapshots")
    if "training" not in files:
        raise InputError(f"snapshot {snapshot} has no training file; take one with the format training")
    folder = (settings.runs_dir / f"retrained-{snapshot:04d}-{minutes:g}-minutes").absolute()
    count, training = _trainable(files["training"]), str(files["training"])

    def call(name: str, words: list[str], watch: Callable[[], None], **changes: str) -> None:
        command = [sys.executable, "-m", "core", *words, "--out", str(folder / name)]
        run(command, child_environment(home=str(settings.home.absolute()), **changes), folder / f"{name}.log", watch)

    if not (folder / "train" / "last" / "config.json").is_file():  # written at the end
        words = f"train answerer --stage tune --init {BASE_ANSWERER} {TRAINING} --minutes {minutes:g}".split()
        log = folder / "train" / "log.jsonl"
        watch = lambda: progress("training", min(1.0, _minutes(log) / minutes))  # noqa: E731
        call("train", [*words, "--multi", training, "--annotated", str(PRACTICE)], watch)
    checkpoint = str(folder / "train" / "best")
    questions = str(settings.starter_dir.absolute() / "questions.json")
    learned = ["--exclude", training, "--exclude", str(plain_or_gz(PRACTICE / "questions.json"))]
    for name, answerer in (("before", BASE_ANSWERER), ("after", checkpoint)):
        if not (folder / name / "report.json").is_file():
            words = ["evaluate", "--system", COMPARED_SYSTEM, "--no-clarify", "--questions", questions, *learned]
            call(name, words, partial(_watch_evaluation, name, folder / name, progress), answerer=answerer)
    before, after = (read_report(folder / name) for name in ("before", "after"))
    if _passages(before) != _passages(after):
        raise InputError(
            f"{folder}: the models were evaluated on different passages, as the corpus or a setting of retrieval changed in between; "
            "delete its folders before and after, and resume"
        )
    metrics = compare_runs(after["rows"], before["rows"]).metrics
    difference = metrics[DECIDING_METRIC]["all"] if DECIDING_METRIC in metrics else None
    low, high = (difference and difference.comparison.interval) or (0.0, 0.0)
    verdict = "better" if low > 0 else "worse" if high < 0 else "undecided"
    first, second = (
        import_run(store.evaluations, folder / name, f"{name} training on snapshot {snapshot}").id
        for name in ("before", "after")
    )
    return Retrained(snapshot, count, BASE_ANSWERER if verdict == "worse" else checkpoint, first, second, verdict, difference)


def _trainable(file: Path) -> int:
    """The number of questions to train on, including those without a correct answer.  Raises InputError if fewer than
    MIN_ANSWERED have one."""
    rows = [row for _, row in json_io.read_lines(file) if row["passages"]]
    answered = sum(bool(row["answers"]) for row in rows)
    if answered < MIN_ANSWERED:
        raise InputError(
            f"{answered} judged questions have a correct answer and passages to read, and a training needs {MIN_ANSWERED}; judge more answers first"
        )
    return len(rows)


def _minutes(log: Path) -> float:
    """The minutes that a training has run, by the last row of its log; 0 before the first."""
    try:
        return float(json.loads(log.read_text(encoding="utf-8").splitlines()[-1])["minutes"])
    except (OSError, ValueError, LookupError):
        return 0.0


def _watch_evaluation(name: str, folder: Path, progress: StepProgress) -> None:
    state = state_of(folder)
    of_total = f" of {state.total}" if state.total else ""
    progress(f"evaluating the model {name}: question {state.rows}{of_total}", state.rows / state.total if state.total else None)


def _passages(report: Mapping[str, Any]) -> dict[str, Any]:
    """A report's description of the passages that were read, because a corpus or a setting may change during the training."""
    system = object_of(object_of(report, "provenance"), "system")
    settings = object_of(system, "settings")
    corpus = {name: system.get(name) for name in ("corpus", "corpus_digest")}
    return corpus | {name: settings.get(name) for name in ("retrieval", "top_k")}
