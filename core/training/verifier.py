"""Trains the verifier: answer spans against wrong spans that a reader would choose.

Each span is judged separately (binary cross-entropy, because a question may have several answers).  A second loss sets
a question's right spans against its wrong ones (their share of one softmax), which the reranker needs.  A third loss
teaches reading: where in a window an answer would start and end, over all its tokens, or that there is none (the
window's first token).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from core.errors import InputError
from core.models.encoders import packaged
from core.models.encoders.mpnet import load_mpnet
from core.models.encoders.word_pieces import WordPieces
from core.models.loading.files import save_weights
from core.models.loading.finding import find_verifier
from core.models.ranking.verifier import load_verifier_network
from core.models.ranking.verifier_network import VerifierConfig, VerifierNetwork, WindowBatch
from core.models.ranking.verifier_rows import collate_windows
from core.models.scheduling.device import bf16_autocast, pick_device
from core.models.span.reader import load_reader
from core.settings import Settings
from core.training.data import mixtures
from core.training.data.chunks import like_with_like, stream
from core.training.data.verifier_examples import Judged, mine, of_multi, of_reading
from core.training.objectives import marginal_loss
from core.training.options import VerifierOptions
from core.training.runs import Made, miner, say

CHUNK = 256  # questions sorted by length together
BATCH_TOKENS = 1536
READING = 0.5  # weight of the third loss
CLARIFIED = 0.5  # disambiguated questions of --annotated, for each of its prompt questions
HELD_OUT = 180  # annotated questions, for the figure


@dataclass
class JudgedBatch:
    """Windows as tensors, with the labels of their spans."""

    rows: WindowBatch
    right: Tensor  # (S,) float
    question: Tensor  # (S,) number of the question
    questions: int


class VerifierTask:
    """A core.training.trainer.Task."""

    def __init__(
        self,
        examples: Sequence[Judged],
        held_out: Sequence[Judged],
        tokenizer: Any,
        config: VerifierConfig,
        batch_tokens: int = BATCH_TOKENS,
    ) -> None:
        self.examples, self.held_out = [e for e in examples if e.windows], [e for e in held_out if e.windows]
        self.tokenizer, self.config, self.batch_tokens = tokenizer, config, batch_tokens
        if not self.examples:
            raise InputError("no question is left to train the verifier on; check --reading, --annotated and --multi")

    def _tokens(self, example: Judged) -> int:
        """The approximate number of tokens of its windows, padding included."""
        longest = max(len(w.question) + len(w.title) + len(w.text) for w in example.windows)
        return len(example.windows) * min(self.config.max_tokens, 6 + longest // 4)

    def _groups(self, seed: int, chunk: int) -> list[list[Judged]]:
        def each(e: Judged) -> float:
            return self._tokens(e) / len(e.windows)

        def fits(group: list[Judged], e: Judged) -> bool:
            return sum(map(self._tokens, [*group, e])) <= self.batch_tokens

        return like_with_like(self.examples, CHUNK, seed, chunk, each, fits)

    def _batch(self, examples: Sequence[Judged]) -> JudgedBatch:
        windows = [w for e in examples for w in e.windows]
        right = [r for e in examples for r in e.right]
        of = [q for q, e in enumerate(examples) for _ in e.windows]
        rows, kept = collate_windows(self.tokenizer, windows, self.config.max_tokens)
        return JudgedBatch(
            rows,
            torch.tensor([float(right[i][k]) for i, k in kept]),
            torch.tensor([of[i] for i, _ in kept], dtype=torch.long),
            len(examples),
        )

    def batches(self, seed: int, start: int) -> Iterator[tuple[int, Any]]:
        for position, group in stream(lambda chunk: self._groups(seed, chunk), start):
            yield position, self._batch(group)

    def loss(self, network: nn.Module, batch: Any, device: torch.device) -> Tensor:
        """The sum of the three losses, a scalar."""
        rows = batch.rows.to(device)
        logits, edges = network(rows)
        right, question = batch.right.to(device), batch.question.to(device)
        alone = nn.functional.binary_cross_entropy_with_logits(logits, right)
        return alone + _against(logits, right, question, batch.questions) + READING * _reading(edges, rows, right)

    @torch.inference_mode()
    def evaluate(self, network: nn.Module) -> dict[str, float]:
        """`top`: the share of questions with right and wrong spans whose best span is right.

        `judged`: the share of spans judged correctly at 0.5.  {} without held-out data.
        """
        if not self.held_out:
            return {}
        device = next(network.parameters()).device
        best = asked = hits = spans = 0
        for example in self.held_out:
            batch = self._batch([example])
            with bf16_autocast(device):
                logits = network(batch.rows.to(device))[0].cpu()
            spans += len(logits)
            hits += int(((logits > 0) == (batch.right > 0.5)).sum())
            if 0 < float(batch.right.sum()) < len(logits):
                asked += 1
                best += bool(batch.right[int(logits.argmax())] > 0.5)
        top = best / max(1, asked)
        return {"top": top, "judged": hits / max(1, spans), "figure": top}


def _reading(edges: Tensor, rows: WindowBatch, right: Tensor) -> Tensor:
    """The mean, over windows and both edges, of -log(share of the right places in a softmax over the tokens and
    "none").

    edges: (B, L, 2).
    """
    gold = torch.zeros(edges.shape, dtype=torch.bool, device=edges.device)
    good = right > 0.5
    gold[rows.row[good], rows.first[good], 0] = True
    gold[rows.row[good], rows.last[good], 1] = True
    gold = gold.transpose(1, 2).flatten(0, 1)  # (2B, L)
    scores = edges.masked_fill(~rows.inside[..., None], float("-inf")).transpose(1, 2).flatten(0, 1)
    return marginal_loss(scores, edges[:, 0].flatten(), gold, ~gold.any(1))


def _against(logits: Tensor, right: Tensor, question: Tensor, questions: int) -> Tensor:
    """The mean, over questions with a right span, of -log(share of the right spans in the question's softmax)."""
    top = torch.full((questions,), float("-inf"), device=logits.device).scatter_reduce(0, question, logits.detach(), "amax")
    mass = torch.exp(logits - top[question])
    zeros = torch.zeros(questions, device=logits.device)
    total, good = zeros.scatter_add(0, question, mass), zeros.scatter_add(0, question, mass * right)
    any_right = zeros.scatter_add(0, question, right) > 0
    if not bool(any_right.any()):
        return logits.sum() * 0.0
    return -torch.log(good[any_right].clamp(min=1e-9) / total[any_right]).mean()


def make(options: VerifierOptions, settings: Settings) -> Made:
    """Raises InputError, FormatError, CheckpointError."""
    config = VerifierConfig()
    base = packaged.packaged_folder(config.base)
    network = (
        load_verifier_network(find_verifier(options.init), base) if options.init else VerifierNetwork(load_mpnet(base), config)
    )
    reader, _ = load_reader(options.reader or settings.reader, settings.device)
    asked, held = _questions(options, settings)
    say(f"{len(asked)} questions, {len(held)} held out")
    with bf16_autocast(pick_device(settings.device)):  # only which wrong spans are taken depends on it
        found, kept_back = (mine(part, reader, config.window_words, say) for part in (asked, held))
    task = VerifierTask(found, kept_back, WordPieces(base), config, options.batch_tokens)

    def save(network: Any, folder: Path, about: dict[str, Any]) -> None:
        save_weights(network.trained(), folder, {"kind": "verifier", "config": asdict(network.config), "about": about})

    return network, task, save


def _questions(options: VerifierOptions, settings: Settings) -> tuple[list[Any], list[Any]]:
    """(training, held-out) questions in random order; --limit restricts the rows of --reading."""
    rng = random.Random(options.seed)
    asked: list[Any] = []
    held: list[Any] = []
    if options.reading:
        reading = mixtures.load_reading(options.reading, seed=options.seed)
        if options.limit:
            reading = rng.sample(reading, min(options.limit, len(reading)))
        index, cache = miner(options, settings, reading)
        asked += [of_reading(row) for row in mixtures.reader_rows(reading, index, cache, options.seed, say)]
    for folder in options.annotated:
        train, dev = mixtures.annotated_examples(folder, held_out=0.2)
        clarified = mixtures.clarified_examples(train)
        rng.shuffle(clarified)
        asked += [of_multi(e) for e in [*train, *clarified[: int(CLARIFIED * len(train))]]]
        held += [of_multi(e) for e in rng.sample(dev, min(HELD_OUT // len(options.annotated), len(dev)))]
    asked += [of_multi(e) for e in mixtures.load_multi(options.multi) if e.gold]
    rng.shuffle(asked)
    return asked, held
