"""Loaders of question files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from core.datasets import LAYOUTS, detect, load
from core.errors import FormatError, InputError, UnknownNameError
from core.types import Annotation


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
    found = load(path)
    assert [q.id for q in found] == ["a", "b", "c"]
    assert found[0].annotations[0].pairs[0].passage_ids == ("p1", "p2")
    assert found[0].extra == {"ambiguity": "event references"}
    assert [q.ambiguous for q in found] == [True, False, False]
    assert found[1].annotations[0].pairs[0].question == "What is it?"


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
        (found,) = load(lines(tmp_path / name, row))
        assert [(p.id, p.title) for p in found.passages] == [("r#1", "A"), ("r#2", ""), ("mine", "")]
        first, second = found.annotations[0].pairs
        assert (first.answers, first.question, first.passage_ids) == (("Ann", "Anna"), "Who sang it first?", ("r#1",))
        assert (second.question, second.passage_ids) == ("Who sang it last?", ())
        assert found.ambiguous
        assert found.extra["wrong_answers"] == ("Bob",)
        assert found.extra["source"] == "ramdocs"


def test_rows_without_ids_passages_or_alias_lists(tmp_path: Path) -> None:
    path = lines(tmp_path / "web.jsonl", {"question": "q1", "answers": ["a"]}, "", {"question": "q2", "answers": [["c", "d"]]})
    one, two = load(path)
    assert (one.id, two.id) == ("web-1", "web-3")
    assert [p.answers for p in one.annotations[0].pairs] == [("a",)]
    assert one.passages is None
    assert (two.annotations[0].type, two.annotations[0].pairs[0].question) == ("single", "q2")


def test_made_ids_keep_clear_of_given_ones(tmp_path: Path) -> None:
    found = load(
        lines(tmp_path / "w.jsonl", {"id": "w-2", "question": "q", "answers": ["a"]}, {"question": "q", "answers": ["a"]})
    )
    assert len({q.id for q in found}) == 2


def test_own_passages_may_have_no_answer(tmp_path: Path) -> None:
    row = {"question": "q", "answers": [], "passages": [{"title": "", "text": "Nothing."}]}
    (question,) = load(lines(tmp_path / "none.jsonl", row))
    assert question.annotations == (Annotation("none"),)
    assert not question.ambiguous


def test_an_empty_list_of_passages_is_not_a_call_for_retrieval(tmp_path: Path) -> None:
    (found,) = load(lines(tmp_path / "w.jsonl", {"question": "q", "answers": ["a"], "passages": []}))
    assert found.passages == ()


def test_nq_open(tmp_path: Path) -> None:
    (found,) = load(lines(tmp_path / "nq.jsonl", {"question": "who won", "answer": ["Spain", "ESP"]}))
    assert detect(tmp_path / "nq.jsonl") == "nq-open"
    assert found.annotations[0].pairs[0].answers == ("Spain", "ESP")
    assert (found.id, found.ambiguous) == ("nq-1", False)


CTXS = [
    {"id": 7, "title": "Dublin", "text": "It is a city.", "score": "1.5", "has_answer": False},
    {"title": None, "text": "Nothing."},
]


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
def test_a_fid_file_has_the_aliases_of_one_answer_and_its_passages(suffix: str, tmp_path: Path) -> None:
    row = {"question": "q", "target": "Ann", "answers": ["Ann", "Anna", "Ann"], "ctxs": CTXS}
    path = tmp_path / f"fid{suffix}"
    path.write_text(json.dumps([row]) if suffix == ".json" else json.dumps(row) + "\n")
    assert detect(path) == "fid"
    (found,) = load(path)
    ((pair,),) = (a.pairs for a in found.annotations)
    assert (pair.answers, found.ambiguous) == (("Ann", "Anna"), False)
    assert [(p.id, p.title, p.text) for p in found.passages or ()] == [
        ("7", "Dublin", "It is a city."),
        (f"{found.id}#2", "", "Nothing."),
    ]
    assert found.extra == {"target": "Ann"}


def test_our_own_fid_export_keeps_its_answers_apart(tmp_path: Path) -> None:
    (found,) = load(lines(tmp_path / "f.jsonl", {"question": "q", "answers": [["Ann", "Anna"], ["Bob"]], "ctxs": CTXS}))
    assert [p.answers for p in found.annotations[0].pairs] == [("Ann", "Anna"), ("Bob",)]
    assert found.passages is not None


def test_dprs_training_file_has_one_answer_and_retrieves(tmp_path: Path) -> None:
    row = {"question": "q", "answers": ["Ann", "Anna"], "positive_ctxs": CTXS, "hard_negative_ctxs": []}
    path = tmp_path / "dpr.json"
    path.write_text(json.dumps([row]))
    assert detect(path) == "fid"
    (found,) = load(path)
    assert (found.annotations[0].pairs[0].answers, found.passages, found.extra) == (("Ann", "Anna"), None, {})


def test_a_flat_list_of_answers_is_never_guessed(tmp_path: Path) -> None:
    path = lines(tmp_path / "flat.jsonl", {"question": "p", "answers": ["x"]}, {"question": "q", "answers": ["a", "b"]})
    with pytest.raises(FormatError, match=r"line 2, field 'answers'.*one-answer.*web-questions"):
        load(path)
    sets = {
        layout: [p.answers for p in load(path, layout)[1].annotations[0].pairs] for layout in ("one-answer", "web-questions")
    }
    assert sets == {"one-answer": [("a", "b")], "web-questions": [("a",), ("b",)]}
    named = {"question": "q", "answers": ["a", "b"], "qa_pairs": [{"question": "q1"}, {"question": "q2"}]}
    (found,) = load(lines(tmp_path / "named.jsonl", named))  # each has its own question
    assert [p.answers for p in found.annotations[0].pairs] == [("a",), ("b",)]


GOOD = {"id": "g", "question": "q", "answers": [["a"]]}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{", "line 2: not JSON"),
        ({**GOOD, "id": 3}, "line 2, field 'id'"),
        (GOOD, "'g' is also the id of line 1"),
        ({"answers": [["a"]]}, "line 2, field 'question'"),
        ({"question": "q", "answers": []}, "line 2, field 'answers'"),
        ({"question": "q", "answers": "a"}, "line 2, field 'answers'"),
        ({"question": "q", "answers": [["a"], []]}, r"line 2, field 'answers\[1\]'"),
        ({"question": "q", "answers": [["a", None]]}, r"line 2, field 'answers\[0\]\[1\]'"),
        ({"question": "q", "answers": [["a"]], "passages": "x"}, "line 2, field 'passages'"),
        ({"question": "q", "answers": [["a"]], "passages": [{"title": "t"}]}, r"field 'passages\[0\]\.text'"),
        ({"question": "q", "answers": [["a"]], "passages": [{"title": 1, "text": "t"}]}, r"field 'passages\[0\]\.title'"),
        ({"question": "q", "answers": [["a"]], "passages": [{"id": "x", "text": "t"}] * 2}, "occurs twice"),
        ({"question": "q", "answers": [["a"]], "wrong_answers": [1]}, r"field 'wrong_answers\[0\]'"),
        ('{"question": "q", "question": "r", "answers": [["a"]]}', "line 2: the key 'question' occurs twice"),
    ],
)
def test_a_bad_row_is_named_by_line_and_field(row: Any, message: str, tmp_path: Path) -> None:
    path = lines(tmp_path / "bad.jsonl", GOOD, row)
    with pytest.raises(FormatError, match=message) as caught:
        load(path)
    assert (caught.value.file, caught.value.line) == ("bad.jsonl", 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [("", "the file is empty"), ("hello", "expected questions"), ('{"x": 1}', "'answers'"), ("[]", "contains no question")],
)
def test_a_file_in_no_layout_is_refused(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "q.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(FormatError, match=message):
        load(path)


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


def test_layouts_are_a_registry(tmp_path: Path) -> None:
    path = lines(tmp_path / "q.jsonl", GOOD)
    assert set(LAYOUTS) == {"ambignq", "rows", "fid", "one-answer", "web-questions", "nq-open", "asqa", "ramdocs", "webqsp"}
    with pytest.raises(UnknownNameError, match="Did you mean 'rows'"):
        load(path, "row")
