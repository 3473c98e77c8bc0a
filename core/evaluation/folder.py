"""A run folder of `evaluate`: `run.json` (its provenance), `about.json` (how to resume), `rows.jsonl`, `traces.jsonl` if traces
are kept, and `report.json`.

A row is written after its trace, so that a kill between the two loses nothing: the question is asked again, and of two traces the
last one counts.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core import disk, json_io, trace
from core import types as t
from core.errors import AmbiscopeError, FormatError, InputError, StorageError

ROWS, RUN, ABOUT, REPORT, TRACES = "rows.jsonl", "run.json", "about.json", "report.json", "traces.jsonl"


@dataclass(frozen=True, slots=True)
class RunState:
    """The state of a run folder.  `rows` counts answered questions, including failed ones; `total` is None if unknown."""

    path: Path
    rows: int
    total: int | None
    finished: datetime | None  # when report.json was written
    about: Mapping[str, Any] = field(default_factory=dict)  # content of about.json: the plan's fields, and `total`

    @property
    def name(self) -> str:
        return self.path.name


def pack(prediction: t.Prediction, question_id: str) -> str:
    """Encodes one line of traces.jsonl."""
    body = json.dumps(trace.to_json(prediction), ensure_ascii=False, default=str).encode("utf-8", "replace")
    return json.dumps({"id": question_id, "trace": base64.b64encode(zlib.compress(body, 6)).decode()}) + "\n"


def trim(path: Path) -> str:
    """Removes an incomplete last line, as a kill leaves it, and returns it; "" if the last line is complete.  Raises
    StorageError."""
    try:
        if not path.is_file():
            return ""
        raw = path.read_bytes()
        end = raw.rfind(b"\n") + 1
        if end < len(raw):
            with path.open("r+b") as stream:
                stream.truncate(end)
        return raw[end:].decode("utf-8", "replace")
    except OSError as e:
        raise StorageError(f"{path} cannot be read ({disk.describe_error(e, path)}); check the disk") from e


def read_traces(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(question id, core.trace.to_json of its prediction); nothing if the run kept no traces.  An incomplete last line is
    skipped; of equal ids the last counts.

    Raises FormatError for a damaged trace.
    """
    path = folder / TRACES
    if not path.is_file():
        return
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            if not line.endswith(b"\n") or not line.strip():
                continue
            row = json_io.parse(line.decode("utf-8", "replace"), file=path.name, line=number)
            try:
                yield str(row["id"]), json.loads(zlib.decompress(base64.b64decode(row["trace"], validate=True)))
            except (KeyError, TypeError, ValueError, zlib.error) as e:
                problem = f"not a trace of an evaluation ({e}); remove the file to continue without it"
                raise FormatError(problem, file=path.name, line=number) from None


def read_report(folder: Path) -> dict[str, Any]:
    """The report of a finished run.  Raises InputError if there is none, FormatError if it has another layout."""
    path = folder / REPORT
    if not path.is_file():
        unfinished = (folder / ROWS).is_file() or (folder / RUN).is_file()
        reason = "the run has not finished: start it again with --out to resume" if unfinished else "no run folder"
        raise InputError(f"{folder} has no {REPORT}; {reason}")
    report = json_io.read(path)
    if not isinstance(report, dict):
        raise FormatError("expected an object", file=path.name)
    for name, kind in (("rows", list), ("scores", dict), ("intervals", dict), ("provenance", dict), ("timings", dict)):
        if not isinstance(report.get(name), kind):
            raise FormatError("not an evaluation report, or one of another version; evaluate again", file=path.name, field=name)
    for i, row in enumerate(report["rows"]):
        is_row = isinstance(row, dict) and isinstance(row.get("id"), str) and "error" in row
        if not is_row or not (row["error"] is not None or isinstance(row.get("metrics"), dict)):
            raise FormatError("not a row of an evaluation", file=path.name, field=f"rows[{i}]")
    return report


def state_of(folder: Path) -> RunState:
    """The state of a folder; damaged metadata is ignored."""
    rows, report = folder / ROWS, folder / REPORT
    try:
        about = json_io.read(folder / ABOUT)
    except AmbiscopeError:
        about = {}
    about = about if isinstance(about, dict) else {}
    total = about.get("total")
    return RunState(
        folder,
        rows.read_bytes().count(b"\n") if rows.is_file() else 0,
        total if isinstance(total, int) else None,
        datetime.fromtimestamp(report.stat().st_mtime, UTC) if report.is_file() else None,
        about,
    )


def run_states(folder: Path) -> list[RunState]:
    """The run folders in `folder`, most recently changed first."""
    if not folder.is_dir():
        return []
    folders = {path.parent for name in (RUN, REPORT) for path in folder.glob(f"*/{name}")}
    states = [state_of(p) for p in folders if (p / ROWS).is_file() or (p / ABOUT).is_file()]
    return sorted(states, key=lambda s: (s.path / RUN).stat().st_mtime if (s.path / RUN).is_file() else 0.0, reverse=True)
