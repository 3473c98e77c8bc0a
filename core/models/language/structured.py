"""Extracts the JSON object from a language model's reply: tolerant of malformed JSON, strict about incomplete values.

Accepted: text, code fences and reasoning around the object, what YAML allows (single quotes, keys without quotes, a comma at the end), curly quotes,
line breaks and quotes in strings, a truncated object.  A truncated member counts as missing, as by pydantic's partial JSON.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import regex
import yaml
from pydantic_core import from_json

from core.errors import FormatError
from core.models.language.roles import Completion, Request

# <think>, <seed:think>, [THINK], ◁think▷ and the channels of gpt-oss
_NAME = r"(?:seed:)?(?:think|thinking|thought|reasoning)"
_BEGIN = rf"[<\[◁]{_NAME}[>\]▷]|<\|channel\|>(?:analysis|commentary)[^<]*<\|message\|>"
_END = rf"[<\[◁]/{_NAME}[>\]▷]|<\|channel\|>final[^<]*<\|message\|>"
_REASONING = re.compile(rf"(?:{_BEGIN}).*?(?:{_END}|\Z)", re.DOTALL | re.IGNORECASE)
_AT_END = re.compile(_END, re.IGNORECASE)
# possibly half of a value at the end of a truncated text: a number (19 of 1931), a list without an item
_OPEN_END = f"[{string.whitespace}{string.digits}.eE+-"
_CURLY_QUOTE = re.compile(r"(?<=[{\[,:])\s*[“”]|[“”](?=\s*(?:[,:}\]]|\Z))")
_INNER_QUOTE = regex.compile(r'(?<![{\[,:]\s*)(?<!\\)"(?!\s*(?:[,:}\]]|\Z))')  # models forget to escape quotes
_UNFIT = object()  # a value that does not fit, or is missing
MAX_YAML_CHARS = 20_000  # PyYAML reads 100 characters a millisecond
MAX_REPLY_CHARS = 200_000  # what follows is not read
MAX_STARTS = 30  # possible starts of an object; each costs a pass over the text
_JSON = json.JSONDecoder(strict=False, object_pairs_hook=lambda pairs: dict(reversed(pairs)))  # the first of equal keys


def _value(text: str) -> Any:
    """The JSON value at the start of the text.  Raises ValueError, RecursionError."""
    for repaired in (text, _INNER_QUOTE.sub(r'\\"', _CURLY_QUOTE.sub('"', text))):
        try:
            return _JSON.raw_decode(repaired)[0]
        except json.JSONDecodeError as error:
            if error.msg.startswith("Unterminated") or not repaired[error.pos :].strip():
                return from_json(repaired.rstrip(_OPEN_END), allow_partial=True)
    end = max(text.rfind("}"), text.rfind("]")) + 1
    try:  # YAML has quotes of both kinds and none, and a comma at the end
        return yaml.safe_load(text[:end][:MAX_YAML_CHARS])
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())[:100]) from None


def without_reasoning(text: str) -> str:
    """The reply without the model's reasoning.  Templates that write the opening tag into the prompt leave only the closing
    one, so everything before a closing tag is reasoning, and so is everything after an opening tag that is never closed."""
    return _AT_END.split(_REASONING.sub(" ", text))[-1]


def parse_completion(completion: Completion, request: Request) -> Completion:
    """The completion with the parsed object, or with the reason why there is none.  A reply that was cut at its limit never
    counts as an answer, even if it can be read: half of a name or of a list may be missing."""
    parsed, text, problem = None, completion.text, ""
    if request.schema is None:
        text = without_reasoning(completion.text)
        problem = "" if text.strip() else empty(completion.text)
    else:
        try:
            parsed = read_object(completion.text, request.schema)
        except FormatError as error:
            problem = str(error)
    if completion.cut:
        limit = f"the reply was cut off at its limit of {request.max_tokens} tokens; raise AMBISCOPE_LM_MAX_TOKENS"
        return replace(completion, text=text, error=f"{problem}: {limit}" if problem else limit)
    return replace(completion, text=text, parsed=parsed, error=problem)


def read_object(text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The first object in the text that fits the schema, with only its properties, each converted to its type.  Supports
    `properties` with `type` and `items`, and `required`.

    Raises FormatError that says what is missing.
    """
    reply = without_reasoning(text)[:MAX_REPLY_CHARS]
    problems: list[str] = []
    properties: Mapping[str, Any] = schema.get("properties", {})
    lists = [name for name, p in properties.items() if "array" in _types(p)]
    opening = re.finditer(r"[{\[]" if len(lists) == 1 else r"\{", reply)
    for start in (m.start() for m, _ in zip(opening, range(MAX_STARTS))):
        try:
            value = _value(reply[start:])
        except (ValueError, RecursionError) as error:
            problems.append(f"the model's JSON can't be read ({error})")
            continue
        if isinstance(value, list) and lists:  # a bare list instead of the object that should contain it
            value = {lists[0]: value}
        if not isinstance(value, dict):
            problems.append("the model's JSON is truncated")
            continue
        fitted = {n: v for n, p in properties.items() if n in value and (v := _fit(value[n], p)) is not _UNFIT}
        missing = [n for n in schema.get("required", ()) if n not in fitted]
        if not missing:
            return fitted
        problems.append(f"the model's JSON object lacks {', '.join(missing)}, or has another kind of value there")
    raise FormatError(
        problems[0] if problems else "the model's reply contains no JSON object" if reply.strip() else empty(text)
    )


def empty(text: str) -> str:
    """The reason why a reply has no answer."""
    return "the model said nothing apart from its reasoning" if text.strip() else "the model said nothing"


def _types(schema: Mapping[str, Any]) -> tuple[str, ...]:
    kind = schema.get("type", ())
    return (kind,) if isinstance(kind, str) else tuple(kind)


def _fit(value: Any, schema: Mapping[str, Any]) -> Any:
    """The value converted to the schema's type, else _UNFIT; "yes" is accepted as a boolean, "3" as a number and "null" as null."""
    kinds = _types(schema)
    word = value.strip().strip(".").lower() if isinstance(value, str) else ""
    if value is None or ("null" in kinds and isinstance(value, str) and word in ("", "null", "none", "n/a")):
        return None if "null" in kinds else _UNFIT
    if isinstance(value, bool):
        return value if "boolean" in kinds else _UNFIT
    if "boolean" in kinds and word in ("yes", "true", "no", "false"):
        return word in ("yes", "true")
    if "integer" in kinds and (isinstance(value, (int, float)) or re.fullmatch(r"\d{1,9}", word)):
        return int(word or value) if word or value == value // 1 else _UNFIT
    if "string" in kinds and isinstance(value, (str, int, float)):
        return str(value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # half a character is none
    if "array" in kinds and isinstance(value, list):
        return [v for item in value if (v := _fit(item, schema.get("items", {}))) is not _UNFIT]
    if "object" in kinds and isinstance(value, dict):
        inner = {n: v for n, p in schema.get("properties", {}).items() if n in value and (v := _fit(value[n], p)) is not _UNFIT}
        return inner if all(n in inner for n in schema.get("required", ())) else _UNFIT
    return _UNFIT
