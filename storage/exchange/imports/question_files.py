"""Question files of a project, which may lack answers, because annotation needs none.

| file | gives |
|---|---|
| every layout of core.datasets | questions with their answers as references |
| a JSON list or JSON lines of `question` and perhaps `id`, `passages`, without answers | questions |
| plain text (.txt) | a question a line |
| a table (.csv, .tsv, or pasted) | questions, and whom they are assigned to (storage.exchange.imports.question_tables) |

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
from core.datasets.lines import DataLine
from core.errors import AmbiscopeError, FormatError, InputError, StorageError
from core.json_io import array_rows, jsonl_rows, open_file, read_text
from core.metrics.score.files import parse_reference
from core.text import word_tokens
from core.types import ReferenceQuestion
from storage.exchange.imports.question_tables import is_table, question_table
from storage.exchange.imports.rejects import Rejects
from storage.records.checks import MAX_ID_CHARS, MAX_QUESTION_CHARS, check_text, storable
from storage.records.gate import check_annotation
from storage.records.results import RejectedRowsError

NumberedRows = Iterator[tuple[int, Any, str | None]]
SUFFIXES = ("json", "jsonl", "gz", "txt", "csv", "tsv")


def ambignq_of(row: Mapping[str, Any]) -> ReferenceQuestion:
    """A row of AmbigNQ light or full.  Raises FormatError or InputError."""
    if "ctxs" in row:
        raise FormatError("this is a row of a fid file, which is derived: import the jsonl or ambignq file it came from")
    return checked(parse_reference(row, none_allowed=True))


def checked(question: ReferenceQuestion) -> ReferenceQuestion:
    """Raises InputError for a question or an answer that cannot be stored."""
    check_text(question.id, "field 'id'", limit=MAX_ID_CHARS)
    check_text(question.question, "field 'question'", limit=MAX_QUESTION_CHARS)
    for annotation in question.annotations:
        check_annotation(annotation, complete=True)
    return question


def questions_to_annotate(source: Path | bytes, name: str = "") -> list[ReferenceQuestion]:
    """The questions of a file or of an upload called `name`, in its order; `annotations` is empty if it holds no answers.

    Raises RejectedRowsError with the wrong rows by line, FormatError for a file that is broken or of another kind, InputError where it
    cannot be read, StorageError if there is no room to unpack it.
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
    """The file itself, or an unpacked copy named without .gz, because loaders go by names."""
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
    """Whether the file is gzipped.  Raises InputError if it can't be read."""
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
    if ending in (".csv", ".tsv") or (start not in "[{" and is_table(text)):
        return list(question_table(text, file_name))
    if start not in "[{":
        if ending == ".txt" or not ending:  # a question a line
            lines = ((number, {"question": raw.strip()}, None) for number, raw in enumerate(text.split("\n"), 1))
            return _each((line for line in lines if line[1]["question"]), file_name, _plain_question, is_list=False)
        is_json = ending in (".json", ".jsonl")
        expected = (
            "JSON: a list, or an object a line" if is_json else "JSON, a table (.csv), or text with one question a line (.txt)"
        )
        raise FormatError(f"expected {expected}", line=1)

    def file_rows() -> NumberedRows:
        return storable(array_rows(text, path) if start == "[" else jsonl_rows(path))

    _, first, _ = next(file_rows(), (0, None, None))
    row = first if isinstance(first, dict) else {}
    datasets.refuse_other_layouts(row)
    is_list = start == "["
    if "question" in row and not _answered(row):
        return _each(file_rows(), file_name, _without_answers, is_list=is_list)
    try:
        return datasets.load(path)
    except FormatError:
        if "annotations" in row:
            _each(file_rows(), file_name, lambda line: ambignq_of(line.row), is_list=is_list)
        elif row.get("answers") is not None:
            _each(file_rows(), file_name, lambda line: rows.question_of(line, _id(line)), is_list=is_list)
        raise  # of other layouts, the error names the first wrong line


def _answered(row: Mapping[str, Any]) -> list[str]:
    """The fields that contain answers."""
    return [name for name in datasets.ANSWER_FIELDS if row.get(name) not in (None, [], "")]


def _each(
    lines: NumberedRows, file_name: str, reader: Callable[[DataLine], ReferenceQuestion], *, is_list: bool
) -> list[ReferenceQuestion]:
    """The questions that `reader` makes of the rows.  Raises RejectedRowsError with all wrong ones."""
    questions: list[ReferenceQuestion] = []
    rejects = Rejects(file_name, is_list=is_list)
    place_of: dict[str, str] = {}
    for index, (number, row, problem) in enumerate(lines):
        try:
            if problem:
                raise FormatError(problem)
            if not isinstance(row, dict):
                raise FormatError(f"expected an object, found {type(row).__name__}")
            line = DataLine(Path(file_name), index + 1 if is_list else number, row, is_list=is_list)
            if "id" in row:
                place_of[line.own_id(place_of)] = line.place
            questions.append(reader(line))
        except FormatError as error:
            rejects.add(number, error.problem + (f" (field '{error.field}')" if error.field else ""), index)
        except AmbiscopeError as error:
            rejects.add(number, str(error), index)
    rejects.settle()
    return questions


def _without_answers(line: DataLine) -> ReferenceQuestion:
    """The questions of a file without answers.  Raises FormatError, InputError."""
    if fields := _answered(line.row):
        raise line.error("the rows before have no answers and this one has: put the two kinds into two files", fields[0])
    datasets.refuse_other_layouts(line.row)
    row = {k: v for k, v in line.row.items() if k not in datasets.ANSWER_FIELDS and k != "qa_pairs"}
    question = rows.question_of(line.with_row({**row, "answers": ["-"]}), _id(line))
    check_text(question.question, "the question", limit=MAX_QUESTION_CHARS, empty=False)
    return replace(question, annotations=())


def _id(line: DataLine) -> str:
    """The id of a row; empty if it has none."""
    return line.id(line.row["id"], "id") if "id" in line.row else ""


def _plain_question(line: DataLine) -> ReferenceQuestion:
    """A question of plain text.  Raises InputError."""
    if "\t" in line.row["question"]:
        raise InputError("it has a tab, so this is a table: save its column of questions alone")
    question = " ".join(line.row["question"].split())
    check_text(question, "the question", limit=MAX_QUESTION_CHARS, empty=False)
    if not word_tokens(question):
        raise InputError("it has no words")
    return ReferenceQuestion("", question, ())
