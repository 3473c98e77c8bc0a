"""Extracts the JSON object from a language model's reply: tolerant of malformed JSON, strict about incomplete values.

Accepted: text, code fences and reasoning around the object, single or curly quotes, Python's True, False and None, keys without quotes, extra
commas, line breaks in strings, a truncated object.  A truncated member counts as missing.  (This is why no JSON repair library is used: they
close a truncated string and return it as complete.)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from core.errors import FormatError

# <think>, <seed:think>, [THINK], ◁think▷ and the channels of gpt-oss
_NAME = r"(?:seed:)?(?:think|thinking|thought|reasoning)"
_BEGIN = rf"[<\[◁]{_NAME}[>\]▷]|<\|channel\|>(?:analysis|commentary)[^<]*<\|message\|>"
_END = rf"[<\[◁]/{_NAME}[>\]▷]|<\|channel\|>final[^<]*<\|message\|>"
_REASONING = re.compile(rf"(?:{_BEGIN}).*?(?:{_END}|\Z)", re.DOTALL | re.IGNORECASE)
_REST = re.compile(rf".*(?:{_END})", re.DOTALL | re.IGNORECASE)
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d{1,3})?")
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_CONSTANTS = {"true": True, "false": False, "null": None, "none": None}
_CUT = object()  # a truncated value
DEEPEST = 20
MOST_TRIED = 30  # possible starts of an object; each costs a pass over the text


class _Reader:
    def __init__(self, text: str, at: int) -> None:
        self.text, self.at = text, at

    def blanks(self) -> str:
        """The next character that is not white space, "" at the end."""
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        return self.text[self.at : self.at + 1]

    def value(self, depth: int = 0) -> Any:
        """Raises ValueError for anything else."""
        first = self.blanks()
        if not first:
            return _CUT
        if depth > DEEPEST:
            raise ValueError("nested too deeply")
        if first == "{":
            return self.members(depth)
        if first == "[":
            return self.items(depth)
        if first in _QUOTES:
            return self.string(_QUOTES[first])
        if number := _NUMBER.match(self.text, self.at):
            self.at = number.end()
            if self.at == len(self.text):
                return _CUT  # 19 of 1931
            return (
                int(number.group())
                if number.group().lstrip("-").isdigit() and number.end() - number.start() < 20
                else float(number.group())
            )
        if word := _WORD.match(self.text, self.at):
            self.at = word.end()
            if word.group().lower() in _CONSTANTS:
                return _CONSTANTS[word.group().lower()]
            if self.at == len(self.text):
                return _CUT
        raise ValueError(f"no JSON value at character {self.at}")

    def string(self, closing: str) -> Any:
        """Ends at a quote after which the object can continue: models forget to escape quotes."""
        out: list[str] = []
        self.at += 1
        while self.at < len(self.text):
            c = self.text[self.at]
            self.at += 1
            if c == closing:
                after = self.text[self.at :].lstrip()[:1]
                if not after or after in ",:}]":
                    return "".join(out)
                out.append(c)
            elif c == "\\" and self.at < len(self.text):
                out.append(self._escaped())
            else:
                out.append(c)
        return _CUT

    def _escaped(self) -> str:
        c = self.text[self.at]
        self.at += 1
        if c != "u":
            return _ESCAPES.get(c, c)
        digits = self.text[self.at : self.at + 4]
        if not re.fullmatch("[0-9a-fA-F]{4}", digits):
            return "u"
        self.at += 4
        code = int(digits, 16)
        low = re.match(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})", self.text[self.at :]) if 0xD800 <= code < 0xDC00 else None
        if low:
            self.at += 6
            return chr(0x10000 + (code - 0xD800) * 0x400 + int(low.group(1), 16) - 0xDC00)
        return "\ufffd" if 0xD800 <= code < 0xE000 else chr(code)

    def members(self, depth: int) -> dict[str, Any]:
        out: dict[str, Any] = {}
        self.at += 1
        while (c := self.blanks()) and c != "}":
            if c == ",":
                self.at += 1
                continue
            if c in _QUOTES:
                key = self.string(_QUOTES[c])
            elif word := _WORD.match(self.text, self.at):
                key, self.at = word.group(), word.end()
            else:
                raise ValueError(f"no key at character {self.at}")
            if key is _CUT or not self.blanks():
                return out
            if self.text[self.at] != ":":
                raise ValueError(f"no colon at character {self.at}")
            self.at += 1
            value = self.value(depth + 1)
            if value is not _CUT:
                out.setdefault(str(key), value)
        self.at += 1
        return out

    def items(self, depth: int) -> Any:
        """The complete items of a truncated list; none at all differs from an empty list."""
        out: list[Any] = []
        self.at += 1
        while (c := self.blanks()) and c != "]":
            if c == ",":
                self.at += 1
                continue
            value = self.value(depth + 1)
            if value is not _CUT:
                out.append(value)
        closed, self.at = self.at < len(self.text), self.at + 1
        return out if closed or out else _CUT


def without_reasoning(text: str) -> str:
    """The text after and around a model's reasoning.  Templates that write the opening tag into the prompt leave only the closing one, so all
    before a closing tag is reasoning; so is all after an opening one that is never closed."""
    return _REST.sub(" ", _REASONING.sub(" ", text))


def read_object(text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The first object in the text that fits the schema, with only its properties, each of its type.  Supports `properties` with `type` and
    `items`, and `required`.

    Raises FormatError that says what is missing.
    """
    said = without_reasoning(text)
    problems: list[str] = []
    properties: Mapping[str, Any] = schema.get("properties", {})
    lists = [name for name, p in properties.items() if "array" in _types(p)]
    opening = re.finditer(r"[{\[]" if len(lists) == 1 else r"\{", said)
    for start in (m.start() for m, _ in zip(opening, range(MOST_TRIED))):
        try:
            found = _Reader(said, start).value()
        except (ValueError, RecursionError) as error:
            problems.append(f"the model's JSON can't be read ({error})")
            continue
        if isinstance(found, list) and lists:  # a bare list instead of the object that should contain it
            found = {lists[0]: found}
        if not isinstance(found, dict):
            problems.append("the model's JSON is truncated")
            continue
        fitted = {n: v for n, p in properties.items() if n in found and (v := _fit(found[n], p)) is not _CUT}
        missing = [n for n in schema.get("required", ()) if n not in fitted]
        if not missing:
            return fitted
        problems.append(f"the model's JSON object lacks {', '.join(missing)}, or has another kind of value there")
    raise FormatError(problems[0] if problems else "the model's reply contains no JSON object" if said.strip() else empty(text))


def empty(text: str) -> str:
    """Why a reply without an answer has none."""
    return "the model said nothing apart from its reasoning" if text.strip() else "the model said nothing"


def _types(schema: Mapping[str, Any]) -> tuple[str, ...]:
    kind = schema.get("type", ())
    return (kind,) if isinstance(kind, str) else tuple(kind)


def _fit(value: Any, schema: Mapping[str, Any]) -> Any:
    """The value converted to the schema's type, else _CUT; "yes" is accepted as a boolean, "3" as a number and "null" as null."""
    kinds = _types(schema)
    bare = value.strip().strip(".").lower() if isinstance(value, str) else ""
    if value is None or ("null" in kinds and isinstance(value, str) and bare in ("", "null", "none", "n/a")):
        return None if "null" in kinds else _CUT
    if isinstance(value, bool):
        return value if "boolean" in kinds else _CUT
    if "boolean" in kinds and bare in ("yes", "true", "no", "false"):
        return bare in ("yes", "true")
    if "integer" in kinds and (isinstance(value, (int, float)) or re.fullmatch(r"\d{1,9}", bare)):
        return int(bare or value) if bare or value == value // 1 else _CUT
    if "string" in kinds and isinstance(value, (str, int, float)):
        return str(value)
    if "array" in kinds and isinstance(value, list):
        return [v for item in value if (v := _fit(item, schema.get("items", {}))) is not _CUT]
    if "object" in kinds and isinstance(value, dict):
        inner = {n: v for n, p in schema.get("properties", {}).items() if n in value and (v := _fit(value[n], p)) is not _CUT}
        return inner if all(n in inner for n in schema.get("required", ())) else _CUT
    return _CUT
