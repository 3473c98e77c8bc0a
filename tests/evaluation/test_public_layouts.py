"""ASQA, RAMDocs, WebQSP and AmbigNQ with articles, as their authors lay them out; and what may be wrong in them."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from core.datasets import detect, load
from core.errors import FormatError
from core.types import QAPair

ASQA: dict[str, Any] = {
    "train": {},
    "dev": {
        "77": {
            "ambiguous_question": "Who won?",
            "qa_pairs": [
                {"question": "Who won in 2010?", "short_answers": ["Spain", "Spain", "La Roja"], "wikipage": None},
                {"context": "x", "question": "Who won in 2014?", "short_answers": ["Germany"], "wikipage": "World Cup"},
            ],
            "wikipages": [],
            "annotations": [{"knowledge": [], "long_answer": "Spain won in 2010, Germany in 2014."}, {"long_answer": " "}],
        },
        "78": {
            "ambiguous_question": "Where?",
            "qa_pairs": [{"question": "Where was it?", "short_answers": ["Rome"]}],
            "annotations": [],
        },
    },
}
RAMDOCS: dict[str, Any] = {
    "question": "Who is John Smith?",
    "documents": [
        {"text": "John Smith is a baker.", "type": "correct", "answer": "baker"},
        {"text": "John Smith is a pilot.", "type": "misinfo", "answer": "pilot"},
        {"text": "It rained.", "type": "noise", "answer": "unknown"},
    ],
    "disambig_entity": ["John Smith (baker)"],
    "gold_answers": ["baker", "smith"],
    "wrong_answers": ["pilot"],
}
ENTITIES = [
    {"AnswerType": "Entity", "AnswerArgument": "m.01428y", "EntityName": "Jamaican English"},
    {"AnswerType": "Entity", "AnswerArgument": "m.04ygk0", "EntityName": "Jamaican Creole"},
]
WEBQSP: dict[str, Any] = {
    "Version": "1.0",
    "Questions": [
        {
            "QuestionId": "WebQTest-1",
            "RawQuestion": "what does jamaican people speak?",
            "Parses": [
                {"Answers": ENTITIES},
                {"Answers": [{"AnswerType": "Value", "AnswerArgument": "2", "EntityName": None}]},
                {"Answers": []},
            ],
        },
        {"QuestionId": "WebQTest-2", "RawQuestion": "no answer?", "Parses": [{"Answers": []}]},
    ],
}


def write(folder: Path, body: Any, name: str = "q.json", indent: int | None = None) -> Path:
    path = folder / name
    path.write_text(json.dumps(body, indent=indent), encoding="utf-8")
    return path


@pytest.mark.parametrize("indent", [None, 1])
def test_asqa(indent: int | None, tmp_path: Path) -> None:
    path = write(tmp_path, ASQA, indent=indent)
    assert detect(path) == "asqa"
    first, second = load(path)
    assert (first.id, first.question, first.ambiguous, second.ambiguous) == ("77", "Who won?", True, False)
    assert first.annotations[0].pairs == (
        QAPair("Who won in 2010?", ("Spain", "La Roja")),
        QAPair("Who won in 2014?", ("Germany",)),
    )
    assert first.extra == {"source": "asqa", "split": "dev", "long_answers": ["Spain won in 2010, Germany in 2014."]}


def test_ramdocs(tmp_path: Path) -> None:
    path = write(tmp_path, RAMDOCS, "r.jsonl")
    assert detect(path) == "ramdocs"
    (question,) = load(path)
    assert question.id == "r-1"
    assert [p.text for p in question.passages or ()] == [d["text"] for d in RAMDOCS["documents"]]
    assert [pair.passage_ids for pair in question.annotations[0].pairs] == [("r-1#1",), ()]
    assert question.extra["wrong_answers"] == ("pilot",)
    assert question.extra["disambig_entity"] == ["John Smith (baker)"]


@pytest.mark.parametrize("indent", [None, 2])
def test_webqsp_recast_as_text(indent: int | None, tmp_path: Path) -> None:
    path = write(tmp_path, WEBQSP, indent=indent)
    assert detect(path) == "webqsp"
    (question,) = load(path)  # the question without an answer is left out
    assert [[p.answers for p in a.pairs] for a in question.annotations] == [
        [("Jamaican English",), ("Jamaican Creole",)],
        [("2",)],
    ]
    assert (question.id, question.ambiguous) == ("WebQTest-1", False)


def test_ambignq_with_articles(tmp_path: Path) -> None:
    row = {
        "id": "a",
        "question": "Who?",
        "annotations": [{"type": "singleAnswer", "answer": ["Rome"]}],
        "nq_answer": ["Rome"],
        "articles_plain_text": ["# Dexter (season 1)\n\n" + "word " * 150, "no heading here"],
        "articles_html_text": ["<h1>Dexter</h1>", ""],
    }
    (question,) = load(write(tmp_path, [row]))
    assert [(p.id, p.title, len(p.text.split())) for p in question.passages or ()] == [
        ("a#1.1", "Dexter (season 1)", 100),
        ("a#1.2", "Dexter (season 1)", 50),
        ("a#2.1", "", 3),
    ]
    assert question.extra == {"nq_answer": ["Rome"]}
    with pytest.raises(FormatError, match="articles_plain_text"):
        load(write(tmp_path, [row | {"articles_plain_text": "x"}]))


def changed(body: Any, *path: Any, to: Any) -> Any:
    inner = copied = copy.deepcopy(body)
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = to
    return copied


PAIR = {"question": "Who won in 2010?", "answer": ["Spain"]}
AMBIGNQ: list[dict[str, Any]] = [
    {"id": "a", "question": "Who?", "annotations": [{"type": "multipleQAs", "qaPairs": [PAIR, {**PAIR, "answer": ["x"]}]}]}
]
Q = ("Questions", 0, "Parses", 0, "Answers", 0)
WRONG: dict[str, tuple[Any, str]] = {
    "asqa: no splits": ({"train": {}, "dev": {}}, "contains no question|a row needs"),
    "asqa: no question": (changed(ASQA, "dev", "77", "ambiguous_question", to=""), r"q\.json, field 'dev\.77\.ambiguous_question'.*'77'"),
    "asqa: no pairs": (changed(ASQA, "dev", "77", "qa_pairs", to=[]), "qa_pairs"),
    "ramdocs: unknown type": (changed(RAMDOCS, "documents", 1, "type", to="rumour"), r"line 1, field 'documents\[1\]\.type'.*'rumour' is unknown"),
    "ramdocs: blank answer": (changed(RAMDOCS, "gold_answers", to=["x", " "]), r"gold_answers\[1\]"),
    "webqsp: no id": (changed(WEBQSP, "Questions", 0, "QuestionId", to=None), r"Questions\[0\]\.QuestionId"),
    "webqsp: unknown answer type": (changed(WEBQSP, *Q, "AnswerType", to="Guess"), r"Answers\[0\]\.AnswerType.*'Guess' is unknown"),
    "webqsp: no text": (changed(changed(WEBQSP, *Q, "EntityName", to=""), *Q, "AnswerArgument", to=""), "AnswerArgument"),
    "webqsp: equal ids": ({"Questions": [WEBQSP["Questions"][0]] * 2}, "occurs twice"),
    "ambignq: the same pair twice": (changed(AMBIGNQ, 0, "annotations", 0, "qaPairs", to=[PAIR, PAIR]), r"qaPairs\[1\].*occurs twice"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "message"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_named_with_its_place(body: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=message):
        load(write(tmp_path, body))
