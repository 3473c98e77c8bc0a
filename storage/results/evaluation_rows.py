"""Writes an evaluation: its report is split into rows, values, means and traces."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

from sqlalchemy import Integer, func, insert, select, type_coerce
from sqlalchemy.orm import Session

from core.errors import InputError
from core.json_io import dumps
from core.types import Scope
from storage.records.checks import MAX_ID_CHARS, plain_problem
from storage.schema import tables

_RUN, _ROW, _VALUE, _SCORE = tables.Evaluation, tables.EvaluationRow, tables.EvaluationValue, tables.EvaluationScore
# core.metrics.errors' names
BUCKETS = ("missed", "spurious", "alias_mismatch", "duplicate", "stopped_early", "ran_on", "not_retrieved")
MAX_LABEL_CHARS = 120
_CHUNK = 500  # rows written at a time

JsonRow = dict[str, Any]


def _sound_rows(value: Any) -> list[JsonRow]:
    """The rows; empty if they aren't an evaluation's and so stay in the report.  Raises InputError for equal ids."""
    if not isinstance(value, list):
        return []
    if not all(isinstance(row, dict) and isinstance(row.get("id"), str) and "error" in row for row in value):
        return []
    ids: set[str] = set()
    for row in value:
        if row["id"] in ids or not row["id"] or len(row["id"]) > MAX_ID_CHARS:
            raise InputError(f"the report's row '{row['id'][:80]}' has no id of its own of 1 to {MAX_ID_CHARS} characters")
        ids.add(row["id"])
    return value


def store_traces(session: Session, public_id: str, traces: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    """Traces of a run's questions, one in memory at a time; those of questions that the run does not have are skipped.

    Raises InputError for one that cannot be stored.
    """
    table = tables.EvaluationTrace
    query = select(_ROW.question_id, _ROW.evaluation_id, _ROW.position).join(_RUN, _RUN.id == _ROW.evaluation_id)
    keys = {name: (key, position) for name, key, position in session.execute(query.where(_RUN.public_id == public_id))}
    for name, body in traces:
        if name not in keys:
            continue
        if problem := plain_problem(dict(body)):
            raise InputError(f"the trace of question '{name[:80]}' cannot be stored: {problem}")
        key, position = keys[name]
        session.merge(table(evaluation_id=key, position=position, trace=dict(body)))
        session.flush()
        session.expunge_all()


def _columns(key: int, position: int, row: JsonRow) -> JsonRow:
    fine = row["error"] is None
    answers, references = row.get("answers"), row.get("references")
    counts = object_of(row, "errors")
    return {
        "evaluation_id": key,
        "position": position,
        "question_id": row["id"],
        "question": _text(row.get("question")),
        "source": _text(row.get("source")) or None,
        "ambiguity": _text(row.get("ambiguity")) or None,
        "ambiguous": bool(row.get("ambiguous")),
        "error": None if fine else str(row["error"]),
        "seconds": _number(row.get("seconds")),
        "answer_count": len(answers) if fine and isinstance(answers, list) else None,
        # annotators disagree on the number: the first one's
        "reference_count": len(references[0]) if isinstance(references, list) and references else None,
        **{name: _integer(counts.get(name)) for name in BUCKETS},
        "body": row,
    }


def _values(key: int, position: int, row: JsonRow) -> Iterator[JsonRow]:
    weights = object_of(row, "weights")
    for metric, value in object_of(row, "metrics").items():
        number, weight = _number(value), _number(weights.get(metric))
        if number is not None:
            weight = 1.0 if weight is None else weight
            yield {"evaluation_id": key, "metric": metric, "position": position, "value": number, "weight": weight}


def digest_of(content: Mapping[str, Any]) -> str:
    """Identifies a measurement: equal reports of equal rows are one."""
    report = {name: value for name, value in content["report"].items() if name != "rows"}
    digest = hashlib.sha256()
    for part in (content["system"], content["corpus"], content["questions"], content["metrics"], report):
        digest.update(dumps(part).encode() + b"\n")
    rows = content["report"].get("rows") or []
    if not isinstance(rows, list):
        raise InputError(f"the report's rows are no list but {type(rows).__name__}: give a report that `core evaluate` wrote")
    for row in rows:
        digest.update(dumps(row).encode() + b"\n")
    return digest.hexdigest()


def add_evaluation(session: Session, *, report: Mapping[str, Any], label: str = "", **columns: Any) -> tables.Evaluation:
    """Stores checked content inside the caller's transaction.  `columns`: those that do not follow from the report."""
    report = dict(report)
    rows = _sound_rows(report.get("rows"))
    if rows:
        del report["rows"]
    provenance, timings = object_of(report, "provenance"), object_of(report, "timings")
    system, tags = object_of(provenance, "system"), object_of(provenance, "tags")
    run = _RUN(
        report=report,
        label=label.strip(),
        tags=tags or None,
        checkpoint=_text(system.get("checkpoint")),
        checkpoint_digest=_text(system.get("checkpoint_digest")),
        code_commit=_text(provenance.get("commit")),
        seed=_integer(provenance.get("seed")),
        n=_integer(report.get("n")),
        failed=_integer(report.get("failed")),
        parameters=_integer(provenance.get("parameters")),
        peak_memory_mb=_number(timings.get("peak_memory_mb")),
        seconds_median=_number(timings.get("seconds_median")),
        seconds_p95=_number(timings.get("seconds_p95")),
        **columns,
    )
    session.add(run)
    session.flush()
    for start in range(0, len(rows), _CHUNK):
        part = list(enumerate(rows[start : start + _CHUNK], start))
        session.execute(insert(_ROW), [_columns(run.id, position, row) for position, row in part])
        if values := [value for position, row in part for value in _values(run.id, position, row)]:
            session.execute(insert(_VALUE), values)
    _store_scores(session, run.id, report)
    return run


def _store_scores(session: Session, key: int, report: Mapping[str, Any]) -> None:
    """The report's means and intervals with the number of questions behind them, counted by the database."""
    query = select(_VALUE.metric, func.count(), func.sum(type_coerce(_ROW.ambiguous, Integer))).join(
        _ROW, (_ROW.evaluation_id == _VALUE.evaluation_id) & (_ROW.position == _VALUE.position)
    )
    counts = {
        name: (n, multi) for name, n, multi in session.execute(query.where(_VALUE.evaluation_id == key).group_by(_VALUE.metric))
    }
    for metric, means in object_of(report, "scores").items():
        for number, scope in enumerate(get_args(Scope)):
            mean = _number(means.get(scope)) if isinstance(means, dict) else None
            if mean is None:
                continue
            ends = object_of(object_of(report, "intervals"), metric).get(scope)
            low, high = ends if isinstance(ends, list) and len(ends) == 2 else (None, None)
            n = int(counts.get(metric, (0, 0))[number] or 0)
            score = {"scope": scope, "n": n, "mean": mean, "low": _number(low), "high": _number(high)}
            session.add(_SCORE(evaluation_id=key, metric=metric, **score))
    session.flush()


def object_of(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A part of a report, which may come from another program; empty if it isn't an object."""
    part = value.get(name)
    return part if isinstance(part, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _integer(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
