"""Loaders of question files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from core.datasets import detect, load
from core.errors import FormatError, InputError
from core.types import Passage, QAPair, ReferenceQuestion


def lines(path: Path, *rows: Any) -> Path:
    text = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)
    with gzip.open(path, "wt", encoding="utf-8") if path.suffix == ".gz" else path.open("w", encoding="utf-8") as stream:
        stream.write(text)
    return path


def test_ambignq_light_with_the_starter_s_fields(tmp_path: Path) -> None:
    pair = {"question": "Who won in 2010?", "answer": ["Spain"], "passages": ["p1", "p2"]}
    rows = [
        {"id": "a", "question": "Who won?", "annotations": [{"type": "multipleQAs", "qaPairs": [pair]}], "ambiguity": "event references"},
        {"id": "b", "question": "What is it?", "annotations": [{"type": "singleAnswer", "answer": ["x"]}], "ambiguity": None},
        {"id": "c", "question": "What?", "annotations": [{"type": "noAnswer"}]},
    ]  # fmt: skip
    path = tmp_path / "q.json"
    path.write_text("\ufeff\n" + json.dumps(rows, indent=1), encoding="utf-8")
    questions = load(path)
    assert [(q.id, q.ambiguous) for q in questions] == [("a", True), ("b", False), ("c", False)]
    assert questions[0].annotations[0].pairs[0].passage_ids == ("p1", "p2")
    assert questions[0].extra == {"ambiguity": "event references"}
    assert questions[1].annotations[0].pairs[0].question == "What is it?"


def test_rows_with_their_own_passages(tmp_path: Path) -> None:
    row = {
        "id": "r",
        "source": "ramdocs",
        "question": "Who sang it?",
        "passages": [
            {"title": "A", "text": "Ann sang it.", "origin": "correct", "answer": "Ann"},
            {"text": "Bob sang it.", "origin": "misinfo", "answer": "ann"},
            {"title": "", "text": "Cid sang it.", "id": "mine"},
        ],
        "answers": [["Ann", "Anna"], ["Cid"]],
        "wrong_answers": ["Bob"],
        "qa_pairs": [{"question": "Who sang it first?"}, {"question": "Who sang it last?"}],
    }
    for name in ("q.jsonl", "q.jsonl.gz"):
        (question,) = load(lines(tmp_path / name, row))
        assert [(p.id, p.title) for p in question.passages] == [("r#1", "A"), ("r#2", ""), ("mine", "")]
        first, second = question.annotations[0].pairs
        assert first == QAPair("Who sang it first?", ("Ann", "Anna"), ("r#1",))
        assert (second.question, second.passage_ids) == ("Who sang it last?", ())
        assert question.ambiguous
        assert (question.extra["wrong_answers"], question.extra["source"]) == (("Bob",), "ramdocs")


def answers_of(question: ReferenceQuestion) -> list[tuple[str, ...]]:
    return [pair.answers for annotation in question.annotations for pair in annotation.pairs]


def test_rows_without_ids_passages_or_alias_lists(tmp_path: Path) -> None:
    path = lines(tmp_path / "web.jsonl", {"question": "q1", "answers": ["a"]}, "", {"question": "q2", "answers": [["c", "d"]]})
    one, two = load(path)
    assert (one.id, answers_of(one), one.passages) == ("web-1", [("a",)], None)
    assert (two.id, two.annotations[0].type, two.annotations[0].pairs[0].question) == ("web-3", "single", "q2")


def test_a_row_without_an_id_gets_one_that_no_other_row_has(tmp_path: Path) -> None:
    row = {"question": "q", "answers": ["a"]}
    assert len({q.id for q in load(lines(tmp_path / "w.jsonl", {**row, "id": "w-2"}, row))}) == 2


CTXS = [
    {"id": 7, "title": "Dublin", "text": "It is a city.", "score": "1.5", "has_answer": False},
    {"title": None, "text": "Nothing."},
]
READ = (Passage("7", "Dublin", "It is a city."), Passage("q-1#2", "", "Nothing."))
FLAT = {"question": "q", "answers": ["Ann", "Anna"]}


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
@pytest.mark.parametrize(
    ("row", "layout", "kind", "answers", "passages"),
    [
        ({"question": "q", "answer": ["Ann", "Anna"]}, "nq-open", "single", [("Ann", "Anna")], None),
        ({"question": "q", "answer": [["Ann", "Anna"]]}, "rows", "single", [("Ann", "Anna")], None),
        ({**FLAT, "ctxs": CTXS, "answers": ["Ann", "Anna", "Ann"], "target": "Ann"}, "fid", "single", [("Ann", "Anna")], READ),
        ({**FLAT, "ctxs": CTXS, "answers": [["Ann"], ["Bob"]]}, "fid", "multiple", [("Ann",), ("Bob",)], READ),
        ({**FLAT, "positive_ctxs": CTXS, "hard_negative_ctxs": []}, "fid", "single", [("Ann", "Anna")], None),
        ({**FLAT, "answers": [], "passages": [{"text": "x"}]}, "rows", "none", [], (Passage("q-1#1", "", "x"),)),
        ({**FLAT, "answers": ["Ann"], "passages": []}, "rows", "single", [("Ann",)], ()),  # not a call for retrieval
        ({**FLAT, "qa_pairs": [{"question": "1"}, {"question": "2"}]}, "rows", "multiple", [("Ann",), ("Anna",)], None),
    ],
    ids="NQ-open|aliases in a list|FiD|our own FiD export|DPR's training|no answer|nothing to read|questions".split("|"),
)
def test_what_answers_and_passages_mean_is_told_by_the_fields(
    row: dict[str, Any], layout: str, kind: str, answers: list[Any], passages: Any, suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / f"q{suffix}"
    path.write_text(json.dumps([row] if suffix == ".json" else row))
    assert detect(path) == layout
    (question,) = load(path)
    assert (question.id, question.annotations[0].type, question.ambiguous) == ("q-1", kind, kind == "multiple")
    assert answers_of(question) == answers
    assert question.passages == passages
    assert question.extra.keys() == row.keys() & {"target", "qa_pairs"}


def test_a_flat_list_of_answers_is_never_guessed(tmp_path: Path) -> None:
    path = lines(tmp_path / "flat.jsonl", {"question": "p", "answers": ["x"]}, {"question": "q", "answers": ["a", "b"]})
    with pytest.raises(FormatError, match=r"line 2, field 'answers'.*one-answer.*web-questions"):
        load(path)
    assert answers_of(load(path, "one-answer")[1]) == [("a", "b")]
    assert answers_of(load(path, "web-questions")[1]) == [("a",), ("b",)]


ROW = {"question": "q", "answers": [["a"]]}
GOOD = {"id": "g", **ROW}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{", "line 2: not JSON"),
        ({**GOOD, "id": 3.5}, "line 2, field 'id'"),
        ({**GOOD, "id": "x" * 201}, "201 characters"),
        (GOOD, "'g' is also the id of line 1"),
        ({"answers": [["a"]]}, "line 2, field 'question'"),
        ({**ROW, "answers": [["a", "a"]]}, r"line 2, field 'answers\[0\]'.*'a' occurs twice"),
        ({**ROW, "answers": []}, "line 2, field 'answers'"),
        ({**ROW, "passages": [{"title": "t"}]}, r"field 'passages\[0\]\.text'"),
        ({**ROW, "passages": [{"title": 1, "text": "t"}]}, r"field 'passages\[0\]\.title'"),
        ({**ROW, "passages": [{"id": "x", "text": "t"}] * 2}, "occurs twice"),
        ({**ROW, "wrong_answers": [1]}, r"field 'wrong_answers\[0\]'"),
        ('{"question": "q", "question": "r", "answers": [["a"]]}', "line 2: the key 'question' occurs twice"),
    ],
)
def test_a_bad_row_is_named_by_line_and_field(row: Any, message: str, tmp_path: Path) -> None:
    path = lines(tmp_path / "bad.jsonl", GOOD, row)
    with pytest.raises(FormatError, match=message) as error:
        load(path)
    assert (error.value.file, error.value.line) == ("bad.jsonl", 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [("", "the file is empty"), ("hello", "expected questions"), ('{"x": 1}', "'answers'"), ("[]", "contains no question")],
)
def test_a_file_in_no_layout_is_refused(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "q.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(FormatError, match=message):
        load(path)


@pytest.mark.parametrize("wrong", [3, "Bob", ["Bob", None]])
@pytest.mark.parametrize("field", ["wrong_answers", "long_answers"])
def test_what_metrics_read_is_checked_in_every_layout(field: str, wrong: Any, tmp_path: Path) -> None:
    light = {"id": "a", "question": "q", "annotations": [{"type": "singleAnswer", "answer": ["x"]}]}
    for row in (light, {"question": "q", "answers": [["x"]]}):
        (tmp_path / "q.json").write_text(json.dumps([row | {field: wrong}]))
        with pytest.raises(FormatError, match=field):
            load(tmp_path / "q.json")


def test_damaged_and_missing_files(tmp_path: Path) -> None:
    whole = lines(tmp_path / "q.jsonl.gz", *({**GOOD, "id": str(i)} for i in range(200))).read_bytes()
    (tmp_path / "cut.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FormatError, match="damaged or truncated"):
        load(tmp_path / "cut.jsonl.gz")
    with pytest.raises(InputError, match="cannot be read"):
        load(tmp_path / "nowhere.jsonl")
    (tmp_path / "latin.jsonl").write_bytes(json.dumps(GOOD).encode() + b"\n\xe9")
    with pytest.raises(FormatError, match="line 2: not UTF-8"):
        load(tmp_path / "latin.jsonl")
