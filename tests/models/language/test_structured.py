from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import FormatError
from core.models.language.structured import read_object


def object_schema(required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required.split()}


PAIR = object_schema(
    "question answer", question={"type": ["string", "null"]}, answer={"type": ["string", "null"]}, reason={"type": "string"}
)
LIST = object_schema("passages", passages={"type": "array", "items": {"type": "integer"}})
ROWS = object_schema("rows", rows={"type": "array", "items": PAIR})
TRUTH = object_schema("supported", supported={"type": "boolean"})
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


@pytest.mark.parametrize(
    ("schema", "text", "expected"),
    [
        (PAIR, '{"question": null, "answer": "null", "reason": 3}', {"question": None, "answer": None, "reason": "3"}),
        (TRUTH, '{"supported": True}', {"supported": True}),
        (TRUTH, '{"supported": "Yes."}', {"supported": True}),
        (TRUTH, '{"supported": "no"}', {"supported": False}),
        (TRUTH, '{"supported": false}', {"supported": False}),
        (LIST, '{"passages": [1, "2", 3.0, "x", null, 4.5, true]}', {"passages": [1, 2, 3]}),
        (LIST, "[1, 2", {"passages": [1]}),  # the bare list; 2 may have been 20
        (LIST, '{"passages": []', {"passages": []}),
        (
            ROWS,
            '{"rows": [{"question": "a", "answer": "b"}, {"question": "c", "answer": "d',
            {"rows": [{"question": "a", "answer": "b"}]},
        ),
    ],
)
def test_values_of_a_kind_are_taken_for_what_they_mean(schema: dict[str, Any], text: str, expected: dict[str, Any]) -> None:
    assert read_object(text, schema) == expected


def test_a_list_of_which_nothing_is_said_yet_is_not_empty() -> None:
    with pytest.raises(FormatError):
        read_object('{"passages": [', LIST)


words = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=30).filter(
    lambda s: s.strip().strip(".").lower() not in ("", "null", "none", "n/a")
)


@given(words, words, st.integers(0, 200))
def test_a_cut_object_never_yields_a_value_that_was_not_said(question: str, answer: str, cut: int) -> None:
    pair = {"question": question, "answer": answer}
    text = json.dumps(pair)
    try:
        assert read_object(text[:cut], PAIR) == pair
    except FormatError:
        assert cut < len(text)
