"""The aliases of one answer, typed in one field and separated by `|`, as in the AmbigQA authors' interface."""

from __future__ import annotations

import re
from collections.abc import Iterable

SEPARATOR = "|"
# soft hyphens, zero-width spaces, marks of direction, word joiners; not the joiners that Persian, Indic scripts and emoji need
_UNSEEN = re.compile("[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]")


def parse_aliases(text: str) -> tuple[str, ...]:
    """The aliases in a field: trimmed, without empty and repeated ones.

    >>> parse_aliases(" Bob Dylan | Robert Zimmerman || Bob  Dylan")
    ('Bob Dylan', 'Robert Zimmerman')
    """
    return distinct(text.split(SEPARATOR))


def join_aliases(aliases: Iterable[str]) -> str:
    """The inverse: the content of the field.  A `|` inside an imported alias becomes a `/`.

    >>> join_aliases(("a", "b"))
    'a | b'
    """
    return f" {SEPARATOR} ".join(" ".join(alias.replace(SEPARATOR, "/").split()) for alias in aliases)


def without_unseen(text: str) -> str:
    r"""The text without invisible characters; a tab or a line break becomes a space.

    >>> without_unseen("Nata\u00adlie\tWood")
    'Natalie Wood'
    """
    return re.sub(r"[\t\r\n\v\f]", " ", _UNSEEN.sub("", text))


def distinct(aliases: Iterable[str]) -> tuple[str, ...]:
    """The values in order with white space collapsed, without empty ones and exact repetitions."""
    return tuple(dict.fromkeys(flat for alias in aliases if (flat := " ".join(alias.split()))))
