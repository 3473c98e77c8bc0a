"""A faster loop for AmbigPrompt: the first step reads every passage, and later steps read only those that may still contain an
answer.

The exact loop of Sun et al. 2023 encodes all N passages at every step, because the prompt changes and every passage sees it.  Here a later step
encodes the prompt with only a few passages: those with the best remaining answers of the first step.
Answers and [EOI] are chosen over these passages.  One loop object serves one question.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from core.models.span.answerer import Scored, SpanAnswerer, examined
from core.models.span.model import to_candidate
from core.models.span.reader import read_alone
from core.text import answer_words, find_spans, shares_words
from core.types import AnsweringModel, Passage, Proposal, RetrievedPassage, StepInput


@dataclass(frozen=True)
class Rereading:
    """The passages that a later step reads: a `share` of all, at least `min_passages`, but none whose best remaining span is
    more than `margin` (logits) below the best one.  The first passage is always read."""

    share: float = 0.15
    min_passages: int = 2
    margin: float = 1.5

    def count(self, passages: int) -> int:
        return min(passages, max(self.min_passages, math.ceil(self.share * passages - 1e-9)))


class _FastLoop(ABC):
    """The state of a loop: the previous answers and the first step's passages.  It starts again with another question, or when
    answers are withdrawn."""

    def __init__(self, rereading: Rereading | None = None) -> None:
        self.rereading = rereading or Rereading()
        # question, passages, and the answers before the first step
        self._loop: tuple[str, tuple[Passage, ...], tuple[str, ...]] | None = None

    def _continues(self, question: str, passages: Sequence[RetrievedPassage], previous: Sequence[str]) -> bool:
        """Whether this is a later step of the current loop.  Otherwise a new loop starts."""
        key = tuple(p.passage for p in passages)
        if self._loop is not None and self._loop[:2] == (question, key):
            first = self._loop[2]
            if len(previous) > len(first) and tuple(previous[: len(first)]) == first:
                return True
        self._loop = question, key, tuple(previous)
        return False

    @abstractmethod
    def propose(self, question: str, passages: Sequence[RetrievedPassage], previous: Sequence[str]) -> Proposal: ...

    def propose_many(self, jobs: Sequence[StepInput]) -> list[Proposal]:
        """Handles one job after the other. Only the last question's loop continues; the others read all their passages
        again."""
        return [self.propose(*job) for job in jobs]


class FastSpanLoop(_FastLoop):
    """A fast loop over a SpanAnswerer, with passages ordered by their best remaining span."""

    def __init__(self, model: SpanAnswerer, rereading: Rereading | None = None) -> None:
        super().__init__(rereading)
        self.model = model
        self._first: Scored | None = None

    def propose(self, question: str, passages: Sequence[RetrievedPassage], previous: Sequence[str]) -> Proposal:
        """Like SpanAnswerer.propose, and equal to it at the first step."""
        if not self._continues(question, passages, previous) or self._first is None:
            self._first = self.model.first_step(question, passages, previous)
            return self.model.decide(self._first, passages, previous, self.model.decoding)
        rows = self._first.rows
        reread = self._passages_to_reread(self._first, passages, previous)
        some = rows.select([i for i, passage in enumerate(rows.passage) if passage in reread])
        scored = self.model.score_rows(question, some, previous, self._first.readings)
        return self.model.decide(scored, passages, previous, self.model.decoding)

    def _passages_to_reread(self, first: Scored, passages: Sequence[RetrievedPassage], previous: Sequence[str]) -> set[int]:
        """The indices of the passages to read again, at least one, including those with another answer that the reader alone
        would give."""
        order = remaining(first, passages, previous)
        top, limit = order[0][1], self.rereading.count(len(passages))
        best = {i for rank, (i, logit) in enumerate(order[:limit]) if rank == 0 or logit >= top - self.rereading.margin}
        alone = read_alone(first.readings) if first.readings else {}
        return best | {
            i
            for (i, start, end), probability in alone.items()
            if probability >= self.model.decoding.keep_above and not shares_words(passages[i].passage.text[start:end], previous)
        }


def remaining(scored: Scored, passages: Sequence[RetrievedPassage], previous: Sequence[str]) -> list[tuple[int, float]]:
    """(index, logit of the best remaining span) of each passage, best first; passages without one come last, with -inf."""
    logits: dict[int, float] = {}
    for span in examined(scored):  # the best first
        if span.passage in logits:
            continue
        text = to_candidate(span, passages[span.passage].passage, 0.0).text
        if answer_words(text) and not shares_words(text, previous):  # an article is not an answer
            logits[span.passage] = span.logit
    return sorted(((i, logits.get(i, -math.inf)) for i in range(len(passages))), key=lambda item: (-item[1], item[0]))


class FastTextLoop(_FastLoop):
    """A fast loop over a model that writes its answers.  Passages with a candidate that wasn't given yet come first, then those
    without any given answer, each group in retrieval order."""

    def __init__(self, model: AnsweringModel, rereading: Rereading | None = None) -> None:
        super().__init__(rereading)
        self.model = model
        self._candidates: list[str] = []

    def propose(self, question: str, passages: Sequence[RetrievedPassage], previous: Sequence[str]) -> Proposal:
        """Like the model's propose, and equal to it at the first step."""
        if not self._continues(question, passages, previous):
            self._candidates = []
            reread: Sequence[RetrievedPassage] = passages
        else:
            unused = [c for c in self._candidates if not shares_words(c, previous)]
            reread = self._passages_to_read(passages, unused, previous)
        proposal = self.model.propose(question, reread, previous)
        self._candidates += [c.text for c in proposal.candidates if c.text not in self._candidates]
        return proposal

    def _passages_to_read(
        self, passages: Sequence[RetrievedPassage], unused: Sequence[str], previous: Sequence[str]
    ) -> list[RetrievedPassage]:
        def rank(i: int) -> tuple[int, int]:
            text = passages[i].passage.text
            if any(find_spans(text, c) for c in unused):
                return 0, i
            return (2 if any(find_spans(text, p) for p in previous) else 1), i

        best = sorted(range(len(passages)), key=rank)[: self.rereading.count(len(passages))]
        return [passages[i] for i in sorted(best)]
