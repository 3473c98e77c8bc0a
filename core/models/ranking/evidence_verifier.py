"""RECTIFY's verifier: the probability of an answer given only its supporting passages.

Source: Shao and Huang 2022, "Answering Open-Domain Multi-Answer Questions via a Recall-then-Verify Framework", sections 3.2-3.3: evidence is
aggregated for each candidate, and the verifier judges each candidate on its own.  Theirs is a T5-3B FiD that decodes "right" or "wrong" from all
evidence; `AnswererEvidence` asks the answering model over the evidence, untrained for this.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.models.span.reader import Readout, relevances
from core.text import answer_key, answer_words, find_spans, overlapping
from core.types import BatchAnsweringModel, Candidate, RetrievedPassage

BATCH_CANDIDATES = 8  # candidates verified in one batch
MIN_PROBABILITY = 1e-6


@dataclass(frozen=True)
class Recalled:
    """A candidate with its aggregated evidence, strongest passage first.  Its probability is the recalling reader's, summed over
    passages: P(passage | question) P(span | question, passage, not abstaining)."""

    candidate: Candidate
    passages: tuple[RetrievedPassage, ...]


def recall(passages: Sequence[RetrievedPassage], readouts: Sequence[Readout], surplus: int, evidence: int) -> list[Recalled]:
    """Collects surplus candidates passage by passage, each with at most `evidence` passages that contain its words.  Equal
    texts are one candidate.

    Passages are ordered by the reader's probability of the candidate; passages that only contain its words follow, ordered by the
    reader's probability of having an answer.
    """
    shares = relevances(readouts)
    candidates_by_key: dict[str, dict[int, Candidate]] = {}
    for i, readout in enumerate(readouts):
        for c in readout.candidates[:surplus]:
            key = answer_words(c.text)
            if key:
                candidates_by_key.setdefault(key, {}).setdefault(i, c)
    out = []
    for by_passage in candidates_by_key.values():
        probabilities = {i: shares[i] * c.probability / readouts[i].answers_probability for i, c in by_passage.items()}
        order = sorted(by_passage, key=lambda i: -probabilities[i])
        best = by_passage[order[0]]
        mentions = [i for i, p in enumerate(passages) if i not in by_passage and find_spans(p.passage.text, best.text)]
        order += sorted(mentions, key=lambda i: readouts[i].abstain_probability)
        merged = Candidate(best.text, min(1.0, sum(probabilities.values())), best.evidence)
        out.append(Recalled(merged, tuple(passages[i] for i in order[:evidence])))
    return sorted(out, key=lambda r: -r.candidate.probability)


def probability_of(answer: str, candidates: Sequence[Candidate]) -> float:
    """An answer's probability in a proposal: its own, or that of candidates that contain it or are contained in it."""
    equal = [c.probability for c in candidates if answer_key(c.text) == answer_key(answer)]
    return equal[0] if equal else max((c.probability for c in candidates if overlapping(c.text, answer)), default=0.0)


class AnswererEvidence:
    """The probability that an answering model gives a candidate over its evidence: one softmax with [EOI]."""

    def __init__(self, model: BatchAnsweringModel) -> None:
        self.model = model

    def judge(self, question: str, recalled: Sequence[Recalled]) -> list[float]:
        """The probability of each candidate, given its evidence alone."""
        out: list[float] = []
        for k in range(0, len(recalled), BATCH_CANDIDATES):
            part = recalled[k : k + BATCH_CANDIDATES]
            proposals = self.model.propose_many([(question, r.passages, ()) for r in part])
            out += [probability_of(r.candidate.text, p.candidates) for r, p in zip(part, proposals)]
        return out


def verify(verifier: AnswererEvidence, question: str, recalled: Sequence[Recalled], mix: float) -> list[Candidate]:
    """The candidates with their final probability, in order: the geometric mean of the verifier's probability on the aggregated
    evidence (weight 1 - `mix`) and the reader's over all passages (weight `mix`; 1 means the reader's alone)."""
    candidates = [r.candidate for r in recalled]
    if mix == 1:
        return candidates
    judgments = verifier.judge(question, recalled)
    return [replace(c, probability=mixed(p, c.probability, mix)) for c, p in zip(candidates, judgments)]


def mixed(verifier: float, reader: float, mix: float) -> float:
    """
    >>> round(mixed(0.64, 0.25, 0.5), 6), mixed(0.64, 0.25, 0.0)
    (0.4, 0.64)
    """
    logs = (1 - mix) * math.log(max(MIN_PROBABILITY, verifier)) + mix * math.log(max(MIN_PROBABILITY, reader))
    return min(1.0, math.exp(logs))
