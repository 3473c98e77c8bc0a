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
from storage.exchange.imports.importing import Rejects, Rows, ambignq_of
from storage.records.checks import MAX_QUESTION_CHARS, check_text, storable
from storage.records.results import RejectedRowsError

SUFFIXES = ("json", "jsonl", "gz", "txt")
_ANSWERED = ("answers", "answer", "annotations", "gold_answers", "Questions", "train", "dev")


def questions_to_annotate(source: Path | bytes, name: str = "") -> list[ReferenceQuestion]:
    """The questions of a file or of an upload called `name`, in its order; `annotations` is empty where it holds no answers.

    Raises RejectedRowsError with the wrong rows by line, FormatError for a file that is broken or of another kind, InputError where it
    cannot be read, StorageError where there is no room to unpack it.
    """
    file_name = name or (source.name if isinstance(source, Path) else "questions")
    try:
        with _unpacked(source, file_name) as path:
            return _read(path, file_name)
    except RejectedRowsError:  # a FormatError too, and it has the name of the file
        raise
    except FormatError as error:
        raise FormatError(error.problem, file=file_name, line=error.line, field=error.field) from None


@contextmanager
def _unpacked(source: Path | bytes, name: str) -> Iterator[Path]:
    """The file itself, or an unpacked copy under the name that it has without .gz: loaders go by names."""
    if isinstance(source, Path) and not _is_packed(source):
        yield source
        return
    plain = PurePath(name.replace("\\", "/")).name
    plain = plain[:-3] if plain.lower().endswith(".gz") else plain
    plain = "".join(c if c.isalnum() or c in "._- " else "_" for c in plain)[-60:].strip(". ") or "questions"
    with tempfile.TemporaryDirectory(prefix="ambiscope-questions-") as folder:
        path = Path(folder) / "unpacked" / plain
        try:
            if isinstance(source, bytes):
                packed = Path(folder) / "upload"
                packed.write_bytes(source)
            else:
                packed = source
            path.parent.mkdir()
            with open_file(packed) as file, path.open("wb") as out:
                while part := file.read(1 << 20):
                    out.write(part)
        except OSError as error:
            raise StorageError(f"{name} cannot be unpacked in {folder} ({error.strerror or error}); free some space") from error
        yield path


def _is_packed(path: Path) -> bool:
    """Whether the file is packed with gzip.  Raises InputError where it cannot be read."""
    try:
        with path.open("rb") as file:
            return path.name.lower().endswith(".gz") or file.read(2) == b"\x1f\x8b"
    except OSError as e:
        raise InputError(f"cannot read {path}: {e.strerror or e}") from None


def _read(path: Path, file_name: str) -> list[ReferenceQuestion]:
    text = read_text(path)
    start, ending = text.lstrip()[:1], path.suffix.lower()
    if not start:
        raise FormatError("the file is empty")
    if start not in "[{":
        if ending == ".txt" or not ending:  # a question a line
            lines = ((number, {"question": " ".join(raw.split())}, None) for number, raw in enumerate(text.split("\n"), 1))
            return _each((line for line in lines if line[1]["question"]), file_name, _plain_question)
        is_json = ending in (".json", ".jsonl")
        expected = "JSON: a list, or an object a line" if is_json else "JSON, or text with one question a line (.txt)"
        raise FormatError(f"expected {expected}; of a table, save the column of questions as .txt", line=1)

    def file_rows() -> Rows:
        return storable(array_rows(text, path) if start == "[" else jsonl_rows(path))

    _, first, _ = next(file_rows(), (0, None, None))
    row = first if isinstance(first, dict) else {}
    if "question" in row and not _answered(row):
        return _each(file_rows(), file_name, _without_answers)
    try:
        return datasets.load(path)
    except FormatError:
        if "annotations" in row:
            _each(file_rows(), file_name, lambda line: ambignq_of(line.row))
        elif row.get("answers") is not None:
            _each(file_rows(), file_name, lambda line: rows.question_of(line, str(line.row.get("id", ""))))
        raise  # of other layouts, the error names the first wrong line


def _answered(row: Mapping[str, Any]) -> list[str]:
    """The fields that hold answers."""
    return [name for name in _ANSWERED if row.get(name) not in (None, [], "")]


def _each(lines: Rows, file_name: str, reader: Callable[[Line], ReferenceQuestion]) -> list[ReferenceQuestion]:
    """The questions that `reader` makes of the rows.  Raises RejectedRowsError with all wrong ones."""
    questions: list[ReferenceQuestion] = []
    rejects = Rejects(file_name)
    line_of_id: dict[str, int] = {}
    for number, row, problem in lines:
        try:
            if problem:
                raise FormatError(problem)
            if not isinstance(row, dict):
                raise FormatError(f"expected an object, found {type(row).__name__}")
            line = Line(Path(file_name), number, row)
            if "id" in row:
                line_of_id[line.id(line_of_id)] = number
            questions.append(reader(line))
        except FormatError as error:
            rejects.add(number, error.problem + (f" (field '{error.field}')" if error.field else ""))
        except AmbiscopeError as error:
            rejects.add(number, str(error))
    rejects.settle()
    return questions


def _without_answers(line: Line) -> ReferenceQuestion:
    """Raises FormatError, InputError."""
    if fields := _answered(line.row):
        raise line.error("the rows before have no answers and this one has: put the two kinds into two files", fields[0])
    row = {k: v for k, v in line.row.items() if k not in _ANSWERED and k != "qa_pairs"}
    question = rows.question_of(Line(line.path, line.line or 0, {**row, "answers": ["-"]}), str(row.get("id", "")))
    check_text(question.question, "the question", limit=MAX_QUESTION_CHARS, empty=False)
    return replace(question, annotations=())


def _plain_question(line: Line) -> ReferenceQuestion:
    """Raises InputError."""
    question = check_text(line.row["question"], "the question", limit=MAX_QUESTION_CHARS, empty=False)
    if not word_tokens(question):
        raise InputError("it has no words")
    return ReferenceQuestion("", question, ())
