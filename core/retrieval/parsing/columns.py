"""The reading order of a page set in columns.  A PDF may hold its lines in any order; the worst is line by line across the
page.

Columns are found in the page as pypdf lays it out in characters of one width: lines, one below the other, that have a blank at the same place and
sentences on both sides of it.  A page is only changed where its text runs across such a blank, and where the layout has every letter of it.
Tables, whose cells are short, stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from statistics import median

MIN_LINES = 4  # with text on both sides of a blank
MIN_WORDS = 4  # of the lines of a column, in the median; fewer are cells of a table
DOUBTFUL_WORDS = 3
MIN_GAP, MIN_GUTTER = 3, 2  # blanks in a line; that all lines share
MAX_COLUMNS = 6
MAX_LAYOUT_CHARS = 1_000_000
_GAP = re.compile(rf"(?<=\S) {{{MIN_GAP},}}(?=\S)")


def in_reading_order(plain: str, layout: str) -> tuple[str, bool]:
    """The text of a page, and whether its order is doubtful.  `plain`: its text in the file's order.  `layout`: the same page
    laid out in characters.

    >>> rows = ["the lamp was lit at", "dusk by the keeper", "who lived there all", "the year until 1902"], ["a bell rang when the", "fog came in from sea", "so that each boat at", "sea could hear of it"]
    >>> layout = "\\n".join(f"{left:30}{right}" for left, right in zip(*rows))
    >>> in_reading_order(layout, layout)[0].split("\\n")[2:5]
    ['who lived there all', 'the year until 1902', 'a bell rang when the']
    """
    if len(layout) > MAX_LAYOUT_CHARS:
        return plain, False
    lines = [line.rstrip() for line in layout.split("\n")]
    rows: list[tuple[str, str]] = []  # lines with text on both sides
    doubts: list[bool] = []
    ordered = list(_ordered(lines, rows, doubts, MAX_COLUMNS))
    letters = _letters(plain)
    across = sum(_letters(left + right) in letters for left, right in rows)
    if 2 * across <= len(rows):  # the file has one column after the other
        return plain, False
    if sorted(_letters(layout)) != sorted(letters):
        return plain, True
    return ("\n".join(ordered), any(doubts)) if not all(doubts) else (plain, True)


def _letters(text: str) -> str:
    return "".join(text.split())


def _ordered(lines: Sequence[str], rows: list[tuple[str, str]], doubts: list[bool], columns: int) -> Iterator[str]:
    """The lines with one column after the other.  Collects their rows, and whether the columns are doubtful."""
    start = 0
    while start < len(lines):
        block = _columns(lines, start) if columns > 1 else None
        if block is None:
            if lines[start].strip():
                yield lines[start].strip()
            start += 1
            continue
        stop, gutter = block
        sides = [(line[:gutter].rstrip(), line[gutter:]) for line in lines[start:stop]]
        both = [(left, right.strip()) for left, right in sides if left.strip() and right.strip()]
        words = min(median(len(side.split()) for side in column) for column in zip(*both, strict=True))
        if words < DOUBTFUL_WORDS:
            yield from (line.strip() for line in lines[start:stop] if line.strip())
        else:
            rows += both
            doubts.append(words < MIN_WORDS)
            for column in zip(*sides, strict=True):
                yield from _ordered(column, [], [], columns - 1)
        start = stop


def _columns(lines: Sequence[str], start: int) -> tuple[int, int] | None:
    """The end of the lines from `start` on that share a blank, and its end; None if there are too few."""
    best: tuple[int, int] | None = None
    for gap in _GAP.finditer(lines[start]):
        left, right, count, stop = gap.start(), gap.end(), 1, start + 1
        for number in range(start + 1, len(lines)):
            line = lines[number]
            if not line.strip():
                continue
            indent = len(line) - len(line.lstrip())
            if len(line) > left and indent < right:  # not on one side only
                shared = next(
                    (
                        (max(left, blank.start()), min(right, blank.end()))
                        for blank in _GAP.finditer(line)
                        if min(right, blank.end()) - max(left, blank.start()) >= MIN_GUTTER
                    ),
                    None,
                )
                if shared is None:
                    break
                left, right = shared
                count += 1
            elif len(line) > right and indent < right:
                break
            stop = number + 1
        if count >= MIN_LINES and (best is None or stop > best[0]):
            best = stop, right
    return best
