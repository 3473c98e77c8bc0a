"""MDX, Markdown with components (https://mdxjs.com), as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator

from core.retrieval.parsing.markdown import FENCE, TITLE_ATTRIBUTE

_MODULE = re.compile(
    r"""import\s+(?:[^"'\s][^"']*\sfrom\s+)?["']|import\s*\{|export\s+(?:const|let|var|default|function|async|class)\b|export\s*[{*]"""
)
_COMPONENT = re.compile(r"\s*</?[A-Z]")
_COMMENT = re.compile(r"\{/\*((?!\{/\*).)*?\*/\}")  # none within: with many that are not closed, time would be quadratic
_TAG = re.compile(r"<(?P<end>/)?[A-Z][\w.]*(?P<rest>(\s[^<>]*?)?)(?P<alone>/)?>")


def as_markdown(text: str) -> str:
    """The text without modules and comments.  A component's tag becomes its title, if it has one.  Its content loses the
    indent, which Markdown could take for a listing."""
    return "\n".join(_lines(text.split("\n")))


_ELEMENT = re.compile(r"<[a-z][\w-]{0,40}\s[^<>]{0,1000}>")


def _without_expressions(line: str) -> str:
    """The line without tags whose attributes are JavaScript, which Markdown would take for text. Text between backticks
    stays."""
    parts = line.split("`")
    return "`".join(p if n % 2 else _ELEMENT.sub(lambda tag: "" if "{" in tag[0] else tag[0], p) for n, p in enumerate(parts))


def _lines(lines: list[str]) -> Iterator[str]:
    depth, fence, module = 0, "", False
    tag: list[str] = []  # its lines so far
    for line in lines:
        line = line[min(2 * depth, len(line) - len(line.lstrip(" "))) :]
        if fence:
            if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
            yield line
        elif opening := FENCE.match(line):
            fence = opening[1]
            yield line
        elif module or _MODULE.match(line):  # as far as the next empty line
            module = bool(line.strip())
            yield ""
        elif tag or _COMPONENT.match(line):
            tag.append(line)
            if ">" not in line and line.strip():
                continue
            text, tag = " ".join(tag), []
            if element := _TAG.fullmatch(text.strip()):
                depth = max(0, depth + (-1 if element["end"] else 0 if element["alone"] else 1))
                title = TITLE_ATTRIBUTE.search(element["rest"])
                yield f"\n{title['title']}:\n" if title else ""
            else:  # a tag with text around it, or none at all: nothing is lost
                yield text
        else:
            yield _without_expressions(_COMMENT.sub("", line))
    yield " ".join(tag)
