"""Training FidAnswerer in AmbigPrompt's two stages (Sun et al. 2023).

Post-pretraining (Eq. 8-9): the target is the labelled answer, or [EOI] where all are given; previous answers are sampled from pseudo answers.  Tuning (Eq.
10): the answers are shuffled, the first t are previous and the next is the target; with probability lambda all are previous and the target is [EOI].  The
loss is -log of the probability of the whole target, including its end of sequence.

With `target="spliced"` the same examples train the one-pass baselines (Fusion-in-Decoder, SpanSeqGen).  There are no previous answers, and the target is the
whole answer set, joined by semicolons, in the order in which the answers occur in the passages.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from core.errors import InputError
from core.metrics.answers import f1
from core.models.seq2seq.decoding import SEPARATOR, AnswerSetWriter, join_passages
from core.models.seq2seq.fid import FidAnswerer, Generation
from core.models.seq2seq.network import IGNORED, FidBatch, collate_fid
from core.models.span.rows import pad
from core.text import find_spans
from core.training.answerer import Item, occurring, pseudo_item, sample_item
from core.training.data.chunks import draw, grouped
from core.training.data.examples import MultiExample
from core.training.held_out import figures_of, passages_of, run_f1
from core.types import EOI, Passage

FidItems = tuple[FidBatch, Tensor]
# (chunk, number in it), whether its passages are joined, and its pairs
FidGroup = tuple[tuple[int, int], bool, list[tuple[Item, str]]]
Collate = Callable[..., FidBatch]  # (tokenizer, jobs, tokens of a row or None): a network's own
JOINED_TOKENS = 480  # of a row that joins all passages in training; the systems read up to 1,024


def target_text(item: Item, rng: random.Random) -> str:
    """An answer that hasn't been given yet, or [EOI] if none remains.

    The answer is written in a form that occurs in the passages, where there is one.
    """
    if not item.targets:
        return EOI
    aliases, indexes = rng.choice(item.targets)
    passages = [p for j, p in enumerate(item.passages) if indexes is None or j in indexes]
    present = occurring(aliases, passages)
    return rng.choice(present) if present else aliases[0]


def spliced_item(e: MultiExample, size: int, rng: random.Random) -> tuple[Item, str] | None:
    """A question whose target is all answers in its passages, in the order of their first occurrence.

    None if the passages hold no answer.
    """
    right = {k: v for k, v in e.extra.items() if k != "pseudo"}
    item = sample_item(replace(e, bad=(), extra=right), size, 1.0, rng)
    if item is None or not item.previous:
        return None

    def place(answer: str) -> tuple[int, int]:
        places = ((j, spans[0][0]) for j, (_, text) in enumerate(item.passages) if (spans := find_spans(text, answer)))
        return next(places, (len(item.passages), 0))

    return replace(item, previous=()), f" {SEPARATOR} ".join(sorted(item.previous, key=place))


class FidTask:
    """A core.training.trainer.TrainingTask.  `sources`: (examples, share) pairs; each chunk takes its share from each source.

    - `held_out`: (name, questions) judged by F1 of complete runs.  `size`: most passages per question.  `eoi_share`:
      lambda.
    - `batch_tokens`: tokens of all rows of a batch, padding included.
    - `tokenizer`: one that knows [EOI] (core.models.seq2seq.fid.make_fid adds it).  `collate`: default: FidNetwork's.
    - `target`: "step" (one answer or [EOI]) or "spliced".  `joined_share`: the share of batches with spliced targets whose
      passages are read as one row (SpanSeqGen).
    - `repeat`: the number of first chunks that are trained on repeatedly.  The frozen encoder's output for them stays
      in memory, so that a later pass costs only the decoder.  0: always new chunks, nothing kept.

    The trainer's `head_lr` applies to all weights of T5 or BART: none of them is a new head.
    """

    def __init__(
        self,
        sources: Sequence[tuple[Sequence[MultiExample], float]],
        held_out: Sequence[tuple[str, Sequence[MultiExample]]],
        tokenizer: Any,
        config: Any,
        stage: Literal["pretrain", "tune"] = "tune",
        size: int = 10,
        eoi_share: float = 0.2,
        batch_tokens: int = 8192,
        target: Literal["step", "spliced"] = "step",
        joined_share: float = 0.0,
        collate: Collate | None = None,
        repeat: int = 0,
    ) -> None:
        self.sources = [(list(examples), share) for examples, share in sources if examples]
        if not self.sources:
            raise InputError("there is no training question; check the training files")
        if not 0.0 <= eoi_share <= 1.0:
            raise InputError(f"the share of [EOI] targets is {eoi_share}; it must be 0..1")
        if EOI not in tokenizer.get_vocab():
            raise InputError(f"the tokenizer does not know {EOI}; make the network with core.models.seq2seq.fid.make_fid first")
        self.held_out, self.tokenizer, self.config, self.stage = list(held_out), tokenizer, config, stage
        self.size, self.eoi_share, self.batch_tokens = size, eoi_share, batch_tokens
        self.target, self.joined_share = target, joined_share if target == "spliced" else 0.0
        self.collate = collate or partial(_collate_fid, config)
        self.repeat, self.kept = repeat, dict[tuple[int, int], tuple[Tensor, Tensor]]()

    def items(self, seed: int, chunk: int) -> list[tuple[Item, str]]:
        """The (item, target) pairs of a chunk: the same for the same seed and chunk."""
        rng = random.Random(f"{seed}-{chunk}")
        out: list[tuple[Item, str]] = []
        make_item = pseudo_item if self.stage == "pretrain" else sample_item
        for example in draw(self.sources, seed, chunk):
            if self.target == "spliced":
                pair = spliced_item(example, self.size, rng)
                out += [pair] if pair is not None else []
            elif (item := make_item(example, self.size, self.eoi_share, rng)) is not None and not item.avoid:
                out.append((item, target_text(item, rng)))  # sequences cannot be trained on wrong answers
        return out

    def batch(self, group: FidGroup) -> FidItems:
        """(rows, labels): labels (B, T) hold the target and the end of sequence, followed by IGNORED."""
        key, is_joined, pairs = group
        jobs = [(i.question, _as_one_passage(i.passages) if is_joined else i.passages, i.previous) for i, _ in pairs]
        rows = self.collate(self.tokenizer, jobs, JOINED_TOKENS if is_joined else None)
        end = int(self.tokenizer.eos_token_id)
        limit = self.config.max_answer_tokens - 1
        labels = [[*self.tokenizer(t, add_special_tokens=False)["input_ids"][:limit], end] for _, t in pairs]
        return replace(rows, key=key), pad(labels, max(map(len, labels)), IGNORED)

    def groups(self, seed: int, chunk: int) -> list[FidGroup]:
        """The pairs of each batch of a chunk: pairs of similar size together, batches in random order."""
        number = chunk % self.repeat if self.repeat else chunk

        def tokens(pair: tuple[Item, str]) -> int:
            return pair[0].estimated_tokens(self.config.max_tokens, 16)

        pairs = sorted(self.items(seed, number), key=tokens)
        groups = grouped(
            pairs, lambda group, pair: tokens(pair) * (len(group) + 1) <= self.batch_tokens, f"{seed}-{number}-order"
        )
        keyed = [((number, n), group) for n, group in enumerate(groups)]
        return [(key, random.Random(f"{seed}-{key}-joined").random() < self.joined_share, group) for key, group in keyed]

    def loss(self, network: nn.Module, batch: FidItems, device: torch.device) -> Tensor:
        """The mean of -log p(target) over the batch's questions."""
        rows, labels = batch[0], batch[1].to(device)
        # every weight is reached through `network` itself: with several processes it is a wrapper that adds their gradients up
        states = (self._states(network, rows.key, rows, device),) if self.repeat and rows.key is not None else ()
        logits = network(rows.to(device), labels, *states).float()  # (B, T, vocabulary)
        each = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="none")
        return each.view_as(labels).sum(1).mean()

    def _states(self, network: Any, key: tuple[int, int], rows: FidBatch, device: torch.device) -> tuple[Tensor, Tensor]:
        if key not in self.kept:
            with torch.no_grad():
                states, mask = getattr(network, "module", network).encode(rows.to(device))
            self.kept[key] = states.to("cpu", torch.bfloat16), mask.cpu()
        states, mask = self.kept[key]
        return states.to(device).float(), mask.to(device)

    @torch.inference_mode()
    def evaluate(self, network: nn.Module) -> dict[str, float]:
        """F1 answer of complete runs on each held-out set; their mean is the figure.  {} without held-out data."""
        device = str(next(network.parameters()).device)
        answerer: Any = FidAnswerer(network, self.tokenizer, device, Generation())
        if self.target == "spliced":
            return figures_of(self.held_out, lambda examples: written_f1(AnswerSetWriter(answerer), examples))
        return figures_of(self.held_out, lambda examples: run_f1(answerer, examples, batch=32))


def _collate_fid(config: Any, tokenizer: Any, jobs: Any, max_tokens: int | None = None) -> FidBatch:
    return collate_fid(tokenizer, replace(config, max_tokens=max_tokens) if max_tokens else config, jobs)


def _as_one_passage(passages: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    passage = join_passages([Passage("", title, text) for title, text in passages])
    return [(passage.title, passage.text)]


def written_f1(writer: AnswerSetWriter, examples: Sequence[MultiExample], batch: int = 8) -> float:
    """Mean F1 answer, from 0 to 1, of one-pass answer sets over the examples' own passages."""
    parts = (examples[i : i + batch] for i in range(0, len(examples), batch))
    answer_sets = (answers for part in parts for answers in writer.write_many([(e.question, passages_of(e)) for e in part]))
    return sum(f1(e.gold, [a.text for a in answers]) for e, answers in zip(examples, answer_sets)) / max(1, len(examples))
