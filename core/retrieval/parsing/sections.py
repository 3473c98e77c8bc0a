"""HTML to sections: headings, and below them prose, tables and listings.  Navigation, headers, footers, scripts and styles are no text.

Source of the parser: https://selectolax.readthedocs.io (lexbor).  The tree is walked without recursion.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from selectolax.lexbor import LexborHTMLParser, LexborNode

from core.retrieval.parsing.languages import RefusedError

MAX_DEPTH = 2000  # of nested elements: no page that a person reads has so many
MAX_HEADING_CHARS = 200  # a longer one is text as well
MAX_SPAN = 100  # columns or rows that a cell of a table may span
MAX_HEADER_CHARS = 60  # of a cell in a first row that is taken for names of columns
NO_TEXT = frozenset(
    "head script style noscript template svg math iframe object nav footer aside form select option button input".split()
)
NO_TEXT_MARKS = (
    ".headerlink, .system-message, dl.docinfo, [hidden], [role=navigation], [role=banner], [role=contentinfo], [role=search]"
)
INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark q rp rt ruby s samp small span strike strong sub"
    " sup time tt u var wbr".split()
)
HEADINGS = {f"h{level}": level for level in range(1, 7)}
Block = tuple[str, list[str]]  # kind: prose, table or listing; its lines: paragraphs, rows, or lines of code


@dataclass
class Section:
    headings: list[str] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)


@dataclass
class Document:
    title: str  # the first heading of the first level, or the page's title
    sections: list[Section]


def of_html(html: str, title: str = "") -> Document:
    """The sections of a page in their order, without empty ones.  `title`: of the document, if it is known.

    Raises RefusedError for a page that is nested too deeply.
    """
    tree = LexborHTMLParser(html)
    body = tree.body
    if body is None:
        return Document("", [])
    for node in body.css(NO_TEXT_MARKS):
        node.decompose()
    of_content = {node.mem_id for node in body.css("main header, article header")}
    for node in body.css("header"):
        if node.mem_id not in of_content:
            node.decompose()
    root = next((roots[0] for mark in ("main", "[role=main]", "article") if len(roots := body.css(mark)) == 1), body)
    titles = [_plain(h) for h in root.css("h1")] + [_plain(node) for node in tree.css("head > title")]
    title = title or next((t for t in titles if t), "")[:MAX_HEADING_CHARS]
    return Document(title, _sections(root, title))


def _sections(root: LexborNode, title: str) -> list[Section]:
    sections = [Section()]
    headings: list[tuple[int, str]] = []  # level and text of those above the current place
    text: list[str] = []  # of the paragraph

    def end() -> None:
        words = " ".join("".join(text).split())
        text.clear()
        if words:
            sections[-1].blocks.append(("prose", [words]))

    walk = _Walk(root)
    for node, is_start in walk:
        tag = node.tag or ""
        if tag == "-text":
            text.append(node.text_content or "")
        elif tag in HEADINGS and is_start:
            end()
            walk.skip()
            level, words = HEADINGS[tag], _plain(node)
            if words:
                headings = [above for above in headings if above[0] < level]
                if words[:MAX_HEADING_CHARS].casefold() != title.casefold():
                    headings.append((level, words[:MAX_HEADING_CHARS]))
                if headings or sections[-1].headings:  # the document's own heading parts nothing
                    sections.append(Section([heading for _, heading in headings]))
                if len(words) > MAX_HEADING_CHARS:
                    sections[-1].blocks.append(("prose", [words]))
        elif tag == "pre" and is_start:
            end()
            walk.skip()
            sections[-1].blocks.append(("listing", _lines(node)))
        elif tag == "table" and is_start and (rows := _rows(node)):
            end()
            walk.skip()
            for caption in node.css("caption"):
                sections[-1].blocks.append(("prose", [_plain(caption)]))
            sections[-1].blocks.append(("table", rows))
        elif tag == "dt" and not is_start:
            text.append(": ")
        elif tag == "dd" and is_start:
            pass  # goes on after its term
        elif tag not in INLINE and not tag.startswith("-"):
            end()
    end()
    return [section for section in sections if section.blocks]


class _Walk(Iterator[tuple[LexborNode, bool]]):
    """The elements and texts below a node in their order: an element at its start (True) and its end (False), a text once."""

    def __init__(self, root: LexborNode) -> None:
        self._next: LexborNode | None = root.first_child
        self._open: list[LexborNode] = []

    def skip(self) -> None:
        """Leaves out what is inside the element that has begun, and its end."""
        self._next = self._open.pop().next

    def __next__(self) -> tuple[LexborNode, bool]:
        while True:
            node = self._next
            if node is None:
                if not self._open:
                    raise StopIteration
                node = self._open.pop()
                self._next = node.next
                return node, False
            tag = node.tag or ""
            if tag.startswith("-") or tag in NO_TEXT:
                self._next = node.next
                if tag == "-text":
                    return node, True
                continue
            if len(self._open) >= MAX_DEPTH:
                raise RefusedError(f"its elements are nested more than {MAX_DEPTH} deep; open it and save its text")
            self._open.append(node)
            self._next = node.first_child
            return node, True


def _plain(node: LexborNode) -> str:
    """The words in an element, on one line."""
    parts: list[str] = []
    for inner, _ in _Walk(node):
        tag = inner.tag or ""
        parts.append((inner.text_content or "") if tag == "-text" else "" if tag in INLINE else " ")
    return " ".join("".join(parts).split())


def _lines(node: LexborNode) -> list[str]:
    """The lines of a listing; empty ones stay, for they part it."""
    parts = [
        (inner.text_content or "") if inner.tag == "-text" else "\n" if is_start and inner.tag in ("br", "div") else ""
        for inner, is_start in _Walk(node)
    ]
    return [line.rstrip() for line in "".join(parts).strip("\r\n").split("\n")]


def _rows(table: LexborNode) -> list[str]:
    """The rows with the names of their columns: "Option: --port; Default: 8080".  None of a table that only lays out a page."""
    rows = [row for row in table.css("tr") if _cells(row)]
    grid = _grid(rows)
    width = max(map(len, grid), default=0)
    holds_table = any(inner.mem_id != table.mem_id for inner in table.css("table"))
    if width < 2 or table.css_first("h1, h2, h3") is not None or holds_table:
        return []
    header: list[str] = []
    in_head = rows[0].parent is not None and rows[0].parent.tag == "thead"
    is_header = in_head or all(cell.tag == "th" for cell in _cells(rows[0]))
    no_names = table.css_first("th") is None and len(grid) > (2 if width == 2 else 1)
    likely = no_names and all(0 < len(c) <= MAX_HEADER_CHARS for c in grid[0]) and len(set(grid[0])) == len(grid[0])
    if is_header or likely:
        header, grid, rows = grid[0], grid[1:], rows[1:]
    lines = []
    for row, cells in zip(rows, grid, strict=True):
        names = header + [""] * (len(cells) - len(header))
        if header:
            parts = [f"{n}: {c}" if n and c else c for n, c in zip(names, cells, strict=False)]
        elif _cells(row)[0].tag == "th":  # a row that names what it holds
            parts = [f"{cells[0]}: {', '.join(filter(None, cells[1:]))}"]
        else:
            parts = cells
        line = "; ".join(dict.fromkeys(part for part in parts if part))
        if line:
            lines.append(line if line[-1] in ".!?:;" else f"{line}.")  # a row is a sentence
    return lines


def _cells(row: LexborNode) -> list[LexborNode]:
    return [node for node in row.iter() if node.tag in ("td", "th")]


def _grid(rows: list[LexborNode]) -> list[list[str]]:
    """The texts of the cells by row and column; one that spans several is repeated in each."""
    grid: list[list[str]] = []
    below: dict[int, tuple[str, int]] = {}  # column -> text, rows that it still spans
    for row in rows:
        texts: list[str] = []
        spanned: dict[int, tuple[str, int]] = {}
        for cell in (*_cells(row), None):
            while len(texts) in below:
                text, remaining = below.pop(len(texts))
                if remaining > 1:
                    spanned[len(texts)] = text, remaining - 1
                texts.append(text)
            if cell is None:
                break
            text, across, down = _plain(cell), _span(cell, "colspan"), _span(cell, "rowspan")
            for _ in range(across):
                if down > 1:
                    spanned[len(texts)] = text, down - 1
                texts.append(text)
        below |= spanned
        grid.append(texts)
    return grid


def _span(cell: LexborNode, name: str) -> int:
    value = cell.attributes.get(name) or "1"
    return min(int(value), MAX_SPAN) or 1 if re.fullmatch(r"\d{1,6}", value) else 1
