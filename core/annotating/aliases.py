"""Aliases of one answer: typed in one field with `|` between them, as in the AmbigQA authors' interface."""

from __future__ import annotations

from collections.abc import Iterable

SEPARATOR = "|"


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


def distinct(aliases: Iterable[str]) -> tuple[str, ...]:
    """In order, white space collapsed, without empty ones and exact repetitions."""
    return tuple(dict.fromkeys(flat for alias in aliases if (flat := " ".join(alias.split()))))
