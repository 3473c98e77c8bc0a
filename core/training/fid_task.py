"""Training FidAnswerer in AmbigPrompt's two stages.

Post-pretraining (Eq. 8-9): the target is the labelled answer, previous answers are sampled from pseudo answers.  Tuning (Eq. 10): the answers are
shuffled, the first t are previous, the next is the target; with probability lambda all are previous and the target is [EOI].
The loss is -log of the probability of the whole target, its end of sequence included.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from core.errors import InputError
from core.models.fid import FidAnswerer, Generation
from core.models.fid_network import IGNORED, FidBatch, FidConfig, FidNetwork, collate_fid
from core.models.rows import pad
from core.text import find_spans
from core.training.answerer_task import Item, pseudo_item, sample_item
from core.training.chunks import draw, stream
from core.training.examples import MultiExample
from core.training.held_out import run_f1
from core.types import EOI

FidItems = tuple[FidBatch, Tensor]


def target_text(item: Item, rng: random.Random) -> str:
    """One answer that is not given yet, under a name that stands in the passages where it has one; [EOI] when none is left."""
    if not item.targets:
        return EOI
    aliases, where = rng.choice(item.targets)
    texts = [text for j, (_, text) in enumerate(item.passages) if where is None or j in where]
    standing = [a for a in aliases if any(find_spans(text, a) for text in texts)]
    return rng.choice(standing) if standing else aliases[0]


class FidTask:
    """A core.training.trainer.Task.  `sources`: (examples, share) pairs; a chunk takes its share from each.

    `held_out`: (name, questions) judged by F1 of whole runs.  `size`: passages a question at most.  `eoi_share`: lambda.  `batch_tokens`:
    tokens of all rows of a batch, padding included.  The trainer's `head_lr` holds for all weights here: nothing is a new head.  `tokenizer`: one that knows [EOI] (core.models.fid.make_fid adds it).
    """

    def __init__(
        self,
        sources: Sequence[tuple[Sequence[MultiExample], float]],
        held_out: Sequence[tuple[str, Sequence[MultiExample]]],
        tokenizer: Any,
        config: FidConfig,
        stage: Literal["pretrain", "tune"] = "tune",
        size: int = 10,
        eoi_share: float = 0.2,
        batch_tokens: int = 8192,
        max_answers: int = 8,
    ) -> None:
        self.sources = [(list(examples), share) for examples, share in sources if examples]
        if not self.sources:
            raise InputError("there is no training question; check the training files")
        if not 0.0 <= eoi_share <= 1.0:
            raise InputError(f"the share of [EOI] targets is {eoi_share}; it must be 0..1")
        if EOI not in tokenizer.get_vocab():
            raise InputError(f"the tokenizer does not know {EOI}; make the network with core.models.fid.make_fid first")
        self.held_out, self.tokenizer, self.config, self.stage = list(held_out), tokenizer, config, stage
        self.size, self.eoi_share, self.batch_tokens, self.max_answers = size, eoi_share, batch_tokens, max_answers

    def items(self, seed: int, chunk: int) -> list[tuple[Item, str]]:
        """The (item, target) pairs of a chunk: the same for the same seed and chunk."""
        rng = random.Random(f"{seed}-{chunk}")
        out: list[tuple[Item, str]] = []
        for example in draw(self.sources, seed, chunk):
            if self.stage == "pretrain":
                item: Item | None = pseudo_item(example, self.size, rng)
            else:
                item = sample_item(example, self.size, self.eoi_share, rng)
            if item is not None:
                out.append((item, target_text(item, rng)))
        return out

    def batch(self, pairs: Sequence[tuple[Item, str]]) -> FidItems:
        """(rows, labels): labels (B, T) hold target and end of sequence, IGNORED after them."""
        rows = collate_fid(self.tokenizer, self.config, [(item.question, item.passages, item.previous) for item, _ in pairs])
        end = int(self.tokenizer.eos_token_id)
        limit = self.config.max_answer_tokens - 1
        labels = [[*self.tokenizer(t, add_special_tokens=False)["input_ids"][:limit], end] for _, t in pairs]
        return rows, pad(labels, max(map(len, labels)), IGNORED)

    def _groups(self, seed: int, chunk: int) -> list[list[tuple[Item, str]]]:
        """The pairs of each batch of a chunk: like with like, in a random order."""
        pairs = self.items(seed, chunk)
        # a passage's words say enough of its tokens to keep like with like; the exact sizes come with the batch
        size = [
            (1 + len(i.passages)) * min(self.config.max_tokens, 16 + max(len(t) + len(p) for t, p in i.passages) // 4)
            for i, _ in pairs
        ]
        groups: list[list[int]] = []
        for k in sorted(range(len(pairs)), key=lambda k: size[k]):
            if not groups or size[k] * (len(groups[-1]) + 1) > self.batch_tokens:
                groups.append([])
            groups[-1].append(k)
        random.Random(f"{seed}-{chunk}-order").shuffle(groups)
        return [[pairs[k] for k in group] for group in groups]

    def batches(self, seed: int, start: int) -> Iterator[tuple[int, FidItems]]:
        """Raises InputError when no answer stands in any passage."""
        for position, pairs in stream(lambda chunk: self._groups(seed, chunk), start):
            yield position, self.batch(pairs)

    def loss(self, network: nn.Module, batch: FidItems, device: torch.device) -> Tensor:
        """Mean over questions of -log p(target)."""
        rows, labels = batch[0].to(device), batch[1].to(device)
        logits = network(rows, labels).float()  # (B, T, vocabulary)
        each = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="none")
        return each.view_as(labels).sum(1).mean()

    @torch.inference_mode()
    def evaluate(self, network: nn.Module) -> dict[str, float]:
        """F1 answer of whole runs on each held-out set; their mean is the figure.  {} when nothing is held out."""
        assert isinstance(network, FidNetwork)
        device = str(next(network.parameters()).device)
        answerer = FidAnswerer(network, self.tokenizer, device, Generation())
        figures = {name: run_f1(answerer, examples, self.max_answers, batch=32) for name, examples in self.held_out if examples}
        network.train()
        return {**figures, "figure": sum(figures.values()) / len(figures)} if figures else {}
