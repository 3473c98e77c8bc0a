"""Training of question disambiguation: (question, target answer, other answers, passages) -> disambiguated question.

Source: Min et al. 2020, section 5.  AmbigNQ has 14,082 pairs and no passages.  A pair's passages are therefore real
ones into which its statement was set (core.training.data.statements), so that they contain what distinguishes the meanings.
Practice questions bring their own passages.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from core.errors import InputError
from core.metrics.questions import edit_f1, normal_question
from core.models.seq2seq.fid import FidAnswerer
from core.models.seq2seq.rewriter import MAX_TOKENS, Seq2SeqRewriter, rewriting_job
from core.settings import Settings
from core.text import PASSAGE_WORDS, find_spans
from core.training.answerer import Item, occurring
from core.training.data import mixtures
from core.training.data.chunks import draw
from core.training.data.examples import MultiExample, crop
from core.training.fid import FidTask
from core.training.held_out import figures_of
from core.training.options import DisambiguationOptions
from core.training.runs import TrainingParts, miner, say
from core.training.seq2seq import network_of, saver
from core.types import Passage

HELD_OUT = 40  # examples that are rewritten at each evaluation


def usable(e: MultiExample) -> bool:
    """True if the example has a disambiguated question for each of several answers."""
    questions = e.extra.get("questions", ())
    return len(e.gold) > 1 and len(questions) == len(e.gold) and all(q.strip() for q in questions)


def answer_names(e: MultiExample, rng: random.Random | None = None) -> list[str]:
    """One name of each answer, one that occurs in a passage where possible."""
    out = []
    for names in e.gold:
        present = occurring(names, e.passages) or names
        out.append(rng.choice(present) if rng else present[0])
    return out


def rewriting_item(e: MultiExample, size: int, rng: random.Random) -> tuple[Item, str]:
    """One answer of the example as the target, over at most `size` passages in random order.

    Passages that hold any answer are taken first.
    """
    names = answer_names(e, rng)
    i = rng.randrange(len(names))
    others = names[:i] + names[i + 1 :]
    rng.shuffle(others)
    order = list(range(len(e.passages)))
    rng.shuffle(order)
    order.sort(
        key=lambda k: (not find_spans(e.passages[k][1], names[i]), not any(find_spans(e.passages[k][1], n) for n in others))
    )
    selected = order[:size]
    rng.shuffle(selected)
    passages = tuple((e.passages[k][0], crop(e.passages[k][1], tuple(names), PASSAGE_WORDS, rng)) for k in selected)
    question, rewriter_passages, previous = rewriting_job(e.question, names[i], others, passages)
    return Item(question, tuple(rewriter_passages), tuple(previous), ()), e.extra["questions"][i].split("|")[0].strip()


class DisambiguationTask(FidTask):
    """A core.training.trainer.TrainingTask.  Batches, loss and network are those of FidTask; the target is a question."""

    def __init__(self, sources: Any, held_out: Any, tokenizer: Any, config: Any, **options: Any) -> None:
        sources = [([e for e in examples if usable(e)], share) for examples, share in sources]
        if not any(examples for examples, _ in sources):
            raise InputError(
                "no training question has several answers with a disambiguated question each; check --ambignq and --annotated"
            )
        held_out = [(name, [e for e in examples if usable(e)][:HELD_OUT]) for name, examples in held_out]
        config = replace(config, max_answer_tokens=max(config.max_answer_tokens, MAX_TOKENS))
        super().__init__(sources, held_out, tokenizer, config, **options)

    def items(self, seed: int, chunk: int) -> list[tuple[Item, str]]:
        """The (item, target question) pairs of a chunk: the same for the same seed and chunk."""
        rng = random.Random(f"{seed}-{chunk}")
        return [rewriting_item(e, self.size, rng) for e in draw(self.sources, seed, chunk)]

    @torch.inference_mode()
    def evaluate(self, network: nn.Module) -> dict[str, float]:
        """EDIT-F1 of greedy rewriting with the right answers given, by held-out set; their mean is the figure.

        {} without held-out data.
        """
        device = str(next(network.parameters()).device)
        rewriter = Seq2SeqRewriter(FidAnswerer(network, self.tokenizer, device), 1)
        return figures_of(self.held_out, lambda examples: rewriting_edit_f1(rewriter, examples, self.size))


def rewriting_edit_f1(rewriter: Any, examples: Sequence[MultiExample], size: int = 10) -> float:
    """The mean EDIT-F1 over question-answer pairs, from 0 to 1, given the right answers.

    `rewriter`: has `rewrite_many`, as core.disambiguation.clarifiers.Rewriter.
    """
    jobs, gold = [], []
    for e in examples:
        names = answer_names(e)
        passages = [Passage(str(j), *p) for j, p in enumerate(e.passages[:size])]
        for i, question in enumerate(e.extra["questions"]):
            jobs.append((e.question, names[i], names[:i] + names[i + 1 :], passages))
            gold.append((e.question, [normal_question(v) for v in question.split("|") if v.strip()]))
    total = 0.0
    for candidates, (prompt, references) in zip(rewriter.rewrite_many(jobs), gold):
        rewritten = candidates[0] if candidates else prompt
        total += edit_f1(normal_question(rewritten), references, normal_question(prompt))
    return total / max(1, len(jobs))


def make(options: DisambiguationOptions, settings: Settings) -> TrainingParts:
    """Builds the task.  Raises InputError, CheckpointError."""
    network, tokenizer = network_of(options, "question")
    splits = [(folder.name, mixtures.annotated_examples(folder, held_out=0.2)) for folder in options.annotated]
    annotated = [e for _, (training, _) in splits for e in training]
    index = miner(options, settings, mixtures.load_reading(options.reading, seed=options.seed))
    statements = mixtures.statement_examples(options.ambignq, index, options.context, options.seed) if options.ambignq else []
    say(f"disambiguating {len(annotated)} annotated questions and {len(statements)} of AmbigNQ")
    task = DisambiguationTask(
        [(annotated, 0.5), (statements, 0.5)],
        [(name, dev) for name, (_, dev) in splits],
        tokenizer,
        network.config,
        size=options.context,
        batch_tokens=options.batch_tokens,
        collate=network.collate,
        repeat=options.repeat,
    )
    return network, task, saver(network, tokenizer)
