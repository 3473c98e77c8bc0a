"""Trains the bundled language model (core.models.language.bundled) on the systems' prompts, with replies made from known
answers.

A call is made by the role of `PromptedGenerator` that makes it in a run, over a scripted model that replies the target: prompt and reply are those of a
run by construction, and its parser accepts the reply.  Sources of examples:

- practice questions with their disambiguated questions and supporting passages; other passages near the question are those without an answer;
- AmbigNQ's prompt questions with their disambiguated questions, without passages: `pseudo_interpretations` alone.

What no data has is made: a wide query (VerDICt, Eq. 6) has the question's words that the passages of most answers share; a long answer (Kim et al. 2023) has
a statement for each answer (core.training.data.statements).  The loss is the mean of -log p over the replies' tokens.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from core.datasets.excluded import excluded_questions
from core.disambiguation.drafts import excerpt
from core.models.language.bundled import PROMPTS, chat_tokenizer
from core.models.language.decoder import IGNORED, TokenRow, collate
from core.models.language.prompted import PromptedGenerator
from core.models.language.roles import Claim, Request, Run
from core.models.language.scripted import ScriptedLanguageModel
from core.models.loading.finding import LANGUAGE
from core.models.loading.pretrained import TRANSFORMERS
from core.models.scheduling.device import bf16_autocast
from core.settings import Settings
from core.short_names import names_in
from core.text import content_words, find_spans, has_answer, overlapping, question_key, word_tokens
from core.training.data import mixtures
from core.training.data.chunks import draw
from core.training.data.examples import MultiExample
from core.training.data.statements import statement
from core.training.decoder import DecoderTask, start
from core.training.held_out import figures_of
from core.training.options import LanguageOptions
from core.training.runs import TrainingParts, say
from core.types import Interpretation, Passage

with TRANSFORMERS:
    from core.models.language.local import LocalModel

SHARES = {"annotated": 0.85, "ambignq": 0.15}
CONTEXT = 18  # passages of a practice question
SIZES = (4, 6, 8, 12, 18)  # passages of a call that reads several
MAX_TOKENS = 4096  # of a row; longer ones are left out
QUOTATION_WORDS = 12
HELD_OUT = 12  # calls of a role at each evaluation


@dataclass(frozen=True)
class TrainingMeaning:
    """One meaning of a training question.  `supporting`: ids of the passages that contain its answer."""

    question: str
    aliases: tuple[str, ...]
    supporting: frozenset[str] = frozenset()

    def alias_in(self, passage: Passage) -> str:
        """The alias that a passage supports; "" if it supports none."""
        if passage.id not in self.supporting:
            return ""
        return next((a for a in self.aliases if find_spans(passage.text, a)), "")


@dataclass(frozen=True)
class LanguageExample:
    """One example.  `silent`: passages that contain no answer."""

    question: str
    meanings: tuple[TrainingMeaning, ...]
    supporting: tuple[Passage, ...] = ()
    silent: tuple[Passage, ...] = ()


@dataclass(frozen=True)
class Call:
    role: str
    request: Request
    reply: str


AskModel = Callable[[PromptedGenerator, Run], object]
RoleExample = tuple[Any, AskModel] | None  # (the object to reply, the call that a run makes)


def annotated_language_examples(examples: Sequence[MultiExample]) -> list[LanguageExample]:
    """Examples from practice questions (`extra` as core.training.data.mixtures.annotated_examples makes it).  A passage that
    contains an answer and isn't known to support it is left out, because it may or may not answer the question."""
    out = []
    for e in examples:
        questions = e.extra.get("questions", ())
        if len(questions) != len(e.gold) or not all(q.strip() for q in questions):
            continue
        passages = [Passage(i, title, text) for i, (title, text) in zip(e.extra["context"], e.passages)]
        meanings = [
            TrainingMeaning(q.split("|")[0].strip(), gold, frozenset(ids))
            for q, gold, ids in zip(questions, e.gold, e.extra["supporting_of"])
        ]
        n = len(e.extra["supporting"])
        aliases = [a for m in meanings for a in m.aliases]
        silent = tuple(p for p in passages[n:] if not has_answer(p.text, aliases))
        out.append(LanguageExample(e.question, tuple(meanings), tuple(passages[:n]), silent))
    return out


def ambignq_language_examples(path: Path) -> list[LanguageExample]:
    """Examples from AmbigNQ. Raises FormatError."""
    return [
        LanguageExample(prompt, tuple(TrainingMeaning(q.strip(), aliases) for q, aliases in pairs))
        for prompt, pairs in mixtures.load_pairs(path)
    ]


def make_call(e: LanguageExample, role: str, rng: random.Random) -> Call | None:
    """A call of a role with its right reply; None if the example has no reply for the role."""
    example = ROLES[role][1](e, rng)
    if example is None:
        return None
    target, ask = example
    reply = json.dumps(target, ensure_ascii=False)
    model = ScriptedLanguageModel({role: reply})
    ask(PromptedGenerator(model, prompts=PROMPTS), Run(math.inf))
    return Call(role, model.requests[0], reply)


def _selection(e: LanguageExample, rng: random.Random) -> list[Passage]:
    """Passages of a call in random order, supporting ones before others.  One call in eight has no supporting passage."""
    size = rng.choice(SIZES)
    supporting = [] if e.silent and rng.random() < 0.125 else rng.sample(e.supporting, len(e.supporting))
    selected = [*supporting, *rng.sample(e.silent, len(e.silent))][:size]
    return rng.sample(selected, len(selected))


def _found(meanings: Sequence[TrainingMeaning], passages: Sequence[Passage]) -> list[tuple[int, str, TrainingMeaning]]:
    """(number of the first passage that supports the meaning, its alias there, meaning) for each meaning that has one, in the
    passages' order."""
    matches = []
    for m in meanings:
        places = ((number, alias) for number, p in enumerate(passages, 1) if (alias := m.alias_in(p)))
        if place := next(places, None):
            matches.append((*place, m))
    return sorted(matches, key=lambda f: f[0])


def _relax(e: LanguageExample, rng: random.Random) -> RoleExample:
    """The question's words that the passages of at least half of the answers have too; the question itself if fewer than two
    remain."""
    question = rng.choice([e.question, *(m.question for m in e.meanings)])
    texts = [{w for p in e.supporting if p.id in m.supporting for w in word_tokens(f"{p.title} {p.text}")} for m in e.meanings]
    if not e.supporting:
        return None
    wide = [w for w in content_words(question) if 2 * sum(w in text for text in texts) >= len(texts)]
    query = " ".join(dict.fromkeys(wide)) if len(set(wide)) > 1 else e.question
    return {"query": query}, lambda g, run: g.relax(question, run)


def _interpret(e: LanguageExample, rng: random.Random) -> RoleExample:
    passages = e.supporting if not e.silent or rng.random() < 0.5 else e.silent
    if not passages:
        return None
    passage = rng.choice(passages)
    matches = _found(e.meanings, [passage])
    if passages is e.supporting and not matches:
        return None
    reply = {"answer": matches[0][1], "question": matches[0][2].question} if matches else {"answer": None, "question": None}
    return reply, lambda g, run: list(g.interpret(e.question, [passage], run))


def _verify(e: LanguageExample, rng: random.Random) -> RoleExample:
    """True cases are an answer with its passage.  False cases are the answer of another meaning, an answer without its passage,
    or another name from a passage without an answer."""
    claims = [(m, p, alias) for m in e.meanings for p in e.supporting if (alias := m.alias_in(p))]
    if not claims:
        return None
    meaning, passage, answer = rng.choice(claims)
    question, supported = rng.choice([e.question, meaning.question]), rng.random() < 0.5
    if not supported:
        wrong = [
            (meaning.question, a, p)
            for m, p, a in claims
            if p.id not in meaning.supporting and not any(overlapping(a, b) for b in meaning.aliases)
        ]
        if e.silent and (not wrong or rng.random() < 0.6):
            passage = rng.choice(e.silent)
            names = [n for n in names_in(passage.text) if not overlapping(n, question)]
            answer = rng.choice(names) if names and rng.random() < 0.5 else answer
        elif wrong:
            question, answer, passage = rng.choice(wrong)
        else:
            return None
    return {"supported": supported}, lambda g, run: g.verify([Claim(question, answer, (passage,))], run)


def _supporting(e: LanguageExample, rng: random.Random) -> RoleExample:
    meaning = rng.choice(e.meanings)
    passages = [p for p in _selection(e, rng) if meaning.alias_in(p) or not has_answer(p.text, meaning.aliases)]
    if not passages:
        return None
    numbers = [n for n, p in enumerate(passages, 1) if meaning.alias_in(p)]
    return {"passages": numbers}, lambda g, run: g.supporting([meaning.question], passages, run)


def _pseudo_interpretations(e: LanguageExample, rng: random.Random) -> RoleExample:
    n = rng.randint(2, 8)
    questions = list({question_key(m.question): m.question for m in e.meanings}.values())[:n]
    if len(questions) < 2:
        return None
    return {"questions": questions}, lambda g, run: g.pseudo_interpretations(e.question, n, run)


def _clarify_long(e: LanguageExample, rng: random.Random) -> RoleExample:
    if not (passages := _selection(e, rng)):
        return None
    n = rng.choice((5, 8, 10))
    rows = [{"passage": number, "answer": a, "question": m.question} for number, a, m in _found(e.meanings, passages)[:n]]
    return {"interpretations": rows}, lambda g, run: g.clarify_long(e.question, passages, run, n)


def _long_answer(e: LanguageExample, rng: random.Random) -> RoleExample:
    matches = _found(e.meanings, e.supporting)[:8]
    sentences = [statement(m.question, alias, rng) for _, alias, m in matches]
    if len(matches) < 2 or not all(sentences):
        return None
    pairs = [Interpretation(e.supporting[number - 1].id, m.question, alias) for number, alias, m in matches]
    cited = [p for p in e.supporting if p.id in {i.passage_id for i in pairs}]
    return {"text": " ".join(map(str, sentences))}, lambda g, run: g.long_answer(e.question, pairs, cited, run)


def _answer(e: LanguageExample, rng: random.Random) -> RoleExample:
    meaning = rng.choice(e.meanings)
    passages = [p for p in _selection(e, rng) if meaning.alias_in(p) or not has_answer(p.text, meaning.aliases)]
    if not passages:
        return None
    matches = _found([meaning], passages)
    return {"answer": matches[0][1] if matches else None}, lambda g, run: g.answer(meaning.question, passages, run)


def _next_answer(e: LanguageExample, rng: random.Random) -> RoleExample:
    """Some of the answers are known.  The next one is the first of the others in the passages' order."""
    if not (passages := _selection(e, rng)):
        return None
    matches = _found(e.meanings, passages)
    known = rng.sample(matches, rng.randint(0, len(matches)))
    previous = [alias for _, alias, _ in known]
    remaining = [f for f in matches if not any(overlapping(a, b) for a in f[2].aliases for b in previous)]
    reply: dict[str, Any] = {"passage": None, "answer": None, "quotation": None}
    if remaining:
        number, alias, _ = remaining[0]
        text = passages[number - 1].text
        reply = {"passage": number, "answer": alias, "quotation": excerpt(text, *find_spans(text, alias)[0], QUOTATION_WORDS)}
    return reply, lambda g, run: g.next_answer(e.question, passages, previous, run)


# how often a question is asked in each role, relative to the others, and what makes the call
ROLES: dict[str, tuple[int, Callable[[LanguageExample, random.Random], RoleExample]]] = {
    "interpret": (4, _interpret),
    "clarify_long": (3, _clarify_long),
    "next_answer": (3, _next_answer),
    "verify": (2, _verify),
    "supporting": (2, _supporting),
    "pseudo_interpretations": (1, _pseudo_interpretations),
    "relax": (1, _relax),
    "answer": (1, _answer),
    "long_answer": (1, _long_answer),
}


def row(model: LocalModel, call: Call) -> TokenRow:
    """A row without branches: the prompt as `model` reads it and the reply, which is learned."""
    prompt, reply = model.tokenizer([model.prompt(call.request), call.reply], add_special_tokens=False)["input_ids"]
    ids, targets = [*prompt, *reply], [*[IGNORED] * (len(prompt) - 1), *reply, model.tokenizer.eos_token_id]
    return ids, list(range(len(ids))), [0] * len(ids), targets


class LanguageTask(DecoderTask[LanguageExample]):
    """A core.training.trainer.TrainingTask."""

    def __init__(
        self,
        sources: Sequence[tuple[Sequence[LanguageExample], float]],
        held_out: Sequence[LanguageExample],
        model: LocalModel,
        batch_tokens: int,
    ) -> None:
        """`model`: over the decoder that is trained; its prompts are used."""
        super().__init__(sources, batch_tokens, "no training question has disambiguated questions; check --annotated")
        self.held_out, self.model = list(held_out), model

    def groups(self, seed: int, chunk: int) -> list[list[TokenRow]]:
        """The rows of each batch of a chunk."""
        rng = random.Random(f"{seed}-{chunk}")
        rows = [row(self.model, call) for e in draw(self.sources, seed, chunk) if (call := _any_call(e, rng))]
        return self.in_batches((r for r in rows if len(r[0]) <= MAX_TOKENS), seed, chunk)

    @torch.inference_mode()
    def evaluate(self, network: nn.Module) -> dict[str, float]:
        """exp(-loss) of held-out calls, which is the probability of a token of the right reply, by role.  Their mean is the
        figure."""
        device = next(network.parameters()).device

        def probability(rows: Sequence[TokenRow]) -> float:
            with bf16_autocast(device):
                losses = [float(self.loss(network, collate([r]), device)) for r in rows]
            return math.exp(-sum(losses) / len(losses))

        return figures_of(((role, self._held_out_rows(role)) for role in ROLES), probability)

    def _held_out_rows(self, role: str) -> list[TokenRow]:
        rng = random.Random(role)
        calls = (make_call(e, role, rng) for e in rng.sample(self.held_out, len(self.held_out)))
        rows = [row(self.model, call) for call, _ in zip(filter(None, calls), range(HELD_OUT))]
        return [r for r in rows if len(r[0]) <= MAX_TOKENS]


def _any_call(e: LanguageExample, rng: random.Random) -> Call | None:
    """A call of one of the roles that the example has a reply for, drawn in proportion to their shares."""
    order = sorted(ROLES, key=lambda role: -(rng.random() ** (1 / ROLES[role][0])))  # Efraimidis and Spirakis 2006
    return next((call for role in order if (call := make_call(e, role, rng))), None)


def make(options: LanguageOptions, settings: Settings) -> TrainingParts:
    """Raises InputError, FormatError, CheckpointError."""
    tokenizer, network, save = start(LANGUAGE, options, chat_tokenizer)
    splits = [mixtures.annotated_examples(folder, held_out=0.2, context=CONTEXT) for folder in options.annotated]
    excluded = excluded_questions(options.exclude)
    annotated = annotated_language_examples(excluded.without([e for training, _ in splits for e in training]))
    held_out = annotated_language_examples([e for _, dev in splits for e in dev])
    ambignq = ambignq_language_examples(options.ambignq) if options.ambignq else []
    ambignq = [e for e in ambignq if not excluded.have([e.question, *(m.question for m in e.meanings)])]
    sources = {"annotated": annotated, "ambignq": ambignq}
    say("asking " + ", ".join(f"{len(examples)} questions of {name}" for name, examples in sources.items()))
    model = LocalModel(network.decoder, tokenizer, LANGUAGE)
    task = LanguageTask([(examples, SHARES[name]) for name, examples in sources.items()], held_out, model, options.batch_tokens)
    return network, task, save
