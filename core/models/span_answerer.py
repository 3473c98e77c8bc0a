"""SpanAnswerer: AmbigPrompt's answering model with a span head, the bundled default.

One step = one pass over the prompt row and all passage rows (core.models.interleaving), then one softmax over all spans and [EOI].
Equal spans of several passages add up.  Legend: N passage rows, L tokens a row, W longest answer in tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from core.models.checkpoints import digest, find_checkpoint, load_span_network
from core.models.rows import Rows
from core.models.span_model import SpanModel, collate, to_candidate, top_spans
from core.models.span_network import SpanNetwork
from core.text import normalize_answer, overlapping
from core.types import Candidate, Proposal, RetrievedPassage

EXAMINED = 256  # spans looked at before equal texts are merged; the rest keeps its share of the probability


@dataclass(frozen=True)
class Decoding:
    """Added to the logits before the softmax.

    `retrieval_prior`: times (cosine of a passage - cosine of the best passage); `eoi_bias`: added to [EOI]'s logit (negative: stop later).
    """

    retrieval_prior: float = 5.0
    eoi_bias: float = -0.8
    candidates: int = 8


def shares_words(answer: str, previous: Sequence[str]) -> bool:
    """True if the answer is, contains or is contained in a previous one: the same answer read again, longer or shorter."""
    return any(overlapping(answer, p) for p in previous)


class SpanAnswerer(SpanModel):
    def __init__(self, network: SpanNetwork, device: str = "auto", decoding: Decoding | None = None) -> None:
        super().__init__(network, network.config, device)
        self.decoding = decoding or Decoding()

    def propose(self, question: str, passages: Sequence[RetrievedPassage], previous: Sequence[str]) -> Proposal:
        """Candidates that share no words with `previous`, the likeliest first, and the probability of [EOI]."""
        return self.propose_many([(question, passages, previous)])[0]

    def propose_many(self, jobs: Sequence[tuple[str, Sequence[RetrievedPassage], Sequence[str]]]) -> list[Proposal]:
        rows_of = [self.rows(question, [p.passage for p in passages]) for question, passages, _ in jobs]
        prompts = [self.prompt(question, previous) for question, _, previous in jobs]
        batch = collate(rows_of, prompts)
        batch.steps = torch.tensor([len(previous) for _, _, previous in jobs])
        spans, eoi = self.scores(batch)
        return [
            self._proposal(spans[i, : len(rows)], float(eoi[i]), rows, passages, previous)
            for i, (rows, (_, passages, previous)) in enumerate(zip(rows_of, jobs))
        ]

    def _proposal(
        self, spans: torch.Tensor, eoi: float, rows: Rows, passages: Sequence[RetrievedPassage], previous: Sequence[str]
    ) -> Proposal:
        best = max((p.similarity for p in passages if p.similarity is not None), default=0.0)
        prior = [
            self.decoding.retrieval_prior * ((p.similarity if p.similarity is not None else best) - best) for p in passages
        ]
        spans = spans + torch.tensor([prior[i] for i in rows.passage])[:, None, None]
        eoi += self.decoding.eoi_bias
        found = top_spans(spans, rows, EXAMINED)
        dropped: list[float] = []
        merged: dict[str, list[float]] = {}
        first: dict[str, Candidate] = {}
        for span in found:
            candidate = to_candidate(span, passages[span.passage].passage, 0.0)
            if shares_words(candidate.text, previous):
                dropped.append(span.logit)
                continue
            key = normalize_answer(candidate.text)
            merged.setdefault(key, []).append(span.logit)
            first.setdefault(key, candidate)
        # what shares words with a previous answer cannot be chosen, so its mass leaves the softmax
        total = float(torch.logsumexp(torch.cat([spans.reshape(-1), torch.tensor([eoi])]), 0))
        kept = 1.0 - sum(math.exp(logit - total) for logit in dropped)
        kept = max(kept, math.exp(eoi - total), 1e-9)
        probability = {key: sum(math.exp(logit - total) for logit in logits) / kept for key, logits in merged.items()}
        order = sorted(probability, key=lambda key: -probability[key])[: self.decoding.candidates]
        return Proposal(
            tuple(Candidate(first[k].text, min(1.0, probability[k]), first[k].evidence) for k in order),
            min(1.0, math.exp(eoi - total) / kept),
        )


def load_answerer(name: str = "default", device: str = "auto", decoding: Decoding | None = None) -> tuple[SpanAnswerer, str]:
    """(answerer, digest of its weights).  Raises CheckpointError."""
    folder = find_checkpoint(name, "answerer")
    return SpanAnswerer(load_span_network(folder), device, decoding), digest(folder)
