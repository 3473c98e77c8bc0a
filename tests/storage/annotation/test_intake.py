"""Questions into a project: read from a file of any kind, with and without answers, then added in one transaction, each once, with
stored predictions linked."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from annotation_samples import project, questions
from sqlalchemy import select
from storage_samples import known, prediction

from core import types as t
from core.errors import FormatError, InputError
from storage.annotation import intake, linked_predictions
from storage.annotation.intake import Intake
from storage.exchange.imports.question_files import questions_to_annotate
from storage.records.results import RejectedRowsError
from storage.schema import workbench
from storage.store import Store

TWICE = (
    "Who founded the Tern Museum?\nWhere is the Tern Museum?\nwho founded the tern museum\n  Who founded the  Tern Museum ?  \n"
)


def lines(*rows: Any) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def test_the_same_question_twice_is_one_item(store: Store) -> None:
    parts = project(store, 0)
    first = store.intake.add_items("Mia", parts.id, questions_to_annotate(TWICE.encode(), "first.txt"))
    assert (first.added, first.known) == (2, 2)
    answered = [
        {"question": "Who founded the \u2018Tern\u2019 museum", "answers": [["Ann"]]},
        {"question": "When?", "answers": [["1900"]]},
    ]
    for name, counts in (("second.jsonl", (1, 1)), ("third.jsonl", (0, 2))):  # rows without an id are named by their file
        report = store.intake.add_items("Mia", parts.id, questions_to_annotate(lines(*answered), name))
        assert (report.added, report.known) == counts
    own = lines(*({"question": "When?", "passages": [{"title": "A", "text": text}]} for text in ("One.", "Two.", "One.")))
    report = store.intake.add_items("Mia", parts.id, questions_to_annotate(own, "own.jsonl"))
    assert (report.added, report.known) == (2, 1)  # over another text it is another question


ROWS = [{"id": "a", "question": "Who?"}, {"question": "Where?", "source": "desk"}]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b" " * 5000 + json.dumps(ROWS).encode(), "q.json"),  # a list after a long run of blanks
        (lines(*ROWS), "q.jsonl"),
        (json.dumps(ROWS).encode(), "q.json"),
        (json.dumps(ROWS, indent=1).encode(), "q.txt"),
        (b"\xef\xbb\xbf" + lines(*ROWS), "../my questions?.json"),
    ],
)
def test_questions_without_answers(content: bytes, name: str, pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    loaded = questions_to_annotate(pack(content), name)
    assert [(q.id, q.question, q.annotations) for q in loaded] == [("a", "Who?", ()), ("", "Where?", ())]
    assert loaded[1].extra["source"] == "desk"
    file = tmp_path / Path(name).name
    file.write_bytes(pack(content))
    assert questions_to_annotate(file) == loaded


def test_text_has_a_question_a_line() -> None:
    loaded = questions_to_annotate("\ufeffWho  ran?\r\n\r\n Wo lief sie\u2028hin?\n".encode(), "notes.txt")
    assert [(q.id, q.question, q.annotations) for q in loaded] == [("", "Who ran?", ()), ("", "Wo lief sie hin?", ())]
    assert len(questions_to_annotate(gzip.compress(b"Who?"), "notes.txt.gz")) == 1


def test_answers_and_own_passages_are_kept() -> None:
    row = {"question": "Who?", "passages": [{"id": "p", "title": "T", "text": "Ada."}]}
    (bare,) = questions_to_annotate(lines(row), "q.jsonl")
    assert bare.passages == (t.Passage("p", "T", "Ada."),)
    (answered,) = questions_to_annotate(lines(row | {"answers": [["Ada"]]}), "q.jsonl")
    assert answered.annotations[0].pairs[0].answers == ("Ada",)
    assert questions_to_annotate(lines([row | {"answers": []}]), "q.json")[0].annotations == ()


@pytest.mark.parametrize(
    ("content", "name", "words"),
    [
        (b"", "q.txt", "q.txt: the file is empty"),
        (b" \n", "q.jsonl", "the file is empty"),
        (b"Who?\n", "q.json", "expected JSON"),
        (b"PK\x03\x04", "q.gz", "zip archive: unpack it"),
        (b"\x1f\x8bxx", "q.jsonl.gz", "gzip"),
        ("Où?".encode("latin-1"), "q.txt", "not UTF-8"),
        (b'[{"question": "Who?"}', "q.json", "cut off"),
        (b'{"text": "Who?"}', "q.jsonl", "answers"),
    ],
)
def test_other_files_are_refused_by_name(content: bytes, name: str, words: str) -> None:
    with pytest.raises(FormatError, match=words) as error:
        questions_to_annotate(content, name)
    assert name in str(error.value)
    assert "/tmp" not in str(error.value)


@pytest.mark.parametrize(
    ("rows", "wrong"),
    [
        (["Who?", "???", "Wh\0o?"], [2, 3]),
        ([{"question": "Who?"}, {"question": " "}, {"question": "Why?", "answers": [["a"]]}, 3], [2, 3, 4]),
        ([{"id": "a", "question": "Who?"}, {"id": "a", "question": "Why?"}, {"id": 5.0, "question": "Why?"}], [2, 3]),
        ([{"question": "Who?"}, {"question": "Why?", "context": "x"}, {"question": "Why?", "best_answer": "x"}], [2, 3]),
        (["Who?", "1\tWho?\tAda", "2\tWho?"], [2, 3]),
        ([{"question": "Who?", "answers": [["a"]]}, {"question": "Why?"}, {"question": "", "answers": ["b"]}], [2, 3]),
        ([{"question": "x" * 100_000}, {"question": "Who?", "passages": 3}], [1, 2]),
    ],
)
def test_every_wrong_row_is_named(rows: list[Any], wrong: list[int]) -> None:
    plain = isinstance(rows[0], str)
    name, content = ("q.txt", "\n".join(rows).encode()) if plain else ("q.jsonl", lines(*rows))
    with pytest.raises(RejectedRowsError) as error:
        questions_to_annotate(content, name)
    assert [line for line, _ in error.value.rejected] == wrong
    assert str(error.value).startswith(f"{name}: {len(wrong)} rows were refused and nothing was stored: line {wrong[0]}: ")


def test_gold_and_checking_need_answers(store: Store) -> None:
    parts, checking = project(store, 0), project(store, 0, name="checking", stages=("validation",))
    unanswered = questions_to_annotate(b"Who ran?\nWho won?\n", "q.txt")
    with pytest.raises(InputError, match="gold item needs a reference"):
        store.intake.add_items("Mia", parts.id, unanswered, gold=True)
    with pytest.raises(InputError, match="question 1 has no answers"):
        store.intake.add_items("Mia", checking.id, unanswered)
    with pytest.raises(InputError, match="no gold items"):
        store.intake.add_items("Mia", checking.id, questions(2), gold=True)
    assert store.intake.add_items("Mia", checking.id, questions(2)).added == 2


@pytest.mark.parametrize(
    ("limit", "last", "words"),
    [("", " ", "question 9"), ("MAX_ITEMS", "Who else?", "at most 6"), ("MAX_QUESTIONS", "Who else?", "at most 6")],
)
def test_an_error_in_the_middle_leaves_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch, limit: str, last: str, words: str
) -> None:
    parts = project(store, 1)
    before = store.maintenance.counts()
    if limit:
        monkeypatch.setattr(intake, limit, 6)
    with pytest.raises(InputError, match=words):
        store.intake.add_items("Mia", parts.id, [*questions(8), t.ReferenceQuestion("q", last, ())])
    assert store.maintenance.counts() == before


def test_what_somebody_else_adds_meanwhile_is_not_added_twice(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = project(store, 1)
    new_items, others = Intake._new_items, [[replace(q, id=f"other {q.id}") for q in questions(3, start=4)]]

    def overtaken(*args: Any) -> list[Any]:
        items = new_items(*args)
        if others:
            store.intake.add_items("Mia", parts.id, others.pop())
        return items

    monkeypatch.setattr(Intake, "_new_items", staticmethod(overtaken))
    report = store.intake.add_items("Mia", parts.id, questions(6))
    assert (report.added, report.known) == (3, 3)  # the first one was there, and two came meanwhile under other ids
    assert len(store.items.items(parts.id, "Mia", stage="generation")) == 7


@pytest.mark.parametrize("order", ["uncertainty", "file"])
def test_stored_predictions_are_linked_and_margins_are_there_when_the_order_needs_them(
    store: Store, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    monkeypatch.setattr(linked_predictions, "PREDICTIONS_PER_TRANSACTION", 2)
    parts = project(store, 0, stages=("judging",), systems=("ambigprompt",), order=order)
    asked = [prediction(f"Who played part {i}?", id=f"q{i}") for i in range(7)]
    for one in asked[:4]:
        store.predictions.save_prediction(one)
    added = store.intake.add_items("Mia", parts.id, questions(7))
    assert (added.added, added.linked) == (7, 4)
    for one in asked[4:]:
        store.predictions.save_prediction(one)
    assert store.intake.add_items("Mia", parts.id, questions(1)).linked == 3
    assert store.intake.link_predictions("Mia", parts.id) == 0
    store.projects.update_project("Mia", parts.id, parts.version, order="uncertainty")
    order = [(i.margin, i.position) for i in store.items.items(parts.id, "Mia", stage="judging")]
    assert order == sorted(order)  # none of them is None


# ---------------------------------------------------------------- tables

TABLE = (
    "\ufeffID;Question;domain;assignee;gold\r\n"
    "a;Who played the Joker?;film;Ann;\r\n"
    '"b";"Who said ""no; never""?";;;\r\n'
    ";;;;\r\n"
    'c;When was it built?;bridges;;"1932 | in 1932"\r\n'
    'd;Who played Maria?;film;;"Who played Maria in 1961? Natalie Wood\nWho played Maria in 2021? Rachel Zegler | Zegler"\r\n'
)


def items_of(store: Store, parts: Any) -> dict[str, tuple[bool, tuple[str, ...], str]]:
    return {i.question: (i.gold, i.assigned, i.domain) for i in store.items.items(parts.id, "Mia", stage="generation")}


@pytest.mark.parametrize("separator", [";", ",", "\t"])
def test_a_table_says_who_gets_a_question_and_which_is_gold(store: Store, separator: str) -> None:
    parts = project(store, 0, stages=("generation", "validation"))
    known(store, "Ann")
    text = TABLE.replace('"Who said ""no; never""?"', "Who said no?").replace(";", separator)
    report = store.intake.add_items("Mia", parts.id, questions_to_annotate(text.encode(), "q.csv"))
    assert (report.added, report.known) == (4, 0)
    assert items_of(store, parts) == {
        "Who played the Joker?": (False, ("Ann",), "film"),
        "Who said no?": (False, (), ""),
        "When was it built?": (True, (), "bridges"),
        "Who played Maria?": (True, (), "film"),
    }
    with store.database.reading() as session:
        gold = {row.gold["annotations"][0]["type"] for row in session.scalars(select(workbench.ProjectItem)) if row.gold}
        stages = session.scalars(select(workbench.ItemStage.stage).where(workbench.ItemStage.gold == True)).all()  # noqa: E712
    assert gold == {"single", "multiple"}
    assert set(stages) == {"generation"}
    assert store.intake.add_items("Mia", parts.id, questions_to_annotate(text.encode(), "q.csv")).added == 0


def test_rows_pasted_from_a_spreadsheet_are_a_table() -> None:
    (first, second) = questions_to_annotate(b'question\tgold\nWho won?\t\n"Who\nlost?"\t"A | B"\n', "pasted rows")
    assert (first.question, second.question, second.annotations[0].pairs[0].answers) == ("Who won?", "Who lost?", ("A", "B"))
    assert [q.question for q in questions_to_annotate(b"Who won, and when?\nWho lost?", "pasted rows")] == [
        "Who won, and when?",
        "Who lost?",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id,text\n1,Who?\n", r"q\.csv: row 1 has no column 'question' \(found: 'id', 'text'\)"),
        ("id|question\n1|Who?\n", r"row 1 has no column 'question' .* separated by a comma, a semicolon or a tab"),
        ("question,question\nWho?,When?\n", r"row 1, column 'question': two columns have this name"),
        ("question,assigne\nWho?,Ann\n", r"row 1, column 'assigne': there is no such column"),
        ("question,id\nWho?,1\nQuestion,ID\nWhen?,2\n", r"row 3: the names of the columns are here once more"),
        ("question,id\nWho?,1\nWhen?,1\n", r"row 3: column id: '1' is also the id of row 2"),
        ("question,id\nWho?,1,2\n", r"row 2: it has 3 cells"),
        ("question,id\n,1\n", r"row 2: column question"),
        ("question,id\n?!,1\n", r"row 2: column question: it has no words"),
        ('question,gold\n"Who?","A\nB"\n', r"row 2: column gold: 'A' is not a question with its answer"),
        ("question,gold,assignee\nWho?,A,Ann\n", r"row 2: column assignee: a gold item"),
        ('question,id\n"Who?,1\n', r"row 2 is no row of a table"),
        ("question,id\nWho?\x00,1\n", r"row 2.*NUL"),
    ],
)
def test_a_wrong_table_is_refused_with_row_and_column(text: str, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        questions_to_annotate(text.encode(), "q.csv")


def test_a_wrong_table_stores_nothing(store: Store) -> None:
    parts = project(store, 0)
    known(store, "Ann")
    before = store.maintenance.counts()
    table = questions_to_annotate(b"question,assignee\nWho?,Ann\nWhen?,Zoe\nWhere?,Zed\n", "q.csv")
    with pytest.raises(
        RejectedRowsError, match=r"2 rows.*row 3: column assignee: there is nobody named 'Zoe'.*row 4"
    ) as refused:
        store.intake.add_items("Mia", parts.id, table)
    assert [row for row, _ in refused.value.rejected] == [3, 4]
    long = "question\n" + "".join(f"Who played part {number}?\n" for number in range(20_001))
    with pytest.raises(InputError, match="20,001 questions: at most 20,000"):
        store.intake.add_items("Mia", parts.id, questions_to_annotate(long.encode(), "q.csv"))
    assert store.maintenance.counts() == before


def test_gold_answers_that_no_system_gave_are_named(store: Store) -> None:
    for number, answers in enumerate((["Somebody"], ["Nobody"])):
        store.predictions.save_prediction(prediction(f"Who played part {number}?", answers, id=f"q{number}", system="fid"))
    parts = project(store, 0, stages=("generation", "judging"), systems=("fid",))
    report = store.intake.add_items(
        "Mia", parts.id, questions(3), gold=True
    )  # the right answer is Somebody; the third has no prediction
    assert report.unmatched == ("Who played part 1?",)
    with pytest.raises(InputError, match="question 1: a gold item needs a reference"):
        store.intake.add_items("Mia", parts.id, [t.ReferenceQuestion("x", "Who else?", ())], gold=True)
