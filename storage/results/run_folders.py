"""Stores run folders of `python -m core evaluate --out` in the database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core.evaluation.folder import REPORT, read_report, read_traces
from storage.results.evaluations import Evaluations


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """`new`: False if an equal run was stored already."""

    id: str
    system: str
    n: int
    new: bool


def import_run(evaluations: Evaluations, folder: Path, label: str = "") -> ImportedRun:
    """Stores a finished run with its rows and traces; the same run twice is stored once.

    Raises InputError for a folder without a report, FormatError for a damaged one, StorageError.
    """
    report = read_report(folder)
    finished = datetime.fromtimestamp((folder / REPORT).stat().st_mtime, UTC)
    before = evaluations.count_evaluations()
    saved, name = save_run(evaluations, report, read_traces(folder), label, finished)
    return ImportedRun(saved, name, len(report["rows"]), evaluations.count_evaluations() > before)


def save_run(
    evaluations: Evaluations,
    report: Mapping[str, Any],
    traces: Iterable[tuple[str, Mapping[str, Any]]],
    label: str = "",
    finished: datetime | None = None,
) -> tuple[str, str]:
    """Stores a run's report and traces, once; returns its id and the name of its system."""
    provenance = report["provenance"]
    system: dict[str, Any] = provenance["system"] if isinstance(provenance.get("system"), dict) else {}
    name = str(system.get("name") or "unknown")
    saved = evaluations.save_evaluation(
        system=name,
        corpus=str(system.get("corpus") or "the questions' own passages"),
        questions=str(provenance.get("questions") or provenance.get("questions_digest") or "unknown"),
        metrics=report["scores"],
        report=report,
        label=label,
        finished=finished,
        traces=traces,
    )
    return saved, name
