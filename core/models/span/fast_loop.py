"""A faster loop for AmbigPrompt: the first step reads every passage, later steps only those that may still hold an answer.

The exact loop of Sun et al. 2023 encodes all N passages at every step, because the prompt changes and every passage sees it.  Here a later step
encodes the prompt with only a few passages: those with the best remaining answers of the first step.
Answers and [EOI] are chosen over these passages.  One loop object serves one question.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from core.models.span.answerer import Scored, SpanAnswerer, examined
from core.models.span.model import to_candidate
from core.models.span.reader import read_alone
from core.models.span.rows import Rows
from core.text import answer_words, find_spans, shares_words
from core.types import AnsweringModel, Proposal, RetrievedPassage


@dataclass(frozen=True)
class Rereading:
    """How many passages a later step reads: `share` of all, at least `least`, but none whose best remaining span is more than `margin` (logits)
    below the best of all; always the first."""

    share: float = 0.15
    least: int = 2
    margin: float = 1.5

    def count(self, passages: int) -> int:
        return min(passages, max(self.least, math.ceil(self.share * passages - 1e-9)))


class _FastLoop:
    """State of a loop: the previous answers and the first step's passages.  Another question, or withdrawn answers, start again."""

    def __init__(self, rereading: Rereading | None = None) -> None:
        self.rereading = rereading or Rereading()
        self._begun: tuple[str, tuple[str, ...], tuple[tuple[str, str], ...]] | None = None

    def _goes_on(self, question: str, passages: Sequence[RetrievedPassage], previous: Sequence[str]) -> bool:
        """True if this is a later step of the current loop; else a new loop starts."""
        key = tuple((p.passage.id, p.passage.text) for p in passages)
        if self._begun is not None:
            asked, before, seen = self._begun
            if (asked, seen) == (question, key) and tuple(previous[: len(before)]) == before and len(previous) > len(before):
                return True
        self._begun = question, tuple(previous), key
        return False


class FastSpanLoop(_FastLoop):
    """A fast loop over a SpanAnswerer: passages ordered by their best remaining span."""

    def __init__(self, model: SpanAnswerer, rereading: Rereading | None = None) -> None:
        super().__init__(rereading)
        self.model = model
        self._first: Scored | None = None

    def propose(self, question: str, passages: Sequence[RetrievedPassage], previous: Sequence[str]) -> Proposal:
        """Like SpanAnswerer.propose, and equal to it at the first step."""
        if not self._goes_on(question, passages, previous) or self._first is None:
            (self._first,) = self.model.score_many([(question, passages, previous)])
            return self.model.decide(self._first, passages, previous, self.model.decoding)
        rows = self._first.rows
        left = self._chosen(passages, previous)
        at = [i for i, passage in enumerate(rows.passage) if passage in left]
        scored = self.model.score_rows(question, part_of(rows, at), previous, self._first.read)
        return self.model.decide(scored, passages, previous, self.model.decoding)

    def _chosen(self, passages: Sequence[RetrievedPassage], previous: Sequence[str]) -> set[int]:
        """Indices of the passages that are read again; at least one."""
        assert self._first is not None
        most = self.rereading.count(len(passages))
        order = remaining(self._first, passages, previous)
        top = order[0][1]
        chosen = {i for rank, (i, logit) in enumerate(order[:most]) if rank == 0 or logit >= top - self.rereading.margin}
        return chosen | self._kept(passages, previous)

    def _kept(self, passages: Sequence[RetrievedPassage], previous: Sequence[str]) -> set[int]:
        """Indices of the passages with a further answer that the reader alone would give."""
        assert self._first is not None
        least, read = self.model.decoding.keep_above, self._first.read
        alone = read_alone(read) if read else {}
        return {
            place[0]
            for place, probability in alone.items()
            if probability >= least and not shares_words(passages[place[0]].passage.text[place[1] : place[2]], previous)
        }


def part_of(rows: Rows, at: Sequence[int]) -> Rows:
    """A selection of the rows; `passage` still indexes all passages."""
    return Rows(
        [rows.input_ids[i] for i in at],
        [rows.token_type_ids[i] for i in at],
        [rows.passage[i] for i in at],
        [rows.offsets[i] for i in at],
        [rows.starts[i] for i in at],
        [rows.ends[i] for i in at],
    )


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
    """A fast loop over a model that writes its answers: first passages with a candidate that was not given yet, then those without any
    given answer, each group in retrieval order."""

    def __init__(self, model: AnsweringModel, rereading: Rereading | None = None) -> None:
        super().__init__(rereading)
        self.model = model
        self._candidates: list[str] = []

    def propose(self, question: str, passages: Sequence[RetrievedPassage], previous: Sequence[str]) -> Proposal:
        """Like the model's propose, and equal to it at the first step."""
        if not self._goes_on(question, passages, previous):
            self._candidates = []
            read: Sequence[RetrievedPassage] = passages
        else:
            open_ = [c for c in self._candidates if not shares_words(c, previous)]
            read = self._left(passages, open_, previous)
        proposal = self.model.propose(question, read, previous)
        self._candidates += [c.text for c in proposal.candidates if c.text not in self._candidates]
        return proposal

    def _left(
        self, passages: Sequence[RetrievedPassage], open_: Sequence[str], previous: Sequence[str]
    ) -> list[RetrievedPassage]:
        def rank(i: int) -> tuple[int, int]:
            text = passages[i].passage.text
            if any(find_spans(text, c) for c in open_):
                return 0, i
            return (2 if any(find_spans(text, p) for p in previous) else 1), i

        chosen = sorted(sorted(range(len(passages)), key=rank)[: self.rereading.count(len(passages))])
        return [passages[i] for i in chosen]
