"""Training the per-passage reader g(a | q, c), which can abstain.

AmbigPrompt's Eq. 8 needs it, and so do one-pass reading and the round trip.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from core.errors import InputError
from core.models.scheduling.device import bf16_autocast
from core.models.span.model import collate, load_tokenizer
from core.models.span.network import RowBatch, SpanConfig
from core.models.span.rows import TokenRows, label_spans, passage_rows
from core.text import normalize_answer
from core.training.data.chunks import like_with_like
from core.training.data.examples import ReadingRow

CHUNK_EXAMPLES = 1024  # examples tokenised together and sorted by length


def marginal_loss(spans: Tensor, nothing: Tensor, gold: Tensor, want_nothing: Tensor, weight: Tensor) -> Tensor:
    """-log of the summed probability of all gold spans, or of "no answer", in one softmax per group; scores are -inf where no span is allowed.

    spans (G, M): scores of a group's spans; nothing (G,): scores of "no answer"; gold (G, M) and want_nothing (G,):
    boolean; weight (G,): of each group.  A group is a question for the answering model, and a passage for the
    per-passage reader.  Source: Sun et al. 2023, Eq. 9 and 10; the sum keeps the answer set unordered.
    """
    everything = torch.cat([spans, nothing[:, None]], dim=1)
    target = torch.cat([gold, want_nothing[:, None]], dim=1)
    total = torch.logsumexp(everything, dim=1)
    lowest = torch.finfo(everything.dtype).min
    hit = torch.logsumexp(everything.masked_fill(~target, lowest), dim=1)
    loss = total - hit
    return (loss * weight).sum() / weight.sum().clamp(min=1e-6)


class ReaderTask:
    """A core.training.trainer.Task.  `batch_tokens`: tokens of all rows of a batch, padding included.

    Raises InputError without examples.
    """

    def __init__(
        self, examples: Sequence[ReadingRow], held_out: Sequence[ReadingRow], config: SpanConfig, batch_tokens: int = 4096
    ) -> None:
        self.examples, self.held_out, self.config, self.batch_tokens = list(examples), list(held_out), config, batch_tokens
        if not self.examples:
            raise InputError("no training row is left; check --reading and --limit")
        self.tokenizer = load_tokenizer(config.base)

    def _rows(self, examples: Sequence[ReadingRow]) -> list[TokenRows]:
        return [passage_rows(self.tokenizer, e.question, [e.passage], self.config.max_tokens).first(1) for e in examples]

    def batch(self, examples: Sequence[ReadingRow]) -> tuple[RowBatch, Tensor, Tensor, Tensor]:
        """(rows, gold spans, rows to abstain on, weights)."""
        parts = self._rows(examples)
        batch = collate(parts, None)
        length = batch.input_ids.shape[1]
        window = min(self.config.max_answer_tokens, length)
        gold = torch.zeros(len(parts), length, window, dtype=torch.bool)
        for i, (rows, example) in enumerate(zip(parts, examples)):
            for _, s, e in label_spans(rows, [example.passage[1]], example.answers, window):
                gold[i, s, e - s] = True
        silent = torch.tensor([not example.answers for example in examples])
        # an answer that is cut off, or longer than a span may be, teaches neither to read nor to abstain
        weight = (gold.flatten(1).any(1) | silent).float()
        return batch, gold, silent, weight

    def groups(self, seed: int, chunk: int) -> list[list[ReadingRow]]:
        """The rows of each batch of a chunk: rows of similar length together, batches in random order."""

        def characters(e: ReadingRow) -> int:
            return len(e.question) + len(e.passage[0]) + len(e.passage[1])

        def fits(group: list[ReadingRow], e: ReadingRow) -> bool:
            tokens = min(self.config.max_tokens, 8 + characters(e) // 4)
            return tokens * (len(group) + 1) <= self.batch_tokens

        return like_with_like(self.examples, CHUNK_EXAMPLES, seed, chunk, characters, fits)

    def loss(self, network: nn.Module, batch: Any, device: torch.device) -> Tensor:
        """-log of the summed probability of the gold spans, or of abstaining, a mean over rows."""
        rows, gold, silent, weight = batch
        spans, nothing = network(rows.to(device))
        return marginal_loss(
            spans.flatten(0, 1).flatten(1), nothing.flatten(), gold.flatten(1).to(device), silent.to(device), weight.to(device)
        )

    @torch.inference_mode()
    def evaluate(self, network: nn.Module) -> dict[str, float]:
        """Exact match on held-out rows that have an answer; the share of the other rows on which the reader abstains.

        {} without held-out data.
        """
        if not self.held_out:
            return {}
        matches, abstentions = list[bool](), list[bool]()
        device = next(network.parameters()).device
        held_out = sorted(self.held_out, key=lambda e: len(e.passage[1]))
        for i in range(0, len(held_out), 32):
            group = held_out[i : i + 32]
            parts = self._rows(group)
            with bf16_autocast(device):
                spans, nothing = network(collate(parts, None).to(device))
            for example, rows, scores, null in zip(group, parts, spans[:, 0].float(), nothing[:, 0].float()):
                best = int(scores.flatten().argmax())
                s, w = divmod(best, scores.shape[1])
                if not example.answers:
                    abstentions.append(bool(null > scores.flatten()[best]))
                    continue
                text = example.passage[1][rows.offsets[0][s][0] : rows.offsets[0][s + w][1]]
                matches.append(normalize_answer(text) in map(normalize_answer, example.answers))
        exact, abstains = (sum(values) / max(1, len(values)) for values in (matches, abstentions))
        return {"exact_match": exact, "abstains": abstains, "figure": exact + 0.5 * abstains}
