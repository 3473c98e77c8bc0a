"""Question files of a project: kept on disk while they are read, checked whole before anything is stored."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import streamlit as st

from core import datasets
from core.datasets import rows
from core.datasets.lines import Line
from core.errors import AmbiscopeError, FormatError, StorageError
from core.metrics import strict_json
from core.types import ReferenceQuestion
from pages import _builds, _shared
from pages._markup import plain
from storage.importing import check_file
from storage.records import RejectedRowsError

KINDS = ["json", "jsonl", "gz"]
SHOWN = 100
_READERS = {"rows": rows.question_of}  # of the others, the first wrong line is told


@contextmanager
def on_disk(file: _builds.Uploaded) -> Iterator[Path]:
    """An uploaded file as a path, under a name that is safe.  Raises StorageError when the disk refuses."""
    suffix = ".jsonl.gz" if file.name.lower().endswith(".gz") else Path(file.name).suffix.lower() or ".json"
    home = _shared.settings().home
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home, prefix="upload-") as folder:
            path = Path(folder) / f"questions{suffix if suffix in ('.json', '.jsonl', '.jsonl.gz') else '.json'}"
            path.write_bytes(file.getbuffer())
            yield path
    except OSError as error:
        raise StorageError(f"the upload cannot be written ({error.strerror or error}); free some space under {home}") from error


def read(path: Path, name: str) -> list[ReferenceQuestion]:
    """The questions of a file.  Raises RejectedRowsError with the wrong rows by line, else FormatError, InputError."""
    try:
        return datasets.load(path)
    except FormatError as error:
        wrong = rejected(path)
        if wrong:
            raise RejectedRowsError(name, tuple(wrong[:SHOWN]), len(wrong)) from None
        raise FormatError(error.problem, file=name, line=error.line, field=error.field) from None


def rejected(path: Path) -> list[tuple[int, str]]:
    """(line, reason) of each wrong row, as far as rows can be told apart; empty where the file as a whole is broken."""
    try:
        layout = datasets.detect(path)
        if layout == "ambignq":
            check_file(path, "ambignq")
            return []
    except RejectedRowsError as error:
        return list(error.rejected)
    except AmbiscopeError:
        return []
    reader = _READERS.get(layout)
    if reader is None or path.name.endswith(".gz"):
        return []
    found = []
    taken: dict[str, int] = {}
    for number, text in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        if not text.strip():
            continue
        try:
            row = strict_json.parse(text, line=number)
            if not isinstance(row, dict):
                raise FormatError("expected an object", line=number)
            line = Line(path, number, row)
            name = line.id(taken)
            taken[name] = number
            reader(line, name)
        except FormatError as error:
            found.append((number, error.problem + (f" (field '{error.field}')" if error.field else "")))
    return found


def show_rejected(error: RejectedRowsError) -> None:
    """The wrong lines, each with its reason."""
    many = "1 row was" if error.total == 1 else f"{error.total:,} rows were"
    st.error(f"{many} refused and nothing was stored. Mend the file and upload it again.", icon=":material/error:")
    st.dataframe(pd.DataFrame(error.rejected, columns=["line", "reason"]), hide_index=True, width="stretch", alt="Refused rows")


def explain(error: BaseException) -> None:
    if isinstance(error, RejectedRowsError):
        show_rejected(error)
    else:
        _shared.show_error(error)


def said(added: int, known: int, linked: int) -> str:
    parts = [f"{added:,} question{'' if added == 1 else 's'} added"]
    if known:
        parts.append(f"{known:,} were there already")
    if linked:
        parts.append(f"{linked:,} stored predictions linked")
    return plain("; ".join(parts) + ".")
