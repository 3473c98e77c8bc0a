"""Second readings: the per-passage reader's best span of a passage becomes a candidate if it overlaps a candidate but differs from it.

The answering model reads all passages beside a prompt, the reader reads each separately and was trained on many more spans: when the one says "Seán
Lester of Ireland", the other says "Seán Lester".  The reader's spans at other places are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from core.models.span.reader import Readout
from core.text import answer_words, shares_words
from core.types import Candidate, Evidence, Proposal

MOST = 3  # of a step
LEAST = 0.05  # the reader's probability of a span


def _meets(span: Evidence, places: Sequence[Evidence]) -> bool:
    """True if it shares characters with one of them."""
    return any(p.passage_id == span.passage_id and p.start < span.end and span.start < p.end for p in places)


def with_readings(proposal: Proposal, readouts: Iterable[Readout], previous: Sequence[str]) -> Proposal:
    """The proposal with up to MOST second readings added at the end, likeliest first.

    The answering model did not rank them, so each gets half the probability of its last candidate; a reranker uses other features.
    Spans that share words with `previous` are left out.
    """
    places = [c.evidence for c in proposal.candidates if c.evidence is not None]
    have = {answer_words(c.text) for c in proposal.candidates}
    found: dict[str, Candidate] = {}
    for readout in readouts:
        best = readout.candidates[0] if readout.candidates else None
        if best is None or best.evidence is None or best.probability < LEAST or not _meets(best.evidence, places):
            continue
        key = answer_words(best.text)
        if not key or key in have or shares_words(best.text, previous):
            continue
        if key not in found or best.probability > found[key].probability:
            found[key] = best
    surest = sorted(found.values(), key=lambda c: -c.probability)[:MOST]
    share = min((c.probability for c in proposal.candidates), default=0.0) / 2
    return replace(proposal, candidates=proposal.candidates + tuple(replace(c, probability=share) for c in surest))
