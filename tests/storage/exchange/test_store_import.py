"""Imports: the inverse of exports, all or nothing, wrong rows named by line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from annotation_samples import multiple, project
from storage_samples import annotations, fill, prediction

from core import types as t
from core.errors import FormatError, InputError
from storage.exchange.imports.question_files import questions_to_annotate
from storage.records.results import RejectedRowsError
from storage.store import Store

GOOD = {"id": "1", "question": "Who?", "annotations": [{"type": "singleAnswer", "answer": ["a", "b"]}]}
PAIRS = [{"question": "Who played it in x?", "answer": ["x"]}, {"question": "Who played it in y?", "answer": ["y"]}]
MANY = {
    "id": "2",
    "question": "Who played it?",
    "annotations": [
        {"type": "multipleQAs", "qaPairs": PAIRS},
        {"type": "singleAnswer", "answer": ["x"]},
        {"type": "noAnswer"},
    ],
}


def empty(store: Store) -> bool:
    return not any(store.maintenance.counts().values())


def put(path: Path, *rows: Any) -> Path:
    path.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    return path


# ---------------------------------------------------------------- round trips


def test_ambignq_out_in_and_out_again_is_identical(store: Store, other: Store, tmp_path: Path) -> None:
    fill(store)
    store.exports.export("ambignq", tmp_path / "a.json")
    other.imports.import_file(tmp_path / "a.json")
    other.exports.export("ambignq", tmp_path / "b.json")
    assert (tmp_path / "b.json").read_bytes() == (tmp_path / "a.json").read_bytes()
    counts = other.maintenance.counts()
    assert not other.imports.import_file(tmp_path / "a.json").stored
    assert other.maintenance.counts() == counts


def test_ambignq_light_is_stored_by_numbered_annotators(store: Store, tmp_path: Path) -> None:
    report = store.imports.import_file(put(tmp_path / "a.json", GOOD, MANY))
    assert (report.format, report.stored) == ("ambignq", {"question": 2, "annotation": 4})
    assert annotations(store, "2") == [
        ("ambignq 1", "generation", "submitted", multiple("x", "y")),
        ("ambignq 2", "generation", "submitted", t.Annotation("single", (t.QAPair("Who played it?", ("x",)),))),
        ("ambignq 3", "generation", "submitted", t.Annotation("none")),
    ]


def test_a_question_without_an_id_meets_itself_again(store: Store, other: Store, tmp_path: Path) -> None:
    saved = store.predictions.save_prediction(prediction())
    store.labels.judge(saved, 0, "Ada", "correct")
    store.exports.export("ambignq", tmp_path / "a.json")
    (exported,) = questions_to_annotate(tmp_path / "a.json")
    assert other.imports.import_file(tmp_path / "a.json").stored["question"] == 1
    for database in (store, other):
        assert database.imports.import_file(tmp_path / "a.json").known["question"] == 1
        for id in ("", exported.id):
            database.predictions.save_prediction(prediction(id=id))
            parts = project(database, 0, name=f"parts {id}", stages=("judging",), systems=("ambigprompt",))
            assert database.intake.add_items("Mia", parts.id, [replace(exported, id=id)]).linked == 1
        assert database.maintenance.counts()["question"] == 1


def test_a_question_whose_id_was_taken_elsewhere_meets_itself_again(store: Store, other: Store, tmp_path: Path) -> None:
    store.imports.import_file(put(tmp_path / "a.json", GOOD))
    other.imports.import_file(put(tmp_path / "b.json", {**GOOD, "question": "Who else?"}))
    other.imports.import_file(tmp_path / "a.json", annotator="x")
    other.exports.export("ambignq", tmp_path / "c.json")
    assert store.imports.import_file(tmp_path / "c.json", annotator="y").known == {"question": 1}


# ---------------------------------------------------------------- all or nothing


def test_a_half_bad_file_stores_nothing_and_names_every_row(store: Store, tmp_path: Path) -> None:
    file = put(tmp_path / "a.json", GOOD, {**GOOD, "id": ""}, MANY, {**MANY, "annotations": []})
    words = r"a\.json.*2 rows were refused and nothing was stored: line 3: .*line 5"
    with pytest.raises(RejectedRowsError, match=words) as refused:
        store.imports.import_file(file)
    assert ([line for line, _ in refused.value.rejected], refused.value.line) == ([3, 5], 3)
    assert isinstance(refused.value, FormatError)
    assert empty(store)


def test_what_contradicts_the_database_is_refused_whole(store: Store, tmp_path: Path) -> None:
    store.imports.import_file(put(tmp_path / "b.json", MANY))
    changed = put(tmp_path / "c.json", {**MANY, "annotations": [{"type": "noAnswer"}]})
    with pytest.raises(RejectedRowsError, match="--annotator"):
        store.imports.import_file(changed)
    assert store.imports.import_file(changed, annotator="second team").stored == {"annotation": 1}


# ---------------------------------------------------------------- strict JSON

ROW = '{"id": "1", "question": "Who?", "annotations": [{"type": "singleAnswer", "answer": [%s]}]%s}'


@pytest.mark.parametrize(
    ("answer", "more", "words"),
    [
        ('"a"', ', "x": NaN', "NaN is not JSON"),
        ('"a"', ', "x": 1e999', "too large"),
        ('"a"', ', "id": "2"', "'id' occurs twice"),
        ('"a\\ud800"', "", "surrogate"),
        ('"a\\u0000"', "", "NUL"),
        ('"a"', ', "\\u0000": 1', "NUL"),
        ('"a"', f', "x": {"9" * 5000}', "64 bits"),
        ('"a"', ', "x": 9223372036854775808', "64 bits"),
        ('"a"', f', "x": {"[" * 80}{"]" * 80}', "nested deeper"),
        ('"a"', f', "x": {"[" * 100_000}{"]" * 100_000}', "nested deeper"),
        ("", "", "the list is empty"),
        ('" "', "", "expected text, found"),
        ('"a\tb"', "", "not JSON"),
    ],
)
def test_what_json_lets_by_is_refused(store: Store, tmp_path: Path, answer: str, more: str, words: str) -> None:
    file = tmp_path / "a.json"
    file.write_text(f"[{json.dumps(GOOD)},\n{ROW % (answer, more)}]", encoding="utf-8")
    with pytest.raises(FormatError, match=rf"line 2: .*{words}"):
        store.imports.import_file(file)
    assert empty(store)


def test_a_byte_order_mark_is_accepted(store: Store, other: Store, tmp_path: Path) -> None:
    fill(store)
    for format, name in (("ambignq", "a.json"), ("jsonl", "a.jsonl")):
        store.exports.export(format, tmp_path / name)
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + (tmp_path / name).read_bytes())
    assert other.imports.import_file(tmp_path / "a.jsonl").stored["prediction"] == 2
    other.imports.import_file(tmp_path / "a.json", annotator="x")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "neither"),
        (b"id\ttext\n", "neither"),
        (b"[", "cut off"),
        (b'[{"id": "1"}', "cut off"),
        (b'[{"id": "1"} {"id": "2"}]', "','"),
        (b"[1]", "expected an object"),
        (b"[\n\n{'id': 1}]", "line 3: not JSON"),
        (b'{"kind": "else"}\n', "not a jsonl export"),
        (b'{"id": "1", "source": "x", "question": "Q?", "answers": [], "negatives": []}\n', "training file is derived"),
        (b'{"kind": "ambiscope", "layout": 99}\n', "layout 99"),
        (b'{"kind": "ambiscope", "layout": 4}\n{"kind": "ambiscope", "layout": 4}\n', "header occurs twice"),
        (b'{"kind": "ambiscope", "layout": 4}\n{"kind": "annotator", "name": "a\xff"}\n', "line 2: not UTF-8"),
        (b'[{"id": "1", "question": "Q?", "answers": [["a"]], "ctxs": []}]', "fid file"),
    ],
)
def test_malformed_files_are_refused(store: Store, tmp_path: Path, body: bytes, words: str) -> None:
    file = tmp_path / "a"
    file.write_bytes(body)
    with pytest.raises(FormatError, match=words) as refused:
        store.imports.import_file(file)
    assert str(file) in str(refused.value)
    assert empty(store)


def test_an_empty_list_is_a_valid_file(store: Store, tmp_path: Path) -> None:
    file = put(tmp_path / "a.json")
    assert not store.imports.import_file(file).stored
    with pytest.raises(InputError, match="derived"):
        store.imports.import_file(file, format="fid")


def test_unreadable_files_are_refused_by_name(store: Store, tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(InputError, match=f"{path.name} cannot be read"):
            store.imports.import_file(path)


def test_a_line_too_long_is_not_read_into_memory(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.json_io.MAX_LINE_BYTES", 100)
    (tmp_path / "a.jsonl").write_text('{"kind": "ambiscope", "layout": 4}\n' + '{"x": "' + "x" * 200 + '"}\n')
    with pytest.raises(FormatError, match="line 2: the line is longer"):
        store.imports.import_file(tmp_path / "a.jsonl")
    monkeypatch.setattr("core.json_io.MAX_FILE_BYTES", 100)
    with pytest.raises(InputError, match="the limit is 100"):
        store.imports.import_file(put(tmp_path / "a.json", MANY))
