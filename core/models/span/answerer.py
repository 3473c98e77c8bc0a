"""SpanAnswerer: AmbigPrompt's answering model with a span head, the bundled default.

One step = one pass over the prompt row and all passage rows (core.models.interleaving), then one softmax over all spans and [EOI].
The probabilities of equal spans add up.  Legend: N passage rows, L tokens a row, W longest answer in tokens.
"""

from __future__ import annotations

import copy
import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from core.models.loading.files import digest
from core.models.loading.finding import find_checkpoint
from core.models.loading.once import loaded_once
from core.models.span.checkpoints import shared_network
from core.models.span.model import Span, SpanModel, to_candidate, top_spans
from core.models.span.network import SpanNetwork
from core.models.span.reader import PassageReader, SpanPlace, read_alone
from core.models.span.rows import TokenRows
from core.text import answer_words, shares_words
from core.types import STEP_CANDIDATES, Candidate, Proposal, RetrievedPassage, StepInput

CACHED_STEPS = 8  # first steps whose network outputs are cached, for the questions that are worked on at the same time
READER_SPANS = 40  # the reader's likeliest of a passage
EOI_GAP = 0.1  # of [EOI]'s logit below that of an answer that has to come first
EXAMINED_SPANS = 256  # considered before equal texts are merged


@dataclass(frozen=True)
class Decoding:
    """`eoi_bias`: added to [EOI]'s logit (negative: stop later); `first_eoi_bias`: at the first step, where [EOI] means that nothing here is an
    answer and `keep_above` does not count then (None: the first step is as the others).

    `keep_above`: [EOI] comes after every candidate to which the per-passage reader alone gives this probability, scored as DPR does (1: after
    none, and nothing is read alone); `repeats`: candidates that share words with a previous answer are allowed, as in the paper, where only the
    prompt prevents them.
    """

    eoi_bias: float = -2.0
    first_eoi_bias: float | None = None
    keep_above: float = 1.0
    candidates: int = STEP_CANDIDATES
    repeats: bool = False


@dataclass(frozen=True)
class Scored:
    """Network outputs for one job: span scores (N, L, W), the [EOI] score, the rows, and the per-passage reader's log probability
    of its likeliest spans if it was used."""

    spans: torch.Tensor
    eoi: float
    rows: TokenRows
    readings: Mapping[SpanPlace, float] | None


class SpanAnswerer(SpanModel):
    def __init__(self, network: SpanNetwork, device: str = "auto", decoding: Decoding | None = None) -> None:
        super().__init__(network, device)
        self.decoding = decoding or Decoding()
        self.reader: PassageReader | None = None
        self.first_steps: OrderedDict[object, Scored] = OrderedDict()

    def propose(self, question: str, passages: Sequence[RetrievedPassage], previous: Sequence[str]) -> Proposal:
        """Candidates, the likeliest first, and the probability of [EOI]; without `repeats` none shares words with `previous`."""
        return self.propose_many([(question, passages, previous)])[0]

    def propose_many(self, jobs: Sequence[StepInput]) -> list[Proposal]:
        return [
            self.decide(scored, passages, previous, self.decoding)
            for scored, (_, passages, previous) in zip(self.score_many(jobs), jobs)
        ]

    def score_many(self, jobs: Sequence[StepInput]) -> list[Scored]:
        """Network outputs for each job, before decoding."""
        rows_of = [self.rows(question, [p.passage for p in passages]) for question, passages, _ in jobs]
        prompts = [self.prompt(question, previous) for question, _, previous in jobs]
        scored = self.scored([(rows, prompt, len(job[2])) for rows, prompt, job in zip(rows_of, prompts, jobs)])
        readings = self._readings_of(jobs)
        return [Scored(spans, float(eoi), rows, reading) for (spans, eoi), rows, reading in zip(scored, rows_of, readings)]

    def first_step(self, question: str, passages: Sequence[RetrievedPassage], previous: Sequence[str]) -> Scored:
        """The network outputs of a job.  The last job's are kept, because the round trip asks an unchanged question again."""
        key = question, tuple(p.passage for p in passages), tuple(previous)
        if (scored := self.first_steps.get(key)) is None:
            (scored,) = self.score_many([(question, passages, previous)])
            self.first_steps[key] = scored
            while len(self.first_steps) > CACHED_STEPS:
                self.first_steps.popitem(last=False)
        return scored

    def score_rows(
        self, question: str, rows: TokenRows, previous: Sequence[str], readings: Mapping[SpanPlace, float] | None
    ) -> Scored:
        """Network outputs for given rows; `readings`: the reader's log probabilities, if it was used."""
        ((spans, eoi),) = self.scored([(rows, self.prompt(question, previous), len(previous))])
        return Scored(spans, float(eoi), rows, readings)

    def _readings_of(self, jobs: Sequence[StepInput]) -> Sequence[Mapping[SpanPlace, float] | None]:
        """The reader's log probabilities for each job.  They don't depend on previous answers, so later steps read nothing
        again."""
        if self.reader is None or self.decoding.keep_above >= 1:
            return [None] * len(jobs)
        passages_of = [(question, [p.passage for p in passages]) for question, passages, _ in jobs]
        return [self.reader.log_probabilities(question, passages, READER_SPANS) for question, passages in passages_of]

    @staticmethod
    def decide(scored: Scored, passages: Sequence[RetrievedPassage], previous: Sequence[str], decoding: Decoding) -> Proposal:
        """Decoding: adds the bias, merges equal texts, and removes candidates that share words with `previous` from the softmax."""
        bias = decoding.eoi_bias if previous or decoding.first_eoi_bias is None else decoding.first_eoi_bias
        eoi = scored.eoi + bias
        spans = examined(scored)
        alone = read_alone(scored.readings) if scored.readings else {}
        precede_eoi: set[str] = set()  # answers that the reader alone would give
        dropped: list[float] = []
        merged: dict[str, list[float]] = {}
        first: dict[str, Candidate] = {}
        heads: list[tuple[Span, str]] = []  # the best span at each place in the text, and its answer
        for span in spans:
            # "Robert Wise" and "director Robert Wise" are one answer at one place: the weaker span supports the stronger one
            key = next(
                (key for h, key in heads if h.passage == span.passage and h.start < span.end and span.start < h.end), None
            )
            if key is None:
                candidate = to_candidate(span, passages[span.passage].passage, 0.0)
                key = answer_words(candidate.text)
                heads.append((span, key))
                if key and (decoding.repeats or not shares_words(candidate.text, previous)):  # no key: only an article
                    first.setdefault(key, candidate)
                    merged.setdefault(key, [])
                else:
                    dropped.append(span.logit)
                    continue
            elif key not in merged:
                dropped.append(span.logit)
                continue
            merged[key].append(span.logit)
            if alone.get((span.passage, span.start, span.end), 0.0) >= decoding.keep_above:
                precede_eoi.add(key)
        if precede_eoi and (previous or decoding.first_eoi_bias is None):
            best = max(float(torch.logsumexp(torch.tensor(merged[key]), 0)) for key in precede_eoi)
            eoi = min(eoi, best - EOI_GAP)
        # candidates that share words with a previous answer, or are empty, cannot be chosen, so their mass is removed
        total = float(torch.logsumexp(torch.tensor([*(span.logit for span in spans), eoi]), 0))
        remaining = 1.0 - sum(math.exp(logit - total) for logit in dropped)
        remaining = max(remaining, math.exp(eoi - total), 1e-9)
        probability = {key: sum(math.exp(logit - total) for logit in logits) / remaining for key, logits in merged.items()}
        order = sorted(probability, key=lambda key: -probability[key])[: decoding.candidates]
        return Proposal(
            tuple(Candidate(first[k].text, min(1.0, probability[k]), first[k].evidence) for k in order),
            min(1.0, math.exp(eoi - total) / remaining),
        )


def examined(scored: Scored) -> list[Span]:
    """The best spans and those that the reader names, best first."""
    rows, spans = scored.rows, scored.spans
    best = top_spans(spans, rows, EXAMINED_SPANS)
    if scored.readings is None:
        return best
    logits = {(s.passage, s.start, s.end): s.logit for s in best}
    edges = [rows.edges(row) for row in range(len(rows))]
    for passage, start, end in (place for place in scored.readings if place not in logits):
        for row in (r for r, p in enumerate(rows.passage) if p == passage):
            first, last = edges[row][0].get(start), edges[row][1].get(end)
            if first is not None and last is not None and 0 <= last - first < spans.shape[2]:
                if (logit := float(spans[row, first, last - first])) > -math.inf:
                    logits[passage, start, end] = logit
                break
    return sorted((Span(*place, logit) for place, logit in logits.items()), key=lambda s: -s.logit)


@loaded_once(2)
def _loaded(folder: Path, weights: str, device: str) -> SpanAnswerer:
    """One network per set of weights.  `weights` is their digest, so new weights are reloaded."""
    return SpanAnswerer(shared_network(folder, weights, device), device)


def load_answerer(name: str = "default", device: str = "auto", decoding: Decoding | None = None) -> tuple[SpanAnswerer, str]:
    """(answerer, digest of its weights).  Weights are loaded once; each caller has its own decoding settings.  Raises
    CheckpointError."""
    folder = find_checkpoint(name, "answerer")
    weights = digest(folder)
    answerer = copy.copy(_loaded(folder, weights, device))
    answerer.decoding = decoding or Decoding()
    answerer.first_steps = OrderedDict()
    return answerer, weights
