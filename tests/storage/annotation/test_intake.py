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
from storage_samples import prediction

from core import types as t
from core.errors import FormatError, InputError
from storage.annotation import intake, linked_predictions
from storage.annotation.intake import Intake
from storage.exchange.imports.question_files import questions_to_annotate
from storage.records.results import RejectedRowsError
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
        (b"id,question\n1,Who?\n", "q.csv", "save the column of questions as .txt"),
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
        ([{"id": "a", "question": "Who?"}, {"id": "a", "question": "Why?"}, {"id": 5, "question": "Why?"}], [2, 3]),
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
    monkeypatch.setattr(linked_predictions, "PORTION", 2)
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
