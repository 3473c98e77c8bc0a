"""Training the answering model in AmbigPrompt's two stages (Sun et al. 2023).

Post-pretraining (Eq. 8-9): single-answer questions.  Previous answers are sampled from a per-passage reader's pseudo
answers; the target is the labelled answer, or [EOI] where all are given.  Tuning (Eq. 10): multi-answer questions.  A random subset of the answers is
previous and every other answer is a target (`one_target`: one of them at random, as in the paper); with probability lambda all are previous and
the target is [EOI].  The loss is -log of the summed probability of all targets, so their order does not matter.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from core import disk
from core.datasets.excluded import excluded_questions
from core.errors import InputError
from core.models.scheduling.device import bf16_autocast
from core.models.span.answerer import SpanAnswerer
from core.models.span.model import collate, load_tokenizer
from core.models.span.network import SpanConfig, SpanNetwork
from core.models.span.rows import label_spans, passage_rows, prompt_row
from core.settings import Settings
from core.text import PASSAGE_WORDS, find_spans, shares_words
from core.training.data import mixtures
from core.training.data.absent import absent_sources, without_support
from core.training.data.chunks import draw, grouped
from core.training.data.composed import conflicting_examples, namesake_examples
from core.training.data.examples import MultiExample, ReadingExample, Titled, crop
from core.training.data.mining import Miner
from core.training.held_out import figures_of, run_f1
from core.training.options import Stepwise
from core.training.reader import ReaderTask, marginal_loss
from core.training.runs import miner, say
from core.types import Passage

if TYPE_CHECKING:
    from core.models.span.reader import PassageReader

# chunks of the answering model in each chunk of a joint stage: about three tokens of its rows to two of the reader's
ANSWER_CHUNKS = 2
HELD_OUT = 40  # questions of each held-out set that are run to their end at each evaluation
PSEUDO_PART = 200  # questions that a reader answers at a time
# (parts, digest of the reader) -> the `pseudo_answers` of each part, in order, from elsewhere than this process
Elsewhere = Callable[[Sequence[Sequence[MultiExample]], str], Iterable[list[list[str]]]]


@dataclass(frozen=True)
class Item:
    """One training step: the targets are the answers that are not in `previous`; if there is none, the target is [EOI].

    `avoid`: answers that are only known to be wrong.  Every other span is then a target, and [EOI] gets no gradient.
    """

    question: str
    passages: tuple[Titled, ...]
    previous: tuple[str, ...]
    # aliases, and the passages in which they count (None: all)
    targets: tuple[tuple[tuple[str, ...], frozenset[int] | None], ...]
    avoid: tuple[str, ...] = ()

    def estimated_tokens(self, max_tokens: int, special: int) -> int:
        """The tokens of all rows, each padded to the longest: about one per four characters, and `special` ones in each row."""
        longest = max(len(title) + len(text) for title, text in self.passages)
        return (1 + len(self.passages)) * min(max_tokens, special + longest // 4)


def occurring(aliases: Sequence[str], passages: Sequence[Titled]) -> list[str]:
    """The aliases that are in the text of at least one passage."""
    return [a for a in aliases if any(find_spans(text, a) for _, text in passages)]


def sample_item(e: MultiExample, size: int, eoi_share: float, rng: random.Random, one_target: bool = False) -> Item | None:
    """Up to `size` of the example's passages, the answers in them, and a random part of those as previous answers.

    `eoi_share`: lambda, the probability that all are previous.  `one_target`: the target is one remaining answer, not all of them.  None if the passages hold no answer of the example.
    """
    supporting = len(e.extra["supporting"]) if "supporting" in e.extra else None
    order = list(range(len(e.passages)))
    rng.shuffle(order)
    if supporting is not None and rng.random() < 0.7:  # mostly keep the full set, as from a retriever
        order.sort(key=lambda i: i >= supporting)
    order = _with_a_wrong_one(e, order, size, 0 if supporting is None else supporting)
    order = sorted(order, key=lambda _: rng.random())
    passages = []
    has_only_wrong = bool(e.extra.get("negatives_only"))
    for i in order:
        title, text = e.passages[i]
        answers = [a for names in ((e.bad,) if has_only_wrong else e.gold) for a in names if find_spans(text, a)]
        passages.append((title, crop(text, tuple(answers), PASSAGE_WORDS, rng)))
    if has_only_wrong:  # no previous answers: whether one of these follows a right one is not known
        avoid = tuple(occurring(e.bad, passages))
        return Item(e.question, tuple(passages), (), (), avoid) if avoid else None
    # where the supporting passages are known, a one-word answer ("3", "Paris") counts in them only
    supporting_indexes = frozenset(j for j, i in enumerate(order) if supporting is not None and i < supporting)
    gold = []
    for names in e.gold:
        indexes = supporting_indexes if supporting is not None and all(" " not in n for n in names) else None
        present = occurring(names, [p for j, p in enumerate(passages) if indexes is None or j in indexes])
        if present:
            gold.append((names, present, indexes))
    if not gold:
        return None if e.gold else Item(e.question, tuple(passages), (), ())
    rng.shuffle(gold)
    n_previous = len(gold) if rng.random() < eoi_share else rng.randrange(len(gold))
    previous = [rng.choice(present) for _, present, _ in gold[:n_previous]]
    wrong = [b for b in (*e.bad, *e.extra.get("pseudo", ())) if not shares_words(b, [a for names, _, _ in gold for a in names])]
    if wrong and rng.random() < 0.2:  # previous answers may be wrong, and the rest must still be found
        previous.insert(rng.randint(0, len(previous)), rng.choice(wrong))
    remaining = gold[n_previous : n_previous + 1] if one_target else gold[n_previous:]
    return Item(e.question, tuple(passages), tuple(previous), tuple((n, indexes) for n, _, indexes in remaining))


def _with_a_wrong_one(e: MultiExample, order: list[int], size: int, supporting: int) -> list[int]:
    """The first `size` passages of an order; one of them has an answer that was judged wrong, if any passage has.

    Where none has, the last one is exchanged for such a passage: its spans are then hard negatives in the loss's
    softmax. A supporting passage is never exchanged.
    """
    selected = order[:size]
    wrong = [i for i in order[size:] if any(find_spans(e.passages[i][1], b) for b in e.bad)] if e.bad else []
    if wrong and selected[-1] >= supporting and not any(find_spans(e.passages[i][1], b) for i in selected for b in e.bad):
        selected[-1] = wrong[0]
    return selected


def pseudo_item(e: MultiExample, size: int, eoi_share: float, rng: random.Random) -> Item:
    """Eq. 8-9.  `extra["pseudo"]` of the example holds the reader's answers to its passages.

    With the probability `eoi_share` all of them and the labelled answer are previous, and the target is [EOI]: so a model that sees single-answer
    data only learns to stop, too (in the paper only tuning teaches it).
    """
    pool = [a for a in e.extra.get("pseudo", ()) if not shares_words(a, e.gold[0])]
    targets: tuple[tuple[tuple[str, ...], None], ...] = ()
    if rng.random() < eoi_share:
        pool = [*dict.fromkeys(pool), e.gold[0][0]]
        count = len(pool)
    else:
        count = sum(rng.random() < 0.5 for _ in pool)  # "t is sampled from a Bernoulli distribution"
        targets = ((e.gold[0], None),)
    passages = list(e.passages[:size])
    rng.shuffle(passages)
    return Item(e.question, tuple(passages), tuple(rng.sample(pool, count)), targets)


class AnswererTask:
    """A core.training.trainer.Task.  `sources`: (examples, share) pairs; each chunk takes its share from each source.

    `held_out`: (name, questions) judged by F1 of complete runs.  `size`: passages per question.  `eoi_share`: lambda.
    `batch_tokens`: tokens of all rows of a batch, padding included.
    """

    def __init__(
        self,
        sources: Sequence[tuple[Sequence[MultiExample], float]],
        held_out: Sequence[tuple[str, Sequence[MultiExample]]],
        config: SpanConfig,
        stage: str,
        size: int,
        eoi_share: float,
        batch_tokens: int,
        one_target: bool = False,
    ) -> None:
        self.sources = [(list(examples), share) for examples, share in sources if examples]
        if not self.sources:
            raise InputError(
                "no training question has an answer in its passages; check --multi, --annotated, --ambignq and --reading"
            )
        self.held_out, self.config, self.stage, self.size = list(held_out), config, stage, size
        self.eoi_share, self.batch_tokens = eoi_share, batch_tokens
        self.tokenizer, self.one_target = load_tokenizer(config.base), one_target

    def _items(self, seed: int, chunk: int) -> list[Item]:
        rng = random.Random(f"{seed}-{chunk}")
        make_item = pseudo_item if self.stage == "pretrain" else partial(sample_item, one_target=self.one_target)
        items = (
            make_item(example, self.size if rng.random() < 0.6 else rng.randint(2, self.size), self.eoi_share, rng)
            for example in draw(self.sources, seed, chunk)
        )
        return [item for item in items if item is not None]

    def batch(self, items: Sequence[Item]) -> Any:
        rows_of = []
        for item in items:
            rows = passage_rows(self.tokenizer, item.question, item.passages, self.config.max_tokens)
            rows_of.append(rows.first(self.size + 1))
        prompts = [prompt_row(self.tokenizer, item.question, item.previous, self.config.max_prompt_tokens) for item in items]
        batch = collate(rows_of, prompts)
        batch.steps = torch.tensor([len(item.previous) for item in items])
        length = batch.input_ids.shape[1]
        window = min(self.config.max_answer_tokens, length)
        gold = torch.zeros(len(items), batch.rows - 1, length, window, dtype=torch.bool)
        unknown = torch.zeros_like(gold)  # parts of what is to be avoided, and what holds it: neither wrong nor wanted
        for i, (item, rows) in enumerate(zip(items, rows_of)):
            texts = [text for _, text in item.passages]
            for aliases, indexes in item.targets:
                for r, s, e in label_spans(rows, texts, aliases, window):
                    if indexes is None or rows.passage[r] in indexes:
                        gold[i, r, s, e - s] = True
            for r, s, e in label_spans(rows, texts, item.avoid, window) if item.avoid else ():
                gold[i, r, s, e - s] = True
                for first in range(max(0, s - window + 1), e + 1):
                    unknown[i, r, first, max(0, s - first) : min(window, length - first)] = True
        want_eoi = torch.tensor([not item.targets and not item.avoid for item in items])
        # an answer cut off by a window leaves nothing to learn from
        weight = (gold.flatten(1).any(1) | want_eoi).float()
        return batch, gold, want_eoi, weight, torch.tensor([bool(item.avoid) for item in items]), unknown & ~gold

    def groups(self, seed: int, chunk: int) -> list[list[Item]]:
        """The items of each batch of a chunk: items of similar size together, batches in random order."""

        def fits(group: list[Item], item: Item) -> bool:
            largest = max(i.estimated_tokens(self.config.max_tokens, 12) for i in [*group, item])
            return largest * (len(group) + 1) <= self.batch_tokens

        items = sorted(
            self._items(seed, chunk), key=lambda i: (max(len(text) for _, text in i.passages) // 64, len(i.passages))
        )
        return grouped(items, fits, f"{seed}-{chunk}-order")

    def loss(self, network: nn.Module, batch: Any, device: torch.device) -> Tensor:
        """-log of the summed probability of all targets, a mean over the batch's questions."""
        rows, gold, want_eoi, weight, avoiding, unknown = batch
        spans, eoi = network(rows.to(device))
        spans, gold, weight = spans.flatten(1), gold.flatten(1).to(device), weight.to(device)
        if avoiding.any():
            avoiding = avoiding.to(device)
            spans = spans.masked_fill(unknown.flatten(1).to(device), float("-inf"))
            gold = gold ^ avoiding[:, None]  # every span but the wrong ones
            weight = weight * ~(avoiding & ~(gold & spans.isfinite()).any(1))  # there may be no other
            # the softmax is over spans then: whether to stop is not asked, so [EOI] gets no gradient
            eoi = eoi.masked_fill(avoiding, float("-inf"))
        return marginal_loss(spans, eoi, gold, want_eoi.to(device), weight)

    @torch.inference_mode()
    def evaluate(self, network: nn.Module) -> dict[str, float]:
        """F1 answer of complete runs (without the retriever's scores) on each held-out set; their mean is the figure.

        {} without held-out data.
        """
        assert isinstance(network, SpanNetwork)
        answerer = SpanAnswerer(network, str(next(network.parameters()).device))
        with bf16_autocast(answerer.device):  # a held-out figure, not a result: speed counts
            return figures_of(self.held_out, lambda examples: run_f1(answerer, examples))


class JointTask:
    """A core.training.trainer.Task: one network answers with prompts and reads single passages, in alternating batches.

    The per-passage reader then costs no second network, and keeps what it has learned while the answerer is trained.
    """

    def __init__(self, answerer: AnswererTask, reader: ReaderTask) -> None:
        self.tasks: dict[str, AnswererTask | ReaderTask] = {"answer": answerer, "read": reader}

    def groups(self, seed: int, chunk: int) -> list[tuple[str, Any]]:
        """(name of the task, its group) of each batch."""
        answer_groups = [g for n in range(ANSWER_CHUNKS) for g in self.tasks["answer"].groups(seed, ANSWER_CHUNKS * chunk + n)]
        groups = [("answer", g) for g in answer_groups] + [("read", g) for g in self.tasks["read"].groups(seed, chunk)]
        random.Random(f"{seed}-{chunk}-joint").shuffle(groups)
        return groups

    def batch(self, job: tuple[str, Any]) -> tuple[str, Any]:
        name, group = job
        return name, self.tasks[name].batch(group)

    def loss(self, network: nn.Module, batch: Any, device: torch.device) -> Tensor:
        name, inputs = batch
        return self.tasks[name].loss(network, inputs, device)

    def evaluate(self, network: nn.Module) -> dict[str, float]:
        """The figures of both; the figure to select by is the answerer's F1 plus half the reader's exact match."""
        answering, reading = (task.evaluate(network) for task in self.tasks.values())
        figure = answering.get("figure", 0.0) + 0.5 * reading.get("exact_match", 0.0)
        return {**answering, **reading, "figure": figure} if answering or reading else {}


def single_examples(reading: Sequence[ReadingExample], miner: Miner, context: int, limit: int, seed: int) -> list[MultiExample]:
    """Single-answer questions, each over its own passage and neighbours that lack the answer: at most `limit` examples.

    `context`: passages per question.
    """
    rng = random.Random(seed)
    usable = [e for e in reading if e.title and e.source not in ("qamr", "policyqa") and len(e.question.split()) >= 5]
    sampled = rng.sample(usable, min(limit, len(usable)))
    say(f"mining neighbours of {len(sampled)} questions")
    out = []
    for e, neighbours in zip(sampled, miner.neighbours([e.question for e in sampled], 12)):
        own_passage = (e.title, crop(e.passage, e.answers, PASSAGE_WORDS, rng))
        others = miner.without(neighbours, e.answers, [e.passage], context - 1)
        out.append(MultiExample(e.question, (own_passage, *others), (e.answers,), e.source))
    return out


def pseudo_answers(reader: PassageReader, part: Sequence[MultiExample]) -> list[list[str]]:
    """Eq. 8: one answer of the reader for each passage of each question, abstentions aside."""
    pairs = [(e.question, Passage(str(j), title, text)) for e in part for j, (title, text) in enumerate(e.passages)]
    with bf16_autocast(reader.device):  # samples, not results: speed counts
        readouts = iter(reader.read_pairs(pairs, candidates=1))
    readouts_of = [[next(readouts) for _ in e.passages] for e in part]
    return [[r.candidates[0].text for r in row if r.candidates and r.abstain_probability < 0.9] for row in readouts_of]


def add_pseudo_answers(
    examples: Sequence[MultiExample],
    reader_name: str,
    device: str,
    cache: Path,
    log: Callable[[str], None],
    elsewhere: Elsewhere | None = None,
) -> list[MultiExample]:
    """The examples with their `pseudo_answers` (Eq. 8), cached under a digest of the inputs."""
    from core.models.span.reader import find_reader, load_reader

    _, digest = find_reader(reader_name)
    key = sha256(json.dumps([digest, [[e.question, e.passages] for e in examples]]).encode()).hexdigest()[:16]
    file = cache / f"pseudo-{key}.json"
    if file.exists():
        pseudo = json.loads(file.read_text())
    else:
        pseudo = []
        parts = [examples[i : i + PSEUDO_PART] for i in range(0, len(examples), PSEUDO_PART)]
        if elsewhere:
            pseudo_parts = elsewhere(parts, digest)
        else:
            reader, _ = load_reader(reader_name, device)
            pseudo_parts = (pseudo_answers(reader, part) for part in parts)
        for part_answers in pseudo_parts:
            pseudo += part_answers
            log(f"pseudo answers {len(pseudo)} of {len(examples)}")
        disk.write_text(file, json.dumps(pseudo))  # several processes may make the same file
    return [replace(e, extra={**e.extra, "pseudo": p}) for e, p in zip(examples, pseudo)]


def build(options: Stepwise, settings: Settings, config: SpanConfig, elsewhere: Elsewhere | None = None) -> AnswererTask:
    """The task of `train answerer` from the options of the command line.  Raises InputError, FormatError, CheckpointError."""
    rng = random.Random(options.seed)
    excluded = excluded_questions(options.exclude)
    reading = excluded.without(mixtures.load_reading(options.reading, seed=options.seed))
    index = miner(options, settings, reading)
    annotated, held_out = mixtures.load_annotated(options.annotated, rng, HELD_OUT)
    annotated = excluded.without(annotated)
    held_out_absent = without_support([e for _, examples in held_out for e in examples])
    held_out.append(("absent", rng.sample(held_out_absent, min(HELD_OUT, len(held_out_absent)))))
    multi_dev = [e for e in mixtures.load_multi(options.multi_dev) if sum(len(t.split()) for _, t in e.passages) < 1200]
    held_out.append(("multi", rng.sample(multi_dev, min(HELD_OUT, len(multi_dev)))))
    if options.pretrains:
        singles = single_examples(reading, index, options.context, options.limit or 6000, options.seed)
        singles = add_pseudo_answers(singles, str(options.reader), settings.device, settings.home / "cache", say, elsewhere)
        return AnswererTask(
            [(singles, 1.0)], held_out, config, "pretrain", options.context, options.eoi_share, options.batch_tokens
        )
    limit = options.limit or 4000
    singles = single_examples(reading, index, options.context, limit, options.seed + 1)
    conflicts = conflicting_examples(reading, index, options.context, limit, options.seed)
    namesakes = namesake_examples(reading, index, options.context, limit, options.seed)
    statements = mixtures.statement_examples(options.ambignq, index, options.context, options.seed) if options.ambignq else []
    statements = excluded.without(statements)
    multi = excluded.without(mixtures.load_multi(options.multi, negatives=True))
    absent, absent_in_manuals = absent_sources(annotated, multi, options.seed)
    shares = [
        (annotated, 0.34),
        (mixtures.clarified_examples(annotated), 0.09),
        (multi, 0.16),
        (statements, 0.06),
        (mixtures.clarified_examples(statements), 0.02),
        (singles, 0.10),
        (conflicts, 0.06),
        (namesakes, 0.04),
        (absent, 0.09),
        (absent_in_manuals, 0.04),
    ]
    say("tuning on " + ", ".join(f"{len(e)} x {s}" for e, s in shares))
    return AnswererTask(
        shares, held_out, config, "tune", options.context, options.eoi_share, options.batch_tokens, options.targets == "one"
    )
