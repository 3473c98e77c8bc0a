"""The network of SpanAnswerer and PassageReader: an encoder, a span head and a "no answer" score.

Sources: interleaved prompting as in AmbigPrompt (Sun et al. 2023, section 3.1); the answering head reads Cat(E, X) (Eq. 7).  The paper's head
is a decoder; here start, end and span scores over every passage token and one [EOI] score share ONE softmax, so a step needs no
autoregressive decoding and each answer comes with its span.
Legend: B questions, N passage rows, R = N + 1 rows, L tokens a row, P prompt tokens, d model width, W longest answer in tokens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from core.models.encoders.low_rank import adapt, differences, merge
from core.models.interleaving import Packing, use_interleaving

Prompting = Literal["interleaved", "separate", "learned"]


@dataclass(frozen=True)
class SpanConfig:
    """`prompting`: the paper's mechanism, or one of its ablations (Table 3).  Lengths are in tokens."""

    base: str = "minilm"  # encoder; its frozen embeddings are not in the checkpoint
    prompting: Prompting = "interleaved"
    max_tokens: int = 192
    max_prompt_tokens: int = 96
    max_answer_tokens: int = 16
    span_width: int = 64  # width of the start-end interaction
    learned_steps: int = 8  # prompting="learned": one prompt for each step
    learned_tokens: int = 16
    rank: int = 0  # of the trained low-rank updates in all layers; 0: all weights of the layers are trained

    def __post_init__(self) -> None:
        if self.prompting not in ("interleaved", "separate", "learned"):
            raise ValueError(f"prompting is {self.prompting!r}; use interleaved, separate or learned")
        if not 0 <= self.rank <= 256:
            raise ValueError(f"rank is {self.rank}; it must be 0 (off) to 256")
        if not 32 <= self.max_tokens <= 512 or not 1 <= self.max_answer_tokens < self.max_tokens:
            raise ValueError(
                f"max_tokens {self.max_tokens} must be 32..512 and larger than max_answer_tokens {self.max_answer_tokens}"
            )


@dataclass
class RowBatch:
    """Inputs of B questions, R rows each; row 0 of a question is its prompt (absent for the reader: `prompted` False)."""

    input_ids: Tensor  # (B * R, L)
    token_type_ids: Tensor  # (B * R, L)
    mask: Tensor  # (B * R, L) boolean, real tokens
    starts: Tensor  # (B * R, L) boolean, spans may start here; False in prompt and padding rows
    ends: Tensor
    rows: int  # R
    prompt_tokens: int  # P
    prompted: bool
    steps: Tensor | None = None  # (B,) index of the step, for prompting="learned"

    def questions(self, part: slice) -> RowBatch:
        """A slice of the questions; R and L do not change."""
        rows = slice(part.start * self.rows, part.stop * self.rows)
        tensors = {k: v for k, v in vars(self).items() if isinstance(v, Tensor)}
        selected: dict[str, Any] = {k: v[part if k == "steps" else rows] for k, v in tensors.items()}
        return replace(self, **selected)

    def to(self, device: torch.device) -> RowBatch:
        moved: dict[str, Any] = {k: v.to(device) for k, v in vars(self).items() if isinstance(v, Tensor)}
        return replace(self, **moved)


class SpanHead(nn.Module):
    """score(s, e) = start(s) + end(e) + <A h_s, B h_e> / sqrt(span_width) + length(e - s), and one "no answer" score."""

    def __init__(self, width: int, config: SpanConfig) -> None:
        super().__init__()
        self.config = config
        self.edges = nn.Linear(width, 2)
        self.first = nn.Linear(width, config.span_width)
        self.last = nn.Linear(width, config.span_width)
        self.length = nn.Parameter(torch.zeros(config.max_answer_tokens))
        self.nothing = nn.Sequential(nn.Linear(2 * width, width), nn.GELU(), nn.Linear(width, 1))
        self.look = nn.Linear(width, width, bias=False)  # prompt state -> query over Cat(E, X)
        self.recall = nn.MultiheadAttention(width, 4, batch_first=True, bias=False)  # passage tokens attend to E
        nn.init.normal_(self.look.weight, std=0.02)

    def spans(self, x: Tensor, starts: Tensor, ends: Tensor) -> Tensor:
        """(rows, L, d) -> (rows, L, W) scores of spans that start at l and are 1..W tokens long; -inf where not allowed."""
        rows, length, _ = x.shape
        window = min(self.config.max_answer_tokens, length)
        edge = self.edges(x)
        pair = self.first(x) @ self.last(x).transpose(1, 2) / math.sqrt(self.config.span_width)  # (rows, L, L)
        full = (pair + edge[..., :1] + edge[..., 1].unsqueeze(1)).float()
        full = full.masked_fill(~(starts.unsqueeze(2) & ends.unsqueeze(1)), float("-inf"))
        full = nn.functional.pad(full, (0, window), value=float("-inf"))  # so that a band of W stays within the row
        index = torch.arange(length, device=x.device)[:, None] + torch.arange(window, device=x.device)  # (L, W)
        band = full.gather(2, index.expand(rows, length, window))
        return band + self.length[:window].float()

    def remember(self, x: Tensor, e: Tensor, prompt_mask: Tensor) -> Tensor:
        """Passage tokens (B, S, d) attend to the prompt E (B, P, d): the head reads Cat(E, X).

        Computes `recall` in an order suited to few keys and many queries, with only the projections that the H * P keys need.  (Calling the
        module would also import sympy, which takes a second, to check the mask's shape.)
        """
        recall = self.recall
        to_q, to_k, to_v = (w.unflatten(0, (recall.num_heads, -1)) for w in recall.in_proj_weight.chunk(3))  # (H, D, d) each
        out_of = recall.out_proj.weight.unflatten(1, (recall.num_heads, -1))  # (d, H, D)
        keys = torch.einsum("bpd,hkd,hkc->bhpc", e, to_k, to_q) / math.sqrt(recall.head_dim)
        values = torch.einsum("bpd,hkd,chk->bhpc", e, to_v, out_of)
        scores = (x @ keys.flatten(1, 2).transpose(1, 2)).unflatten(-1, (recall.num_heads, -1))  # (B, S, H, P)
        weights = scores.float().masked_fill(~prompt_mask[:, None, None, :], float("-inf")).softmax(-1).to(x.dtype)
        return x + weights.flatten(2) @ values.flatten(1, 2)

    def eoi(self, e: Tensor, x: Tensor, real: Tensor) -> Tensor:
        """(B,) the [EOI] score, computed from the prompt's first state and its attention over Cat(E, X).  `real` (B, N * L)
        marks real tokens."""
        query = self.look(e[:, 0])  # (B, d)
        scores = (x @ query.unsqueeze(-1)).squeeze(-1) / math.sqrt(x.shape[-1])
        weights = torch.softmax(scores.float().masked_fill(~real, float("-inf")), dim=-1).to(x.dtype)
        pooled = (weights.unsqueeze(1) @ x).squeeze(1)
        return self.nothing(torch.cat([e[:, 0], pooled], dim=-1)).squeeze(-1).float()


def with_learned_prompts(
    embedded: Tensor, mask: Tensor, rows: int, prompts: Tensor, steps: Tensor
) -> tuple[dict[str, Any], Tensor]:
    """Ablation "w/o prompting model" (Table 3): row 0 holds a learned prompt for the step (Liu et al. 2021) and sees itself only; the passages see it.

    From embedded tokens (B * R, L, d), their mask (B * R, L), `rows` R, prompts (steps, tokens, d) and the steps (B,) of the questions: inputs of an
    interleaved encoder, and the mask with the prompts.
    """
    length = mask.shape[1]
    tokens = min(prompts.shape[1], length)
    by_question = embedded.view(-1, rows, *embedded.shape[1:]).clone()
    by_question[:, 0, :tokens] = prompts[steps.clamp(max=len(prompts) - 1), :tokens].to(embedded.dtype)
    by_row = mask.view(-1, rows, length).clone()
    by_row[:, 0] = torch.arange(length, device=mask.device) < tokens
    inputs = {"inputs_embeds": by_question.view_as(embedded), "rows": rows, "prompt_tokens": tokens, "alone": True}
    return inputs, by_row.view_as(mask)


class SpanNetwork(nn.Module):
    """Encoder and head.  `forward` returns span scores (B, N, L, W) and "no answer" scores: (B,) when prompted, (B, N) for the
    reader."""

    def __init__(self, encoder: nn.Module, config: SpanConfig) -> None:
        super().__init__()
        self.encoder = use_interleaving(encoder)
        self.config = config
        if config.rank:
            adapt(encoder, len(encoder.encoder.layer), config.rank)  # type: ignore[union-attr, arg-type]
        width = int(encoder.config.hidden_size)  # type: ignore[union-attr, arg-type]
        self.head = SpanHead(width, config)
        if config.prompting == "learned":
            self.prompts = nn.Parameter(torch.randn(config.learned_steps, config.learned_tokens, width) * 0.02)

    def trained(self) -> dict[str, Tensor]:
        """The weights that the base does not have, by name."""
        weights = {n: t for n, t in self.state_dict().items() if ".embeddings." not in n}
        if self.config.rank:
            weights = {n: t for n, t in weights.items() if not n.startswith("encoder.")} | differences(self)
        return weights

    def merge(self) -> None:
        """Adds low-rank updates to the matrices for inference.  The network can't be trained any further."""
        merge(self.encoder, self.encoder.config.num_hidden_layers)  # type: ignore[union-attr, arg-type]

    def encode(self, batch: RowBatch) -> Tensor:
        """(B * R, L, d) states of the last layer."""
        prompting = self.config.prompting if batch.prompted else "separate"
        mask = batch.mask
        if prompting == "learned":
            assert batch.steps is not None
            embedded = self.encoder.embeddings.word_embeddings(batch.input_ids)  # type: ignore[union-attr, operator]
            inputs, mask = with_learned_prompts(embedded, mask, batch.rows, self.prompts, batch.steps)
        elif self._packs():
            return self._encode_packed(batch, batch.rows if prompting == "interleaved" else None)
        else:
            inputs = {"input_ids": batch.input_ids}
            if prompting == "interleaved":
                inputs |= {"rows": batch.rows, "prompt_tokens": batch.prompt_tokens}
        return self.encoder(token_type_ids=batch.token_type_ids, attention_mask=mask.long(), **inputs).last_hidden_state

    def _packs(self) -> bool:
        """Whether to compute real tokens only, because padding costs as much as text.  Our encoders take explicit positions."""
        return self.encoder.config.model_type in ("bert", "mpnet")  # type: ignore[union-attr, operator]

    def _encode_packed(self, batch: RowBatch, rows: int | None) -> Tensor:
        """The same states as with padded rows, with zeros at padding."""
        mask = batch.mask
        positions = torch.arange(mask.shape[1], device=mask.device).expand_as(mask)
        out = self.encoder(
            input_ids=batch.input_ids[mask][None],  # (1, T): the tokens of all rows, concatenated
            token_type_ids=batch.token_type_ids[mask][None],
            position_ids=positions[mask][None],
            packed=Packing(tuple(mask.sum(1).tolist()), rows),
        )
        packed: Tensor = out.last_hidden_state[0]
        states = packed.new_zeros(*mask.shape, packed.shape[-1])
        states[mask] = packed
        return states

    def forward(self, batch: RowBatch) -> tuple[Tensor, Tensor]:
        return self.read_off(batch, self.encode(batch))

    def read_off(self, batch: RowBatch, states: Tensor) -> tuple[Tensor, Tensor]:
        """The head's scores from states (B * R, L, d) of `encode`."""
        length, width = states.shape[1:]
        if not batch.prompted:  # the per-passage reader: each row separately, [CLS] for "no answer"
            spans = self.head.spans(states, batch.starts, batch.ends)
            nothing = self.head.nothing(torch.cat([states[:, 0], states[:, 0]], dim=-1)).squeeze(-1).float()
            return spans.view(-1, batch.rows, *spans.shape[1:]), nothing.view(-1, batch.rows)
        by_question = states.view(-1, batch.rows, length, width)
        p = min(self.config.learned_tokens, length) if self.config.prompting == "learned" else batch.prompt_tokens
        e = by_question[:, 0, :p]
        mask = batch.mask.view(-1, batch.rows, length)
        prompt_mask = mask[:, 0, :p] if self.config.prompting != "learned" else torch.ones_like(mask[:, 0, :p])
        starts, ends = (t.view(-1, batch.rows, length)[:, 1:].reshape(-1, length) for t in (batch.starts, batch.ends))
        x = by_question[:, 1:].flatten(1, 2)  # (B, N * L, d): all passages of a question in one row
        x = self.head.remember(x, e, prompt_mask)  # reads Cat(E, X)
        eoi = self.head.eoi(e, x, mask[:, 1:].flatten(1))
        spans = self.head.spans(x.reshape(-1, length, width), starts, ends)
        return spans.view(len(e), batch.rows - 1, *spans.shape[1:]), eoi
