"""Text of corpora, models and people as Streamlit Markdown that shows exactly that text, and marks on pieces of it.

Everything drawn as Markdown passes through `escape`.  Streamlit's Markdown: CommonMark, GFM, directives (`:red[x]`), maths, emoji
shortcodes, automatic links and typographic arrows.  The last three are applied to finished text, where a backslash has no
effect: there an invisible word joiner (U+2060) separates the characters.
"""

from __future__ import annotations

import difflib
import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from core.types import ReferenceQuestion

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
    """Markdown that renders as `text`: white space becomes single spaces (as in HTML), control characters are removed, nothing is markup."""
    flat = re.sub(r"\s+", " ", _INVISIBLE.sub(" ", str(text).replace(JOINER, "")))
    return _PUNCTUATION.sub(r"\\\1", _LATE.sub(JOINER, flat))


def full_label(word: str, detail: str) -> str:
    """The label of a button, popover or expander whose `word` is on the page more than once.  `detail` is read aloud and not
    drawn (emphasis in a button, by style.css), so that each has its own accessible name."""
    return f"{word} *{escape(short(detail, NAME_CHARS))}*" if detail.strip() else word


def without_pictures(markdown: str) -> str:
    """A person's Markdown with pictures turned into links, because loading a picture tells another server who reads this and
    when.

    An invisible word joiner separates the two characters that begin a picture; escapes and entities begin none.
    """
    return markdown.replace("![", f"!{JOINER}[")


def short(text: str, limit: int) -> str:
    """A text cut to at most `limit` characters, at a word if possible."""
    flat = " ".join(text.split())
    if len(flat) <= limit:
        return flat
    prefix = flat[: limit - 1]
    return (prefix.rsplit(" ", 1)[0] if " " in prefix[limit // 2 :] else prefix).rstrip(" ,;") + "…"


def distinct(texts: Mapping[str, str], limit: int) -> dict[str, str]:
    """Shortens each text by its key, but keeps it whole if two would be equal, and adds its key if they still are, because
    Streamlit treats options of equal text as one."""
    cut = {key: short(text, limit) for key, text in texts.items()}
    whole = {key: short(text, len(text)) for key, text in texts.items()}
    cut_counts, whole_counts = Counter(cut.values()), Counter(whole.values())
    unlike = {key: text if whole_counts[text] == 1 else f"{text} ({key})" for key, text in whole.items()}
    return {key: text if cut_counts[text] == 1 else unlike[key] for key, text in cut.items()}


def chart_text(text: str, limit: int = 26) -> str:
    """Escapes a text for Plotly, whose labels know some HTML tags and entities."""
    return html.escape(short(text, limit), quote=False)


def highlighted(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """`text` with the character spans marked, and with its line breaks and indents; spans that overlap are merged, those outside the text
    are clipped."""
    out, position = [], 0
    for start, end in sorted((max(0, s), min(len(text), e)) for s, e in spans):
        start = max(start, position)
        if end <= start:
            continue
        out += [_lines(text[position:start]), f":orange-background[**{escape(text[start:end].strip())}**]"]
        position = end
    return "".join([*out, _lines(text[position:])])


def _lines(text: str) -> str:
    first, *others = text.split("\n")
    indented = (NO_BREAK * (len(line) - len(line.lstrip(" "))) + escape(line.lstrip(" ")) for line in others)
    return "  \n".join([escape(first), *indented])


def around(text: str, spans: Sequence[tuple[int, int]], width: int = 160) -> str:
    """The surroundings of the first span (`width` characters on each side), marked, with dots where text was omitted."""
    if not spans:
        return escape(short(text, 2 * width))
    start, end = spans[0]
    first, last = max(0, start - width), min(len(text), end + width)
    first = 0 if first == 0 else text.find(" ", first, start) + 1 or start
    last = len(text) if last == len(text) else max(text.rfind(" ", end, last), end)
    inside = [(s - first, e - first) for s, e in spans if s >= first and e <= last]
    return ("… " if first else "") + highlighted(text[first:last], inside) + (" …" if last < len(text) else "")


_TOKEN = re.compile(r"(?<!\s)(\s*)(\w+(?:['’-]\w+)*|[^\w\s])")


def _differences(before: str, after: str) -> Iterator[tuple[bool, str, str]]:
    """(whether both are equal, words of `before`, words of `after`), in order.  Each word starts with the white space before
    it."""
    old, new = _TOKEN.findall(before), _TOKEN.findall(after)
    match = difflib.SequenceMatcher(None, [w for _, w in old], [w for _, w in new], autojunk=False)
    for kind, a, b, c, d in match.get_opcodes():
        yield kind == "equal", "".join(s + w for s, w in old[a:b]), "".join(s + w for s, w in new[c:d])


def changes(before: str, after: str) -> str:
    """`after` with words that are not in `before` green and bold, and those removed from it red and struck through."""
    out = []
    for is_equal, removed, added in _differences(before, after):
        if is_equal:
            out.append(escape(added))
            continue
        for text, frame in ((removed, ":red-background[~~{}~~]"), (added, ":green-background[**{}**]")):
            if text:
                space = " " if text[0].isspace() or (out and text is added and removed) else ""
                out.append(space + frame.format(escape(text.strip())))
    return "".join(out).strip()


def additions(before: str, after: str) -> str:
    """The new words in `after`, as plain text.

    >>> additions("Who played Maria?", "Who played Maria in the 1961 film?")
    'in the 1961 film'
    """
    return " … ".join(added.strip() for is_equal, _, added in _differences(before, after) if not is_equal and added.strip())


METER_CELLS = 24


def meter(value: float) -> str:
    """A bar for a probability, made of no-break spaces on a coloured background, with at least one above 0."""
    cells = round(min(1.0, max(0.0, value)) * METER_CELLS) or int(value > 0)
    return f":blue-background[{NO_BREAK * cells}]" if cells else ""


def published_answers(example: ReferenceQuestion) -> str:
    """The answers of each system in the paper, as Markdown."""
    parts = (f"**{escape(name)}**: {escape(', '.join(answers))}" for name, answers in example.extra["published"].items())
    return f"In the paper: {'; '.join(parts)}."
