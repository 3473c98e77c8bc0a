"""Edits from a sentence's name for one of several versions of a thing: "the English edition of Catan", "the second
Globe Theatre".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from core.disambiguation.edits.names import mention
from core.text import find_spans

_KINDS = "edition|version|adaptation|revival|remake|remaster|recording|translation|production|staging|performance|port|release|printing"
_BUILT = "church|cathedral|mosque|temple|palace|castle|house|hall|theatre|stadium|building|structure|bridge|tunnel|tower|station|ship|vessel"
_ORDINAL = r"first|second|third|fourth|fifth|original|present|current|old|new"
# "its original German-language version appeared", "an English edition came out"
_VERSION = re.compile(
    rf"\b(?:[Tt]he|[Aa]n?|[Ii]ts|[Tt]heir|[Hh]is|[Hh]er)\s+(?P<which>(?:[\w’-]+\s+){{1,3}}?)(?P<kind>{_KINDS})\b(?!\s+of\b)"
)
# what stands between article and kind is then no name of a version
_NO_NAME = re.compile(
    r"\b(was|were|is|are|had|has|have|of|and|or|in|on|at|by|for|to|that|which|who|it|this|these|same|new|only)\b", re.IGNORECASE
)


def version_edits(question: str, base: str, text: str) -> Iterator[tuple[int, str]]:
    """(offset in `text`, edit) pairs: the question with a version of the thing that the text names.

    `base`: the passage's title without its qualifier.

    >>> [e for _, e in version_edits("When was Catan released?", "Catan", "An English edition came out in 1996.")]
    ['When was the English edition of Catan released?']
    """
    span = mention(question, base)
    if span is None or re.search(rf"\b({_KINDS})\b", question, re.IGNORECASE):
        return
    name, after = question[span[0] : span[1]], question[span[1] :]
    before, the = question[: span[0]], ""
    if article := re.search(r"\bthe\s+$", before, re.IGNORECASE):
        before, the = before[: article.start()], "the "
    for match in _VERSION.finditer(text):
        which = match["which"].strip()
        if not _NO_NAME.search(which) and not find_spans(question, which):
            yield match.start(), f"{before}the {which} {match['kind']} of {the}{name}{after}"
    for match in re.finditer(
        rf"\b(?:[Tt]he|[Aa]|[Ii]ts)\s+(?P<which>{_ORDINAL})(?:\s(?:and\s)?[a-z]+)?\s(?:{_BUILT}|{re.escape(name)})\b", text
    ):
        if not find_spans(question, match["which"]):
            yield match.start(), f"{before}the {match['which']} {name}{after}"
