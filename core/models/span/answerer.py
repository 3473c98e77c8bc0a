"""SpanAnswerer: AmbigPrompt's answering model with a span head, the bundled default.

One step = one pass over the prompt row and all passage rows (core.models.interleaving), then one softmax over all spans and [EOI].
The probabilities of equal spans add up.  Legend: N passage rows, L tokens a row, W longest answer in tokens.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from core.models.loading.files import digest
from core.models.loading.finding import find_checkpoint
from core.models.loading.once import loaded_once
from core.models.span.checkpoints import shared_network
from core.models.span.model import Span, SpanModel, to_candidate, top_spans
from core.models.span.network import SpanNetwork
from core.models.span.reader import PassageReader
from core.models.span.rows import Rows
from core.text import answer_words, shares_words
from core.types import Candidate, Job, Proposal, RetrievedPassage

READINGS_KEPT = 64  # questions whose reader output is cached
LEAST = -20.0  # floor of the reader's log probability; also avoids -inf * 0
EXAMINED = 256  # spans considered before equal texts are merged; the others keep their share of the probability


@dataclass(frozen=True)
class Decoding:
    """Added to the logits before the softmax.

    `retrieval_prior`: times (cosine of a passage - cosine of the best passage); `eoi_bias`: added to [EOI]'s logit (negative: stop later);
    `reader_weight`: times the per-passage reader's log probability of the span (0: the reader is not used); `repeats`: candidates that share words
    with a previous answer are allowed, as in the paper, where only the prompt prevents them.
    """

    retrieval_prior: float = 8.0
    eoi_bias: float = -2.25
    reader_weight: float = 0.0
    candidates: int = 8
    repeats: bool = False


@dataclass(frozen=True)
class Scored:
    """Network outputs for one job: span scores (N, L, W), the [EOI] score, the rows, and the per-passage reader's log probabilities
    (N, L, W) if it was used."""

    spans: torch.Tensor
    eoi: float
    rows: Rows
    read: torch.Tensor | None = None


class SpanAnswerer(SpanModel):
    def __init__(self, network: SpanNetwork, device: str = "auto", decoding: Decoding | None = None) -> None:
        super().__init__(network, network.config, device)
        self.decoding = decoding or Decoding()
        self.reader: PassageReader | None = None
        self._readings: dict[object, torch.Tensor] = {}

    def propose(self, question: str, passages: Sequence[RetrievedPassage], previous: Sequence[str]) -> Proposal:
        """Candidates, the likeliest first, and the probability of [EOI]; without `repeats` none shares words with `previous`."""
        return self.propose_many([(question, passages, previous)])[0]

    def propose_many(self, jobs: Sequence[Job]) -> list[Proposal]:
        return [
            self.decide(scored, passages, previous, self.decoding)
            for scored, (_, passages, previous) in zip(self.score_many(jobs), jobs)
        ]

    def score_many(self, jobs: Sequence[Job]) -> list[Scored]:
        """Network outputs for each job, before decoding."""
        rows_of = [self.rows(question, [p.passage for p in passages]) for question, passages, _ in jobs]
        prompts = [self.prompt(question, previous) for question, _, previous in jobs]
        scored = self.scored([(rows, prompt, len(job[2])) for rows, prompt, job in zip(rows_of, prompts, jobs)])
        read = self._read(jobs, rows_of)
        return [Scored(spans, float(eoi), rows, of) for (spans, eoi), rows, of in zip(scored, rows_of, read)]

    def score_rows(self, question: str, rows: Rows, previous: Sequence[str], read: torch.Tensor | None = None) -> Scored:
        """Network outputs for given rows; `read`: the reader's log probabilities."""
        ((spans, eoi),) = self.scored([(rows, self.prompt(question, previous), len(previous))])
        return Scored(spans, float(eoi), rows, read)

    def _read(self, jobs: Sequence[Job], rows_of: Sequence[Rows]) -> Sequence[torch.Tensor | None]:
        """The reader's log probabilities for each job.  They do not depend on previous answers, so later steps use the cache."""
        if self.reader is None or not self.decoding.reader_weight:
            return [None] * len(jobs)
        keys = [(question, tuple((p.passage.id, p.passage.text) for p in passages)) for question, passages, _ in jobs]
        todo = [i for i, key in enumerate(keys) if key not in self._readings]
        if todo:
            found = self.reader.log_probabilities([rows_of[i] for i in todo])
            for i, log_probability in zip(todo, found):
                self._readings[keys[i]] = log_probability
        out = [self._readings[key] for key in keys]
        while len(self._readings) > READINGS_KEPT:
            self._readings.pop(next(iter(self._readings)))
        return out

    @staticmethod
    def decide(scored: Scored, passages: Sequence[RetrievedPassage], previous: Sequence[str], decoding: Decoding) -> Proposal:
        """Decoding: adds the prior and the bias, merges equal texts, and removes candidates that share words with `previous` from the softmax."""
        rows = scored.rows
        best = max((p.similarity for p in passages if p.similarity is not None), default=0.0)
        prior = [decoding.retrieval_prior * ((p.similarity if p.similarity is not None else best) - best) for p in passages]
        spans = scored.spans + torch.tensor([prior[i] for i in rows.passage])[:, None, None]
        if scored.read is not None and decoding.reader_weight:
            length = min(spans.shape[1], scored.read.shape[1])  # the rest is padding, without spans
            spans = spans[:, :length] + decoding.reader_weight * scored.read[:, :length].clamp(min=LEAST)
        eoi = scored.eoi + decoding.eoi_bias
        found = top_spans(spans, rows, EXAMINED)
        dropped: list[float] = []
        merged: dict[str, list[float]] = {}
        first: dict[str, Candidate] = {}
        heads: list[tuple[Span, str]] = []  # the best span at each place in the text, and its answer
        for span in found:
            # "Robert Wise" and "director Robert Wise" are one answer at one place: the weaker span supports the stronger one
            head = next(
                (key for h, key in heads if h.passage == span.passage and h.start < span.end and span.start < h.end), None
            )
            if head is not None:
                merged.get(head, dropped).append(span.logit)
                continue
            candidate = to_candidate(span, passages[span.passage].passage, 0.0)
            key = answer_words(candidate.text)
            heads.append((span, key))
            if not key or (not decoding.repeats and shares_words(candidate.text, previous)):  # no key: only an article
                dropped.append(span.logit)
                continue
            merged.setdefault(key, []).append(span.logit)
            first.setdefault(key, candidate)
        # candidates that share words with a previous answer, or are empty, cannot be chosen, so their mass is removed
        total = float(torch.logsumexp(torch.cat([spans.reshape(-1), torch.tensor([eoi])]), 0))
        kept = 1.0 - sum(math.exp(logit - total) for logit in dropped)
        kept = max(kept, math.exp(eoi - total), 1e-9)
        probability = {key: sum(math.exp(logit - total) for logit in logits) / kept for key, logits in merged.items()}
        order = sorted(probability, key=lambda key: -probability[key])[: decoding.candidates]
        return Proposal(
            tuple(Candidate(first[k].text, min(1.0, probability[k]), first[k].evidence) for k in order),
            min(1.0, math.exp(eoi - total) / kept),
        )


@loaded_once(2)
def _loaded(folder: Path, weights: str, device: str) -> SpanAnswerer:
    """One network per set of weights; `weights` is their digest, so that new weights are reloaded."""
    return SpanAnswerer(shared_network(folder, weights, device), device)


def load_answerer(name: str = "default", device: str = "auto", decoding: Decoding | None = None) -> tuple[SpanAnswerer, str]:
    """(answerer, digest of its weights).  Weights are loaded once; the decoding settings are the caller's.  Raises CheckpointError."""
    folder = find_checkpoint(name, "answerer")
    weights = digest(folder)
    answerer = copy.copy(_loaded(folder, weights, device))
    answerer.decoding = decoding or Decoding()
    answerer._readings = {}
    return answerer, weights
