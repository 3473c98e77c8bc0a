"""RECTIFY's verifier with the bundled weights: how likely is an answer, given only the passages that speak for it?

Source: Shao and Huang 2022, "Answering Open-Domain Multi-Answer Questions via a Recall-then-Verify Framework", sections 3.2-3.3: evidence is
aggregated for each candidate, and the verifier judges each candidate for itself.  Theirs is a T5-3B FiD that decodes "right" or "wrong"; here the
answering model is asked the question over the candidate's own evidence, so the verdict is the probability that it gives the candidate (its
reading, all evidence in one softmax with [EOI]), mixed with what the recalling reader gives it over all passages together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from core.models.span.reader import Readout, relevances
from core.text import find_spans, normalize_answer, overlapping
from core.types import BatchAnsweringModel, Candidate, RetrievedPassage

JOBS = 8  # candidates verified together
LEAST = 1e-6


@dataclass(frozen=True)
class Recalled:
    """A candidate with its aggregated evidence, the most telling passage first.  Its probability is that of the recalling reader, summed over
    passages: P(passage | question) P(span | question, passage, not abstaining)."""

    candidate: Candidate
    passages: tuple[RetrievedPassage, ...]


@dataclass(frozen=True)
class Verdict:
    recalled: Recalled
    probability: float


def recall(passages: Sequence[RetrievedPassage], readouts: Sequence[Readout], surplus: int, evidence: int) -> list[Recalled]:
    """Surplus candidates, passage by passage, each with at most `evidence` passages that hold its words; equal texts are one candidate.

    Passages come in the order of what the reader gave the candidate there; those that hold its words unread follow by the reader's
    willingness to answer from them.
    """
    shares = relevances(readouts)
    said: dict[str, dict[int, Candidate]] = {}
    for i, readout in enumerate(readouts):
        for c in readout.candidates[:surplus]:
            key = normalize_answer(c.text)
            if key:
                said.setdefault(key, {}).setdefault(i, c)
    out = []
    for found in said.values():
        given = {i: shares[i] * c.probability / readouts[i].answers_probability for i, c in found.items()}
        order = sorted(found, key=lambda i: -given[i])
        best = found[order[0]]
        mentions = [i for i, p in enumerate(passages) if i not in found and find_spans(p.passage.text, best.text)]
        order += sorted(mentions, key=lambda i: readouts[i].abstain_probability)
        whole = Candidate(best.text, min(1.0, sum(given.values())), best.evidence)
        out.append(Recalled(whole, tuple(passages[i] for i in order[:evidence])))
    return sorted(out, key=lambda r: -r.candidate.probability)


def probability_of(answer: str, candidates: Sequence[Candidate]) -> float:
    """What a proposal gives an answer: its own probability, or that of readings that contain it or are contained in it."""
    key = normalize_answer(answer)
    same = [c.probability for c in candidates if normalize_answer(c.text) == key]
    return same[0] if same else max((c.probability for c in candidates if overlapping(c.text, answer)), default=0.0)


def verify(model: BatchAnsweringModel, question: str, recalled: Sequence[Recalled], mix: float) -> list[Verdict]:
    """A verdict for each candidate, in order: the geometric mean of the answering model's probability over the aggregated evidence (weight
    1 - `mix`) and of the reader's over all passages (weight `mix`)."""
    out: list[Verdict] = []
    for k in range(0, len(recalled), JOBS):
        part = recalled[k : k + JOBS]
        for r, proposal in zip(part, model.propose_many([(question, r.passages, ()) for r in part])):
            given = probability_of(r.candidate.text, proposal.candidates)
            logs = (1 - mix) * math.log(max(LEAST, given)) + mix * math.log(max(LEAST, r.candidate.probability))
            out.append(Verdict(r, min(1.0, math.exp(logs))))
    return out
