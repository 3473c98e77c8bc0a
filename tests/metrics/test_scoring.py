"""`score`: worked values of our own, the official script's values where they are at hand, and every malformed file."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

import pytest

from core.errors import FormatError, InputError
from core.metrics import SCORE_METRICS
from core.metrics.score.files import parse_predictions, parse_references
from core.metrics.score.scoring import score, score_files

PAIRS = [
    {"question": "Who won in 2010?", "answer": ["Spain", "The Spanish team"]},
    {"question": "Who won in 2014?", "answer": ["Germany"]},
]
CITY = [{"type": "singleAnswer", "answer": ["Paris", "City of Light"]}]
REFERENCES: list[dict[str, Any]] = [
    {"id": "cup", "question": "Who won?", "annotations": [{"type": "multipleQAs", "qaPairs": PAIRS}]},
    {"id": "capital", "question": "What is it?", "annotations": CITY},
]
PREDICTIONS: dict[str, Any] = {
    "cup": [
        {"question": "Who won in 2010?", "answer": "spain"},
        {"question": "Who won the cup?", "answer": "Germany!"},
        {"question": "Who won?", "answer": "Brazil"},
    ],
    "capital": [{"question": "What is it?", "answer": "the city of light"}],
}


def scored(predictions: Any = PREDICTIONS, references: Any = REFERENCES) -> Any:
    wanted = parse_references(references)
    return score(wanted, parse_predictions(predictions, [r.id for r in wanted]))


def test_worked_values() -> None:
    result = scored()
    # of "cup": "who won cup" for "who won in 2014": 2 of 3 words, 3 words for 4
    bleu1, bleu2 = (precision * math.exp(1 - 4 / 3) for precision in (2 / 3, math.sqrt(2 / 3 * 1 / 2)))
    cup = {
        "F1 answer": 2 * 2 / 5,  # two of two answers with three predictions
        "F1 edit-f1": 2 * 1 / 5,  # the first question is equal (1), the second adds "cup" where "in 2014" was wanted (0)
        "F1 bleu1": 2 * (1 + bleu1) / 5,
        "F1 bleu2": 2 * (1 + bleu2) / 5,
    }
    assert {name: result.per_question["cup"][name] for name in cup} == pytest.approx(cup, abs=1e-6)
    assert result.per_question["cup"]["F1 bleu4"] == pytest.approx(0.4, abs=1e-4)
    assert result.per_question["capital"] == dict.fromkeys(SCORE_METRICS, 1.0)
    assert result.values["F1 answer"] == {"all": pytest.approx(0.9), "multi": pytest.approx(0.8)}
    assert result.values["F1 edit-f1"] == {"all": pytest.approx(0.7), "multi": pytest.approx(0.4)}
    assert list(result.values) == list(SCORE_METRICS)


def test_answers_alone_have_no_question_metrics() -> None:
    values = scored({"cup": ["Spain", "Germany"], "capital": ["Lyon"]}).values
    assert (values["F1 answer"], values["F1 bleu4"]) == ({"all": 0.5, "multi": 1.0}, {"all": None, "multi": None})


@pytest.mark.parametrize("with_questions", [False, True])
def test_no_answer_is_an_empty_list_or_no_entry_and_counted(with_questions: bool) -> None:
    cup = PREDICTIONS["cup"] if with_questions else ["Spain", "Germany"]
    for predictions, counts in (
        ({"cup": cup, "capital": []}, (1, 0)),
        ({"cup": cup}, (0, 1)),
        ({"cup": [], "capital": []}, (2, 0)),
    ):
        result = scored(predictions)
        assert (result.without_answer, result.missing) == counts
        assert result.per_question["capital"]["F1 answer"] == 0.0
        has_questions = with_questions and predictions["cup"]
        assert result.per_question["capital"]["F1 bleu4"] == (0.0 if has_questions else None)
        assert len(result.per_question) == 2


def test_answers_that_normalise_to_nothing_are_compared_by_their_text() -> None:
    bands = [{"id": "b", "question": "Which?", "annotations": [{"type": "singleAnswer", "answer": ["The The"]}]}]
    assert [scored({"b": [a]}, bands).values["F1 answer"]["all"] for a in ("the  the", "A", "The")] == [1.0, 0.0, 0.0]


def test_a_reference_s_id_may_be_a_number() -> None:
    rows = [{**REFERENCES[1], "id": 7}]
    assert scored({"7": ["Lyon"]}, rows).per_question.keys() == {"7"}


def test_the_official_script_s_values(score_example: dict[str, Any]) -> None:
    result = scored(score_example["predictions"], score_example["references"])
    for name, value in score_example["expected"].items():
        assert result.values[name] == pytest.approx(value, abs=1e-6), name
    for question, values in score_example["expected_per_question"].items():
        assert result.per_question[question] == pytest.approx(values, abs=1e-6), question


BROKEN_REFERENCES = {
    "an object for the list": (lambda r: {"data": r}, "expected a list of questions"),
    "empty": (lambda r: [], "contains no question"),
    "a text for a question": (lambda r: [*r, "x"], r"\[2\]"),
    "the same id twice": (lambda r: [*r, r[0]], "'cup': occurs twice"),
    "a blank question": (lambda r: _with(r, 0, "question", "  "), "field 'question': question 'cup'"),
    "no annotations": (lambda r: _with(r, 1, "annotations", None), "field 'annotations': question 'capital'"),
    "another type": (lambda r: _with(r, 1, "annotations", [{"type": "noAnswer"}]), r"annotations\[0\]\.type"),
    "empty aliases": (lambda r: _with(r, 1, "annotations", [CITY[0] | {"answer": []}]), r"annotations\[0\]\.answer"),
    "a text for a pair": (lambda r: _paired(r, "x"), r"qaPairs\[0\]"),
    "only bars for a question": (lambda r: _paired(r, {"question": " | ", "answer": ["a"]}), r"qaPairs\[0\]\.question"),
}
BROKEN_PREDICTIONS = {
    "a list for the object": (lambda p: [p], "expected one object"),
    "nothing": (lambda p: {}, "contains no prediction"),
    "an id that no reference has": (lambda p: {**p, "x": ["y"]}, "no reference has the id 'x'"),
    "null for the answers": (lambda p: {**p, "cup": None}, "field 'cup'"),
    "a number for an answer": (lambda p: {k: [1] for k in p}, r"'cup\[0\]'"),
    "no answer": (lambda p: {**p, "cup": [{"question": "q"}]}, r"'cup\[0\]\.answer'"),
    "both kinds": (lambda p: {**p, "capital": ["Paris"]}, "mixed"),
    "the same id twice": (lambda p: '{"cup": ["a"], "cup": ["b"], "capital": ["a"]}', "'cup' occurs twice"),
}


def _with(rows: Any, i: int, name: str, value: Any) -> Any:
    rows[i][name] = value
    return rows


def _paired(rows: Any, pair: Any) -> Any:
    return _with(rows, 1, "annotations", [{"type": "multipleQAs", "qaPairs": [pair]}])


def write(folder: Path, references: Any = REFERENCES, predictions: Any = PREDICTIONS) -> tuple[Path, Path]:
    paths = folder / "references.json", folder / "predictions.json"
    for path, value in zip(paths, (references, predictions), strict=True):
        path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return paths


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [("references", *case) for case in BROKEN_REFERENCES.values()]
    + [("predictions", *case) for case in BROKEN_PREDICTIONS.values()],
    ids=[*BROKEN_REFERENCES, *BROKEN_PREDICTIONS],
)
def test_malformed_files_are_refused_with_their_place(file: str, change: Any, message: str, tmp_path: Path) -> None:
    files = copy.deepcopy({"references": REFERENCES, "predictions": PREDICTIONS})
    with pytest.raises(FormatError, match=message) as caught:
        score_files(*write(tmp_path, **files | {file: change(files[file])}))
    assert caught.value.file == f"{file}.json"


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    references, predictions = write(tmp_path)
    with pytest.raises(InputError, match=r"nowhere\.json cannot be read"):
        score_files(references, tmp_path / "nowhere.json")
    predictions.write_bytes(b'{"cup": ["\xff"]}')
    with pytest.raises(FormatError, match="not UTF-8"):
        score_files(references, predictions)
