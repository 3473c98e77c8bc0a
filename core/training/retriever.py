"""Training the retriever: a question's passages against those of the batch's other questions and against hard negatives.

Source: Karpukhin et al. 2020 (DPR), section 3: in-batch negatives, and hard negatives by BM25; Sun et al. 2023,
appendix C.  If only the question's side is trained, the passages already have their vectors; random passages of the corpus then cost nothing and are
negatives too.  A question with several passages learns one of them at a time; the others do not count as negatives.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from core.disk import plain_or_gz
from core.engine import Engine
from core.errors import InputError
from core.metrics.retrieval import mrecall_at_k, recall_at_k
from core.models.encoders.base import base_tokenizer, load_base
from core.models.encoders.retriever import KIND, RetrieverConfig, find_retriever
from core.models.encoders.retriever_network import RetrieverNetwork, load_retriever, torch_ids
from core.models.encoders.sentence_encoder import passage_text
from core.models.loading.files import save_weights
from core.models.scheduling.device import bf16_autocast
from core.retrieval.corpus import PassageStore
from core.settings import Settings
from core.text import mentions
from core.training.data import mixtures
from core.training.data.chunks import like_with_like
from core.training.data.mining import Miner
from core.training.options import RetrieverOptions
from core.training.runs import TrainingParts, say

CHUNK_QUESTIONS = 2048  # questions sorted by length together
HARD_NEGATIVES = 4  # hard negatives a question
RANDOM_NEGATIVES = 1024  # passages of the corpora that are negatives of a whole batch, where their vectors are known
LOSS_TEMPERATURE = 0.05
K = 10  # of the held-out figures
HELD_OUT = 600  # questions, for the figures of a run
BM25_DEPTH = 30  # passages by BM25 in which those that answer are looked for
MAX_SILENT_PASSAGES = 16  # of them that have no answer, as hard negatives
MAX_POSITIVES = 3  # of them that are taken as answering: the first that hold an answer (Karpukhin et al. 2020, section 4.1)


@dataclass(frozen=True)
class RetrieverExample:
    """A question with rows of passages: those that answer it, and those that look as if they did."""

    question: str
    positives: tuple[int, ...]
    negatives: tuple[int, ...]


@dataclass(frozen=True)
class HeldOut:
    """A held-out question, the aliases of each answer, and the number of its corpus."""

    question: str
    answers: tuple[tuple[str, ...], ...]
    corpus: int


@dataclass(frozen=True)
class Corpora:
    """Passages of several corpora, one after another; corpus c has the rows `starts[c]` to `starts[c + 1]`.

    `vectors`: (n, d) of the base encoder.
    """

    texts: Sequence[str]
    vectors: np.ndarray
    starts: Sequence[int]


class RetrieverTask:
    """A core.training.trainer.TrainingTask.  `size`: questions per step.  Raises InputError without a usable example."""

    def __init__(
        self,
        examples: Sequence[RetrieverExample],
        held_out: Sequence[HeldOut],
        corpora: Corpora,
        tokenizer: Any,
        config: RetrieverConfig,
        size: int,
    ) -> None:
        self.examples, self.held_out, self.corpora = [e for e in examples if e.positives], list(held_out), corpora
        self.tokenizer, self.config, self.size = tokenizer, config, size
        if not self.examples:
            raise InputError("no training question has a passage that answers it; check --annotated, --reading and --passages")

    def _ids(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        rows = self.tokenizer(list(texts), truncation=True, max_length=self.config.max_tokens)["input_ids"]
        return torch_ids(rows, self.tokenizer.pad_token_id)

    def groups(self, seed: int, chunk: int) -> list[tuple[str, list[RetrieverExample]]]:
        """(seed of the draws, questions) of each batch."""
        groups = like_with_like(
            self.examples, CHUNK_QUESTIONS, seed, chunk, lambda e: len(e.question), lambda group, _: len(group) < self.size
        )
        return [(f"{seed}-{chunk}-{n}", group) for n, group in enumerate(groups)]

    def batch(self, keyed: tuple[str, list[RetrieverExample]]) -> Any:
        """The questions' ids and mask, the candidates' rows, the index of each question's own candidate, and (B, C) candidates that do
        not count as negatives."""
        key, group = keyed
        rng = random.Random(key)
        targets = [rng.choice(e.positives) for e in group]
        hard = [i for e in group for i in rng.sample(e.negatives, min(HARD_NEGATIVES, len(e.negatives)))]
        rows = list(dict.fromkeys([*targets, *hard]))
        if self.config.side == "question":
            random_rows = rng.sample(range(len(self.corpora.texts)), min(RANDOM_NEGATIVES, len(self.corpora.texts)))
            rows = list(dict.fromkeys([*rows, *random_rows]))
        index_of = {row: i for i, row in enumerate(rows)}
        excluded = torch.zeros(len(group), len(rows), dtype=torch.bool)
        for b, e in enumerate(group):
            for row in e.positives:
                if row in index_of and row != targets[b]:
                    excluded[b, index_of[row]] = True
        return self._ids([e.question for e in group]), rows, torch.tensor([index_of[row] for row in targets]), excluded

    def loss(self, network: nn.Module, batch: Any, device: torch.device) -> Tensor:
        """Cross-entropy of each question's own passage among all candidates."""
        (ids, mask), rows, target, excluded = batch
        question_vectors = network(ids.to(device), mask.to(device))  # (B, d)
        if self.config.side == "question":
            passages = torch.from_numpy(self.corpora.vectors[rows]).to(device)
        else:
            passage_ids, passage_mask = self._ids([self.corpora.texts[r] for r in rows])
            passages = network(passage_ids.to(device), passage_mask.to(device))
        logits = (question_vectors.float() @ passages.float().T / LOSS_TEMPERATURE).masked_fill(
            excluded.to(device), float("-inf")
        )  # (B, C)
        return nn.functional.cross_entropy(logits, target.to(device))

    @torch.inference_mode()
    def evaluate(self, network: nn.Module) -> dict[str, float]:
        """R@K and MRecall@K of the held-out questions, each over its own corpus. `multi` is over those with several
        answers."""
        if not self.held_out:
            return {}
        question_vectors = self._vectors(network, [h.question for h in self.held_out])
        vectors = self.corpora.vectors if self.config.side == "question" else self._vectors(network, self.corpora.texts)
        results: list[tuple[float, float, bool]] = []
        for h, vector in zip(self.held_out, question_vectors):
            first, end = self.corpora.starts[h.corpus], self.corpora.starts[h.corpus + 1]
            best = first + np.argsort(-(vectors[first:end] @ vector), kind="stable")[:K]
            texts = [self.corpora.texts[i] for i in best]
            results.append((recall_at_k(texts, h.answers, K), mrecall_at_k(texts, h.answers, K), len(h.answers) > 1))
        multi_recalls = [joint for _, joint, is_multi in results if is_multi]
        recall, joint = (sum(f[i] for f in results) / len(results) for i in (0, 1))
        multi = sum(multi_recalls) / max(1, len(multi_recalls))
        return {f"R@{K}": recall, f"MRecall@{K}": joint, f"MRecall@{K} multi": multi, "figure": joint + multi}

    def _vectors(self, network: nn.Module, texts: Sequence[str]) -> np.ndarray:
        device = next(network.parameters()).device
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        parts = []
        for k in range(0, len(order), 64):
            ids, mask = self._ids([texts[i] for i in order[k : k + 64]])
            with bf16_autocast(device):
                parts.append(network(ids.to(device), mask.to(device)).float().cpu().numpy())
        vectors: np.ndarray = np.concatenate(parts)[np.argsort(order)]
        return vectors


def make(options: RetrieverOptions, settings: Settings) -> TrainingParts:
    """Builds the task.  Raises InputError, FormatError, CheckpointError."""
    config = RetrieverConfig(options.base, options.side, options.pooling, options.rank)
    if options.init:
        if (folder := find_retriever(options.init)) is None:
            raise InputError(f"--init is '{options.init}', which is no trained retriever; name a folder of `train retriever`")
        tokenizer, network = load_retriever(folder)
    else:
        tokenizer, network = base_tokenizer(config.base), RetrieverNetwork(load_base(config.base), config)
    examples, held_out, corpora = _questions(options, settings, network.config.untrained)
    say(f"{len(examples)} questions, {len(held_out)} held out, {len(corpora.texts)} passages")
    task = RetrieverTask(examples, held_out, corpora, tokenizer, network.config, options.batch)

    def save(network: Any, folder: Path, record: dict[str, Any]) -> None:
        save_weights(network.trained(), folder, {"kind": KIND, "config": asdict(network.config), "about": record})

    return network, task, save


def _questions(
    options: RetrieverOptions, settings: Settings, base: str
) -> tuple[list[RetrieverExample], list[HeldOut], Corpora]:
    """(training questions, held-out ones, the corpora of both).  `base`: the encoder that made the corpora's vectors.

    Indexes each folder's corpus if necessary.
    """
    engine = Engine(replace(settings, encoder=base))
    rng = random.Random(options.seed)
    examples: list[RetrieverExample] = []
    held_out: list[HeldOut] = []
    texts: list[str] = []
    vectors: list[Any] = []
    starts = [0]

    def open_corpus(path: Path, name: str) -> PassageStore:
        engine.library.create(name, [path])
        corpus = engine.corpus(name)
        texts.extend(passage_text(p) for p in corpus.store)
        vectors.append(np.asarray(corpus.vectors, np.float32))  # those of a large corpus are float16
        starts.append(len(texts))
        return corpus.store

    for number, folder in enumerate(options.annotated):
        rows = _rows_by_id(open_corpus(plain_or_gz(folder / "passages.tsv"), folder.resolve().name), starts[-2])
        train, dev = mixtures.annotated_examples(folder, held_out=0.2, context=16)
        for e in [*train, *mixtures.clarified_examples(train)]:
            names = [name for aliases in e.gold for name in aliases]
            right: list[int] = []
            for passage_rows in (rows.get(i, []) for i in e.extra["supporting"]):
                right += [row for row in passage_rows if mentions(texts[row], names)] or passage_rows
            negatives = [
                row
                for i, p in zip(e.extra["context"], e.passages)
                if not mentions(" ".join(p), names)
                for row in rows.get(i, [])
                if row not in right
            ]
            examples.append(RetrieverExample(e.question, tuple(right), tuple(negatives)))
        held_out += [HeldOut(e.question, e.gold, number) for e in dev]
    if options.passages:
        store = open_corpus(options.passages, options.passages.name.split(".")[0])
        questions = [(e.question, e.answers) for e in mixtures.load_reading(options.reading, seed=options.seed)]
        if options.ambignq:
            questions += [
                (q, tuple(a for _, names in pairs for a in names)) for q, pairs in mixtures.load_pairs(options.ambignq)
            ]
        questions = rng.sample(questions, min(options.limit or len(questions), len(questions)))
        miner = Miner([(p.title, p.text) for p in store], settings.home / "cache")
        for (question, answers), neighbours in zip(questions, miner.neighbours([q for q, _ in questions], BM25_DEPTH)):
            answering, silent = list[int](), list[int]()
            for i in neighbours:
                (answering if mentions(" ".join(miner.passages[i]), answers) else silent).append(starts[-2] + int(i))
            examples.append(RetrieverExample(question, tuple(answering[:MAX_POSITIVES]), tuple(silent[:MAX_SILENT_PASSAGES])))
    held_out = rng.sample(held_out, min(HELD_OUT, len(held_out)))
    return examples, held_out, Corpora(texts, np.concatenate(vectors), starts)


def _rows_by_id(store: PassageStore, first: int) -> dict[str, list[int]]:
    """The rows, counted from `first`, of each passage of a file by its id there.  A long passage is stored in pieces and has
    several rows."""
    complete: dict[str, list[int]] = {}
    pieces: dict[str, list[int]] = {}
    for row, passage in enumerate(store, first):
        complete[passage.id] = [row]
        pieces.setdefault(re.sub(r"#\d+$", "", passage.id), []).append(row)
    return {**pieces, **complete}
