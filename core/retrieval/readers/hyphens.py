"""Rejoins words divided at the line ends of a typeset text, or keeps the hyphen if they are compounds.

What the document writes elsewhere decides; else whether the joined word, or both its halves, are words of English (the word list of the packaged
encoder).  In any other case they are joined, since halves of compounds are words, and halves of divided words seldom are.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from itertools import pairwise

from core.errors import CheckpointError
from core.models.loading.packaged import MINILM, packaged_folder

_DIVIDED = re.compile(r"(?<![^\W_])(?P<first>[^\W_]+)(?P<hyphen>[-\u2010\u00ad])[ \t\r]*\n[ \t]*(?P<second>[^\W_]+)")
_COMPOUND = re.compile(r"[^\W_]+(?:[-\u2010][^\W_]+)*")
_SUSPENDED = ("and", "or", "to", "und", "oder", "et", "ou", "y")  # "short- and long-term"
_PREFIXES = frozenset(
    "com con de dis inter intra mis re sub trans un".split()
)  # seldom before a hyphen, but words of their own
SOFT_HYPHEN = "\u00ad"


@lru_cache(maxsize=1)
def english_words() -> frozenset[str]:
    """The whole words among the packaged encoder's word pieces (some 20,000, lower case); none if the package is missing."""
    try:
        pieces = (packaged_folder(MINILM) / "vocab.txt").read_text(encoding="utf-8").split()
    except (CheckpointError, OSError):
        return frozenset()
    return frozenset(p for p in pieces if len(p) > 1 and p.isalpha())


class Hyphens:
    """Learns how a document writes its words, then rejoins the divided ones."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()  # words, and neighbours in a compound as "power-enhancing"

    def learn(self, text: str) -> None:
        for compound in _COMPOUND.findall(_DIVIDED.sub(" ", text).lower()):
            parts = re.split("[-\u2010]", compound)
            self._counts.update(parts)
            self._counts.update(map("-".join, pairwise(parts)))

    def rejoin(self, text: str) -> str:
        """The text with no word divided at a line end.

        >>> Hyphens().rejoin("Copen-\\nhagen is power-\\nenhancing, short-\\nand long-term")
        'Copenhagen is power-enhancing, short- and long-term'
        """
        return _DIVIDED.sub(lambda m: self._word(m["first"], m["hyphen"], m["second"]), text)

    def _word(self, first: str, hyphen: str, second: str) -> str:
        if hyphen == SOFT_HYPHEN:
            return first + second
        if second in _SUSPENDED:
            return f"{first}{hyphen} {second}"
        return first + ("" if self._is_divided(first, second) else hyphen) + second

    def _is_divided(self, first: str, second: str) -> bool:
        """True if the halves are one word, False if they form a compound."""
        if len(first) == 1 or not (first + second).isalpha() or not (second.islower() or (first + second).isupper()):
            return False
        first, second = first.lower(), second.lower()
        as_word, as_compound = self._counts[first + second], self._counts[f"{first}-{second}"]
        if as_word != as_compound:
            return as_word > as_compound
        words = english_words()
        return (
            first + second in words
            or first in _PREFIXES
            or not all(half in words or self._counts[half] for half in (first, second))
        )
