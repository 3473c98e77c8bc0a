"""Question files in the layouts of other data sets: refused by name, by whatever reads question files, and nothing is stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from annotation_samples import project

from core import datasets
from core.errors import FormatError
from storage.exchange.imports.question_files import questions_to_annotate
from storage.store import Store

QUESTION, ANSWER, TEXT = "Who laid the Orm bridge?", "Ida Holt", "The Orm bridge was laid by Ida Holt."
SQUAD_QA = {"id": "s", "question": QUESTION, "answers": [{"text": ANSWER, "answer_start": 27}], "is_impossible": False}
SQUAD = {"version": "v2.0", "data": [{"title": "Orm", "paragraphs": [{"context": TEXT, "qas": [SQUAD_QA]}]}]}
TRIVIA = {"Data": [{"Question": QUESTION, "QuestionId": "t", "Answer": {"Value": ANSWER, "Aliases": [ANSWER]}}]}
LAYOUTS: dict[str, tuple[str, str]] = {
    "SQuAD": ("SQuAD", json.dumps(SQUAD)),
    "SQuAD, indented": ("SQuAD", json.dumps(SQUAD, indent=1)),
    "SQuAD's articles": ("SQuAD", json.dumps(SQUAD["data"])),
    "SQuAD as rows": (
        "SQuAD",
        json.dumps(
            {
                "id": "h",
                "title": "Orm",
                "context": TEXT,
                "question": QUESTION,
                "answers": {"text": [ANSWER], "answer_start": [27]},
            }
        ),
    ),
    "rows with SQuAD's answers": (
        "SQuAD",
        json.dumps({"question": QUESTION, "answers": {"text": [ANSWER], "answer_start": [27]}}),
    ),
    "MRQA": ("MRQA", json.dumps({"header": {"split": "dev"}}) + "\n" + json.dumps({"context": TEXT, "qas": [SQUAD_QA]})),
    "MRQA without its header": ("MRQA", json.dumps({"context": TEXT, "qas": [SQUAD_QA]})),
    "HotpotQA": (
        "HotpotQA",
        json.dumps(
            [
                {
                    "_id": "5",
                    "question": QUESTION,
                    "answer": ANSWER,
                    "supporting_facts": [["Orm", 0]],
                    "context": [["Orm", [TEXT]]],
                }
            ]
        ),
    ),
    "MuSiQue": (
        "MuSiQue",
        json.dumps({"id": "m", "question": QUESTION, "answer": ANSWER, "paragraphs": [], "question_decomposition": []}),
    ),
    "MS MARCO": ("MS MARCO", json.dumps({"query": QUESTION, "answers": [TEXT], "passages": [{"passage_text": TEXT}]})),
    "TriviaQA": ("TriviaQA", json.dumps(TRIVIA)),
    "TriviaQA, indented": ("TriviaQA", json.dumps(TRIVIA, indent=2)),
    "TriviaQA as rows": (
        "TriviaQA",
        json.dumps({"question": QUESTION, "question_id": "t", "question_source": "x", "answer": {"value": ANSWER}}),
    ),
    "PopQA": ("PopQA", json.dumps({"subj": "Orm bridge", "prop": "builder", "obj": ANSWER, "question": QUESTION})),
    "Natural Questions": ("Natural Questions", json.dumps({"question_text": QUESTION, "annotations": [], "document_html": ""})),
    "WebQuestions": ("WebQuestions", json.dumps([{"utterance": QUESTION, "targetValue": "(list)", "url": "x"}])),
    "KILT": ("KILT", json.dumps({"id": "k", "input": QUESTION, "output": [{"answer": ANSWER}]})),
    "BoolQ": ("BoolQ", json.dumps({"question": "is it old", "passage": TEXT, "answer": True})),
    "BEIR": ("BEIR", json.dumps({"_id": "b", "text": QUESTION, "metadata": {}})),
    "answers under another name": ("'possible_answers'", json.dumps({"question": QUESTION, "possible_answers": [ANSWER]})),
    "answers of a quiz": ("'best_answer'", json.dumps([{"question": QUESTION, "best_answer": ANSWER}])),
    "no known field": ("expected|'prompt'", json.dumps({"prompt": QUESTION, "completion": ANSWER})),
    "a table": ("JSON|no such column", f"id\tquestion\tpossible_answers\n1\t{QUESTION}\t['{ANSWER}']\n"),
}


@pytest.mark.parametrize(("words", "content"), LAYOUTS.values(), ids=LAYOUTS)
def test_the_layout_of_another_data_set_is_refused_by_name(store: Store, tmp_path: Path, words: str, content: str) -> None:
    parts = project(store, 0)
    before = store.maintenance.counts()
    path = tmp_path / "questions.json"
    path.write_text(content, encoding="utf-8")
    readers: tuple[Callable[[Path], Any], ...] = (datasets.load, questions_to_annotate, store.imports.import_file)
    for reader in readers:
        with pytest.raises(FormatError, match=words) as refused:
            reader(path)
        assert "questions.json" in str(refused.value)
    assert store.maintenance.counts() == before
    assert parts


def test_rows_that_were_converted_are_read_with_what_they_bring_besides(tmp_path: Path) -> None:
    path = tmp_path / "converted.jsonl"
    row = {"question": QUESTION, "answers": [[ANSWER]], "passages": [{"text": TEXT}], "supporting_facts": [["Orm", 0]]}
    path.write_text(json.dumps(row), encoding="utf-8")
    (question,) = datasets.load(path)
    assert question.annotations[0].pairs[0].answers == (ANSWER,)
    assert question.passages is not None
    assert question.extra["supporting_facts"] == [["Orm", 0]]


@pytest.mark.parametrize("number", [0, 7, -3, 2**63, 123456789012345678901234567890, 10**150])
def test_an_id_that_is_a_number_is_kept_digit_by_digit(tmp_path: Path, number: int) -> None:
    row = {"id": number, "question": QUESTION, "answers": [[ANSWER]], "passages": [{"id": number, "text": TEXT}]}
    light = {"id": number, "question": QUESTION, "annotations": [{"type": "singleAnswer", "answer": [ANSWER]}]}
    path = tmp_path / "q.json"
    for body in (row, [row], [light]):
        path.write_text(json.dumps(body), encoding="utf-8")
        (question,) = datasets.load(path)
        assert question.id == str(number)
        assert all(passage.id == str(number) for passage in question.passages or ())
    path.write_text(json.dumps({**row, "score": 2**64}), encoding="utf-8")
    with pytest.raises(FormatError, match="more than 64 bits"):  # a number, and no name
        datasets.load(path)


@pytest.mark.parametrize("identity", [True, 2.0, "", " ", None, ["a"], "x" * 201])
def test_other_ids_are_refused_at_their_row(tmp_path: Path, identity: Any) -> None:
    path, row = tmp_path / "q.jsonl", {"question": QUESTION, "answers": [[ANSWER]]}
    path.write_text(f"{json.dumps(row)}\n\n{json.dumps(row | {'id': identity})}\n", encoding="utf-8")
    with pytest.raises(FormatError, match=r"q\.jsonl, line 3, field 'id': "):
        datasets.load(path)
    path.write_text(json.dumps([row, row | {"id": identity}]), encoding="utf-8")
    with pytest.raises(FormatError, match=r"q\.jsonl, field '\[1\]\.id': "):
        datasets.load(path)


def test_a_number_and_its_digits_are_one_id(tmp_path: Path) -> None:
    path, row = tmp_path / "q.json", {"question": QUESTION, "answers": [[ANSWER]]}
    path.write_text(json.dumps([row | {"id": 7}, row | {"id": "7"}]), encoding="utf-8")
    with pytest.raises(FormatError, match=r"field '\[1\]\.id': '7' is also the id of row \[0\]"):
        datasets.load(path)
