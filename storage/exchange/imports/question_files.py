"""Question files of a project, where answers may be missing: annotation needs none.

| file | gives |
|---|---|
| every layout of core.datasets | questions with their answers as references |
| a JSON list or JSON lines of `question` and perhaps `id`, `passages`, without answers | questions |
| plain text (.txt) | a question a line |

Each may be packed with gzip.  A question without an id is known by its text, so that a file that grew can be read again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

from core import datasets
from core.datasets import rows
from core.datasets.lines import Line
from core.errors import AmbiscopeError, FormatError, InputError, StorageError
from core.json_io import array_rows, jsonl_rows, open_file, read_text
from core.text import word_tokens
from core.types import ReferenceQuestion
from storage.exchange.imports.importing import ambignq_of
from storage.records.checks import MAX_QUESTION_CHARS, check_text, storable
from storage.records.results import RejectedRowsError

SUFFIXES = ("json", "jsonl", "gz", "txt")
SHOWN = 100  # refused rows that an error names
_ANSWERED = ("answers", "answer", "annotations", "gold_answers", "Questions", "train", "dev")
_PART = 1024 * 1024


def questions_to_annotate(source: Path | bytes, name: str = "") -> list[ReferenceQuestion]:
    """The questions of a file or of an upload called `name`, in its order; `annotations` is empty where it holds no answers.

    Raises RejectedRowsError with the wrong rows by line, FormatError for a file that is broken or of another kind, InputError where it
    cannot be read, StorageError where there is no room to unpack it.
    """
    shown = name or (source.name if isinstance(source, Path) else "questions")
    try:
        with _unpacked(source, shown) as path:
            return _read(path, shown)
    except RejectedRowsError as error:
        raise RejectedRowsError(shown, error.rejected, error.total) from None
    except FormatError as error:
        raise FormatError(error.problem, file=shown, line=error.line, field=error.field) from None


@contextmanager
def _unpacked(source: Path | bytes, name: str) -> Iterator[Path]:
    """The file itself, or an unpacked copy under the name that it has without .gz: loaders go by names."""
    if isinstance(source, Path) and not _packed(source):
        yield source
        return
    plain = PurePath(name.replace("\\", "/")).name
    plain = plain[:-3] if plain.lower().endswith(".gz") else plain
    plain = "".join(c if c.isalnum() or c in "._- " else "_" for c in plain)[-60:].strip(". ") or "questions"
    with tempfile.TemporaryDirectory(prefix="ambiscope-questions-") as folder:
        path = Path(folder) / "unpacked" / plain
        try:
            if isinstance(source, bytes):
                kept = Path(folder) / "upload"
                kept.write_bytes(source)
            else:
                kept = source
            path.parent.mkdir()
            with open_file(kept) as file, path.open("wb") as out:
                while part := file.read(_PART):
                    out.write(part)
        except OSError as error:
            raise StorageError(f"{name} cannot be unpacked in {folder} ({error.strerror or error}); free some space") from error
        yield path


def _packed(path: Path) -> bool:
    """Raises InputError where it cannot be read."""
    try:
        with path.open("rb") as file:
            return path.name.lower().endswith(".gz") or file.read(2) == b"\x1f\x8b"
    except OSError as e:
        raise InputError(f"cannot read {path}: {e.strerror or e}") from None


def _read(path: Path, shown: str) -> list[ReferenceQuestion]:
    text = read_text(path)
    start, ending = text.lstrip()[:1], path.suffix.lower()
    if not start:
        raise FormatError("the file is empty")
    if start not in "[{":
        if ending == ".txt" or not ending:
            return _lines(text, shown)
        wanted = (
            "JSON: a list, or an object a line"
            if ending in (".json", ".jsonl")
            else "JSON, or text with one question a line (.txt)"
        )
        raise FormatError(f"expected {wanted}; of a table, save the column of questions as .txt", line=1)
    listed = start == "["
    first = next(_rows(path, text, listed), None)
    if first is not None and isinstance(first[1], dict) and "question" in first[1] and not _answered(first[1]):
        return _each(_rows(path, text, listed), shown, _without_answers)
    try:
        return datasets.load(path)
    except FormatError:
        if first is not None and isinstance(first[1], dict) and "annotations" in first[1]:
            _each(_rows(path, text, listed), shown, lambda line: ambignq_of(line.row))
        elif first is not None and isinstance(first[1], dict) and first[1].get("answers") is not None:
            _each(_rows(path, text, listed), shown, _checked_row)
        raise  # of the others, the first wrong line is told


def _answered(row: Mapping[str, Any]) -> list[str]:
    """The fields that hold answers."""
    return [name for name in _ANSWERED if row.get(name) not in (None, [], "")]


def _rows(path: Path, text: str, listed: bool) -> Iterator[tuple[int, Any, str | None]]:
    return storable(array_rows(text, path) if listed else jsonl_rows(path))


def _each(
    found: Iterator[tuple[int, Any, str | None]], shown: str, read: Callable[[Line], ReferenceQuestion]
) -> list[ReferenceQuestion]:
    """What `read` makes of each row.  Raises RejectedRowsError with all wrong ones."""
    made: list[ReferenceQuestion] = []
    wrong: list[tuple[int, str]] = []
    taken: dict[str, int] = {}
    for number, row, problem in found:
        try:
            if problem:
                raise FormatError(problem)
            if not isinstance(row, dict):
                raise FormatError(f"expected an object, found {type(row).__name__}")
            line = Line(Path(shown), number, row)
            if "id" in row:
                taken[line.id(taken)] = number
            made.append(read(line))
        except FormatError as error:
            wrong.append((number, error.problem + (f" (field '{error.field}')" if error.field else "")))
        except AmbiscopeError as error:
            wrong.append((number, str(error)))
    _settle(shown, wrong)
    return made


def _settle(shown: str, wrong: list[tuple[int, str]]) -> None:
    if wrong:
        raise RejectedRowsError(shown, tuple(wrong[:SHOWN]), len(wrong))


def _checked_row(line: Line) -> ReferenceQuestion:
    return rows.question_of(line, str(line.row.get("id", "")))


def _without_answers(line: Line) -> ReferenceQuestion:
    """Raises FormatError, InputError."""
    if fields := _answered(line.row):
        raise line.error("the rows before have no answers and this one has: put the two kinds into two files", fields[0])
    row = {k: v for k, v in line.row.items() if k not in _ANSWERED and k != "qa_pairs"}
    made = rows.question_of(Line(line.path, line.line or 0, {**row, "answers": ["-"]}), str(row.get("id", "")))
    check_text(made.question, "the question", limit=MAX_QUESTION_CHARS, empty=False)
    return replace(made, annotations=())


def _lines(text: str, shown: str) -> list[ReferenceQuestion]:
    """A question a line; empty lines are passed over."""
    made: list[ReferenceQuestion] = []
    wrong: list[tuple[int, str]] = []
    for number, raw in enumerate(text.split("\n"), 1):
        question = " ".join(raw.split())
        if not question:
            continue
        try:
            check_text(question, "the question", limit=MAX_QUESTION_CHARS, empty=False)
            if not word_tokens(question):
                raise InputError("it has no words")
            made.append(ReferenceQuestion("", question, ()))
        except InputError as error:
            wrong.append((number, str(error)))
    _settle(shown, wrong)
    return made
