"""Questions of a project as a table: a CSV file, or rows pasted from a spreadsheet.

The first row names the columns, in any order: `question`, and perhaps `id`, `domain`, `assignee` and `gold`.  Columns are separated by a comma, a
semicolon or a tab, whichever the first row has most.  `gold`: the right answer, its aliases separated by `|`; of several, one a line of the
cell, each after the question that has only this answer.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator

from core.annotating.aliases import parse_aliases
from core.errors import FormatError, InputError
from core.text import question_key, text_problem
from core.types import Annotation, QAPair
from storage.exchange.imports.rejects import Rejects
from storage.records.checks import MAX_ID_CHARS, MAX_NAME_CHARS, MAX_QUESTION_CHARS, check_text
from storage.records.projects import TableQuestion

COLUMNS = {"question": MAX_QUESTION_CHARS, "id": MAX_ID_CHARS, "domain": MAX_ID_CHARS, "assignee": MAX_NAME_CHARS, "gold": None}
SEPARATORS = ",;\t"
_GOLD_LINE = re.compile(r"(?P<question>.*\?)(?P<answer>[^?]*)")


def is_table(text: str) -> bool:
    """Whether the first row has a `question` cell."""
    return "question" in _heading(text)


def _separator(text: str) -> str:
    first = text.lstrip().split("\n", 1)[0]
    return max(SEPARATORS, key=first.count)


def _heading(text: str) -> list[str]:
    first = text.lstrip().split("\n", 1)[0]
    return [cell.strip().casefold() for cell in next(csv.reader([first], delimiter=_separator(text)), [])]


def question_table(text: str, file_name: str) -> list[TableQuestion]:
    """The questions of a table.  Raises FormatError for a wrong first row, RejectedRowsError with every wrong row and its column."""
    rows = _rows(text, file_name)
    _, heading = next(rows, (1, []))
    columns = [cell.strip().casefold() for cell in heading]
    _check_heading(columns, file_name)
    rejects = Rejects(file_name, "row")
    questions: list[TableQuestion] = []
    row_of_id: dict[str, int] = {}
    for number, cells in rows:
        try:
            if [cell.strip().casefold() for cell in cells] == columns:
                raise InputError("the names of the columns are here once more: take this row out")
            if len(cells) > len(columns):
                raise InputError(f"it has {len(cells)} cells, but the first row names {len(columns)} columns")
            question = _question(number, dict(zip(columns, map(str.strip, cells), strict=False)))
            if question.id and row_of_id.setdefault(question.id, number) != number:
                raise InputError(f"column id: '{question.id[:80]}' is also the id of row {row_of_id[question.id]}")
            questions.append(question)
        except InputError as error:
            rejects.add(number, str(error))
    rejects.settle()
    return questions


def _rows(text: str, file_name: str) -> Iterator[tuple[int, list[str]]]:
    """(number as in a spreadsheet, cells) of the rows that aren't empty.  Raises FormatError."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_separator(text), strict=True)
    number = 0
    try:
        for number, cells in enumerate(reader, 1):
            if any(cell.strip() for cell in cells):
                yield number, cells
    except csv.Error as error:
        raise FormatError(
            f"row {number + 1} is no row of a table ({error}): is a quotation mark missing?", file=file_name
        ) from None


def _check_heading(columns: list[str], file_name: str) -> None:
    problem = ""
    if "question" not in columns:
        names = ", ".join(f"'{name[:40]}'" for name in columns[:8])
        problem = f"row 1 has no column 'question' (found: {names}); the columns are {', '.join(COLUMNS)}, separated by a comma, a semicolon or a tab"
    elif strange := [name for name in columns if name and name not in COLUMNS]:
        problem = f"row 1, column '{strange[0][:40]}': there is no such column; use {', '.join(COLUMNS)}"
    elif twice := [name for name in columns if name and columns.count(name) > 1]:
        problem = f"row 1, column '{twice[0]}': two columns have this name"
    if problem:
        raise FormatError(problem, file=file_name)


def _question(row: int, cells: dict[str, str]) -> TableQuestion:
    """The question in a row.  Raises InputError naming the column."""
    for name, limit in COLUMNS.items():
        value = cells.get(name, "")
        if limit is not None:
            check_text(value, f"column {name}", limit=limit, empty=name != "question")
        elif problem := text_problem(value):
            raise InputError(f"column {name}: {problem}")
    if not question_key(cells["question"]):
        raise InputError("column question: it has no words")
    gold, assignee = cells.get("gold", ""), cells.get("assignee", "")
    if gold and assignee:
        raise InputError("column assignee: a gold item is given to everybody; leave one of assignee and gold empty")
    annotations = (_gold(gold),) if gold else ()
    extra = {"domain": domain} if (domain := cells.get("domain", "")) else {}
    text = " ".join(cells["question"].split())
    return TableQuestion(cells.get("id", ""), text, annotations, None, extra, row=row, assignee=assignee, gold=bool(gold))


def _gold(cell: str) -> Annotation:
    """The gold reference in a row.  Raises InputError."""
    lines = [line for line in map(str.strip, cell.splitlines()) if line]
    if len(lines) == 1:
        return Annotation("single", (QAPair("", parse_aliases(lines[0])),))
    pairs = []
    for line in lines:
        match = _GOLD_LINE.fullmatch(line)
        answers = parse_aliases(match["answer"]) if match else ()
        if match is None or not answers:
            raise InputError(
                f"column gold: '{line[:60]}' is not a question with its answer; of several answers write one a line, as in "
                "'Who played her in 1961? Natalie Wood | Wood'"
            )
        pairs.append(QAPair(match["question"].strip(), answers))
    return Annotation("multiple", tuple(pairs))
