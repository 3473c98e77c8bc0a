"""One-pass decoding of answer sets: an encoder-decoder writes `answer ; answer ; answer`, by greedy decoding, sampling or diverse beams.

Sources: Fusion-in-Decoder (Izacard and Grave 2021) and SpanSeqGen (Min et al. 2020, section 5) as one-pass readers of answer sets; the decoding variants
and their settings are those of AmbigPrompt's Table 5 and appendix (nucleus sampling: Holtzman et al. 2020; diverse beam search: Vijayakumar et al. 2018)
and of its Figure 5 (FiD-multi: the end of the sequence is made less likely).  The separator is the semicolon of AmbigPrompt's template.
Legend: B questions, K sequences a question, T tokens, V vocabulary.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain, groupby
from typing import Any, Literal

import torch
from torch import Tensor

from core.errors import InputError
from core.models.seq2seq.network import encoding, fan_out
from core.text import answer_words, find_spans, occurrences, shares_words
from core.types import Candidate, Evidence, Passage, RetrievedPassage

Method = Literal["greedy", "nucleus", "top-k", "diverse-beam"]
SEPARATOR = ";"


@dataclass(frozen=True)
class SequenceDecoding:
    """`sequences`: samples or beams a question (1 for greedy decoding).  `end_bias` is added to the logit of the end of the
    sequence.

    Diverse beams are groups of one beam each; a token is penalised by `diversity` for every earlier group that chose it at the same
    position.  `max_tokens`: of a sequence; 0: the network's default.
    """

    method: Method = "greedy"
    sequences: int = 1
    top_p: float = 0.8
    top_k: int = 40
    temperature: float = 1.0
    diversity: float = 0.5
    end_bias: float = 0.0
    max_tokens: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.sequences <= 64:
            raise InputError(f"the number of sequences is {self.sequences}; it must be 1 to 64")
        if not 0 < self.top_p <= 1:
            raise InputError(f"top_p is {self.top_p}; it must be above 0 and at most 1")
        if self.top_k < 1:
            raise InputError(f"top_k is {self.top_k}; it must be at least 1")
        if not 0 < self.temperature < math.inf:
            raise InputError(f"the temperature is {self.temperature}; it must be above 0")


@dataclass(frozen=True)
class WrittenSequence:
    """One sequence: its token ids without the end, and the model's own log probability of each (no temperature, no bias)."""

    ids: tuple[int, ...]
    log_probabilities: tuple[float, ...]


def _pick(logits: Tensor, writing: SequenceDecoding, generators: Sequence[torch.Generator]) -> Tensor:
    """(B, K) tokens from logits (B, K, V)."""
    if writing.method == "greedy":
        return logits.argmax(-1)
    logits = logits / writing.temperature
    if writing.method == "diverse-beam":
        scores = logits.log_softmax(-1)
        choices: list[Tensor] = []
        for k in range(scores.shape[1]):  # each group sees the choices of the earlier groups
            group_scores = scores[:, k].clone()
            for token in choices:
                group_scores.scatter_add_(
                    1, token[:, None], group_scores.new_full((group_scores.shape[0], 1), -writing.diversity)
                )
            choices.append(group_scores.argmax(-1))
        return torch.stack(choices, dim=1)
    p = logits.softmax(-1)
    order = p.sort(-1, descending=True)
    if writing.method == "top-k":
        is_top = torch.arange(p.shape[-1], device=p.device) < writing.top_k
        values = order.values * is_top
    else:  # keep the smallest set whose mass reaches top_p, at least the first token
        values = order.values.masked_fill(order.values.cumsum(-1) - order.values >= writing.top_p, 0.0)
    # sampled on the CPU with one generator per question: the same samples on every device and in every batch
    sampled = torch.stack([torch.multinomial(values[b].float().cpu(), 1, generator=g)[:, 0] for b, g in enumerate(generators)])
    return order.indices.gather(-1, sampled.to(p.device)[..., None])[..., 0]


def write(
    network: Any, tokenizer: Any, states: Tensor, mask: Tensor, writing: SequenceDecoding, keys: Sequence[str]
) -> list[list[WrittenSequence]]:
    """Writes `sequences` sequences for each question of the batch.  `keys`: texts that seed the sampling, one a question."""
    k = 1 if writing.method == "greedy" else writing.sequences
    end, pad = int(tokenizer.eos_token_id), int(tokenizer.pad_token_id)
    questions = states.shape[0]
    generators = [
        torch.Generator().manual_seed(int.from_bytes(sha256(f"{writing.seed}-{key}".encode()).digest()[:7])) for key in keys
    ]
    token = torch.full((questions, 1), network.start, device=states.device)
    out = network.decode(states, mask, token, keep=True)
    cache = network.repeat_cache(out.past_key_values, k)
    states, mask = fan_out(states, k), fan_out(mask, k)
    logits = fan_out(out.logits[:, -1].float(), k).clone()  # (B * K, V)
    logits[:, end] = float("-inf")  # no empty sequences
    unfinished = torch.ones(questions * k, dtype=torch.bool, device=states.device)
    tokens: list[Tensor] = []
    gains: list[Tensor] = []
    for _ in range(writing.max_tokens or network.config.max_answer_tokens):
        logits[:, [network.eoi, pad]] = float("-inf")
        log_probabilities = logits.log_softmax(-1)
        if tokens:
            logits[:, end] += writing.end_bias
        next_tokens = _pick(logits.view(questions, k, -1), writing, generators).reshape(-1)  # (B * K,)
        next_tokens = torch.where(unfinished, next_tokens, torch.full_like(next_tokens, end))
        tokens.append(next_tokens)
        gains.append(log_probabilities.gather(1, next_tokens[:, None])[:, 0])
        unfinished = unfinished & (next_tokens != end)
        if not unfinished.any():
            break
        out = network.decode(states, mask, next_tokens[:, None], cache, keep=True)
        logits, cache = out.logits[:, -1].float(), out.past_key_values
    sequences = []
    for ids, values in zip(torch.stack(tokens, 1).tolist(), torch.stack(gains, 1).tolist()):
        n = ids.index(end) if end in ids else len(ids)
        sequences.append(WrittenSequence(tuple(ids[:n]), tuple(values[:n])))
    return [sequences[b * k : (b + 1) * k] for b in range(questions)]


def read_answers(tokenizer: Any, sequence: WrittenSequence) -> list[tuple[str, float]]:
    """(answer, probability of its own tokens) for each answer of a sequence, in order, without empty ones."""
    out: list[tuple[str, float]] = []
    tokens = zip(sequence.ids, sequence.log_probabilities)
    for is_separator, part in groupby(tokens, lambda token: SEPARATOR in tokenizer.convert_ids_to_tokens(token[0])):
        ids, log_probabilities = zip(*part)
        text = "" if is_separator else " ".join(tokenizer.decode(list(ids), skip_special_tokens=True).split())
        if answer_words(text):
            out.append((text, math.exp(sum(log_probabilities))))
    return out


def merge(sequences: Sequence[Sequence[tuple[str, float]]]) -> list[tuple[str, float]]:
    """Merges several sequences into one answer set.  An answer that equals, contains or is contained in another counts with it.

    Of one sequence: its answers in their order, with their own probabilities.  Of several: probability is the share of sequences
    that hold the answer, shown in the words of most of them; the likeliest first, equal ones by their own probability.
    """
    groups: list[dict[str, list[tuple[int, str, float]]]] = []
    for number, sequence in enumerate(sequences):
        for text, probability in sequence:
            if not (key := answer_words(text)):
                continue
            # equal answers first: one that links two groups ("dd db" with "dd" and "db") must not join both
            group = next((g for g in groups if key in g), None) or next((g for g in groups if shares_words(key, g)), None)
            if group is None:
                groups.append(group := {})
            group.setdefault(key, []).append((number, text, probability))
    out: list[tuple[str, float, float]] = []
    for group in groups:
        wording = max(group.values(), key=lambda occurrences: (len(occurrences), max(p for _, _, p in occurrences)))
        best = max(p for occurrences in group.values() for _, _, p in occurrences)
        holders = len({number for occurrences in group.values() for number, _, _ in occurrences})
        out.append((wording[0][1], holders / len(sequences) if len(sequences) > 1 else best, best))
    if len(sequences) > 1:
        out.sort(key=lambda item: (-item[1], -item[2]))
    return [(text, min(1.0, probability)) for text, probability, _ in out]


def _plain(text: str) -> str:
    """The text without accents, character by character, so that offsets stay valid.  Characters whose plain form has another
    length are kept."""
    return "".join(base if len(base := unicodedata.normalize("NFD", c)[:1]) == 1 else c for c in text)


def in_passage_words(text: str, passages: Sequence[RetrievedPassage], uncased: bool) -> str:
    """An uncased model's answer written as in the first passage that has it, with case and accents.  Other models' answers are
    returned unchanged.

    An answer that breaks off within a word ("ron grain") is completed to the word ("Ron Grainer") if it occurs nowhere else; one with a
    number is not, as "19" would become any year.
    """
    if not uncased:
        return text
    target = _plain(text)
    words = [] if any(c.isdigit() for c in target) else re.findall(r"\w+", target)
    cut_off = re.compile(r"\b" + r"\W{0,3}".join(words) + r"\w+", re.IGNORECASE)
    matches = ((p, span) for p in passages for span in find_spans(_plain(p.passage.text), target))
    completions = ((p, match.span()) for p in passages if words for match in cut_off.finditer(_plain(p.passage.text)))
    for p, (start, end) in chain(matches, completions):
        return " ".join(p.passage.text[start:end].split())
    return text


def locate(answer: str, passages: Sequence[RetrievedPassage]) -> Evidence | None:
    """The first occurrence of the answer.  A short word or number (under 4 characters) counts only if exactly one passage has it."""
    if matches := occurrences(answer, passages, 1):
        return matches[0]
    spans = [(p.passage, span) for p in passages for span in find_spans(p.passage.text, answer)]
    if len({passage.id for passage, _ in spans}) != 1:
        return None
    passage, (start, end) = spans[0]
    return Evidence(passage.id, start, end, passage.text[start:end])


def join_passages(passages: Sequence[Passage]) -> Passage:
    """SpanSeqGen's input: all passages joined into one, each after its title, under the title of the first."""
    first, *others = passages
    parts = [first.text, *(f"{p.title} : {p.text}" if p.title else p.text for p in others)]
    return Passage(first.id, first.title, " ".join(parts))


class AnswerSetWriter:
    """Writes answer sets with the network, tokenizer and lock of a FidAnswerer.  `joined_tokens`: the length of one row that
    joins all passages (0: one row a passage)."""

    def __init__(self, answerer: Any, writing: SequenceDecoding | None = None, joined_tokens: int = 0) -> None:
        self.answerer, self.writing, self.joined_tokens = answerer, writing or SequenceDecoding(), joined_tokens
        self.uncased = answerer.network.uncased or bool(getattr(answerer.tokenizer, "do_lower_case", False))

    def write_many(self, jobs: Sequence[tuple[str, Sequence[RetrievedPassage]]]) -> list[list[Candidate]]:
        """The answer set of each job (question, passages), each answer with its place."""
        network, tokenizer = self.answerer.network, self.answerer.tokenizer
        texts = []
        for question, retrieved in jobs:
            passages = [p.passage for p in retrieved]
            if self.joined_tokens and passages:
                passages = [join_passages(passages)]
            texts.append((question, [(p.title, p.text) for p in passages], ()))
        with encoding(self.answerer, texts, self.joined_tokens or None) as (states, mask):
            sequences_by_job = write(network, tokenizer, states, mask, self.writing, [question for question, _ in jobs])
            answers = [[read_answers(tokenizer, w) for w in sequences] for sequences in sequences_by_job]
        out = []
        for sequences, (_, retrieved) in zip(answers, jobs):
            worded = [(in_passage_words(text, retrieved, self.uncased), p) for text, p in merge(sequences)]
            out.append([Candidate(text, p, locate(text, retrieved)) for text, p in worded])
        return out
