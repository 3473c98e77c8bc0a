"""The training loop: takes a snapshot of people's judgments, trains the answering model on them, and measures it before and after on other questions.

`run_loop` is resumable: each finished part is noted in `loop.json` of the output folder, training and evaluation resume inside theirs, and a
folder belongs to one snapshot, one start and one question file.  Training and evaluation are other processes (`python -m core train` and
`evaluate`): this package imports no torch.  Nothing is stored in the database before both evaluations are complete.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any

from core.disk import HOLDER, LOCK, check_same_run, locked, plain_or_gz, write_json, write_text
from core.errors import AmbiscopeError, FormatError, InputError, StorageError
from core.metrics.significance.bootstrap import compare
from core.settings import ROOT, Settings, child_environment
from storage.analysis.held_back import Questions, questions_left
from storage.analysis.loop_process import Runner, last_row, lines, run_command
from storage.exchange.exports.files import digest
from storage.exchange.filters import Filters
from storage.records.results import Snapshot
from storage.results.evaluation_rows import object_of
from storage.store import StoreParts

PRACTICE = ROOT / "data" / "practice"
MEASURED = "ambigprompt"  # the system over the answering model alone
MIN_ANSWERED = 10  # judged questions with a correct answer that a training needs
MINUTES = 30.0  # of a training, by default
METRICS = ("F1 answer", "precision", "recall", "exact set")
Progress = Callable[[str, float | None], None]  # (what is being done, its share or None)


@dataclass(frozen=True, slots=True)
class LoopOptions:
    """`snapshot` None: one is taken, of the contributions that pass `filters`.  `steps` or `minutes`: how long the answering model is trained, MINUTES
    where neither is given.  `replay`: a folder in data/starter's layout whose questions are trained on beside the snapshot's, so that nothing is forgotten; None: the snapshot alone."""

    out: Path
    snapshot: int | None = None
    filters: Filters = field(default_factory=Filters)
    questions: Path | None = None  # None: those of data/starter
    corpus: str = ""  # None of its own passages: retrieved here; empty: the settings'
    init: str = "default"
    steps: int | None = None
    minutes: float | None = None
    rank: int = 16  # of the low-rank differences that are trained; 0: all weights
    lr: float = 2e-4  # of these: they begin at zero; of all weights a tenth of it, as a snapshot is small
    head_lr: float = 5e-5
    replay: Path | None = PRACTICE
    limit: int | None = None
    clarify: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if self.steps is not None and self.minutes is not None:
            raise InputError("give --steps or --minutes, not both: how long to train")
        if self.rank < 0:
            raise InputError(f"--rank is {self.rank}; it must be at least 0")
        if self.steps is not None and self.steps < 1:
            raise InputError(f"--steps is {self.steps}; it must be at least 1")
        if self.minutes is not None and not 0 < self.minutes <= 60 * 24 * 30:
            raise InputError(f"--minutes is {self.minutes}; it must be above 0 and at most a month")
        if self.limit is not None and self.limit < 2:
            raise InputError(f"--limit is {self.limit}; a comparison needs 2 questions at least")
        if self.replay is not None and not plain_or_gz(self.replay / "questions.json").is_file():
            raise InputError(f"{self.replay} has no questions.json: name a folder in the layout of data/practice, or none")


@dataclass(frozen=True, slots=True)
class Difference:
    """After minus before, over the questions where both are defined.  None where nothing is."""

    metric: str
    before: float | None
    after: float | None
    n: int
    difference: float | None
    interval: tuple[float, float] | None
    p_value: float | None


@dataclass(frozen=True, slots=True)
class LoopResult:
    """`verdict`: better, worse, or undecided (the interval contains 0).  `before` and `after` are ids of stored evaluations.  `checkpoint`: the one to use
    from now on; after "worse" the one that the loop began with."""

    snapshot: int
    checkpoint: str
    before: str
    after: str
    verdict: str  # the name in result.json
    differences: tuple[Difference, ...]
    questions: int
    left_out: int  # questions of the file that are in the snapshot, or were trained on beside it
    trained_on: int

    @property
    def main(self) -> Difference:
        return self.differences[0]

    def words(self) -> str:
        d = self.main
        if d.difference is None or d.before is None or d.after is None:
            return "Neither run has a defined F1 answer: nothing can be said."
        between = f", 95% interval {d.interval[0]:+.3f} to {d.interval[1]:+.3f}" if d.interval else ""
        conclusion = {
            "better": "The new model is better",
            "worse": "The new model is worse and is not kept",
            "undecided": "No difference is shown",
        }[self.verdict]
        return (
            f"{conclusion}: F1 answer {d.before:.3f} before, {d.after:.3f} after ({d.difference:+.3f}{between}) "
            f"on {d.n} questions that are not in snapshot {self.snapshot}."
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"words": self.words()}


def run_loop(
    store: StoreParts,
    settings: Settings,
    options: LoopOptions,
    *,
    run: Runner = run_command,
    progress: Progress = lambda _activity, _share: None,
) -> LoopResult:
    """The whole loop; what is in `options.out` already is not repeated.

    `progress` may raise CancelledError: the running process is stopped, and the next call continues.  Raises InputError where nothing is left
    to train on or to ask, or `out` is another loop's; ConflictError while another one runs there; NotFoundError for an unknown snapshot; StorageError for a changed snapshot; AmbiscopeError
    with the last words of a training or an evaluation that failed.
    """
    with locked(options.out, "a loop"):
        return _Loop(store, settings, options, run, progress).result()


class _Loop:
    def __init__(self, store: StoreParts, settings: Settings, options: LoopOptions, run: Runner, progress: Progress) -> None:
        self.store, self.settings, self.options, self.run, self.progress = store, settings, options, run, progress
        self.out = options.out.absolute()
        self.questions_file = options.questions or settings.starter_dir / "questions.json"
        if not self.questions_file.is_file():
            raise InputError(f"{self.questions_file}: no such file")
        self.state = self._claim()

    # ------------------------------------------------------------ the folder

    def _claim(self) -> dict[str, Any]:
        """The state of the folder.  Raises InputError where it is not this loop's, FormatError where it is damaged."""
        file, replay = self.out / "loop.json", self.options.replay
        # what must be the same for a folder to be continued; files may have moved
        identity = {
            k: v for k, v in asdict(self.options).items() if k not in ("out", "snapshot", "filters", "questions", "replay")
        } | {
            "minutes": self.options.minutes or (None if self.options.steps else MINUTES),
            "asked_snapshot": self.options.snapshot,
            "filters": self.options.filters.to_json(),
            "questions": digest(self.questions_file),
            "replay": digest(plain_or_gz(replay / "questions.json")) if replay else None,
        }
        if file.exists():
            try:
                state = json.loads(file.read_text(encoding="utf-8"))
                earlier = state["identity"]
            except (OSError, ValueError, KeyError, TypeError):
                raise FormatError("damaged: name another folder, or delete this one", file=file) from None
            check_same_run(self.out, earlier, identity)
            return dict(state)
        if any(p.name not in (LOCK, HOLDER) for p in self.out.iterdir()):
            raise InputError(f"{self.out} is not empty and holds no loop: name another folder with --out")
        return {"identity": identity}

    def _note(self, **parts: Any) -> None:
        self.state |= parts
        write_json(self.out / "loop.json", self.state)

    # ------------------------------------------------------------ the parts

    def result(self) -> LoopResult:
        snapshot, file = self._snapshot()
        trainable, questions = _trainable(file), questions_left(self.questions_file, file, self.options.replay)
        count, left_out = len(questions.rows), questions.left_out
        if count < 2:
            raise InputError(
                f"{self.questions_file}: {left_out} of its {left_out + count} questions were trained on, so {count} "
                "can be asked, and a comparison needs 2: give other questions with --questions, or a snapshot with fewer"
            )
        self._note(snapshot=snapshot.number, snapshot_sha256=snapshot.sha256)  # not one with too little to train on or to ask
        questions_file = self.out / ("questions.jsonl" if questions.lines else "questions.json")
        text = questions.text()
        if not questions_file.exists() or questions_file.read_text(encoding="utf-8") != text:
            write_text(questions_file, text)
        count = min(count, self.options.limit or count)
        before = self._evaluate("before", self.options.init, questions_file, count)
        checkpoint = str(self._train(file))
        after = self._evaluate("after", checkpoint, questions_file, count, before)
        return self._conclude(snapshot, checkpoint, questions, {"before": before, "after": after}, trainable)

    def _snapshot(self) -> tuple[Snapshot, Path]:
        folder = self.settings.home / "snapshots"
        number = self.state.get("snapshot", self.options.snapshot)
        if number is None:
            self.progress("taking a snapshot", None)
            number = self.store.exports.take_snapshot(folder, filters=self.options.filters, note="taken by the loop").number
        snapshot = self.store.exports.get_snapshot(number)
        files = self.store.exports.snapshot_files(number, folder)
        if "training" not in files:
            raise InputError(f"snapshot {number} has no training file: take one with the format training")
        return snapshot, files["training"]

    def _train(self, training: Path) -> Path:
        options, folder = self.options, self.out / "train"
        minutes = MINUTES if options.minutes is None else options.minutes
        best = folder / "best"
        if self.state.get("trained"):
            if not (best / "config.json").is_file():
                raise StorageError(f"{best} is gone: delete {self.out} to train again")
            return best
        command = _arguments(
            ["train", "answerer"],
            stage="tune",
            init=_placed(options.init),
            multi=training,
            out=folder,
            rank=options.rank,
            lr=options.lr,
            head_lr=options.head_lr,
            seed=options.seed,
            annotated=options.replay and options.replay.absolute(),
            minutes=minutes if options.steps is None else None,
            steps=options.steps or 1_000_000,
            evaluate_every=max(1, options.steps // 4) if options.steps else 100,
        )

        def watch() -> None:
            row = last_row(folder / "log.jsonl")
            step = row.get("step", 0)
            share = step / options.steps if options.steps else row.get("minutes", 0.0) / minutes
            self.progress(f"training: step {step}", min(1.0, share))

        self._command(command, "train.log", watch)
        if not (best / "config.json").is_file():
            raise AmbiscopeError(f"the training ended without a checkpoint in {best}: see {self.out / 'train.log'}")
        self._note(trained=True)
        return best

    def _evaluate(
        self, name: str, answerer: str, questions: Path, total: int, before: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """The report.  Raises InputError where it is not over the same passages as the one `before`."""
        options, folder = self.options, self.out / name
        report = folder / "report.json"
        if not (self.state.get(name) and report.is_file()):
            command = _arguments(
                ["evaluate"],
                system=MEASURED,
                questions=questions,
                out=folder,
                seed=options.seed,
                corpus=options.corpus or None,
                limit=options.limit,
            )
            command += [] if options.clarify else ["--no-clarify"]

            def watch() -> None:
                count = lines(folder / "rows.jsonl")
                self.progress(f"measuring {name}: question {count} of {total}", count / total)

            self._command(command, f"{name}.log", watch, answerer=_placed(answerer))
        try:
            body = json.loads(report.read_text(encoding="utf-8"))
            if not isinstance(body["rows"], list) or not isinstance(body["scores"], dict):
                raise TypeError
        except (OSError, ValueError, KeyError, TypeError):
            raise FormatError(f"no report of an evaluation: delete {folder}", file=report) from None
        if before is not None:  # the setting of a corpus, or the corpus itself, may have changed during the training
            check_same_run(folder, _retrieval(body), _retrieval(before))
        self._note(**{name: True})
        return dict(body)

    def _command(self, arguments: list[str], log: str, watch: Callable[[], None], **changes: str) -> None:
        """Raises AmbiscopeError with the command's last words where it fails, whatever `watch` raises where that ends it."""
        environment = child_environment(home=str(self.settings.home), **changes)
        self.run([sys.executable, "-m", "core", *arguments], environment, self.out / log, watch)

    # ------------------------------------------------------------ the end

    def _conclude(
        self,
        snapshot: Snapshot,
        checkpoint: str,
        questions: Questions,
        reports: Mapping[str, dict[str, Any]],
        trained_on: int,
    ) -> LoopResult:
        differences = tuple(_difference(m, reports["before"], reports["after"]) for m in METRICS)
        low, high = differences[0].interval or (0.0, 0.0)
        verdict = "better" if low > 0 else "worse" if high < 0 else "undecided"
        if verdict == "worse":
            checkpoint = _placed(self.options.init)
        ids = dict(self.state.get("evaluations", {}))
        for name, report in reports.items():
            if name not in ids:
                details: dict[str, Any] = {"snapshot": snapshot.number, "snapshot_sha256": snapshot.sha256, "part": name}
                if ids:
                    details |= {"before": ids["before"], "verdict": verdict, "differences": [asdict(d) for d in differences]}
                system = object_of(object_of(report, "provenance"), "system")
                ids[name] = self.store.evaluations.save_evaluation(
                    system=str(system.get("name", self.settings.system)),
                    corpus=str(system.get("corpus", self.options.corpus or self.settings.corpus)),
                    questions=f"{self.questions_file.name} without snapshot {snapshot.number}",
                    metrics=report["scores"],
                    report=json.loads(json.dumps({**report, "loop": details})),  # tuples become lists
                    label=f"{name} training from snapshot {snapshot.number}",
                )
                self._note(evaluations=ids)
        result = LoopResult(
            snapshot.number,
            checkpoint,
            ids["before"],
            ids["after"],
            verdict,
            differences,
            len(questions.rows),
            questions.left_out,
            trained_on,
        )
        write_json(self.out / "result.json", result.to_json())
        self.progress("done", 1.0)
        return result


def _arguments(command: list[str], **options: object) -> list[str]:
    """The command with the options that are not None."""
    words = {f"--{name.replace('_', '-')}": str(value) for name, value in options.items() if value is not None}
    return [*command, *chain.from_iterable(words.items())]


def _placed(name: str) -> str:
    """A folder by its whole path (the commands run elsewhere); a bundled or hub name as it is."""
    path = Path(name).expanduser()
    return str(path.absolute()) if path.is_dir() else name


def _trainable(file: Path) -> int:
    """How many questions there are to train on: also those without an answer, and those of which only wrong answers are known.  Raises InputError
    where fewer than MIN_ANSWERED have a correct answer: wrong answers alone teach no answering."""
    answered, trainable = 0, 0
    with file.open(encoding="utf-8") as rows:
        for line in rows:
            row = json.loads(line)
            if row["passages"]:
                answered += bool(row["answers"])
                trainable += bool(row["answers"] or row.get("no_answer") or row.get("answers_known") is False)
    if answered < MIN_ANSWERED:
        raise InputError(
            f"{answered} judged questions have a correct answer and passages to read, and a training needs {MIN_ANSWERED}: judge more answers first"
        )
    return trainable


def _retrieval(report: Mapping[str, Any]) -> dict[str, Any]:
    """What the answers were read from, as far as the report says."""
    system = object_of(object_of(report, "provenance"), "system")
    settings = object_of(system, "settings")
    return {
        **{name: system.get(name) for name in ("corpus", "corpus_digest")},
        **{name: settings.get(name) for name in ("retrieval", "top_k")},
    }


def _difference(metric: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Difference:
    def values(report: Mapping[str, Any]) -> dict[str, float]:
        scores = {row["id"]: row["metrics"].get(metric) for row in report["rows"] if row.get("error") is None}
        return {question: value for question, value in scores.items() if value is not None}

    old, new = values(before), values(after)
    shared = [question for question in old if question in new]
    sides = [old[question] for question in shared], [new[question] for question in shared]
    means = [fmean(side) if side else None for side in sides]
    c = compare(sides[1], sides[0])
    return Difference(metric, means[0], means[1], c.n, c.difference, c.interval, c.p_value)
