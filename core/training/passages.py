"""Training the reranker of joint passage ranking on pools of passages that the reader has read.

Source: Min et al. 2021 (JPR), section 3.2.  A passage is right after a prefix if it has an answer that no picked
passage holds.  Each right passage is a target (the mean of their -log P).  Half of the prefixes contain only right picks, in random order (an oracle's).
The others are drawn from the reader's own choices with Gumbel noise, so that the decoder also learns to continue after a wrong pick.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from core.disk import plain_or_gz, replacing
from core.engine import Engine
from core.errors import InputError
from core.models.loading.files import save_weights
from core.models.ranking.passage_network import KIND, JointConfig, JointNetwork
from core.models.ranking.passage_scorers import ANSWERS_PER_PASSAGE, ReaderScorer, TrainedScorer
from core.models.span.reader import Readout, load_reader
from core.retrieval.rerank import Scorer, tree_decode
from core.settings import Settings
from core.text import mentions
from core.training.data.chunks import like_with_like
from core.training.data.mixtures import annotated_examples
from core.training.options import PassagesOptions
from core.training.runs import TrainingParts, say
from core.types import Candidate

CHUNK_QUESTIONS = 256
BATCH_QUESTIONS = 16  # questions of a step
PREFIXES = 4  # of a question in a step
MAX_PREFIX = 9  # passages
K = 5  # passages picked for the held-out figure
HELD_OUT = 120  # questions, for the figures of a run


@dataclass(frozen=True)
class PassagePool:
    """A question's pool as the reader read it: states (N, S) in half precision, the reader's scorer, and the indices of the
    answers that each passage contains."""

    states: np.ndarray
    reader: ReaderScorer
    holds: tuple[frozenset[int], ...]
    answers: int  # of the question; some may be in no passage of the pool
    answering: np.ndarray  # (N,) the probability that each passage answers

    @property
    def tensor(self) -> Tensor:
        """The states (N, S) in single precision."""
        return torch.from_numpy(self.states).float()


def mrecall(pool: PassagePool, indexes: Sequence[int], k: int = K) -> float:
    """MRecall@k of the passages at the first k `indexes`, 0 or 1 (Min et al. 2021, section 2)."""
    covered = frozenset[int]().union(*(pool.holds[j] for j in indexes[:k]))
    return float(len(covered) >= min(k, pool.answers))


def picks(scorer: Scorer, k: int = K) -> list[int]:
    """The indices of the passages that tree decoding picks, in order."""
    return [p.passage for p in tree_decode(scorer, k)]


class PassageSetTask:
    """A core.training.trainer.TrainingTask."""

    def __init__(self, pools: Sequence[PassagePool], held_out: Sequence[PassagePool]) -> None:
        """Raises InputError if no pool has both right and wrong passages."""
        # where every passage answers, or none does, there is nothing to choose
        self.pools = [p for p in pools if any(p.holds) and not all(p.holds)]
        self.held_out = list(held_out)
        if not self.pools:
            raise InputError("no training question has passages that answer it and passages that don't; check --annotated")

    def _prefix(self, pool: PassagePool, rng: random.Random) -> tuple[int, ...]:
        length = rng.randint(0, min(MAX_PREFIX, len(pool.holds) - 1))
        if rng.random() < 0.5:
            right: list[int] = []
            covered: set[int] = set()
            for j in rng.sample(range(len(pool.holds)), len(pool.holds)):
                if pool.holds[j] - covered:
                    right.append(j)
                    covered |= pool.holds[j]
            return tuple(right[: rng.randint(0, max(0, len(right) - 1))])
        out: tuple[int, ...] = ()
        for _ in range(length):
            scores = pool.reader.log_probabilities([out])[0]
            noisy = [s - np.log(-np.log(rng.random() or 1e-9)) if s > -np.inf else s for s in scores]
            out = (*out, int(np.argmax(noisy)))
        return out

    def groups(self, seed: int, chunk: int) -> list[tuple[str, list[PassagePool]]]:
        """(seed of the prefixes, pools) of each batch."""
        groups = like_with_like(
            self.pools, CHUNK_QUESTIONS, seed, chunk, lambda p: len(p.holds), lambda group, _: len(group) < BATCH_QUESTIONS
        )
        return [(f"{seed}-{chunk}-{n}", group) for n, group in enumerate(groups)]

    def batch(self, keyed: tuple[str, list[PassagePool]]) -> list[tuple[PassagePool, list[tuple[int, ...]]]]:
        """The pools, each with PREFIXES passages that were picked before."""
        key, group = keyed
        rng = random.Random(key)
        return [(pool, [self._prefix(pool, rng) for _ in range(PREFIXES)]) for pool in group]

    def loss(self, network: nn.Module, batch: Any, device: torch.device) -> Tensor:
        """The mean of -log P of the right passages after each prefix."""
        losses = []
        for pool, prefixes in batch:
            states, unpicked = pool.tensor.to(device), torch.tensor(pool.reader.log_worth(()), device=device)
            for prefix in prefixes:
                covered = frozenset[int]().union(*(pool.holds[j] for j in prefix))
                targets = [j for j, holds in enumerate(pool.holds) if holds - covered and j not in prefix]
                if not targets:
                    continue
                prefix_rows = torch.tensor(prefix, dtype=torch.long, device=device)
                worth = torch.tensor(pool.reader.log_worth(prefix), device=device)
                logits = network(states, unpicked, worth, prefix_rows).index_fill(0, prefix_rows, float("-inf"))
                losses.append(-torch.log_softmax(logits, 0)[targets].mean())
        if not losses:  # every answer was picked: nothing to learn, and a gradient all the same
            return torch.stack([p.sum() for p in network.parameters()]).sum() * 0.0
        return torch.stack(losses).mean()

    @torch.inference_mode()
    def evaluate(self, network: nn.Module) -> dict[str, float]:
        """MRecall@K of the held-out pools by tree decoding, over all questions and over those with several answers."""
        if not self.held_out:
            return {}
        assert isinstance(network, JointNetwork)
        values = [(mrecall(p, picks(TrainedScorer(network, p.tensor, p.reader))), p.answers > 1) for p in self.held_out]
        multi_values = [value for value, is_multi in values if is_multi]
        overall, multi = sum(value for value, _ in values) / len(values), sum(multi_values) / max(1, len(multi_values))
        return {f"MRecall@{K}": overall, f"MRecall@{K} multi": multi, "figure": overall + multi}


def make(options: PassagesOptions, settings: Settings) -> TrainingParts:
    """Builds the task.  Raises InputError, FormatError, CheckpointError."""
    reader, digest = load_reader(str(options.reader), settings.device)
    train, held_out = pools(settings, options.annotated, reader, digest, options.pool, options.limit, options.seed)
    say(f"{len(train)} questions, {len(held_out)} held out")
    network = JointNetwork(JointConfig(digest, states=3 * reader.network.head.edges.in_features))

    def save(network: Any, folder: Path, record: dict[str, Any]) -> None:
        save_weights(network.state_dict(), folder, {"kind": KIND, "config": asdict(network.config), "about": record})

    return network, PassageSetTask(train, held_out), save


def pools(
    settings: Settings,
    folders: Sequence[Path],
    reader: Any,
    digest: str,
    size: int,
    limit: int,
    seed: int,
) -> tuple[list[PassagePool], list[PassagePool]]:
    """(pools of training questions with several answers, pools of HELD_OUT held-out questions), each question over its folder's corpus."""
    engine = Engine(settings)
    out: tuple[list[PassagePool], list[PassagePool]] = ([], [])
    for folder in folders:
        name = folder.resolve().name
        engine.library.create(name, [plain_or_gz(folder / "passages.tsv")])
        train, dev = annotated_examples(folder, held_out=0.2, context=2)
        several = [e for e in train if len(e.gold) > 1]
        for examples, max_count, selected_pools in ((several, limit, out[0]), (dev, HELD_OUT, out[1])):
            count = min(-(-max_count // len(folders)) or len(examples), len(examples))
            part = random.Random(f"{seed}-{name}").sample(examples, count)
            passages_of = engine.corpus(name).search_many([e.question for e in part], size)
            for number, (e, passages) in enumerate(zip(part, passages_of), 1):
                selected_pools.append(read_pool(e, passages, reader, settings.home / "cache" / f"read-{digest}"))
                if number % 50 == 0:
                    say(f"{name}: {number} of {len(part)} pools read")
    return out


def read_pool(example: Any, passages: Any, reader: Any, cache: Path) -> PassagePool:
    """The reader's output is kept in `cache`, so that an interrupted run resumes."""
    key = json.dumps([example.question, [(p.passage.title, p.passage.text) for p in passages]])
    file = cache / f"{sha256(key.encode()).hexdigest()[:24]}.npz"
    if not file.exists():
        readouts, states = reader.read_states(example.question, [p.passage for p in passages], ANSWERS_PER_PASSAGE)
        answers = json.dumps([[(c.text, c.probability) for c in r.candidates] for r in readouts])
        with replacing(file) as draft, draft.open("wb") as out:
            answering = np.array([r.answers_probability for r in readouts])
            np.savez(out, states=states.numpy().astype(np.float16), said=np.array(answers), answering=answering)
    with np.load(file) as stored:
        states, answering, answers = stored["states"], stored["answering"], json.loads(str(stored["said"]))
    readouts = [Readout(p.passage, tuple(Candidate(*c) for c in row), 0.0) for p, row in zip(passages, answers)]
    holds = tuple(frozenset(i for i, names in enumerate(example.gold) if mentions(p.passage.text, names)) for p in passages)
    scorer = ReaderScorer(readouts, [p.similarity for p in passages])
    return PassagePool(states, scorer, holds, len(example.gold), answering)
