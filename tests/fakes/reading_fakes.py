"""A reader and an answering model that say what a table says, for tests of systems that read passage by passage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from core import types as t
from core.models.span.reader import Readout
from core.text import find_spans, normalize_answer

Said = Mapping[str, Sequence[tuple[str, float]]]


def evidence_in(passage: t.Passage, answer: str) -> t.Evidence | None:
    for start, end in find_spans(passage.text, answer):
        return t.Evidence(passage.id, start, end, passage.text[start:end])
    return None


class TableReader:
    """Readouts by passage id: (candidate, probability) pairs; what they leave of 1 is abstention.  `asked` counts passages read."""

    def __init__(self, said: Said, abstain: Mapping[str, float] | None = None) -> None:
        self.said, self.abstain, self.asked = said, abstain or {}, 0

    def read_pairs(self, pairs: Sequence[tuple[str, t.Passage]], candidates: int = 5) -> list[Readout]:
        self.asked += len(pairs)
        out = []
        for _, p in pairs:
            answers = [t.Candidate(a, q, evidence_in(p, a)) for a, q in self.said.get(p.id, ())][:candidates]
            left = max(0.0, 1 - sum(c.probability for c in answers))
            out.append(Readout(p, tuple(answers), self.abstain.get(p.id, left)))
        return out

    def read(self, question: str, passages: Sequence[t.Passage], candidates: int = 5) -> list[Readout]:
        return self.read_pairs([(question, p) for p in passages], candidates)


class TableModel:
    """An answering model: `said` maps an answer to its probability, given only where one of the passages holds its words; previous answers
    are left out.  `jobs` remembers what was asked."""

    def __init__(self, said: Mapping[str, float]) -> None:
        self.said = said
        self.jobs: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = []

    def propose(self, question: str, passages: Sequence[t.RetrievedPassage], previous: Sequence[str]) -> t.Proposal:
        return self.propose_many([(question, passages, previous)])[0]

    def propose_many(self, jobs: Sequence[t.StepInput]) -> list[t.Proposal]:
        out = []
        for question, passages, previous in jobs:
            self.jobs.append((question, tuple(p.passage.id for p in passages), tuple(previous)))
            taken = {normalize_answer(p) for p in previous}
            candidates = []
            for answer, probability in self.said.items():
                place = next((e for p in passages if (e := evidence_in(p.passage, answer))), None)
                if place is not None and normalize_answer(answer) not in taken:
                    candidates.append(t.Candidate(answer, probability, place))
            candidates.sort(key=lambda c: -c.probability)
            out.append(t.Proposal(tuple(candidates), max(0.0, 1 - sum(c.probability for c in candidates))))
        return out


class RuleModel:
    """An answering model: `answers(question)`, those that were not given before, then [EOI].  `asked`: questions and the answers given before."""

    def __init__(self, answers: Callable[[str], Sequence[str]]) -> None:
        self.answers, self.asked = answers, list[tuple[str, Sequence[str]]]()

    def propose_many(self, jobs: Sequence[t.StepInput]) -> list[t.Proposal]:
        out = []
        for question, _, previous in jobs:
            self.asked.append((question, previous))
            left = [a for a in self.answers(question) if a not in previous]
            out.append(t.Proposal(tuple(t.Candidate(a, 0.6) for a in left), 0.3 if left else 1.0))
        return out


class TableRetriever:
    """Passages by the words of a query: those that share most come first."""

    def __init__(self, passages: Sequence[t.Passage]) -> None:
        self.passages, self.queries = list(passages), []  # type: tuple[list[t.Passage], list[str]]

    def search(self, query: str, k: int) -> list[t.RetrievedPassage]:
        self.queries.append(query)
        words = set(query.lower().rstrip("?").split())
        order = sorted(self.passages, key=lambda p: -len(words & set(f"{p.title} {p.text}".lower().replace(".", " ").split())))
        return [t.RetrievedPassage(p, rank, 1.0 / rank) for rank, p in enumerate(order[:k], 1)]


class WordEncoder:
    """A dimension for "come", one for "open"."""

    name, dimension = "table", 2

    def encode(self, texts: Sequence[str], kind: str = "passage") -> Any:
        return np.array([["come" in t, "open" in t] for t in texts], np.float32)
