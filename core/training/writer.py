"""Trains the writer (core.models.language.writer): (question, answers with their passages) -> one disambiguated question for
each answer.

Source: Min et al. 2020, section 5.  The loss is the mean of -log p over the tokens of the questions.  Sources:

- practice questions, each answer with its supporting passage;
- AmbigNQ's 14,082 pairs, which have no passages: one that holds the answer is searched with the disambiguated question, and
  pairs without one are only other answers: what their questions say could not be read anywhere;
- questions about manuals, whose `conditions` say when an answer holds: the target is the question with the condition in brackets;
- questions that several answers fit equally (lists): the target is the prompt question itself.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from core.datasets.excluded import excluded_questions
from core.disambiguation.drafts import AnswerExcerpt, excerpt
from core.metrics.questions import edit_f1, normal_question
from core.models.language.decoder import DecoderNetwork, TokenRow
from core.models.language.writer import KIND, MAX_MEANINGS, QuestionWriter, WriterTokenizer, row
from core.settings import Settings
from core.text import find_spans
from core.training.data import mixtures
from core.training.data.chunks import draw
from core.training.data.examples import MultiExample, Titled
from core.training.data.mining import Miner
from core.training.decoder import DecoderTask, start
from core.training.held_out import figures_of
from core.training.options import WriterOptions
from core.training.runs import TrainingParts, miner, say

HELD_OUT = 24  # questions of a folder that are rewritten at each evaluation
NEIGHBOURS = 20  # passages among which one with the answer is searched
MIN_MEANINGS = 2
SHARES = {"annotated": 0.6, "ambignq": 0.22, "manuals": 0.08, "lists": 0.1}


@dataclass(frozen=True)
class WriterMeaning:
    """One answer of a training question.  `target`: its question, or empty if it only serves as another answer.  `passages`:
    those that support it."""

    aliases: tuple[str, ...]
    target: str
    passages: tuple[Titled, ...]


@dataclass(frozen=True)
class WriterExample:
    question: str
    meanings: tuple[WriterMeaning, ...]

    @property
    def asked(self) -> list[str]:
        """The prompt question and the questions that are written."""
        return [self.question, *(m.target for m in self.meanings if m.target)]


def meaning_of(aliases: Sequence[str], passages: Sequence[Titled], rng: random.Random | None = None) -> AnswerExcerpt:
    """An alias with the excerpt of a passage that contains it; if there is none, the first alias alone.  `rng` draws alias and
    place; None takes the first."""
    places = [(alias, title, text, span) for title, text in passages for alias in aliases for span in find_spans(text, alias)]
    if not places:
        return AnswerExcerpt(rng.choice(list(aliases)) if rng else aliases[0])
    alias, title, text, (start, end) = rng.choice(places) if rng else places[0]
    return AnswerExcerpt(alias, title, excerpt(text, start, end))


def annotated_writer_examples(examples: Sequence[MultiExample]) -> list[WriterExample]:
    """Examples from practice questions (`extra` as core.training.data.examples.read_annotated makes it)."""
    out = []
    for e in examples:
        questions = e.extra.get("questions", ())
        if len(e.gold) < MIN_MEANINGS or len(questions) != len(e.gold) or not all(q.strip() for q in questions):
            continue
        by_id = dict(zip(e.extra["supporting"], e.passages))
        pairs = zip(e.gold, questions, e.extra["supporting_of"])
        meanings = (WriterMeaning(gold, q.split("|")[0].strip(), tuple(by_id[i] for i in ids)) for gold, q, ids in pairs)
        out.append(WriterExample(e.question, tuple(meanings)))
    return out


def ambignq_examples(path: Path, index: Miner) -> list[WriterExample]:
    """Examples from AmbigNQ's answer sets.  A pair's passage is the first neighbour of its question that contains its answer,
    if any.  Raises FormatError."""
    sets = mixtures.load_pairs(path)
    questions = [question for _, pairs in sets for question, _ in pairs]
    neighbours = iter(index.neighbours(questions, NEIGHBOURS))
    out = []
    for prompt, pairs in sets:
        meanings = []
        for question, aliases in pairs:
            candidates = (index.passages[int(i)] for i in next(neighbours))
            passage = next((p for p in candidates if any(find_spans(p[1], alias) for alias in aliases)), None)
            meanings.append(WriterMeaning(aliases, question.strip() if passage else "", (passage,) if passage else ()))
        if any(m.target for m in meanings):
            out.append(WriterExample(prompt, tuple(meanings)))
    return out


def condition_examples(examples: Sequence[MultiExample]) -> list[WriterExample]:
    """Examples from questions about manuals: "default timeout" and "Redis" become "default timeout (Redis)"."""
    out = []
    for e in examples:
        conditions = e.extra.get("conditions") or ()
        if (
            len(e.gold) < MIN_MEANINGS
            or len(conditions) != len(e.gold)
            or not all(conditions)
            or len(set(conditions)) < len(conditions)
        ):
            continue
        supporting = e.passages[: len(e.extra.get("supporting", ()))]
        body, end = (e.question[:-1].rstrip(), "?") if e.question.endswith("?") else (e.question, "")
        meanings = (WriterMeaning(gold, f"{body} ({c}){end}", supporting) for gold, c in zip(e.gold, conditions))
        out.append(WriterExample(e.question, tuple(meanings)))
    return out


def list_examples(examples: Sequence[MultiExample]) -> list[WriterExample]:
    """Examples from questions whose answers are parts of one list. Nothing distinguishes them, so the question stays as it
    is."""
    return [
        WriterExample(e.question, tuple(WriterMeaning(gold, e.question, e.passages) for gold in e.gold))
        for e in examples
        if len(e.gold) >= MIN_MEANINGS
    ]


class WriterTask(DecoderTask[WriterExample]):
    """A core.training.trainer.TrainingTask.  `held_out`: (name, examples), rewritten with the right answers given."""

    def __init__(
        self,
        sources: Sequence[tuple[Sequence[WriterExample], float]],
        held_out: Sequence[tuple[str, Sequence[WriterExample]]],
        tokenizer: WriterTokenizer,
        batch_tokens: int,
    ) -> None:
        super().__init__(
            sources,
            batch_tokens,
            "no training question has several answers with a disambiguated question each; check --ambignq and --annotated",
        )
        self.held_out, self.tokenizer = list(held_out), tokenizer

    def groups(self, seed: int, chunk: int) -> list[list[TokenRow]]:
        """The rows of each batch of a chunk."""
        rng = random.Random(f"{seed}-{chunk}")
        return self.in_batches((self._row(e, rng) for e in draw(self.sources, seed, chunk)), seed, chunk)

    def _row(self, e: WriterExample, rng: random.Random) -> TokenRow:
        """The answers in random order; a quarter of the larger sets without one of them."""
        meanings = rng.sample(e.meanings, min(len(e.meanings), MAX_MEANINGS))
        if len(meanings) > MIN_MEANINGS and rng.random() < 0.25 and any(m.target for m in meanings[:-1]):
            meanings.pop()
        return row(
            self.tokenizer, e.question, [meaning_of(m.aliases, m.passages, rng) for m in meanings], [m.target for m in meanings]
        )

    @torch.inference_mode()
    def evaluate(self, network: nn.Module) -> dict[str, float]:
        """EDIT-F1 of greedy rewriting with the right answers given, by held-out set; their mean is the figure.  {} without held-out data."""
        assert isinstance(network, DecoderNetwork)
        device = str(next(network.parameters()).device)
        writer = QuestionWriter(self.tokenizer, network, device)
        return figures_of(self.held_out, lambda examples: writing_edit_f1(writer, examples))


def writing_edit_f1(writer: QuestionWriter, examples: Sequence[WriterExample]) -> float:
    """The mean EDIT-F1 over question-answer pairs, from 0 to 1, of each one's likeliest question given the right answers."""
    scores = []
    for e in examples:
        drafts = writer.write(e.question, [meaning_of(m.aliases, m.passages) for m in e.meanings], beams=1)
        for options, m in zip(drafts, e.meanings):
            text = options[0].question if options else e.question
            scores.append(edit_f1(normal_question(text), [normal_question(m.target)], normal_question(e.question)))
    return sum(scores) / max(1, len(scores))


def make(options: WriterOptions, settings: Settings) -> TrainingParts:
    """Raises InputError, FormatError, CheckpointError."""
    tokenizer, network, save = start(KIND, options, WriterTokenizer)
    rng = random.Random(options.seed)
    splits = [(folder.name, mixtures.annotated_examples(folder, held_out=0.2)) for folder in options.annotated]
    excluded = excluded_questions(options.exclude)
    annotated = annotated_writer_examples(excluded.without([e for _, (training, _) in splits for e in training]))
    held_out = [(name, annotated_writer_examples(dev)) for name, (_, dev) in splits]
    held_out = [(name, rng.sample(examples, min(HELD_OUT, len(examples)))) for name, examples in held_out]
    pairs = ambignq_examples(options.ambignq, miner(options, settings, ())) if options.ambignq else []
    pairs = [e for e in pairs if not excluded.have(e.asked)]
    manuals = condition_examples(excluded.without(mixtures.load_multi(options.manuals)))
    lists = list_examples(excluded.without(mixtures.load_multi(options.lists)))
    sources = {"annotated": annotated, "ambignq": pairs, "manuals": manuals, "lists": lists}
    say("writing on " + ", ".join(f"{len(examples)} {name}" for name, examples in sources.items()))
    task = WriterTask(
        [(examples, SHARES[name]) for name, examples in sources.items()], held_out, tokenizer, options.batch_tokens
    )
    return network, task, save
