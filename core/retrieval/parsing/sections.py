"""HTML to sections: headings, with prose, tables and listings below them.  Navigation, headers, footers, scripts and styles
don't count as text.

Source of the parser: https://selectolax.readthedocs.io (lexbor).  The tree is walked without recursion.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from selectolax.lexbor import LexborHTMLParser, LexborNode

from core.retrieval.parsing.languages import DocumentRefusedError

MAX_DEPTH = 2000  # of nested elements: no page that a person reads has so many
MAX_HEADING_CHARS = 200  # a longer one is text as well
MAX_SPAN = 100  # columns or rows that a cell of a table may span
MIN_CELLS = 100_000  # of one table, spanned ones included, that are read in any case; more in a longer document
MIN_CHARS, MAX_GROWTH = 4_000_000, 20  # what a document may become: in any case, and by its length
MAX_HEADER_CHARS = 60  # of a cell in a first row that is taken for names of columns
MAX_HEADER_ROWS = 4
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
NOTE_LINK = "a[href^='#']"  # in a superscript: the mark of a note
ORDINAL_ENDS = ("a", "e", "o")  # "XIXe siècle", "1o"; longer ones are no exponents either
NOTE_SIGNS = frozenset("*†‡§¶#")
_NUMBERS = re.compile(r"\d{1,3}(?:[,–-] ?\d{1,3}){0,9}")
NOTE_END = "\0"  # which is in no page: a word that follows at once is apart
_SUPERSCRIPTS = str.maketrans("0123456789+-−=()ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿⁱ")
# what a link of embedded data holds: no text, and as long as a picture
_DATA = re.compile(r"\bdata:[\w.+-]{1,80}/[\w.+-]{1,80}(?:;[\w.+=-]{1,80}){0,4},[^\s()<>\"']{20,}", re.IGNORECASE)
TextBlock = tuple[str, list[str]]  # kind: prose, table or listing; its lines: paragraphs, rows, or lines of code


@dataclass
class Section:
    headings: list[str] = field(default_factory=list)
    blocks: list[TextBlock] = field(default_factory=list)


@dataclass
class ParsedDocument:
    title: str  # the first heading of the first level, or the page's title
    sections: list[Section]


def of_html(html: str, title: str = "", notes: str = "") -> ParsedDocument:
    """The non-empty sections of a page, in order.  `title`: the document's, if known.  `notes`: the selector of notes that
    belong to the sections which refer to them.

    Raises DocumentRefusedError for a page that is nested too deeply, or becomes too long.
    """
    tree = LexborHTMLParser(html)
    body = tree.body
    if body is None:
        return ParsedDocument("", [])
    for node in body.css(NO_TEXT_MARKS):
        node.decompose()
    of_content = {node.mem_id for node in body.css("main header, article header")}
    for node in body.css("header"):
        if node.mem_id not in of_content:
            node.decompose()
    root = next((roots[0] for mark in ("main", "[role=main]", "article") if len(roots := body.css(mark)) == 1), body)
    titles = [_plain(h) for h in root.css("h1")] + [_plain(node) for node in tree.css("head > title")]
    title = title or next((t for t in titles if t), "")[:MAX_HEADING_CHARS]
    sections = _sections(root, title, max(MIN_CELLS, len(html)), _notes(root, notes) if notes else {})
    chars = sum(
        len(text)
        for section in sections
        for part in (section.headings, *(lines for _, lines in section.blocks))
        for text in part
    )
    if chars > (max_chars := max(MIN_CHARS, MAX_GROWTH * len(html))):
        raise DocumentRefusedError(
            f"its {len(html)} characters become more than {max_chars}, which looks like an attack; save its text"
        )
    return ParsedDocument(title, sections)


def _notes(root: LexborNode, selector: str) -> dict[str, str]:
    """The texts of notes by the links to them.  They are removed from the page."""
    texts = {}
    for node in root.css(selector):
        for link in node.css(NOTE_LINK):  # back to the text
            link.decompose()
        texts[f"#{node.attributes.get('id')}"] = _plain(node)
        node.decompose()
    return texts


def _sections(root: LexborNode, title: str, max_cells: int, notes: dict[str, str]) -> list[Section]:
    sections = [Section()]
    headings: list[tuple[int, str]] = []  # level and text of those above the current place
    text: list[str] = []  # of the paragraph
    referred: list[str] = []  # notes that it refers to

    def end() -> None:
        words = _joined(text)
        text.clear()
        if words:
            sections[-1].blocks.append(("prose", [words]))
        add_notes()

    def add_notes() -> None:
        sections[-1].blocks += [("prose", [note]) for note in referred if note]
        referred.clear()

    def refer(node: LexborNode) -> None:
        referred.extend(notes.pop(link.attributes.get("href") or "", "") for link in (node.css(NOTE_LINK) if notes else ()))

    walk = _Walk(root)
    for node, is_start in walk:
        tag = node.tag or ""
        if tag == "-text":
            text.append(_text(node))
        elif tag == "sup" and is_start:
            walk.skip()
            refer(node)
            text.append(_superscript(node, "".join(text[-3:])))
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
                refer(node)
                add_notes()
        elif tag == "pre" and is_start:
            end()
            walk.skip()
            sections[-1].blocks.append(("listing", _lines(node)))
        elif tag == "table" and is_start and (rows := _rows(node, max_cells)):
            end()
            walk.skip()
            for caption in node.css("caption"):
                sections[-1].blocks.append(("prose", [_plain(caption)]))
            sections[-1].blocks.append(("table", rows))
            refer(node)
            add_notes()
        elif tag == "dt" and not is_start:
            text.append(": ")
        elif tag == "dd" and is_start:
            pass  # goes on after its term
        elif tag not in INLINE and not tag.startswith("-"):
            end()
    end()
    return [section for section in sections if section.blocks]


class _Walk(Iterator[tuple[LexborNode, bool]]):
    """The elements and texts below a node in order: an element at its start (True) and its end (False), a text once."""

    def __init__(self, root: LexborNode) -> None:
        self._next: LexborNode | None = root.first_child
        self._open: list[LexborNode] = []

    def skip(self) -> None:
        """Skips the content of the element that has just started, and its end."""
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
                raise DocumentRefusedError(f"its elements are nested more than {MAX_DEPTH} deep; open it and save its text")
            self._open.append(node)
            self._next = node.first_child
            return node, True


def _plain(node: LexborNode) -> str:
    """The words in an element, on one line."""
    parts: list[str] = []
    walk = _Walk(node)
    for inner, is_start in walk:
        tag = inner.tag or ""
        if tag == "sup" and is_start:
            walk.skip()
            parts.append(_superscript(inner, "".join(parts[-3:])))
        else:
            parts.append(_text(inner) if tag == "-text" else "" if tag in INLINE else " ")
    return _joined(parts)


def _joined(parts: Iterable[str]) -> str:
    text = "".join(parts)
    if NOTE_END in text:
        text = re.sub(rf"{NOTE_END}(?=\w)", " ", text).replace(NOTE_END, "")
    return " ".join(text.split())


def _text(node: LexborNode) -> str:
    """The text of a node without embedded data."""
    text = node.text_content or ""
    return _DATA.sub("", text) if "data:" in text.lower() else text


def _superscript(node: LexborNode, before: str) -> str:
    """A superscript as plain text: a note's mark is separated from the word before it, an exponent gets superscript signs, and
    letters stay as they are ("4th").

    A number is the mark of a note where it has a link, or follows a word or the end of a sentence: "Abel⁴", but not "km²", "10²", "x²".
    """
    words = _plain(node)
    follows = before.rstrip('.,;:!?"”’»')
    word = re.search(r"[^\W\d_]{0,4}\Z", follows)[0]  # type: ignore[index]  # it may be empty
    is_number = _NUMBERS.fullmatch(words) is not None
    after_words = len(word) == 4 or (len(word) == 3 and word[0].isupper()) or (bool(word) and follows != before)
    if words and (node.css_first(NOTE_LINK) or set(words) <= NOTE_SIGNS or words[0] == "[" or (is_number and after_words)):
        return f" {words}{NOTE_END}" if words[0] in "[(" else f" [{words}]{NOTE_END}"
    high = words.translate(_SUPERSCRIPTS)
    is_ordinal = words in ORDINAL_ENDS and before[-1:].isupper() | before[-1:].isdigit()
    if not words or is_ordinal or (words.isalpha() and len(words) > 1):
        return words
    return f"^{words}" if any(c in words for c in high if c.isalnum() and c.isascii()) else high


def _lines(node: LexborNode) -> list[str]:
    """The lines of a listing.  Empty ones stay, because they separate its parts."""
    parts = [
        _text(inner) if inner.tag == "-text" else "\n" if is_start and inner.tag in ("br", "div") else ""
        for inner, is_start in _Walk(node)
    ]
    return [line.rstrip() for line in "".join(parts).strip("\r\n").split("\n")]


def _rows(table: LexborNode, max_cells: int) -> list[str]:
    """The rows with the names of their columns: "Option: --port; Default: 8080".  Empty for a table that only lays out a page.

    A column is named by all rows of the heading: "Season 2023, Captain: Ann".  A row of one cell across the table says what those below it are
    about, and begins them.
    """
    rows = [row for row in table.css("tr") if _cells(row)]
    grid = _grid(rows, max_cells)
    width = max(map(len, grid), default=0)
    holds_table = any(inner.mem_id != table.mem_id for inner in table.css("table"))
    if width < 2 or table.css_first("h1, h2, h3") is not None or holds_table:
        return []
    across = [len(_cells(row)) == 1 and len(texts) == width for row, texts in zip(rows, grid, strict=True)]
    above = 0  # rows of titles
    while above < len(rows) - 1 and across[above]:
        above += 1
    depth = _heading_rows(table, rows[above:], grid[above:], across[above:], width)
    header = [
        ", ".join(dict.fromkeys(filter(None, names)))
        for names in zip(*map(_filled(width), grid[above : above + depth]), strict=True)
    ]
    lines = [_sentence(texts[0]) for texts in grid[:above] if texts[0]]
    group = ""
    for row, cells, is_group in list(zip(rows, grid, across, strict=True))[above + depth :]:
        if is_group:
            group = cells[0]
            continue
        names = header + [""] * (len(cells) - len(header))
        if header:
            parts = [f"{n}: {c}" if n and c else c for n, c in zip(names, cells, strict=False)]
        elif _cells(row)[0].tag == "th":  # a row that names what it holds
            parts = [f"{cells[0]}: {', '.join(filter(None, cells[1:]))}"]
        else:
            parts = cells
        line = "; ".join(dict.fromkeys(part for part in (group, *parts) if part))
        if line and line != group:
            lines.append(_sentence(line))
    if across[-1] and group:  # a note below the table
        lines.append(_sentence(group))
    return lines


def _sentence(line: str) -> str:
    return line if line[-1] in ".!?:;" else f"{line}."


def _filled(width: int) -> Callable[[list[str]], list[str]]:
    return lambda texts: texts + [""] * (width - len(texts))


def _heading_rows(table: LexborNode, rows: list[LexborNode], grid: list[list[str]], across: list[bool], width: int) -> int:
    """The number of rows at the top that name the columns."""
    if rows[0].parent is not None and rows[0].parent.tag == "thead":
        count = next((n for n, row in enumerate(rows) if row.parent is None or row.parent.tag != "thead"), len(rows))
        return min(count, MAX_HEADER_ROWS)
    names = 0  # rows of nothing but names
    while (
        names < min(len(rows), MAX_HEADER_ROWS) and not across[names] and all(cell.tag == "th" for cell in _cells(rows[names]))
    ):
        names += 1
    if names or table.css_first("th") is not None:
        return names
    first = _cells(rows[0])
    is_merged = any(_span(cell, "colspan") > 1 for cell in first)
    depth = max(1 + is_merged, max(_span(cell, "rowspan") for cell in first))
    if depth > MAX_HEADER_ROWS or len(grid) <= depth + (width == 2) or any(across[:depth]):
        return 0
    columns = list(zip(*map(_filled(width), grid[:depth]), strict=True))
    are_names = all(any(names) and all(len(name) <= MAX_HEADER_CHARS for name in names) for names in columns)
    return depth if are_names and len(set(columns)) == width else 0


def _cells(row: LexborNode) -> list[LexborNode]:
    return [node for node in row.iter() if node.tag in ("td", "th")]


def _grid(rows: list[LexborNode], max_cells: int) -> list[list[str]]:
    """The texts of the cells by row and column; one that spans several is repeated in each.  Raises DocumentRefusedError past `max_cells`."""
    grid: list[list[str]] = []
    more_cells = max_cells
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
        more_cells -= len(texts)
        if more_cells < 0:
            raise DocumentRefusedError(
                f"the cells of a table span to more than {max_cells}, which looks like an attack; save its text"
            )
        grid.append(texts)
    return grid


def _span(cell: LexborNode, name: str) -> int:
    value = cell.attributes.get(name) or "1"
    return min(int(value), MAX_SPAN) or 1 if re.fullmatch(r"\d{1,6}", value) else 1
