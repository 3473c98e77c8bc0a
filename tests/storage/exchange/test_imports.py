"""Imports: the inverse of exports, and files of other programs; all or nothing, wrong rows named by line, none that does harm."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from annotation_samples import multiple, project
from storage_helpers import exported, put_lines
from storage_samples import annotations, fill, prediction

from core import json_io
from core import types as t
from core.errors import FormatError, InputError
from core.evaluation.prediction_json import prediction_json
from core.trace import to_json
from storage.exchange.imports.importing import detect_format
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


def test_a_byte_order_mark_is_accepted(store: Store, tmp_path: Path) -> None:
    for file in (put(tmp_path / "a.json", GOOD), put_lines(tmp_path / "q.jsonl", {"question": "When?"})):
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
        assert store.imports.import_file(file).stored["question"] == 1


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


SIMPLE = {
    "id": "q7",
    "question": "Who played Maria?",
    "system": "other lab",
    "answers": [
        "Natalie Wood",
        {"answer": "Rachel Zegler", "question": "Who played Maria in 2021?", "probability": 0.25, "passages": ["p1"]},
    ],
    "passages": [{"id": "p1", "title": "Film", "text": "Rachel Zegler played Maria."}],
}


def test_predictions_of_three_layouts(store: Store, tmp_path: Path) -> None:
    whole = prediction(id="q-1")
    traces = [to_json(whole), {"prediction": to_json(prediction(id="q-2"))}]
    file = put_lines(tmp_path / "p.jsonl", SIMPLE, *traces, prediction_json(whole))
    assert detect_format(file) == "predictions"
    assert store.imports.import_file(file).stored == {"prediction": 4}
    stored = {p.id: store.predictions.get_prediction(p.id).prediction for p in store.predictions.recent_predictions(10)}
    saved, simple = next((i, p) for i, p in stored.items() if p.system.name == "other lab")
    assert (simple.question.text, simple.question.id) == ("Who played Maria?", "q7")
    assert [(a.text, a.probability) for a in simple.answers] == [("Natalie Wood", 1.0), ("Rachel Zegler", 0.25)]
    assert simple.answers[1].evidence[0].text == "Rachel Zegler"
    assert simple.clarification_of("Rachel Zegler") is not None
    assert whole in stored.values()  # a trace comes back exactly
    printed = next(p for p in stored.values() if p.events[-1].why == "imported" and p.system.name == "ambigprompt")
    assert [a.text for a in printed.answers] == ["Natalie Wood", "Rachel Zegler"]
    assert len(printed.clarifications) == 2
    assert store.imports.import_file(file).known == {"prediction": 4}  # known by what they are
    store.labels.judge(saved, 1, "Ada", "correct")
    (row,) = exported(store, "training", tmp_path / "t.jsonl")
    assert (row["answers"], row["supporting"]) == ([["Rachel Zegler"]], ["p1"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"answers": None}, "answers"),
        ({"answers": [" "]}, "empty"),
        ({"answers": ["x", "x"]}, "occurs twice"),
        ({"answers": [{"answer": "x", "probability": 2}]}, "0..1"),
        ({"answers": [{"answer": "x", "passages": ["p9"]}]}, "row's passages"),
        ({"passages": [{"id": "p1"}, {"id": "p1"}]}, "occurs twice"),
        ({"question": ""}, "question"),
        ({"prediction": {"events": []}}, "prediction"),
    ],
)
def test_wrong_predictions_are_named_by_line(store: Store, tmp_path: Path, change: dict[str, Any], words: str) -> None:
    file = put_lines(tmp_path / "p.jsonl", SIMPLE, {**SIMPLE, **change})
    with pytest.raises(RejectedRowsError, match=rf"1 row was refused and nothing was stored: line 2: .*{words}"):
        store.imports.import_file(file, format="predictions")
    assert not any(store.maintenance.counts().values())


def test_questions_of_lines_and_lists_are_stored_once(store: Store, tmp_path: Path) -> None:
    question = {"question": "Who?", "id": "1"}
    file = put_lines(tmp_path / "q.jsonl", question, {"question": "When?"}, {"question": "When?"})
    assert detect_format(file) == "questions"
    report = store.imports.import_file(file)
    assert (report.stored, report.known) == ({"question": 2}, {"question": 1})
    assert detect_format(put_lines(tmp_path / "long.jsonl", {"source": "x" * 10_000, **question})) == "questions"
    listed = put_lines(tmp_path / "q.json", [{"question": "Where?", "id": 2}])
    assert store.imports.import_file(listed).stored == {"question": 1}
    with pytest.raises(RejectedRowsError, match="line 2"):
        store.imports.import_file(put_lines(tmp_path / "bad.jsonl", {"question": "A?"}, {"question": 3}))
    assert store.maintenance.counts()["question"] == 3


ANSWERED = [
    ({"id": 7, "question": "Who?", "answers": [["Ada", "A. L."]]}, [("Ada", "A. L.")]),
    ({"id": 10**30, "question": "Who?", "answer": ["Ada", "A. L."]}, [("Ada", "A. L.")]),
    (
        {
            "id": "x",
            "question": "Who?",
            "answers": ["Ada", "Bob"],
            "qa_pairs": [{"question": "Who then?"}, {"question": "Who now?"}],
        },
        [("Ada",), ("Bob",)],
    ),
]


@pytest.mark.parametrize("is_list", [False, True])
@pytest.mark.parametrize(("row", "answers"), ANSWERED, ids=["rows", "nq-open", "pairs"])
def test_answers_are_stored_in_every_layout(
    store: Store, tmp_path: Path, row: dict[str, Any], answers: list[Any], is_list: bool
) -> None:
    file = put_lines(tmp_path / "q.json", [row] if is_list else row)
    assert store.imports.import_file(file).stored == {"question": 1, "annotation": 1}
    ((_, _, _, annotation),) = annotations(store, str(row["id"]))
    assert [pair.answers for pair in annotation.pairs] == answers
    assert store.imports.import_file(file).stored == {}
    other = put_lines(tmp_path / "other.json", {**row, "answers": [["Eve"]], "answer": None, "qa_pairs": None})
    with pytest.raises(InputError, match="another annotation"):
        store.imports.import_file(other)


def test_passages_of_a_question_are_not_dropped(store: Store, tmp_path: Path) -> None:
    row = {"id": "1", "question": "Who?", "passages": [{"text": "Ada."}]}
    for answers in ({}, {"answers": [["Ada"]]}):
        with pytest.raises(FormatError, match=r"question '1': it brings passages.*add-questions"):
            store.imports.import_file(put_lines(tmp_path / "q.jsonl", row | answers))
    assert empty(store)


def test_a_wrong_row_of_a_list_is_named_by_its_index(store: Store, tmp_path: Path) -> None:
    for wrong in ({"question": ""}, {"question": "Why?", "id": 2.5}, {"question": "Why?", "id": "x" * 201}):
        with pytest.raises(RejectedRowsError, match=r"line 1: .*\[1\]"):
            store.imports.import_file(put_lines(tmp_path / "q.json", [{"question": "Who?"}, wrong]))
    with pytest.raises(RejectedRowsError, match=r"line 1: row \[1\]: .*expected an object"):
        store.imports.import_file(put_lines(tmp_path / "q.json", [GOOD, 3]))


def test_ambignq_full_is_stored_with_its_passages(store: Store, tmp_path: Path) -> None:
    row = {
        "id": "1",
        "question": "Who?",
        "annotations": [{"type": "singleAnswer", "answer": ["a"], "passages": ["p1"]}],
        "used_queries": [{"query": "who", "results": [{"title": "T", "snippet": "S"}]}],
        "viewed_doc_titles": ["T"],
        "nq_answer": ["a"],
        "nq_doc_title": "T",
    }
    file = put_lines(tmp_path / "full.json", [row])
    assert store.imports.import_file(file).stored == {"question": 1, "annotation": 1}
    ((_, _, _, annotation),) = annotations(store, "1")
    assert annotation.pairs[0].passage_ids == ("p1",)
    row["annotations"][0]["passages"] = "p1"
    with pytest.raises(RejectedRowsError, match=r"annotations\[0\]\.passages.*expected a list"):
        store.imports.import_file(put_lines(file, [{**row, "id": "2"}]))


def test_gzip_is_read_and_bombs_are_not(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = tmp_path / "q.jsonl.gz"
    good.write_bytes(gzip.compress(b'{"question": "Who?"}\n'))
    assert store.imports.import_file(good).stored == {"question": 1}
    (tmp_path / "cut.gz").write_bytes(good.read_bytes()[:-6])
    with pytest.raises(FormatError, match="damaged or truncated"):
        store.imports.import_file(tmp_path / "cut.gz", format="questions")
    monkeypatch.setattr(json_io, "FREE_BYTES", 1_000_000)
    bomb = tmp_path / "bomb.json.gz"
    bomb.write_bytes(gzip.compress(b'[{"question": "' + b"0" * 5_000_000, 9))
    assert bomb.stat().st_size < 10_000
    with pytest.raises(FormatError, match="compressed bytes decompress to more than"):
        store.imports.import_file(bomb)
    with pytest.raises(FormatError, match="compressed bytes decompress to more than"):
        json_io.first_text(bomb)  # also where a file is of the command line
    monkeypatch.setattr(json_io, "MAX_LINE_VALUES", 1000)
    many = tmp_path / "many.jsonl"
    many.write_text('{"question": "Who?", "x": [' + "[]," * 1001 + "[]]}\n")
    with pytest.raises(FormatError, match="more than 1000 values"):
        store.imports.import_file(many)
    assert store.maintenance.counts()["question"] == 1
