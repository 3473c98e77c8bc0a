from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import FormatError
from core.models.language.structured import read_object

PAIR: dict[str, Any] = {
    "type": "object",
    "properties": {
        "question": {"type": ["string", "null"]},
        "answer": {"type": ["string", "null"]},
        "reason": {"type": "string"},
    },
    "required": ["question", "answer"],
}
LIST: dict[str, Any] = {
    "type": "object",
    "properties": {"passages": {"type": "array", "items": {"type": "integer"}}},
    "required": ["passages"],
}
ROWS: dict[str, Any] = {
    "type": "object",
    "properties": {"rows": {"type": "array", "items": {**PAIR, "required": ["question", "answer"]}}},
    "required": ["rows"],
}
TRUTH: dict[str, Any] = {"type": "object", "properties": {"supported": {"type": "boolean"}}, "required": ["supported"]}
GOOD = {"question": "Who?", "answer": "Ada"}


@pytest.mark.parametrize(
    "text",
    [
        '{"question": "Who?", "answer": "Ada"}',
        '```json\n{"question": "Who?", "answer": "Ada"}\n```',
        'Sure! Here it is: {"question": "Who?", "answer": "Ada"} I hope {that} helps.',
        "{'question': 'Who?', 'answer': 'Ada'}",
        '{question: "Who?", answer: "Ada",}',
        "{“question”: “Who?”, “answer”: “Ada”}",
        '<think>{"question": "x", "answer": "y"}</think>{"question": "Who?", "answer": "Ada"}',
        '{"other": 1} {"question": "Who?", "answer": "Ada"}',
        '{"question": "Who?", "answer": "Ada", "reason": "beca',
        '{"question": "Who?", "answer": "Ada"',
        '{"question": "Who?", "answer": "Ada", "answer": "Bob"}',
    ],
)
def test_an_object_is_found_in_what_models_say(text: str) -> None:
    assert read_object(text, PAIR) == GOOD


def test_quotes_inside_escapes_and_other_scripts() -> None:
    assert read_object('{"question": "Who is "The Cat"?", "answer": "J\\u00fcrgen \\ud83d\\ude00 \\ud83d"}', PAIR) == {
        "question": 'Who is "The Cat"?',
        "answer": "Jürgen 😀 \ufffd",
    }
    assert read_object('{"question": "谁？", "answer": "Ælfred\nof Wessex"}', PAIR)["answer"] == "Ælfred\nof Wessex"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "said nothing"),
        ("<think>never ends", "said nothing"),
        ("I cannot help with that.", "no JSON object"),
        ("<html><body>502</body></html>", "no JSON object"),
        ('{"question": "Who?", "answer": "Ad', "lacks answer"),  # half an answer is no answer
        ('{"question": "Who?"', "lacks answer"),
        ('{"question": ["Who?"], "answer": "Ada"}', "lacks question"),
        ("{]", "can't be read"),
        ("{" * 5000, "JSON is truncated"),
        ('{"question": ' + "[" * 5000, "can't be read"),
    ],
)
def test_what_is_no_object_is_said(text: str, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        read_object(text, PAIR)


def test_values_of_a_kind_are_taken_for_what_they_mean() -> None:
    assert read_object('{"question": null, "answer": "null", "reason": 3}', PAIR) == {
        "question": None,
        "answer": None,
        "reason": "3",
    }
    assert [read_object(f'{{"supported": {v}}}', TRUTH)["supported"] for v in ("true", "True", '"Yes."', '"no"', "false")] == [
        True,
        True,
        True,
        False,
        False,
    ]
    assert read_object('{"passages": [1, "2", 3.0, "x", null, 4.5, true]}', LIST) == {"passages": [1, 2, 3]}
    assert read_object("[1, 2", LIST) == {"passages": [1]}  # the bare list; 2 may have been 20
    with pytest.raises(FormatError):
        read_object('{"passages": [', LIST)  # nothing said yet is not "none"
    assert read_object('{"passages": []', LIST) == {"passages": []}
    cut = '{"rows": [{"question": "a", "answer": "b"}, {"question": "c", "answer": "d'
    assert read_object(cut, ROWS) == {"rows": [{"question": "a", "answer": "b"}]}


words = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=30).filter(
    lambda s: s.strip().strip(".").lower() not in ("", "null", "none", "n/a")
)


@given(words, words, st.integers(0, 200))
def test_a_cut_object_never_yields_a_value_that_was_not_said(question: str, answer: str, cut: int) -> None:
    text = json.dumps({"question": question, "answer": answer})[:cut]
    try:
        assert read_object(text, PAIR) == {"question": question, "answer": answer}
    except FormatError:
        assert cut < len(json.dumps({"question": question, "answer": answer}))
