"""Near copies among a question's passages, and answers that they contradict.

A false document is often a true one with another answer in the same place (Wang et al. 2025, "Retrieval-Augmented Generation with Conflicting Evidence",
section 3).  So where two passages say nearly the same, at most one of their answers is right, and what other documents say decides.  Two passages are near
copies if the smaller one shares SHARED of its runs of RUN words with the other (Broder 1997, "On the resemblance and containment of documents").
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

RUN = 4  # words
SHARED = 0.3
MOST = 3  # documents by which an answer is outvoted


class Copies:
    """The near copies among passages, given by their words."""

    def __init__(self, words: Mapping[str, Sequence[str]]) -> None:
        """`words`: of each passage, by its id."""
        runs = {key: {tuple(said[i : i + RUN]) for i in range(len(said) - RUN + 1)} for key, said in words.items()}
        self._near: dict[str, set[str]] = defaultdict(set)
        self._document = {key: key for key in words}  # near copies are one document
        for key, own in runs.items():
            for other in runs:
                if other == key:
                    break
                if own and runs[other] and len(own & runs[other]) >= SHARED * min(len(own), len(runs[other])):
                    self._near[key].add(other)
                    self._near[other].add(key)
                    old, new = self._document[key], self._document[other]
                    self._document = {k: new if d == old else d for k, d in self._document.items()}

    def of(self, passage: str) -> frozenset[str]:
        """The near copies of a passage."""
        return frozenset(self._near.get(passage, ()))

    def documents(self, passages: Collection[str]) -> int:
        """How many documents these passages are."""
        return len({self._document[key] for key in passages})

    def against(self, passage: str, holding: Collection[str], rivals: Collection[Collection[str]]) -> tuple[int, bool]:
        """(by how many documents, at most MOST, the strongest rival has more than an answer; whether one has at least as many).

        `passage`: that of the answer; `holding`: all that hold it; `rivals`: all that hold each other answer.  Only those are rivals that a near copy
        of the passage gives in place of the answer.
        """
        own = self.documents(holding)
        copies = self.of(passage) - set(holding)
        more = [self.documents(held) - own for held in rivals if passage not in held and not copies.isdisjoint(held)]
        return min(MOST, max([0, *more])), any(m >= 0 for m in more)
