"""The part that SpanAnswerer and PassageReader share: base encoder, tokenizer, batches, and a lock around the network."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from core.models.encoders.base import base_tokenizer
from core.models.encoders.low_rank import differences
from core.models.scheduling.device import OnDevice, bf16_autocast, pick_device, store_in_bf16
from core.models.scheduling.turns import MODEL_LOCK, Batcher
from core.models.span.network import RowBatch, SpanNetwork
from core.models.span.rows import TokenRows, pad, passage_rows, prompt_row
from core.short_names import spelled_out
from core.types import Candidate, Evidence, Passage

# tokenizers of a base are shared between models and are not thread-safe: truncation is part of their state
_TOKENIZING = threading.Lock()
load_tokenizer = lru_cache(maxsize=4)(base_tokenizer)


@dataclass(frozen=True)
class Span:
    """A scored span of one passage; offsets count characters of the passage's text."""

    passage: int
    start: int
    end: int
    logit: float


def collate(rows_of: Sequence[TokenRows], prompts: Sequence[tuple[list[int], list[int]]] | None) -> RowBatch:
    """One batch of B questions.  Questions with fewer rows are padded with empty rows.

    `prompts`: (ids, type ids) a question, or None for the reader.
    """
    count = max(len(rows) for rows in rows_of) + (prompts is not None)
    lines: list[tuple[list[int], list[int], list[bool], list[bool]]] = []  # ids, types, starts and ends of a row
    for b, rows in enumerate(rows_of):
        if prompts is not None:
            lines.append((*prompts[b], [], []))
        lines += zip(rows.input_ids, rows.token_type_ids, rows.starts, rows.ends)
        lines += [([], [], [], [])] * ((b + 1) * count - len(lines))
    ids, types, starts, ends = zip(*lines)
    length = max(map(len, ids))
    return RowBatch(
        input_ids=pad(ids, length),
        token_type_ids=pad(types, length),
        mask=pad([[True] * len(row) for row in ids], length, False),
        starts=pad(starts, length, False),
        ends=pad(ends, length, False),
        rows=count,
        prompt_tokens=max((len(prompt) for prompt, _ in prompts or ()), default=0),
        prompted=prompts is not None,
    )


# passage rows; the prompt's (ids, type ids), None for the reader; the step
PackedItem = tuple[TokenRows, tuple[list[int], list[int]] | None, int]


class SpanModel:
    """A SpanNetwork with its tokenizer on a device.  Thread-safe: one call at a time."""

    def __init__(self, network: SpanNetwork, device: str = "auto") -> None:
        self.network, self.config = network, network.config
        self._place = OnDevice(type(self).__name__, network, pick_device(device))
        if self.config.rank and not differences(network):  # merged: a network in training keeps the precision of its run
            store_in_bf16(network.encoder, self.device)
        self.tokenizer = load_tokenizer(self.config.base)
        self.lock = MODEL_LOCK
        self._together: Batcher[PackedItem, tuple[Tensor, Tensor]] = Batcher(
            self._scored, lambda item: sum(map(len, item[0].input_ids)), lambda: self.device.type == "cuda"
        )

    @property
    def device(self) -> torch.device:
        return self._place.device

    def rows(self, question: str, passages: Sequence[Passage]) -> TokenRows:
        """The rows of all passages.  Short names in the question are spelled out as in the passages."""
        pairs = [(p.title, p.text) for p in passages]
        question = spelled_out(question, [f"{title}. {text}" for title, text in pairs])
        with _TOKENIZING:
            return passage_rows(self.tokenizer, question, pairs, self.config.max_tokens)

    def prompt(self, question: str, previous: Sequence[str]) -> tuple[list[int], list[int]]:
        """(ids, type ids) of the prompt row."""
        with _TOKENIZING:
            return prompt_row(self.tokenizer, question, previous, self.config.max_prompt_tokens)

    def scored(self, items: Sequence[PackedItem]) -> list[tuple[Tensor, Tensor]]:
        """(span scores (N, L, W), "no answer" scores) of each item, batched with those of waiting threads; L is that of the longest row."""
        return self._together(items)

    def _scored(self, items: Sequence[PackedItem]) -> list[tuple[Tensor, Tensor]]:
        prompts = [prompt for _, prompt, _ in items if prompt is not None]
        batch = collate([rows for rows, _, _ in items], prompts or None)
        if prompts:
            batch.steps = torch.tensor([step for _, _, step in items])
        spans, nothing = self.scores(batch)
        counts = [len(rows) for rows, _, _ in items]
        return [(spans[i, :n], nothing[i] if prompts else nothing[i, :n]) for i, n in enumerate(counts)]

    def scores(self, batch: RowBatch) -> tuple[Tensor, Tensor]:
        """Span scores and "no answer" scores as float32 on the CPU."""
        with self.lock, torch.inference_mode():
            parts = self._place.run(lambda part: self._forward(batch.questions(part)), len(batch.mask) // batch.rows)
        spans, nothing = zip(*parts, strict=True)
        return torch.cat(spans), torch.cat(nothing)

    def _forward(self, batch: RowBatch) -> tuple[Tensor, Tensor]:
        # small networks stay exact on CPUs, where the caller decides; a large one takes bf16 where the processor has it: five times as fast
        is_reduced = self.device.type == "cuda" or bool(self.config.rank)
        with bf16_autocast(self.device) if is_reduced else nullcontext():
            spans, nothing = self.network(batch.to(self.device))
        return spans.float().cpu(), nothing.float().cpu()


def top_spans(scores: Tensor, rows: TokenRows, limit: int) -> list[Span]:
    """The `limit` best spans of scores (N, L, W), as characters of their passages.  A span that is in two overlapping windows
    is returned once."""
    _, length, width = scores.shape
    values, index = torch.topk(scores.reshape(-1), min(limit, scores.numel()))
    spans: dict[tuple[int, int, int], Span] = {}
    for value, i in zip(values.tolist(), index.tolist()):
        if value == float("-inf"):
            break
        row, remainder = divmod(i, length * width)  # torch.unravel_index would import sympy
        s, w = divmod(remainder, width)
        passage = rows.passage[row]
        start, end = rows.offsets[row][s][0], rows.offsets[row][s + w][1]
        spans.setdefault((passage, start, end), Span(passage, start, end, value))
    return list(spans.values())


# Signs that are part of the word they precede or follow: `--port`, `#21c354`, `~/.x`, `$400`, `C++`, `main()`, `40%`, `/etc/x/`
_SIGNS_BEFORE = re.compile(r"""(?:^|(?<=[\s"'`(\[{<=,:|‘“]))(?:-|[#@$£€¥~&]|\$\{|__|~?/|\.{0,2}/|\.(?!\.))+$""")
_SIGNS_AFTER = re.compile(r"(?:\(\)|\+{1,2}|#|%|__|°[CF]?|€)(?!\w)")
_CLOSING = {")": "(", "]": "[", "}": "{", ">": "<"}
MAX_SIGNS = 6  # in front of a word


def span_text(text: str, start: int, end: int) -> tuple[int, int]:
    """Extends a span, which begins and ends with a letter or digit, to the signs that belong to its first and last word.

    These are an option's dashes, the start of a path, a currency or percent sign, call brackets, and a bracket that closes
    one that the span contains.

    >>> text = "use `--port 80` in ~/.x"
    >>> [text[slice(*span_text(text, text.index(w), text.index(w) + len(w)))] for w in ("port 80", "x")]
    ['--port 80', '~/.x']
    """
    first = max(0, start - MAX_SIGNS)
    if before := _SIGNS_BEFORE.search(text[max(0, first - 1) : start]):
        if first == 0 or before.start():  # a longer run of signs is a line of dashes, not part of a word
            start -= before.end() - before.start()
    elif start and text[start - 1] in "$£€¥":
        start -= 1
    if after := _SIGNS_AFTER.match(text, end):
        end = after.end()
    inside = text[start:end]
    closing = text[end : end + 1]
    closes = closing in _CLOSING and inside.count(_CLOSING[closing]) > inside.count(closing)
    is_folder = closing == "/" and "/" in inside and "//" not in inside and not text[end + 1 : end + 2].isalnum()
    return start, end + (closes or is_folder)


def to_candidate(span: Span, passage: Passage, probability: float) -> Candidate:
    start, end = span_text(passage.text, span.start, span.end)
    text = passage.text[start:end]
    return Candidate(text, probability, Evidence(passage.id, start, end, text))
