"""Versioned prompt files, and the only way to insert text of a corpus or a person into them.

A file is a header (`version`, `role`, `source`), then messages, each after a line `--- system`, `--- user` or `--- assistant`; `{{name}}` is
filled in.  Inserted text is data: it is placed between tags, the prompt says so, and `as_data` removes everything that could end a
tag or a message.  A changed prompt gets a new version, which predictions and reports name.

AMBISCOPE_LM_PROMPTS names a folder of other prompts in the same form; a role without a file there keeps ours.
"""

from __future__ import annotations

import functools
import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from core.errors import FormatError, InputError
from core.types import Passage

FOLDER = Path(__file__).resolve().parent
PASSAGE_CHARS = 4_000  # of one passage in a prompt; 100 words have about 600

_HOLE = re.compile(r"\{\{(\w+)\}\}")
_TURN = re.compile(r"^--- (system|user|assistant)\n", re.MULTILINE)
# control tokens in brackets, as in some chat templates: [INST], [/INST], [TOOL_CALLS], [SYSTEM_PROMPT]
_BRACKETS = re.compile(r"\[(?=\s*(?:/\s*)?[A-Z][A-Z_]{2,}\s*\])")
_CONTROLS = "\n\t\u200c\u200d"  # that stay: line break, tab and the joiners of some scripts
_ANGLES = str.maketrans({"<": "‹", ">": "›", "＜": "‹", "＞": "›"})


@dataclass(frozen=True, slots=True)
class Prompt:
    name: str
    version: int
    source: str
    messages: tuple[tuple[str, str], ...]  # (role of the chat, text with holes)
    digest: str = ""  # of a file that is not ours, as its version is not unique

    @property
    def label(self) -> int | str:
        """The name in predictions and reports: the version, and for a file that isn't ours its digest as well."""
        return f"{self.version} ({self.digest})" if self.digest else self.version

    @property
    def holes(self) -> frozenset[str]:
        return frozenset(name for _, text in self.messages for name in _HOLE.findall(text))

    def fill(self, **values: str) -> list[tuple[str, str]]:
        """(role, text) of each message.  `values` come from `as_data`, `passages_as_data` or `list_as_data`, or are numbers.

        Raises KeyError for a missing or an unknown value.
        """
        if wrong := self.holes.symmetric_difference(values):
            raise KeyError(f"prompt {self.name} and its values differ in: {', '.join(sorted(wrong))}")
        return [(role, _HOLE.sub(lambda m: values[m.group(1)], text)) for role, text in self.messages]


def names() -> list[str]:
    return sorted(p.stem for p in FOLDER.glob("*.txt"))


def prompt_folder(setting: str) -> Path | None:
    """The folder of custom prompts that AMBISCOPE_LM_PROMPTS names, after reading every file in it; None if the setting is
    empty.

    Raises InputError for anything that isn't a folder or holds no prompt or one of an unknown role, FormatError as `load_prompt`.
    """
    if not setting:
        return None
    folder = Path(setting).expanduser()
    if not folder.is_dir():
        raise InputError(
            f"AMBISCOPE_LM_PROMPTS is '{setting}', which is not a folder; give one with files such as interpret.txt"
        )
    roles = sorted(path.stem for path in folder.glob("*.txt"))
    if not roles or (unknown := set(roles) - set(names())):
        wrong = f"'{sorted(unknown)[0]}.txt' names no role" if roles else "it has no .txt file"
        raise InputError(f"AMBISCOPE_LM_PROMPTS is '{setting}', but {wrong}; the roles are {', '.join(names())}")
    for name in roles:
        load_prompt(name, folder)
    return folder


@functools.lru_cache(maxsize=64)
def load_prompt(name: str, folder: Path | None = None) -> Prompt:
    """The prompt of a role, from `folder` if it has a file for the role, else ours.

    Raises FormatError for a file that lacks a version, its role or a message of the user at its end, or whose fields are not those of ours.
    """
    other = folder is not None and (folder / f"{name}.txt").is_file()
    path = (folder if folder is not None and other else FOLDER) / f"{name}.txt"
    try:
        body = path.read_bytes()
        head, *parts = _TURN.split(body.decode("utf-8").replace("\r\n", "\n"))
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"the prompt cannot be read ({error})", file=path) from None
    fields = dict(line.split(": ", 1) for line in head.strip().splitlines() if ": " in line)
    if not fields.get("version", "").isdigit() or fields.get("role") != name:
        raise FormatError(f"a prompt begins with 'version: NUMBER' and 'role: {name}'", file=path)
    messages = tuple((role, text.strip()) for role, text in zip(parts[::2], parts[1::2], strict=True))
    if [role for role, _ in messages[:1]] != ["system"] or messages[-1][0] != "user":
        raise FormatError("the first message of a prompt is the system's, the last one the user's", file=path)
    prompt = Prompt(name, int(fields["version"]), fields.get("source", ""), messages)
    if not other:
        return prompt
    expected = load_prompt(name).holes
    for holes, verb in ((expected - prompt.holes, "lacks"), (prompt.holes - expected, "has the unknown field")):
        if holes:
            listed = ", ".join(f"{{{{{hole}}}}}" for hole in sorted(holes))
            raise FormatError(f"the prompt {verb} {listed}; its fields are {', '.join(sorted(expected))}", file=path)
    return replace(prompt, digest=hashlib.sha256(body).hexdigest()[:12])


def as_data(text: str, limit: int = PASSAGE_CHARS) -> str:
    """Makes text of a corpus, a person or a model safe to insert between the tags of a prompt; at most `limit` characters.

    Angle brackets become ‹ ›, so that no tag and no control token of a chat template (`<|im_end|>`, `</s>`) can be written; control tokens in square
    brackets get a space; invisible characters (controls, bidirectional marks, tags of plane 14) are removed, except the joiners that some scripts need.
    """
    visible = "".join(c for c in text[: 2 * limit] if c in _CONTROLS or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co"))
    return _BRACKETS.sub("[ ", visible.translate(_ANGLES))[:limit].strip()


def as_line(text: str) -> str:
    """`as_data` on one line of at most 500 characters."""
    return " ".join(as_data(text, 500).split())


def passages_as_data(passages: Sequence[Passage]) -> str:
    """Each passage between its own tags, numbered from 1."""
    return "\n".join(
        f'<passage number="{number}">\nTitle: {as_line(p.title)}\n{as_data(p.text)}\n</passage>'
        for number, p in enumerate(passages, 1)
    )


def list_as_data(lines: Sequence[str]) -> str:
    """One numbered line each, from 1."""
    return "\n".join(f"{number}. {as_line(line)}" for number, line in enumerate(lines, 1))
