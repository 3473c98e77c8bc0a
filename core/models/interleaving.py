"""AmbigPrompt's interleaved prompting as one attention function for T5, BERT and every encoder of the same interface.

Source: Sun et al. 2023, "Answering Ambiguous Questions via Iterative Prompting", section 3.1, Eq. 4 and 6.
Legend: B questions, N passages, R = N + 1 rows a question, L tokens a row, P prompt tokens (<= L), H heads, D width of a head.

Row 0 of a question is its prompt (question and previous answers), rows 1..N are its passages.  In each layer

- the prompt's queries see Cat(K(e), K(X)): the prompt itself and all passages of the question (Eq. 6),
- a passage's queries see Cat(K(E), K(x)): the prompt and the passage itself (Eq. 4).

`alone`: the prompt's queries see the prompt itself only, so that no row attends to the passages: prefix tuning, which Table 3 calls "w/o prompting model".

Two kinds of it.  `interleaved_attention` is the paper's equations, for training and for every checkpoint of our own.  `authors_attention` is what the
authors' released code computes (github.com/sunnweiwei/AmbigPrompt at 49383ac, modeling.py), for weights that were trained with it: T5 alone.

Differences of the first from the paper, all of them choices that it leaves open: X enters Eq. 6 through the layer's own key and value projections
(the paper prints the bare hidden states); a relative position bias (T5) applies inside a row and is 0 between rows, as it is for
prefixes in prompt-tuning, because tokens of different rows have no distance; padding rows and padding tokens are never seen.

Three layouts of the same computation, all with torch's fused attention, which keeps no matrix of scores.  `interleaved_attention` takes padded rows
(B * R, L) and does all rows at once, which suits a GPU; on a CPU at inference it takes row by row, each at its own length.  With `packed` the
rows come without padding at all, one after another in one long row (1, T): every layer of the encoder then computes real tokens only.  There a GPU
pads for the attention alone: half of a training batch is padding, and its other operations cost most.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import torch
from torch import Tensor, nn

from core.models.encoders.bert import Bert
from core.models.loading.pretrained import TRANSFORMERS

ATTENTION_NAME, AUTHORS_NAME = "ambiscope_interleaved", "ambiscope_authors"
Interleaving = Literal["paper", "authors"]


@dataclass(frozen=True)
class Packing:
    """The division of T tokens in one long row into rows.  `lengths` lists all rows, a question's rows next to each other, its
    prompt first.

    `rows`: R, rows a question; None: every row by itself.
    """

    lengths: tuple[int, ...]
    rows: int | None = None
    alone: bool = False

    def __post_init__(self) -> None:
        if self.rows is not None and len(self.lengths) % self.rows:
            raise ValueError(f"{len(self.lengths)} rows are not a multiple of {self.rows} rows a question")


def _real_tokens(mask: Tensor | None, like: Tensor) -> Tensor:
    """Marks the keys that are real tokens, (rows, L) boolean, from a boolean or additive mask (rows, 1, L or 1, L) or None."""
    rows, length = like.shape[0], like.shape[-2]
    if mask is None:
        return torch.ones(rows, length, dtype=torch.bool, device=like.device)
    keys = mask[:, 0, -1, :]  # an encoder's mask is the same for every query
    keys = keys if keys.dtype == torch.bool else keys > torch.finfo(keys.dtype).min / 2
    return keys.expand(rows, length)


def _hidden(real: Tensor, dtype: torch.dtype) -> Tensor:
    """The value added to the scores of keys: the lowest number for padding.  It isn't -inf, which would turn a row of padding
    alone into NaN."""
    return (~real).to(dtype) * torch.finfo(dtype).min


def _fused(
    query: Tensor, key: Tensor, value: Tensor, scaling: float, bias: Tensor | None = None, dropout: float = 0.0
) -> Tensor:
    """(rows, H, queries, D) over (rows, H, keys, D) by torch's fused kernels, which keep no matrix of scores; `bias` is added to the scores."""
    if bias is not None:  # under autocast a relative position bias stays in float32; the kernels need the biases of all queries
        bias = bias.to(query.dtype).expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
    # on a CPU the fused kernel's backward pass takes twice as long
    if query.device.type == "cpu" and torch.is_grad_enabled() and not dropout:
        scores = query * scaling @ key.transpose(-1, -2)
        return (scores if bias is None else scores + bias).softmax(-1) @ value
    return nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=bias, dropout_p=dropout, scale=scaling)


def _packed(
    query: Tensor, key: Tensor, value: Tensor, packing: Packing, scaling: float, position_bias: Tensor | None = None
) -> Tensor:
    """(1, H, T, D) -> (1, H, T, D).  Each row keeps its own length.  A question's rows are adjacent, so Eq. 6's keys are one
    slice."""

    def inside(length: int, before: int, after: int) -> Tensor | None:
        """The position bias of a row for its own keys, with 0 for the keys of the rows before and after it."""
        if position_bias is None:
            return None
        return nn.functional.pad(position_bias[..., :length, :length], (before, after))

    group = packing.rows or 1
    questions = [packing.lengths[i : i + group] for i in range(0, len(packing.lengths), group)]
    sizes = [sum(lengths) for lengths in questions]
    parts: list[Tensor] = []
    # split, not slices: the gradient of a slice is as long as the whole row, that of a split is one concatenation
    for lengths, size, q, k, v in zip(questions, sizes, *(t.split(sizes, dim=2) for t in (query, key, value))):
        own_q, own_k, own_v = (t.split(lengths, dim=2) for t in (q, k, v))
        p = lengths[0]
        if p and packing.alone:
            parts.append(_fused(own_q[0], own_k[0], own_v[0], scaling, inside(p, 0, 0)))
        elif p:  # Eq. 6: the prompt sees itself and all passages
            parts.append(_fused(own_q[0], k, v, scaling, inside(p, 0, size - p)))
        for row in range(1, group):  # Eq. 4: a passage sees the prompt and itself
            if lengths[row]:
                keys, values = torch.cat([own_k[0], own_k[row]], dim=2), torch.cat([own_v[0], own_v[row]], dim=2)
                parts.append(_fused(own_q[row], keys, values, scaling, inside(lengths[row], p, 0)))
    return torch.cat(parts, dim=2) if parts else torch.zeros_like(query)


@lru_cache(maxsize=2)  # every layer asks for the same
def _token_positions(lengths: tuple[int, ...], device: torch.device) -> tuple[Tensor, Tensor]:
    """(T,) positions in flattened padded rows (rows * L) of the tokens of packed rows; (rows, L) which positions hold a token."""
    longest = max(lengths)
    real = torch.arange(longest) < torch.tensor(lengths)[:, None]
    return real.flatten().nonzero().squeeze(1).to(device), real.to(device)


def _spread(
    query: Tensor, key: Tensor, value: Tensor, packing: Packing, scaling: float, position_bias: Tensor | None = None
) -> Tensor:
    """Computes the packed layout through the padded one, all rows at once: (1, H, T, D) -> (1, H, T, D)."""
    positions, real = _token_positions(packing.lengths, query.device)

    def padded(t: Tensor) -> Tensor:  # (1, H, T, D) -> (B * R, H, L, D)
        flat = t.new_zeros(real.numel(), t.shape[1], t.shape[3])
        return flat.index_copy(0, positions, t[0].transpose(0, 1)).unflatten(0, real.shape).transpose(1, 2)  # type: ignore[arg-type]

    out, _ = interleaved_attention(
        nn.Identity(),
        padded(query),
        padded(key),
        padded(value),
        real[:, None, None],
        scaling,
        position_bias=None if position_bias is None else position_bias[..., : real.shape[1], : real.shape[1]],
        rows=packing.rows,
        prompt_tokens=max(packing.lengths[:: packing.rows]) if packing.rows else None,
        alone=packing.alone,
    )
    return out.flatten(0, 1).index_select(0, positions).transpose(0, 1)[None]


def _row_lengths(real: Tensor) -> list[int] | None:
    """Real tokens of each row, or None if padding comes before or between them."""
    counts = real.sum(1)
    ends = torch.arange(1, real.shape[1] + 1, device=real.device)
    prefix = (real == (ends <= counts[:, None])).all()
    return [int(n) for n in counts.tolist()] if bool(prefix) else None


def _without_padding(
    query: Tensor, key: Tensor, value: Tensor, packing: Packing, scaling: float, position_bias: Tensor | None
) -> Tensor:
    """Computes the padded layout through the packed one: (B * R, H, L, D) -> the same, with zeros where there is no token."""
    q, k, v = (torch.cat([row[:, :n] for row, n in zip(t, packing.lengths)], 1)[None] for t in (query, key, value))
    out = torch.zeros_like(query)
    packed_rows = _packed(q, k, v, packing, scaling, position_bias)[0].split(packing.lengths, dim=1)
    for row, n, packed_row in zip(out, packing.lengths, packed_rows):
        row[:, :n] = packed_row
    return out


def interleaved_attention(
    module: nn.Module,
    query: Tensor,  # (B * R, H, L, D)
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    position_bias: Tensor | None = None,  # (1, H, L, L), T5 only; packed: L of the longest row
    rows: int | None = None,  # R; None: every row by itself
    prompt_tokens: int | None = None,  # P; tokens of row 0 beyond it are padding
    packed: Packing | None = None,  # the rows come in one long row, (1, H, T, D)
    alone: bool = False,
    **_: Any,
) -> tuple[Tensor, None]:
    """The registered attention function.  Returns (B * R, L, H, D), as transformers expects.

    Raises ValueError when the number of rows is not a multiple of `rows`.
    """
    total, heads, length, width = query.shape
    scaling = width**-0.5 if scaling is None else scaling
    dropout_rate = dropout if module.training else 0.0
    if packed is not None:
        if dropout_rate or total != 1 or sum(packed.lengths) != length:
            raise ValueError(
                f"{total} rows of {length} tokens for a packing of {sum(packed.lengths)}: packed rows come in one, without dropout"
            )
        attend = _spread if query.is_cuda else _packed
        return attend(query, key, value, packed, scaling, position_bias).transpose(1, 2).contiguous(), None
    real = _real_tokens(attention_mask, key)
    if rows is not None and total % rows:
        raise ValueError(f"{total} rows are not a multiple of {rows} rows a question")
    if query.device.type == "cpu" and not torch.is_grad_enabled() and not dropout_rate:
        lengths = _row_lengths(real)
        if lengths is not None:
            if rows is not None and rows > 1 and prompt_tokens is not None:
                lengths = [n if index % rows else min(n, prompt_tokens) for index, n in enumerate(lengths)]
            out = _without_padding(query, key, value, Packing(tuple(lengths), rows, alone), scaling, position_bias)
            return out.transpose(1, 2).contiguous(), None
    hidden = _hidden(real, query.dtype)
    if rows is None or rows == 1:
        bias = hidden[:, None, None] if position_bias is None else hidden[:, None, None] + position_bias
        return _fused(query, key, value, scaling, bias, dropout_rate).transpose(1, 2).contiguous(), None
    questions, n = total // rows, rows - 1
    p = length if prompt_tokens is None else min(prompt_tokens, length)
    q, k, v = (t.view(questions, rows, heads, length, width) for t in (query, key, value))
    hidden = hidden.view(questions, rows, 1, 1, length)
    prompt_hidden = hidden[:, :1, ..., :p]  # (B, 1, 1, 1, P)

    # Eq. 6: the prompt's queries over itself and over all passages of its question, one long row of keys a question
    others = 0 if alone else n
    k_all, v_all = (
        torch.cat([t[:, 0, :, :p], t[:, 1 : 1 + others].transpose(1, 2).flatten(2, 3)], dim=2) for t in (k, v)
    )  # (B, H, P + N * L, D)
    bias = torch.cat([prompt_hidden[:, 0], hidden[:, 1 : 1 + others, 0].reshape(questions, 1, 1, others * length)], dim=-1)
    if position_bias is not None:
        bias = bias + nn.functional.pad(position_bias[..., :p, :p], (0, others * length))
    e = _fused(q[:, 0, :, :p], k_all, v_all, scaling, bias, dropout_rate)  # (B, H, P, D)
    e = nn.functional.pad(e, (0, 0, 0, length - p))  # padding tokens of the prompt row: zeros, seen by nobody

    # Eq. 4: each passage's queries over the prompt and over itself
    k_own, v_own = (
        torch.cat([t[:, :1, :, :p].expand(-1, n, -1, -1, -1), t[:, 1:]], dim=3).flatten(0, 1) for t in (k, v)
    )  # (B * N, H, P + L, D)
    bias = torch.cat([prompt_hidden.expand(-1, n, -1, -1, -1), hidden[:, 1:]], dim=-1).flatten(0, 1)
    if position_bias is not None:
        bias = bias + nn.functional.pad(position_bias, (p, 0))
    x = _fused(q[:, 1:].flatten(0, 1), k_own, v_own, scaling, bias, dropout_rate)
    out = torch.cat([e[:, None], x.unflatten(0, (questions, n))], dim=1).view(total, heads, length, width)
    return out.transpose(1, 2).contiguous(), None


def authors_attention(
    module: nn.Module,
    query: Tensor,  # (B * R, H, L, D)
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    position_bias: Tensor | None = None,  # (1, H, L, L)
    rows: int | None = None,  # R
    **_: Any,
) -> tuple[Tensor, None]:
    """The attention of the authors' released code, a registered function as `interleaved_attention`.  Returns (B * R, L, H, D).

    Every score carries position bias and padding mask, those between rows too, but not always its own: the tables of the rows that a query sees are
    put below one another and read again as one wide table, without a transpose.  For a passage's queries these are the prompt's table and its
    own, (2 L, L) read as (L, 2 L); for the prompt's those of all rows, (R * L, L) read as (L, R * L).  So the tables are mixed over rows, and
    padding of one row hides tokens of others.  What comes out depends on R and L, padding included: give questions one by one.

    Raises ValueError without `rows` or a position bias (an encoder that is not a T5), and when the number of rows is no multiple of `rows`.
    """
    total, heads, length, width = query.shape
    if position_bias is None or rows is None or total % rows:
        raise ValueError(
            f"{total} rows for {rows} rows a question: the authors' attention takes rows of a T5, with its position bias"
        )
    scaling = width**-0.5 if scaling is None else scaling
    hidden = _hidden(_real_tokens(attention_mask, key), query.dtype)  # (B * R, L)
    bias = (position_bias + hidden[:, None, None, :]).view(-1, rows, heads, length, length)
    q, k, v = (t.view(-1, rows, heads, length, width) for t in (query, key, value))
    k_all, v_all = (t.transpose(1, 2).reshape(-1, heads, rows * length, width) for t in (k, v))
    mixed = bias.transpose(1, 2).reshape(-1, heads, length, rows * length)
    dropout_rate = dropout if module.training else 0.0
    e = _fused(q[:, 0], k_all, v_all, scaling, mixed, dropout_rate)  # (B, H, L, D)
    pair_k, pair_v = (torch.cat([t[:, :1].expand_as(t[:, 1:]), t[:, 1:]], dim=3) for t in (k, v))  # (B, N, H, 2 L, D)
    pair_bias = torch.cat([bias[:, :1].expand_as(bias[:, 1:]), bias[:, 1:]], dim=3)  # (B, N, H, 2 L, L)
    pair_bias = pair_bias.reshape(-1, rows - 1, heads, length, 2 * length)
    x = _fused(
        q[:, 1:].flatten(0, 1), pair_k.flatten(0, 1), pair_v.flatten(0, 1), scaling, pair_bias.flatten(0, 1), dropout_rate
    )
    out = torch.cat([e[:, None], x.unflatten(0, (-1, rows - 1))], dim=1).view(total, heads, length, width)
    return out.transpose(1, 2).contiguous(), None


_KINDS = {"paper": (ATTENTION_NAME, interleaved_attention), "authors": (AUTHORS_NAME, authors_attention)}


def use_interleaving(encoder: nn.Module, kind: Interleaving = "paper") -> nn.Module:
    """Switches an encoder (T5 stack, BertModel, our Bert, ...) to the interleaved attention.  Weights are untouched.

    Raises ValueError for the authors' kind where the encoder has no relative position bias of T5.
    """
    if kind == "authors" and not any(name.endswith("relative_attention_bias.weight") for name, _ in encoder.named_parameters()):
        raise ValueError(f"{type(encoder).__name__} has no relative position bias: the authors' attention is for T5 alone")
    if isinstance(encoder, Bert):
        encoder.attend = interleaved_attention
        return encoder
    with TRANSFORMERS:
        from transformers import AttentionInterface
        from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, AttentionMaskInterface

    name, function = _KINDS[kind]
    AttentionInterface.register(name, function)
    AttentionMaskInterface.register(name, ALL_MASK_ATTENTION_FUNCTIONS["sdpa"])  # a boolean padding mask
    encoder.set_attn_implementation(name)  # type: ignore[operator]
    return encoder
