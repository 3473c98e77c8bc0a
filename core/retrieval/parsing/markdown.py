"""Markdown to HTML, including the extensions of sites and notes.  Attributes and boxes are markup, not words of the text.

- Attributes `{#install .wide key=value}` and `{: .note}` of headings, links, code and blocks (kramdown, Pandoc, Docusaurus).
- Boxes and tabs become their titles and contents: `:::tip[Title]` (directives, MyST, Pandoc), `> [!NOTE]` (GitHub, Obsidian), `!!! note "Title"`,
  `??? note` and `=== "Tab"` (Material for MkDocs), whose contents are indented.

Source of the parser: https://markdown-it-py.readthedocs.io.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

INDENT = 4  # of what is in a box of MkDocs
FENCE = re.compile(r"\s*(`{3,}|~{3,})")
TITLE_ATTRIBUTE = re.compile(r"""\b(?:title|label|header)=\{?(?P<quote>["'`])(?P<title>.*?)(?P=quote)""")
_ATTRIBUTE = r"""(?:[#.][\w:.-]+|[\w:-]+=(?:"[^"{}]*"|'[^'{}]*'|[^\s{}"']+)|-)"""
_ATTRIBUTES = rf"(?:\{{:[^{{}}]*\}}|\{{ *{_ATTRIBUTE}(?: +{_ATTRIBUTE})* *\}})"
_AT_START, _AT_END = re.compile(_ATTRIBUTES), re.compile(rf"(?<!\s)\s*{_ATTRIBUTES}\s*\Z")
_BEFORE_ATTRIBUTES = ("link_close", "image", "code_inline", "strong_close", "em_close")
_COLONS = re.compile(r"\s*:{3,}\s*(?P<kind>\{[^{}]*\}|[\w.:-]*)\s*(?P<title>.*)")
_OPTION = re.compile(r"\s*:[\w-]+:")  # of MyST, below the beginning of a box
_CALLOUT = re.compile(r"(?P<quote>[\s>]*>\s*)\[!\w[\w|+-]*\][+-]?(?P<title>.*)")
_INDENTED_BOX = re.compile(
    r"""(?:!{3}|\?{3}\+?)\s+[\w-]+(?:\s+[\w-]+){0,4}(?:\s+"(?P<title>[^"]*)")?\s*|={3}[!+]*\s+"(?P<tab>[^"]*)"\s*"""
)


def to_html(text: str) -> str:
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    parser.validateLink = lambda url: True  # type: ignore[method-assign]  # one that it refuses would be text
    tokens = parser.parse("\n".join(_without_boxes(text.split("\n"))))
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.type == "inline" and token.children:
            _remove_attributes(token.children, is_heading=before is not None and before.type == "heading_open")
    html: str = parser.renderer.render(tokens, parser.options, {})
    return html


def _remove_attributes(children: Sequence[Token], *, is_heading: bool) -> None:
    before: Token | None = None
    for child, after in zip(children, [*children[1:], None], strict=True):
        if child.type == "text" and "{" in child.content:
            starts_line = before is None or before.type == "softbreak"
            ends_line = after is None or after.type == "softbreak"
            if starts_line and ends_line and _AT_START.fullmatch(child.content.strip()):
                child.content = ""
            elif before is not None and before.type in _BEFORE_ATTRIBUTES:
                child.content = _AT_START.sub("", child.content, count=1) if _AT_START.match(child.content) else child.content
            if is_heading and after is None:
                child.content = _AT_END.sub("", child.content)
        before = child


def _without_boxes(lines: list[str]) -> Iterator[str]:
    fence, is_options = "", False
    boxes: list[int] = []  # the indents of those that are open
    for number, line in enumerate(lines):
        indent = len(line) - len(line.lstrip(" "))
        while boxes and line.strip() and indent < boxes[-1] + INDENT:
            boxes.pop()
        line = line[min(INDENT * len(boxes), indent) :]
        if fence:
            if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
            yield line
            continue
        if is_options and _OPTION.match(line):
            continue
        is_options = False
        if opening := FENCE.match(line):
            fence = opening[1]
            yield line
        elif (box := _INDENTED_BOX.fullmatch(line.strip())) and _is_indented(lines, number + 1, indent + INDENT):
            boxes.append(indent)
            yield from _titled("", box["title"] or box["tab"] or "")
        elif colons := _COLONS.fullmatch(line):
            title, is_options = colons["title"], bool(colons["kind"])
            attribute = TITLE_ATTRIBUTE.search(colons["kind"]) or TITLE_ATTRIBUTE.search(title)
            if title.startswith("["):
                title = title[1:].partition("]")[0]
            yield from _titled("", attribute["title"] if attribute else _AT_END.sub("", title))
        elif callout := _CALLOUT.fullmatch(line):
            yield from _titled(callout["quote"], callout["title"])
        else:
            yield line


def _titled(quote: str, title: str) -> Iterator[str]:
    """A box's title as a separate paragraph, if it has one.  `quote`: the prefix of each of its lines."""
    title = title.strip()
    yield f"{quote}{title}{'' if title[-1:] in '.!?:' else ':'}" if title else quote.rstrip()
    yield quote.rstrip()


def _is_indented(lines: list[str], start: int, indent: int) -> bool:
    """Whether the next non-blank line is indented at least this far."""
    line = next((line for line in lines[start : start + 3] if line.strip()), "")
    return line.startswith(" " * indent)
