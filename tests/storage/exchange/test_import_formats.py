"""Predictions, questions and AmbigNQ full of other programs; gzip; and files that want to do harm."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest
from storage_helpers import exported, put_lines
from storage_samples import annotations, prediction

from core import json_io
from core.errors import AmbiscopeError, FormatError
from core.evaluation.prediction_json import prediction_json
from core.trace import to_json
from storage.exchange.imports.importing import detect_format
from storage.records.results import RejectedRowsError
from storage.store import Store

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
    file = put_lines(tmp_path / "q.jsonl", question, {"question": "When?"}, question)
    assert detect_format(file) == "questions"
    report = store.imports.import_file(file)
    assert (report.stored, report.known) == ({"question": 2}, {"question": 1})
    listed = put_lines(tmp_path / "q.json", [{"question": "Where?", "id": "2", "annotations": "whatever"}])
    assert store.imports.import_file(listed, format="questions").stored == {"question": 1}
    with pytest.raises(RejectedRowsError, match="line 2"):
        store.imports.import_file(put_lines(tmp_path / "bad.jsonl", {"question": "A?"}, {"question": 3}))
    assert store.maintenance.counts()["question"] == 3


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


def test_a_damaged_file_is_refused_whole(store: Store, tmp_path: Path) -> None:
    """Cut, spliced and poisoned files: an AmbiscopeError that names the file, and no row; the same cases each time."""
    poisons = (b"", b"\x00", b"\xff\xfe", b"NaN", b"[" * 70, b'"\\ud800"', b"9" * 400, b"}\n{")
    chance, refused = random.Random(0), 0
    for case in range(60):
        body = bytearray("\n".join(json.dumps(SIMPLE | {"id": f"q{case}-{n}"}) for n in range(3)).encode())
        for _ in range(chance.randint(1, 3)):
            start = chance.randrange(len(body))
            body[start : start + chance.randint(0, 40)] = chance.choice(poisons)
        path = tmp_path / f"damaged-{case}.json{'l' * (case % 2)}"
        path.write_bytes(bytes(body))
        before, message = store.maintenance.counts(), ""
        try:
            store.imports.import_file(path)
        except AmbiscopeError as error:
            message = str(error)
        if message:
            refused += 1
            assert path.name in message
            assert store.maintenance.counts() == before
    assert refused > 30
