"""Question files of a project: with and without answers, as text, packed, broken; and the command."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from annotation_samples import project

from core import types as t
from core.errors import FormatError, InputError
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
    questions = questions_to_annotate(pack(content), name)
    assert [(q.id, q.question, q.annotations) for q in questions] == [("a", "Who?", ()), ("", "Where?", ())]
    assert questions[1].extra["source"] == "desk"
    file = tmp_path / Path(name).name
    file.write_bytes(pack(content))
    assert questions_to_annotate(file) == questions


def test_text_has_a_question_a_line() -> None:
    questions = questions_to_annotate("\ufeffWho  ran?\r\n\r\n Wo lief sie\u2028hin?\n".encode(), "notes.txt")
    assert [(q.id, q.question, q.annotations) for q in questions] == [("", "Who ran?", ()), ("", "Wo lief sie hin?", ())]
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
    questions = questions_to_annotate(b"Who ran?\nWho won?\n", "q.txt")
    with pytest.raises(InputError, match="gold item needs a reference"):
        store.intake.add_items("Mia", parts.id, questions, gold=True)
    with pytest.raises(InputError, match="question 1 has no answers"):
        store.intake.add_items("Mia", checking.id, questions)
