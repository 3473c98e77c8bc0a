"""Windows of passages for the verifier: the sentences around a candidate, after the question and the passage's title.

A row is `<s> question </s></s> title : sentences </s>`.  Candidates of one window share its encoding.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from core.disambiguation.evidence import sentences
from core.models.ranking.verifier_network import WindowBatch
from core.models.span.rows import JOIN, clip, pad

PAD = 1  # of MPNet's vocabulary
MAX_QUESTION_TOKENS = 48
SLACK = 25  # words that a long sentence may have beyond the window
_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class Window:
    """`spans`: (start, end) as characters of `text`."""

    question: str
    title: str
    text: str
    spans: tuple[tuple[int, int], ...]


def window_bounds(text: str, start: int, end: int, words: int) -> tuple[int, int]:
    """(start, end) of the sentences that hold the characters from `start` to `end`, and of their neighbours while all have at most `words` words,
    earlier ones first, because a pronoun refers back.  For an overlong sentence, the words around the candidate.

    >>> text = "Ada was born in 1815. She died in 1852. A moon is named after her."
    >>> text[slice(*window_bounds(text, 34, 38, 9))]
    'Ada was born in 1815. She died in 1852.'
    """
    parts = sentences(text)
    low = next((k for k, (a, b) in enumerate(parts) if a <= start < b), 0)
    high = max(low, next((k for k, (a, b) in enumerate(parts) if a < end <= b), low))

    def count(first: int, last: int) -> int:
        return len(text[parts[first][0] : parts[last][1]].split())

    while True:
        if low > 0 and count(low - 1, high) <= words:
            low -= 1
        elif high + 1 < len(parts) and count(low, high + 1) <= words:
            high += 1
        else:
            break
    a, b = parts[low][0], parts[high][1]
    if len(text[a:b].split()) <= words + SLACK:
        return a, b
    found = [(m.start(), m.end()) for m in _WORD.finditer(text)]
    first = max(0, sum(w <= start for w, _ in found) - 1)
    last = min(len(found) - 1, sum(w < end for _, w in found))
    return found[max(0, first - words // 2)][0], max(end, found[min(len(found) - 1, last + words // 2)][1])


def collate_windows(tokenizer: Any, windows: Sequence[Window], max_tokens: int) -> tuple[WindowBatch, list[tuple[int, int]]]:
    """(batch, (window, number of the span in it) of each of its spans); a span that does not fit into `max_tokens` is left out."""
    questions = [clip(tokenizer, w.question, min(MAX_QUESTION_TOKENS, max_tokens // 2)) for w in windows]
    titled = [f"{w.title}{JOIN}{w.text}" if w.title else w.text for w in windows]
    encoded = tokenizer(questions, titled, truncation="only_second", max_length=max_tokens)
    row, first, last, kept = [], [], [], []
    texts: list[list[bool]] = []
    for i, window in enumerate(windows):
        shift = len(titled[i]) - len(window.text)
        inside = [
            (n, a - shift, b - shift)
            for n, ((a, b), of) in enumerate(zip(encoded["offset_mapping"][i], encoded.sequence_ids(i)))
            if of == 1 and b > a >= shift
        ]
        own = {n for n, _, _ in inside}
        texts.append([n in own for n in range(len(encoded["input_ids"][i]))])
        for k, (start, end) in enumerate(window.spans):
            s = next((n for n, a, b in inside if a <= start < b), None)
            e = next((n for n, a, b in inside if a < end <= b), None)
            if s is not None and e is not None and s <= e:
                row.append(i)
                first.append(s)
                last.append(e)
                kept.append((i, k))
    ids = encoded["input_ids"]
    length = max((len(each) for each in ids), default=1)
    mask = pad([[True] * len(each) for each in ids], length, False)
    of, head, tail = (torch.tensor(values, dtype=torch.long) for values in (row, first, last))
    return WindowBatch(pad(ids, length, PAD), mask, of, head, tail, pad(texts, length, False)), kept
