"""Prompts as files with versions, and the only way from text of a corpus or a person into one.

A file is a header (`version`, `role`, `source`), then messages, each begun by a line `--- system`, `--- user` or `--- assistant`; `{{name}}` is
filled in.  What is filled in is data: it stands between tags, the prompt says so, and `as_data` takes from it all that could end a
tag or a turn.  A change of the wording is a new version: predictions and reports name it.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.errors import FormatError
from core.types import Passage

FOLDER = Path(__file__).resolve().parent
PASSAGE_CHARS = 4_000  # of one passage in a prompt; a passage of 100 words has about 600

_HOLE = re.compile(r"\{\{(\w+)\}\}")
_TURN = re.compile(r"^--- (system|user|assistant)\n", re.MULTILINE)
# control words in brackets, as some chat templates have them: [INST], [/INST], [TOOL_CALLS], [SYSTEM_PROMPT]
_BRACKETS = re.compile(r"\[(?=\s*/?\s*[A-Z][A-Z_]{2,}\s*\])")
_KEPT = "\n\t\u200c\u200d"
_ANGLES = str.maketrans({"<": "‹", ">": "›", "＜": "‹", "＞": "›"})


@dataclass(frozen=True, slots=True)
class Prompt:
    name: str
    version: int
    source: str
    turns: tuple[tuple[str, str], ...]  # (role of the chat, text with holes)

    @property
    def holes(self) -> frozenset[str]:
        return frozenset(name for _, text in self.turns for name in _HOLE.findall(text))

    def fill(self, **values: str) -> list[tuple[str, str]]:
        """(role, text) of each message.  `values` come from `as_data`, `passages_as_data` or `list_as_data`, or are numbers.

        Raises KeyError for a hole that is left and for a value that has no hole.
        """
        if wrong := self.holes.symmetric_difference(values):
            raise KeyError(f"prompt {self.name} and its values differ in: {', '.join(sorted(wrong))}")
        return [(role, _HOLE.sub(lambda m: values[m.group(1)], text)) for role, text in self.turns]


def names() -> list[str]:
    return sorted(p.stem for p in FOLDER.glob("*.txt"))


@functools.lru_cache(maxsize=64)
def load_prompt(name: str) -> Prompt:
    """Raises FormatError for a file that lacks a version, its role or a message of the user at its end."""
    path = FOLDER / f"{name}.txt"
    head, *rest = _TURN.split(path.read_text(encoding="utf-8"))
    fields = dict(line.split(": ", 1) for line in head.strip().splitlines() if ": " in line)
    if not fields.get("version", "").isdigit() or fields.get("role") != name:
        raise FormatError(f"a prompt begins with 'version: NUMBER' and 'role: {name}'", file=path)
    turns = tuple((role, text.strip()) for role, text in zip(rest[::2], rest[1::2], strict=True))
    if [role for role, _ in turns[:1]] != ["system"] or turns[-1][0] != "user":
        raise FormatError("the first message of a prompt is the system's, the last one the user's", file=path)
    return Prompt(name, int(fields["version"]), fields.get("source", ""), turns)


def versions() -> Mapping[str, int]:
    return {name: load_prompt(name).version for name in names()}


def as_data(text: str, limit: int = PASSAGE_CHARS) -> str:
    """Text of a corpus, a person or a model as it may stand between the tags of a prompt; at most `limit` characters.

    Angle brackets become ‹ ›, so that no tag of ours and no control token of a chat template (`<|im_end|>`, `</s>`) can be written; control
    words in square brackets get a blank; characters that show nothing (controls, bidirectional marks, tags of plane 14) are left out, but
    for the joiners that some scripts write with.
    """
    shown = "".join(c for c in text[: 2 * limit] if c in _KEPT or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co"))
    return _BRACKETS.sub("[ ", shown.translate(_ANGLES))[:limit].strip()


def as_line(text: str, limit: int = 500) -> str:
    """`as_data` in one line."""
    return " ".join(as_data(text, limit).split())


def passages_as_data(passages: Sequence[Passage]) -> str:
    """Each passage between tags of its own, numbered from 1."""
    return "\n".join(
        f'<passage number="{number}">\nTitle: {as_line(p.title)}\n{as_data(p.text)}\n</passage>'
        for number, p in enumerate(passages, 1)
    )


def list_as_data(lines: Sequence[str]) -> str:
    """One numbered line each, from 1."""
    return "\n".join(f"{number}. {as_line(line)}" for number, line in enumerate(lines, 1))
