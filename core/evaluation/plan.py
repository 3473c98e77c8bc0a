"""An evaluation's settings as plain values, made by the command line or the Evaluate page and stored in the run folder."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core import trace
from core.datasets.excluded import excluded_questions
from core.disk import locked, write_json
from core.engine import Engine
from core.errors import FormatError, InputError
from core.evaluation.folder import ABOUT, REPORT
from core.evaluation.judge import Judge, annotated, load_judge
from core.evaluation.judges import CHOICES
from core.evaluation.report import Report
from core.metrics.significance.bootstrap import check_seed
from core.registry import did_you_mean
from core.systems.base.asking import Asking
from core.text import storable
from core.types import AnsweringSystem

if TYPE_CHECKING:
    from core.evaluation.long_reader import LongReader
    from core.evaluation.run import AskQuestions


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """`tags`: labels for charts, for instance {"training questions": 100, "variant": "zero-shot"}. None means the default."""

    questions: str  # path of the question file
    layout: str | None = None  # of core.datasets.LAYOUTS; None: recognised by the file's fields
    exclude: tuple[str, ...] = ()  # paths of files whose questions are not asked, such as what the weights were trained on
    system: str | None = None
    corpus: str | None = None
    limit: int | None = None  # ask only the first questions, this many
    top_k: int | None = None
    max_answers: int | None = None
    stop_above: float | None = None
    clarify: bool = True
    check_coverage: bool = True
    extra: Mapping[str, Any] = field(default_factory=dict)
    judge: str | None = None
    seed: int = 0
    traces: bool = False
    batch: int = 1
    tags: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.judge is not None and self.judge not in CHOICES:
            raise InputError(f"the judge is '{self.judge}'; use one of {', '.join(CHOICES)}")
        if self.limit is not None and self.limit < 1:
            raise InputError(f"the limit is {self.limit}; it must be at least 1")
        check_seed(self.seed)  # now: intervals are drawn when every question was asked
        if infinite := [name for name, value in self.tags.items() if isinstance(value, float) and not math.isfinite(value)]:
            raise InputError(f"the tag '{infinite[0]}' is {self.tags[infinite[0]]}; it must be a finite number or text")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> EvaluationPlan:
        """Raises InputError for a run folder without valid settings."""
        try:
            return trace.from_json(cls, value)
        except FormatError as e:
            problem = f"the run folder's {ABOUT} is not of this version ({e}); go on with `python -m core evaluate --out`"
            raise InputError(problem) from None


def evaluate(
    system: str | None,
    questions: str | Path,
    corpus: str | None = None,
    *,
    engine: Asking | None = None,
    out_dir: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    **plan: Any,
) -> Report:
    """Evaluates a system on a question file: `run_plan` in one call.  `plan`: further fields of EvaluationPlan, such as `limit`
    and `clarify`.

    `engine`: one that is loaded already.  core.evaluation.run.evaluate takes a system and questions as objects.
    Raises what `run_plan` does, and InputError for a field that a plan does not have.
    """
    names = [f.name for f in fields(EvaluationPlan)]
    if wrong := next((name for name in plan if name not in names), None):
        raise InputError(f"evaluate takes no '{wrong}'.{did_you_mean(wrong, names)} It takes {', '.join(names)}")
    complete = EvaluationPlan(questions=str(Path(questions).resolve()), system=system, corpus=corpus, **plan)
    return run_plan(complete, engine or Engine(), out_dir, progress=progress)


@dataclass(frozen=True)
class PreparedPlan:
    """The loaded parts that answer and judge a plan's questions.  `own_passages`: the questions bring their own."""

    system: AnsweringSystem
    judge: Judge | None
    long_reader: tuple[str, LongReader] | None
    own_passages: bool
    judge_name: str


AskElsewhere = Callable[
    [PreparedPlan, EvaluationPlan], "AskQuestions"
]  # asks the questions in place of this process (core.cluster.jobs)


def prepared(
    plan: EvaluationPlan, engine: Asking, own_passages: bool, judge_name: str, cancelled: Callable[[], bool] | None = None
) -> PreparedPlan:
    """Loads the system, the judge and the reader.  Raises InputError for wrong options, CheckpointError."""
    from core.evaluation.long_reader import load_long_reader

    settings = engine.settings
    names = ("top_k", "max_answers", "stop_above", "clarify", "check_coverage", "extra")
    options = engine.options(**{name: getattr(plan, name) for name in names})
    judge = None if judge_name == "none" else load_judge(judge_name, settings)
    reader = load_long_reader(settings)
    long_reader = (settings.asqa_reader, reader) if reader is not None else None
    system = engine.system(plan.system, plan.corpus, options, cancelled, own_passages=own_passages)
    return PreparedPlan(system, judge, long_reader, own_passages, judge_name)


def run_plan(
    plan: EvaluationPlan,
    engine: Asking,
    out_dir: Path | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
    say: Callable[[str], None] | None = None,
    elsewhere: AskElsewhere | None = None,
) -> Report:
    """Runs the evaluation.  With `out_dir`, the report and the plan are stored there.  `say` receives messages about a resumed
    run.

    Raises FormatError or InputError for wrong questions or options, ConflictError while another evaluation writes in `out_dir`, CheckpointError,
    CancelledError, StorageError.
    """
    from core.datasets import load
    from core.evaluation import run

    with locked(out_dir, "an evaluation") if out_dir is not None else nullcontext():
        path = Path(plan.questions)
        questions = load(path, plan.layout)
        if plan.exclude:
            total = len(questions)
            questions = excluded_questions([Path(file) for file in plan.exclude]).without(questions)
            if not questions:
                raise InputError(f"{path}: all {total} questions are in the excluded files; give other questions")
        judge_name = plan.judge or ("references" if annotated(questions) else "none")
        own_passages = all(q.passages is not None for q in questions[: plan.limit])
        asking = prepared(plan, engine, own_passages, judge_name, cancelled)
        total = min(len(questions), plan.limit or len(questions))
        if progress is not None:
            progress(0, total)
        about = {
            **plan.to_json(),
            "questions": storable(plan.questions),
            "exclude": [*map(storable, plan.exclude)],
            "system": asking.system.info.name,
            "total": total,
        }
        if out_dir is not None and not (out_dir / ABOUT).exists():  # keep another run's file: evaluate refuses its folder
            write_json(out_dir / ABOUT, about)
        report = run.evaluate(
            asking.system,
            questions,
            out_dir=out_dir,
            limit=plan.limit,
            seed=plan.seed,
            progress=progress,
            judge=asking.judge,
            traces=plan.traces and out_dir is not None,
            batch=plan.batch,
            facts={"questions": storable(path.name), "tags": dict(plan.tags), "limit": plan.limit},
            say=say,
            long_reader=asking.long_reader,
            ask=elsewhere(asking, plan) if elsewhere else None,
        )
        if out_dir is not None:
            write_json(out_dir / ABOUT, about)
            write_json(out_dir / REPORT, report.to_json())
        return report
