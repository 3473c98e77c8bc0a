"""Text of corpora, models and people as Streamlit Markdown that shows exactly that text, and marks on pieces of it.

Everything drawn as Markdown passes through `escape`.  Streamlit's Markdown: CommonMark, GFM, directives (`:red[x]`), maths, emoji
shortcodes, automatic links and typographic arrows.  The last three are applied to finished text, where a backslash does not
help: there an invisible word joiner (U+2060) parts the characters.
"""

from __future__ import annotations

import difflib
import html
import re
from collections.abc import Iterable, Iterator, Sequence

JOINER, NO_BREAK = "\u2060", "\u00a0"
NAME_CHARS = 80
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")  # all of ASCII's: each may be escaped in CommonMark
_INVISIBLE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_LATE = re.compile(
    r"(?<=:)(?=[\w+\-]+:)"  # :smile: :material_x: :streamlit:
    r"|(?<=www)(?=\.)|(?<=:)(?=//)|(?<=@)(?=\w)"  # www.x  https://x  a@b.c
    r"|(?<=\s<)(?=->)|(?<=^<)(?=->)|(?<=<)(?=[-=](?:\s|$))|(?<=[->~])(?=[->=](?:\s|$))",  # <-> <- <= -> -- >= ~=
    re.IGNORECASE,
)


def escape(text: object) -> str:
    """Markdown that renders as `text`: white space becomes single blanks (as in HTML), control characters go, nothing is markup."""
    flat = re.sub(r"\s+", " ", _INVISIBLE.sub(" ", str(text).replace(JOINER, "")))
    return _PUNCTUATION.sub(r"\\\1", _LATE.sub(JOINER, flat))


def named(word: str, what: str) -> str:
    """The label of a button, popover or expander whose `word` stands on the page more than once: `what` is read aloud and not drawn
    (emphasis in a button, by style.css), so that each has an accessible name of its own."""
    return f"{word} *{escape(short(what, NAME_CHARS))}*" if what.strip() else word


def without_pictures(markdown: str) -> str:
    """A person's Markdown whose pictures are links: one that is loaded tells another server who reads here, and when.

    An invisible word joiner parts the two characters that begin a picture; escapes and entities begin none.
    """
    return markdown.replace("![", f"!{JOINER}[")


def short(text: str, limit: int) -> str:
    """At most `limit` characters, cut at a word where possible."""
    flat = " ".join(text.split())
    if len(flat) <= limit:
        return flat
    cut = flat[: limit - 1]
    return (cut.rsplit(" ", 1)[0] if " " in cut[limit // 2 :] else cut).rstrip(" ,;") + "…"


def chart_text(text: str, limit: int = 26) -> str:
    """For Plotly, whose labels know some HTML tags and entities."""
    return html.escape(short(text, limit), quote=False)


def highlighted(text: str, spans: Iterable[tuple[int, int]], colour: str = "orange") -> str:
    """`text` with the character spans marked, and with its line breaks and indents; spans that overlap are joined, those outside the text are
    cut."""
    out, at = [], 0
    for start, end in sorted((max(0, s), min(len(text), e)) for s, e in spans):
        start = max(start, at)
        if end <= start:
            continue
        out += [_lines(text[at:start]), f":{colour}-background[**{escape(text[start:end].strip())}**]"]
        at = end
    return "".join([*out, _lines(text[at:])])


def _lines(text: str) -> str:
    first, *further = text.split("\n")
    return "  \n".join(
        [escape(first), *("\u00a0" * (len(line) - len(line.lstrip(" "))) + escape(line.lstrip(" ")) for line in further)]
    )


def around(text: str, spans: Sequence[tuple[int, int]], width: int = 160) -> str:
    """The surroundings of the first span, marked, with dots where text was left out."""
    if not spans:
        return escape(short(text, 2 * width))
    start, end = spans[0]
    left, right = max(0, start - width), min(len(text), end + width)
    left = 0 if left == 0 else text.find(" ", left, start) + 1 or start
    right = len(text) if right == len(text) else max(text.rfind(" ", end, right), end)
    inside = [(s - left, e - left) for s, e in spans if s >= left and e <= right]
    return ("… " if left else "") + highlighted(text[left:right], inside) + (" …" if right < len(text) else "")


_TOKEN = re.compile(r"(\s*)(\w+(?:['’-]\w+)*|[^\w\s])")


def _differences(before: str, after: str) -> Iterator[tuple[bool, str, str]]:
    """(whether both have it, words of `before`, words of `after`), in order; words begin with their blank."""
    old, new = _TOKEN.findall(before), _TOKEN.findall(after)
    match = difflib.SequenceMatcher(None, [w for _, w in old], [w for _, w in new], autojunk=False)
    for kind, a, b, c, d in match.get_opcodes():
        yield kind == "equal", "".join(s + w for s, w in old[a:b]), "".join(s + w for s, w in new[c:d])


def changes(before: str, after: str) -> str:
    """`after` with what is new against `before` marked green and bold, and what is gone red and struck through, word by word."""
    out = []
    for same, gone, come in _differences(before, after):
        if same:
            out.append(escape(come))
            continue
        for text, frame in ((gone, ":red-background[~~{}~~]"), (come, ":green-background[**{}**]")):
            if text:
                blank = " " if text[0].isspace() or (out and text is come and gone) else ""
                out.append(blank + frame.format(escape(text.strip())))
    return "".join(out).strip()


def additions(before: str, after: str) -> str:
    """The words that are new in `after`, as plain text.

    >>> additions("Who played Maria?", "Who played Maria in the 1961 film?")
    'in the 1961 film'
    """
    return " … ".join(come.strip() for same, _, come in _differences(before, after) if not same and come.strip())


METER_CELLS = 24


def meter(value: float) -> str:
    """A bar for a probability, without seams: no-break spaces on a coloured ground, at least one above 0."""
    cells = round(min(1.0, max(0.0, value)) * METER_CELLS) or int(value > 0)
    return f":blue-background[{NO_BREAK * cells}]" if cells else ""
