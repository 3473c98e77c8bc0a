"""Lists in a passage: where a question brings one passage, "Doric, Ionic and Corinthian" is three answers.

Several spans of one text are asked for there (multi-span questions, Li et al. 2022).  Where many passages are read, each answer belongs to another reading
of the question, and "Watson and Crick" is one, as in AmbigNQ: such lists stay whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from core.text import shares_words
from core.types import AnsweringModel, Candidate, Proposal, RetrievedPassage

UNEVEN = 2  # words by which the parts of a list may differ: more is mostly a phrase with "and" in it
_WORD = r"(?:and|or|&|as well as)"
_CUT = re.compile(rf"\s*[,;]\s*{_WORD}\s+|\s*[,;]\s+|\s+{_WORD}\s+")
_JOINED = re.compile(rf"\s{_WORD}\s")
_EDGES = " \t\n,;"


def parts_of(candidate: Candidate) -> tuple[Candidate, ...]:
    """The parts of a list, each with its own place in the passage and the probability of the whole; any other candidate alone.

    >>> [c.text for c in parts_of(Candidate("Doric , Ionic , and Corinthian", 0.9))]
    ['Doric', 'Ionic', 'Corinthian']
    >>> [c.text for c in parts_of(Candidate("Brighton, Boston", 0.9))]
    ['Brighton, Boston']
    """
    places = _places(candidate.text)
    texts = [candidate.text[a:b] for a, b in places]
    if len(texts) < 2 or not (_JOINED.search(candidate.text) or len(texts) > 2) or not _alike(texts):
        return (candidate,)
    return tuple(_part(candidate, a, b) for a, b in places)


def _places(text: str) -> list[tuple[int, int]]:
    """Where the pieces between commas and "and" start and end."""
    cuts = [(m.start(), m.end()) for m in _CUT.finditer(text)]
    ends = zip([0, *(b for _, b in cuts)], [*(a for a, _ in cuts), len(text)])
    trimmed = [(a + len(t) - len(t.lstrip(_EDGES)), a + len(t.rstrip(_EDGES))) for a, b in ends for t in (text[a:b],)]
    return [(a, b) for a, b in trimmed if a < b]


def _alike(texts: Sequence[str]) -> bool:
    """True if all begin alike (digit, capital or small letter) and none is much longer than another."""
    sizes = [len(t.split()) for t in texts]
    return len({(t[0].isdigit(), t[0].isupper()) for t in texts}) == 1 and max(sizes) - min(sizes) <= UNEVEN


def _part(whole: Candidate, start: int, end: int) -> Candidate:
    text, evidence = whole.text[start:end], whole.evidence
    if evidence is not None and evidence.end - evidence.start == len(whole.text):
        evidence = replace(evidence, start=evidence.start + start, end=evidence.start + end, text=text)
    return replace(whole, text=text, evidence=evidence)


def by_parts(candidates: Sequence[Candidate], passages: Sequence[RetrievedPassage]) -> list[Candidate]:
    """Each list among the candidates as its parts, where there is one passage."""
    return [part for c in candidates for part in parts_of(c)] if len(passages) == 1 else list(candidates)


class PartByPart:
    """An answering model for one run: a list that it proposes first is given part by part, one a step."""

    def __init__(self, model: AnsweringModel) -> None:
        self.model = model
        self._left: tuple[Candidate, ...] = ()
        self._nothing_left = 0.0  # P([EOI]) of the step that proposed the list

    def propose(self, question: str, passages: Sequence[RetrievedPassage], previous: Sequence[str]) -> Proposal:
        """The next part of the last list, or what the model proposes."""
        if left := _new(self._left, previous):
            self._left = left[1:]
            return Proposal(left, self._nothing_left)
        proposal = self.model.propose(question, passages, previous)
        if len(passages) != 1 or not proposal.candidates:
            return proposal
        first, *others = proposal.candidates
        parts = _new(parts_of(first), previous) or (first,)
        self._left, self._nothing_left = parts[1:], proposal.eoi_probability
        return replace(proposal, candidates=(parts[0], *others))


def _new(candidates: Sequence[Candidate], previous: Sequence[str]) -> tuple[Candidate, ...]:
    """Those that share no words with a previous answer."""
    return tuple(c for c in candidates if not shares_words(c.text, previous))
