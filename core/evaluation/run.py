"""`evaluate`: runs a system on questions, stores one row per question as it goes, and builds the report.

A question that fails is counted as failed with its error, never as 0.  A judge's failure is no failure of the system: the row stays, with
the judged figures undefined.  A run that was killed resumes where it stopped, and asks again what failed.
"""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core import json_io, trace
from core import types as t
from core.disambiguation.outcome import result_of
from core.disk import append_line, check_same_run, locked, write_json, write_text
from core.errors import (
    AmbiscopeError,
    CancelledError,
    CheckpointError,
    ConflictError,
    FormatError,
    IndexMismatchError,
    InputError,
    StorageError,
)
from core.evaluation.cost import cost_of
from core.evaluation.folder import ROWS, RUN, TRACES, pack, trim
from core.evaluation.long_reader import LongReader, read_long
from core.evaluation.parameters import parameters_of
from core.evaluation.report import Report, ReportRow, build_report, digest_of, row_head, to_plain
from core.metrics import METRICS, weights_of
from core.metrics.base import Example
from core.metrics.calibration import ends_of, judged
from core.metrics.errors import errors_of
from core.metrics.score.scoring import values_and_errors
from core.metrics.significance.bootstrap import BOOTSTRAP_SAMPLES
from core.systems.base.batching import in_order
from core.text import storable

if TYPE_CHECKING:
    from core.evaluation.judge import Judge
    from core.metrics.judged import Grounding


_FORMAT = 5  # of rows.jsonl; rows of another format are not reused
MAX_BATCH = 64
_OUR_OWN = (CancelledError, CheckpointError, IndexMismatchError, StorageError, MemoryError)  # not specific to one question
_GO_ON = "free some space and start again to resume"
# questions -> the rows of `run_one`, in any order
AskQuestions = Callable[[Sequence[t.ReferenceQuestion]], Generator[ReportRow, None, None]]
_CANCELLED = ("cancelled", "stopped by a person")  # values of Finished.why


def evaluate(
    system: t.AnsweringSystem,
    questions: Sequence[t.ReferenceQuestion],
    *,
    out_dir: Path | None = None,
    limit: int | None = None,
    seed: int = 0,
    bootstrap: int = BOOTSTRAP_SAMPLES,
    progress: Callable[[int, int], None] | None = None,
    judge: Judge | None = None,
    traces: bool = False,
    batch: int = 1,
    facts: Mapping[str, Any] | None = None,
    say: Callable[[str], None] | None = None,
    long_reader: tuple[str, LongReader] | None = None,
    ask: AskQuestions | None = None,
) -> Report:
    """Asks each question once and reports.

    `limit`: how many questions are asked, the first ones.  `out_dir`: gets `rows.jsonl` (one flushed JSON row a question) and `run.json` (what made them); if it has
    rows of the same system, settings, checkpoint and questions, these are kept and not asked again, except those that failed.  `progress` is called
    with (done, total) after each question.  `seed` draws the `bootstrap` samples.  `judge`: decides what passages support (core.evaluation.judge), for the grounded metrics.
    `traces`: keeps each prediction, compressed, in `out_dir`.  `batch`: how many questions are worked on at a time (core.systems.base.batching); the
    rows keep the file's order, and a question's seconds then include waiting for the others.  `facts`: plain values for the provenance (name of the question file, tags).
    `long_reader`: name and reader of Disambig-F1 (core.evaluation.long_reader).  `ask`: another source of the rows of `run_one`, such as several
    machines; rows are stored as they come, and are in the file's order in the report.
    `say` receives messages about an earlier run in `out_dir`: how many rows are kept, and an incomplete row that is made again.

    Raises InputError for no questions, a bad limit, equal ids, or an `out_dir` of another run; ConflictError while another evaluation writes there, and where
    a service answers with another system than at the start;
    FormatError for damaged rows; StorageError when the disk refuses; CancelledError when a person stops the run (what was answered stays in `out_dir`).
    """
    _check(questions, limit, bootstrap, batch)
    say = say or (lambda _: None)
    with locked(out_dir, "an evaluation") if out_dir is not None else nullcontext():
        identity = {"format": _FORMAT, "system": to_plain(trace.to_json(system.info)), "questions": digest_of(questions)}
        if judge is not None:
            identity["judge"] = to_plain(dict(judge.about))
        if long_reader is not None:
            identity["asqa_reader"] = f"{long_reader[0]} {long_reader[1].weights}"
        todo = list(questions[:limit])
        rows = _resume(out_dir, identity, say) if out_dir is not None else {}
        waiting = [q for q in todo if q.id not in rows]

        def tell(answered: int) -> None:
            if progress is not None:
                progress(len(todo) - len(waiting) + answered, len(todo))

        if len(waiting) < len(todo):
            tell(0)
        new_rows = ask(waiting) if ask else in_order(lambda q: run_one(system, q, judge, traces, long_reader), waiting, batch)
        with closing(new_rows):
            for number, row in enumerate(new_rows, 1):
                if to_plain(trace.to_json(system.info)) != identity["system"]:
                    raise ConflictError(
                        "the service was started again with other weights, settings or passages: rows of both would be mixed; "
                        "start the evaluation again with another output folder"
                    )
                packed = row.pop("trace", None)
                if out_dir is not None:
                    if packed is not None:
                        append_line(out_dir / TRACES, packed, _GO_ON)
                    append_line(out_dir / ROWS, _line(row), _GO_ON)
                rows[row["id"]] = row
                tell(number)
        return build_report(
            [rows[q.id] for q in todo],
            system.info,
            seed=seed,
            bootstrap=bootstrap,
            questions_digest=identity["questions"],
            judge=dict(judge.about) if judge is not None else None,
            facts={
                "parameters": parameters_of(system),
                "asqa_reader": long_reader[0] if long_reader else None,
                **(facts or {}),
            },
        )


def run_one(
    system: t.AnsweringSystem,
    question: t.ReferenceQuestion,
    judge: Judge | None = None,
    traced: bool = False,
    long_reader: tuple[str, LongReader] | None = None,
) -> ReportRow:
    """One question's row: answers, metrics, errors and seconds, or the reason why it failed, with a compressed `trace` if
    requested."""
    row = row_head(question)
    prompt = t.Question(question.question, id=question.id, passages=question.passages)
    start = time.perf_counter()
    try:
        prediction = trace.fold(prompt, system.info, system.run(prompt))
    except _OUR_OWN:
        raise
    except Exception as e:  # an error on one question must not lose the others
        return row | {"error": storable(_message(e)), "seconds": time.perf_counter() - start}
    seconds = time.perf_counter() - start
    if any(isinstance(e, t.Finished) and e.why in _CANCELLED for e in prediction.events):
        raise CancelledError("the evaluation was stopped; start it again with the same output folder to resume")
    grounding, judge_error = None, None
    try:
        grounding = judge.judge(question, prediction) if judge is not None else None
        judge_error = (grounding.error or None) if grounding is not None else None
    except _OUR_OWN:
        raise
    except Exception as e:  # nor may an error of a judge lose the system's own row
        judge_error = _message(e)
    example = replace(example_of(question, prediction), grounding=grounding)
    if long_reader is not None:
        name, reader = long_reader
        example = replace(example, readings=read_long(reader, name, example))
    clarifications = [prediction.clarification_of(a.text) for a in prediction.answers]
    errors = errors_of(example, [p.passage.text for p in prediction.passages] if prediction.passages else None)
    metrics, metric_errors = values_and_errors(example, list(METRICS))
    if metric_errors:
        row["metric_errors"] = {name: storable(error) for name, error in metric_errors.items()}
    if traced:
        row["trace"] = pack(prediction, question.id)
    return row | {
        "error": None,
        "judge_error": judge_error and storable(judge_error),
        "answers": [
            {
                "text": storable(answer.text),
                "probability": _number(answer.probability),
                "passages": list(dict.fromkeys(e.passage_id for e in answer.evidence)),
                "question": storable(c.question) if c else None,
                "passed": c.passed if c else None,
            }
            for answer, c in zip(prediction.answers, clarifications, strict=True)
        ],
        "outcome": result_of(prediction).outcome,
        "interpretations": None if grounding is None else _judged(grounding),
        "cost": asdict(cost_of(prediction)),
        "judge_calls": None if grounding is None else {"made": grounding.calls, "failed": grounding.failed_calls},
        "passages": len(prediction.passages),
        "k": example.k,
        "metrics": metrics,
        "errors": errors.buckets() if errors is not None else None,
        "said": {
            "answer": judged(example),
            "[EOI]": ends_of(example, prediction.steps),
        },
        "weights": weights_of(example),
        "seconds": seconds,
        "first_answer_seconds": first_answer_seconds(prediction.events),
    }


def _message(error: Exception) -> str:
    """The error's message, with its type if it isn't one of ours."""
    return (str(error) if isinstance(error, AmbiscopeError) else f"{type(error).__name__}: {error}") or type(error).__name__


def _judged(grounding: Grounding) -> list[ReportRow]:
    """The interpretations with their judgments, for the error analysis of VerDICt's Figure 3."""
    rows = [asdict(i) for i in grounding.interpretations]
    return [{k: storable(v) if isinstance(v, str) else v for k, v in row.items()} for row in rows]


def _number(probability: float) -> float | None:
    return probability if math.isfinite(probability) else None


def example_of(question: t.ReferenceQuestion, prediction: t.Prediction) -> Example:
    """The input of the metrics.  An answer without a clarification keeps the question unchanged, which is the empty edit.

    The report drops the question metrics of a system that never clarifies.
    """
    clarifications = [prediction.clarification_of(a.text) for a in prediction.answers]
    brings_passages = question.passages is not None
    wrong, long_answers = question.extra.get("wrong_answers"), question.extra.get("long_answers")
    return Example(
        prompt=question.question,
        annotations=question.annotations,
        answers=tuple(a.text for a in prediction.answers),
        questions=tuple(c.question if c and c.question else question.question for c in clarifications),
        passed=tuple(c.passed if c else None for c in clarifications),
        passages=None if brings_passages else tuple(p.passage.text for p in sorted(prediction.passages, key=lambda p: p.rank)),
        k=None if brings_passages else _top_k(prediction),
        wrong_answers=tuple(wrong) if wrong is not None else None,
        long_answers=tuple(long_answers) if long_answers else None,
        probabilities=tuple(_number(a.probability) for a in prediction.answers),
        text=prediction.long_answer,
    )


def _top_k(prediction: t.Prediction) -> int | None:
    """The number of passages requested: the system's setting, or else the number retrieved; None if nothing was retrieved."""
    if not any(isinstance(e, t.PassagesRetrieved) for e in prediction.events):
        return None
    top_k = prediction.system.settings.get("top_k")
    return top_k if isinstance(top_k, int) and top_k > 0 else len(prediction.passages) or None


def first_answer_seconds(events: Sequence[t.Event]) -> float | None:
    """The seconds of retrieval and steps before the system found its first answer; None if there is none."""
    total = 0.0
    for event in events:
        if isinstance(event, t.PassagesRetrieved):
            total += event.seconds
        elif isinstance(event, t.StepFinished):
            total += event.step.seconds
            if event.answer is not None and not event.answer.pinned:
                return total
    return None


# ---------------------------------------------------------------- the folder


def _check(questions: Sequence[t.ReferenceQuestion], limit: int | None, bootstrap: int, batch: int) -> None:
    if not questions:
        raise InputError("there are no questions to ask; give a file with at least one")
    if limit is not None and limit < 1:
        raise InputError(f"the limit is {limit}; it must be at least 1")
    if bootstrap < 1:
        raise InputError(f"the number of bootstrap samples is {bootstrap}; it must be at least 1")
    if not 1 <= batch <= MAX_BATCH:
        raise InputError(f"the batch is {batch}; it must be 1 to {MAX_BATCH}")
    twice = next((name for name, count in Counter(q.id for q in questions).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"two questions have the id '{twice}'; ids must differ")


def _resume(folder: Path, identity: ReportRow, say: Callable[[str], None]) -> dict[str, ReportRow]:
    """The rows of an earlier identical run by id.  Failed ones are removed from the file and repeated.  Raises InputError for
    another run's folder."""
    rows, run = folder / ROWS, folder / RUN
    if not run.exists():
        if rows.exists():
            raise InputError(f"{rows} exists without its run.json; give another output folder, or remove it")
        write_json(run, identity, "give a folder on a disk with enough space")
        return {}
    content = json_io.read(run)
    earlier = content if isinstance(content, dict) else {}
    system = earlier.get("system")
    no_judge = {"judge": None, "asqa_reader": None}
    check_same_run(folder, earlier | (system if isinstance(system, dict) else {}), no_judge | identity["system"] | identity)
    trim(folder / TRACES)
    incomplete = trim(rows)
    by_id = _rows(rows) if rows.exists() else {}
    answered = {name: row for name, row in by_id.items() if row["error"] is None and row.get("judge_error") is None}
    failures = len(by_id) - len(answered)
    if failures:
        write_text(rows, "".join(_line(row) for row in answered.values()), _GO_ON)
    if incomplete:
        say(f"{rows}: the last row is incomplete ({incomplete[:40]!r}); its question is asked again")
    if by_id:
        again = f", {failures} that failed are asked again" if failures else ""
        say(f"resuming in {folder}: {len(answered)} questions are answered{again}")
    return answered


def _rows(path: Path) -> dict[str, ReportRow]:
    """The rows of a file by id."""
    rows: dict[str, ReportRow] = {}
    for number, row in json_io.read_lines(path):
        metrics = row.get("metrics", {})
        is_row = isinstance(row.get("id"), str) and "error" in row and isinstance(metrics, dict)
        if not is_row or (row["error"] is None and set(metrics) != set(METRICS)):
            raise FormatError("not a row of this version's evaluation; give another output folder", file=path, line=number)
        rows[row["id"]] = row
    return rows


def _line(row: ReportRow) -> str:
    return json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"
