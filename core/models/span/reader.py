"""The per-passage reader with abstention: g(a | q, c) of AmbigPrompt's Eq. 8. The round trip and one-pass reading use it
too."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from core.models.loading.files import digest
from core.models.loading.finding import find_checkpoint
from core.models.loading.once import loaded_once
from core.models.scheduling.device import bf16_autocast
from core.models.span.checkpoints import check_abstains, shared_network
from core.models.span.model import SpanModel, collate, to_candidate, top_spans
from core.models.span.network import SpanNetwork
from core.models.span.rows import TokenRows
from core.types import Candidate, Passage

BATCH_PASSAGES = 16  # passages
MAX_REMEMBERED_PAIRS = 256  # passages with their question
MIN_PROBABILITY = 1e-9
SpanPlace = tuple[int, int, int]  # (index of the passage, first character, end) of a span
Pair = tuple[str, Passage]  # question, passage
ScoredRows = tuple[TokenRows, torch.Tensor, torch.Tensor]  # rows, span scores, abstention scores


@dataclass(frozen=True)
class Readout:
    """The reader's output for one passage: candidates, likeliest first, and the probability that it has no answer."""

    passage: Passage
    candidates: tuple[Candidate, ...]
    abstain_probability: float

    @property
    def best(self) -> Candidate | None:
        """The best candidate, or None if abstaining is likelier than any span."""
        top = self.candidates[0] if self.candidates else None
        return top if top is not None and top.probability > self.abstain_probability else None

    @property
    def answers_probability(self) -> float:
        """The probability that the passage has an answer; never 0."""
        return max(MIN_PROBABILITY, 1 - self.abstain_probability)


def relevances(readouts: Sequence[Readout]) -> list[float]:
    """P(passage is the one | question): a softmax over passages of the log odds that the reader doesn't abstain, the way DPR's
    reader selects a passage (Karpukhin et al. 2020, section 6.1)."""
    return _shares([r.answers_probability / max(MIN_PROBABILITY, r.abstain_probability) for r in readouts])


def read_alone(log_probabilities: Mapping[SpanPlace, float]) -> dict[SpanPlace, float]:
    """DPR's score of each span, P(passage) P(span | passage, not abstaining), from the span's log probability in its passage
    (PassageReader.log_probabilities)."""
    answering: dict[int, float] = {}
    for (passage, *_), log_probability in log_probabilities.items():
        answering[passage] = min(1 - 1e-4, answering.get(passage, 0.0) + math.exp(log_probability))
    share = dict(zip(answering, _shares([p / (1 - p) for p in answering.values()])))
    return {place: share[place[0]] * math.exp(lp) / answering[place[0]] for place, lp in log_probabilities.items()}


def _shares(odds: Sequence[float]) -> list[float]:
    """A softmax over log odds."""
    total = sum(odds)
    return [o / total for o in odds]


class PassageReader(SpanModel):
    """Remembers its latest readings, because the loop, the round trip and the judge of one question ask about the same
    passages."""

    def __init__(self, network: SpanNetwork, device: str = "auto") -> None:
        super().__init__(network, device)
        self._latest: OrderedDict[Pair, ScoredRows] = OrderedDict()

    def read_pairs(self, pairs: Sequence[Pair], candidates: int = 5) -> list[Readout]:
        """One readout for each (question, passage).  The windows of a long passage share one softmax with their lowest
        abstention score, so that a window without the answer doesn't hide the others."""
        readings = zip(pairs, self._readings(pairs))
        return [self._readout(spans, nothing, rows, passage, candidates) for (_, passage), (rows, spans, nothing) in readings]

    def _readings(self, pairs: Sequence[Pair]) -> list[ScoredRows]:
        """Rows, span scores and abstention scores of each (question, passage)."""
        readings = {pair: reading for pair in pairs if (reading := self._latest.get(pair))}
        rows_of = {pair: self.rows(pair[0], [pair[1]]) for pair in dict.fromkeys(pairs) if pair not in readings}
        unread = sorted(rows_of, key=lambda pair: max(map(len, rows_of[pair].input_ids)))
        for k in range(0, len(unread), BATCH_PASSAGES):  # similar lengths in one batch, to limit padding
            group = unread[k : k + BATCH_PASSAGES]
            for pair, scores in zip(group, self.scored([(rows_of[pair], None, 0) for pair in group])):
                readings[pair] = self._latest[pair] = rows_of[pair], *scores
        while len(self._latest) > MAX_REMEMBERED_PAIRS:
            self._latest.popitem(last=False)
        return [readings[pair] for pair in pairs]

    def read(self, question: str, passages: Sequence[Passage], candidates: int = 5) -> list[Readout]:
        return self.read_pairs([(question, passage) for passage in passages], candidates)

    def read_states(
        self, question: str, passages: Sequence[Passage], candidates: int = 5
    ) -> tuple[list[Readout], torch.Tensor]:
        """(readouts, (n, 3 d) states).  The states of a passage are those of the row's first token and of its best span's first
        and last token."""
        readouts: list[Readout] = []
        vectors: list[torch.Tensor] = []
        for k in range(0, len(passages), BATCH_PASSAGES):
            part = passages[k : k + BATCH_PASSAGES]
            jobs = [self.rows(question, [passage]) for passage in part]
            batch = collate(jobs, None)
            with self.lock, torch.inference_mode(), bf16_autocast(self.device):
                states = self.network.encode(on_device := batch.to(self.device))
                outputs = self.network.read_off(on_device, states)
            spans, nothing, states = (x.float().cpu() for x in (*outputs, states))
            by_job = states.view(len(jobs), batch.rows, *states.shape[1:])
            for g, (job, passage) in enumerate(zip(jobs, part)):
                job_spans = spans[g, : len(job)]
                readouts.append(self._readout(job_spans, nothing[g, : len(job)], job, passage, candidates))
                row, remainder = divmod(int(job_spans.argmax()), job_spans.shape[1] * job_spans.shape[2])
                start, length = divmod(remainder, job_spans.shape[2])
                end = min(start + length, job_spans.shape[1] - 1)
                vectors.append(torch.cat([by_job[g, row, i] for i in (0, start, end)]))
        return readouts, torch.stack(vectors) if vectors else torch.zeros(0, 0)

    def log_probabilities(self, question: str, passages: Sequence[Passage], spans: int) -> dict[SpanPlace, float]:
        """log p(span | question, passage) of the likeliest `spans` of each passage, abstention included."""
        by_place: dict[SpanPlace, float] = {}
        for i, (rows, span_scores, nothing) in enumerate(self._readings([(question, passage) for passage in passages])):
            total = _log_total(span_scores, nothing)
            by_place |= {(i, s.start, s.end): s.logit - total for s in top_spans(span_scores, rows, spans)}
        return by_place

    def _readout(self, spans: torch.Tensor, nothing: torch.Tensor, rows: TokenRows, passage: Passage, limit: int) -> Readout:
        null, total = float(nothing.min()), _log_total(spans, nothing)
        candidates = [to_candidate(s, passage, math.exp(s.logit - total)) for s in top_spans(spans, rows, limit)]
        return Readout(passage, tuple(candidates), math.exp(null - total))


def _log_total(spans: torch.Tensor, nothing: torch.Tensor) -> float:
    """The log of the softmax's denominator: all spans of a passage's windows, plus abstention in the window where it is least
    likely."""
    return float(torch.logsumexp(torch.cat([spans.reshape(-1), nothing.min()[None]]), 0))


@loaded_once(2)
def _loaded(folder: Path, weights: str, device: str) -> PassageReader:
    return PassageReader(shared_network(folder, weights, device), device)


def find_reader(name: str = "default") -> tuple[Path, str]:
    """(folder, digest of its weights); loads nothing.  Raises CheckpointError."""
    folder = find_checkpoint(name, "reader")
    check_abstains(folder)
    return folder, digest(folder)


def load_reader(name: str = "default", device: str = "auto") -> tuple[PassageReader, str]:
    """(reader, digest of its weights).  Loaded once, and again when the folder's weights change.  Raises CheckpointError."""
    folder, weights = find_reader(name)
    return _loaded(folder, weights, device), weights
