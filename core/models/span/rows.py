"""Converts text to rows of tokens: the prompt row and the passage rows of one question, with the positions that the span head
needs.

A passage row is `[CLS] question [SEP] title : text [SEP]`, a prompt row `[CLS] question [SEP] answer ; answer [SEP]`.  A long passage becomes
several overlapping rows.  Spans start and end only at word boundaries of the passage's text, never in the title.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from core.text import find_spans

JOIN = " : "  # between title and text
MAX_PASSAGE_TOKENS = 1536  # enough for core.text.CHUNK_CHARS characters at one token per character
MAX_OVERLAP = 32  # tokens, of two rows of a passage
TOKEN_CHARS = 32  # above the average of any text; text beyond MAX_PASSAGE_TOKENS such tokens is not tokenised


@dataclass(frozen=True)
class TokenRows:
    """Rows of L tokens.  `passage` is the index of a row's passage; `offsets` count characters of its text."""

    input_ids: list[list[int]]
    token_type_ids: list[list[int]]
    passage: list[int]
    offsets: list[list[tuple[int, int]]]  # (-1, -1) outside the passage's text
    starts: list[list[bool]]  # a span may start here
    ends: list[list[bool]]

    def __len__(self) -> int:
        return len(self.input_ids)

    def select(self, indexes: Sequence[int]) -> TokenRows:
        """A selection of the rows.  `passage` still indexes all passages."""
        return TokenRows(*([column[i] for i in indexes] for column in vars(self).values()))

    def first(self, count: int) -> TokenRows:
        """The first `count` rows, or all of them."""
        return self.select(range(min(count, len(self))))

    def edges(self, row: int) -> tuple[dict[int, int], dict[int, int]]:
        """The tokens at which a span may start and end: (by its first character, by its end)."""
        offsets = self.offsets[row]
        first = {a: i for i, (a, _) in enumerate(offsets) if self.starts[row][i]}
        return first, {b: i for i, (_, b) in enumerate(offsets) if self.ends[row][i]}


def passage_rows(
    tokenizer: Any,
    question: str,
    passages: Sequence[tuple[str, str]],
    max_tokens: int,
    max_question_tokens: int = 48,
) -> TokenRows:
    """Rows of all passages, (title, text) each; question cut to `max_question_tokens`, passages split into overlapping windows.

    Of a passage at most MAX_PASSAGE_TOKENS tokens are read (11 to 14 rows of 192 tokens, by the length of the question), rounded up to whole rows, so
    that an overlong passage cannot exhaust memory.
    """
    rows = TokenRows([], [], [], [], [], [])
    if not passages:
        return rows
    question = clip(tokenizer, question, min(max_question_tokens, max_tokens // 2))
    seconds = [(f"{title}{JOIN}{text}" if title else text)[: MAX_PASSAGE_TOKENS * TOKEN_CHARS] for title, text in passages]
    shifts = [len(title) + len(JOIN) if title else 0 for title, _ in passages]
    overlap = min(MAX_OVERLAP, max_tokens // 4)
    encoded = tokenizer(
        [question] * len(seconds),
        seconds,
        truncation="only_second",
        max_length=max_tokens,
        stride=overlap,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
        return_token_type_ids=True,
    )
    tokens_read = [0] * len(seconds)
    for i, sample in enumerate(encoded["overflow_to_sample_mapping"]):
        if tokens_read[sample] >= MAX_PASSAGE_TOKENS:
            continue
        tokens_read[sample] += encoded.sequence_ids(i).count(1) - (overlap if tokens_read[sample] else 0)
        text, shift = seconds[sample], shifts[sample]
        offsets, starts, ends = [], [], []
        for (a, b), sequence in zip(encoded["offset_mapping"][i], encoded.sequence_ids(i)):
            inside = sequence == 1 and a >= shift and b > a
            offsets.append((a - shift, b - shift) if inside else (-1, -1))
            starts.append(inside and text[a].isalnum() and not (a > 0 and text[a - 1].isalnum()))
            ends.append(inside and text[b - 1].isalnum() and not (b < len(text) and text[b].isalnum()))
        rows.input_ids.append(encoded["input_ids"][i])
        rows.token_type_ids.append(encoded["token_type_ids"][i])
        rows.passage.append(sample)
        rows.offsets.append(offsets)
        rows.starts.append(starts)
        rows.ends.append(ends)
    return rows


def clip(tokenizer: Any, text: str, max_tokens: int) -> str:
    """The text cut after `max_tokens` tokens; unchanged if it is shorter."""
    offsets = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    return text if len(offsets) <= max_tokens else text[: offsets[max_tokens - 1][1]]


def prompt_text(previous: Sequence[str]) -> str:
    """The template T of section 3.1: previous answers spliced with semicolons."""
    return " ; ".join(previous)


def prompt_row(
    tokenizer: Any, question: str, previous: Sequence[str], max_tokens: int, max_question_tokens: int = 48
) -> tuple[list[int], list[int]]:
    """(input ids, token type ids) of the prompt row.  Answers that do not fit are cut at the end."""
    question = clip(tokenizer, question, min(max_question_tokens, max_tokens // 2))
    encoded = tokenizer(
        question, prompt_text(previous), truncation="only_second", max_length=max_tokens, return_token_type_ids=True
    )
    return encoded["input_ids"], encoded["token_type_ids"]


def label_spans(
    rows: TokenRows, texts: Sequence[str], aliases: Sequence[str], max_answer_tokens: int
) -> list[tuple[int, int, int]]:
    """All spans (row, first token, last token) whose text is one of the aliases."""
    spans: list[tuple[int, int, int]] = []
    matches = {passage: [m for alias in aliases for m in find_spans(texts[passage], alias)] for passage in set(rows.passage)}
    for r, passage in enumerate(rows.passage):
        by_start, by_end = rows.edges(r)
        for a, b in matches[passage]:
            s, e = by_start.get(a), by_end.get(b)
            if s is not None and e is not None and s <= e < s + max_answer_tokens:
                spans.append((r, s, e))
    return spans


def pad(sequences: Sequence[Sequence[int | bool]], length: int, value: int | bool = 0) -> Tensor:
    """(rows, length) from ragged lists."""
    out = torch.full((len(sequences), length), value, dtype=torch.bool if isinstance(value, bool) else torch.long)
    for i, sequence in enumerate(sequences):
        out[i, : len(sequence)] = torch.as_tensor(list(sequence), dtype=out.dtype)
    return out
