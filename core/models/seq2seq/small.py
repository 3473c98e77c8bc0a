"""The small encoder-decoder: a MiniLM encoder, two thin decoder layers and a copy mechanism, 12 million weights in all.

Sources: pointer-generator (See, Liu and Manning 2017, Eq. 8-13); Fusion-in-Decoder (Izacard and Grave 2021) for what the decoder reads;
interleaved prompting as in AmbigPrompt (Sun et al. 2023).  It has the methods of core.models.seq2seq.network.FidNetwork, so FidAnswerer, FidTask and
core.models.seq2seq.decoding accept either.

p(y) = g p_vocabulary(y) + (1 - g) sum of the copy attention over source tokens that are y.  An answer is a run of source tokens, and a small
decoder learns slowly to resume where it was.  So the copy scores get exact features: whether the token before a source token is
the token written last (and the one before that too), and whether a source token was written before.  A span reader's scores for the first and
the last token of an answer are features as well: the start score where an answer begins, the end score in the gate, where one may end.
Legend: B questions, R rows, L tokens a row, P prompt tokens, S = P + N * L source tokens, T target tokens, d model width, V vocabulary and [EOI].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import torch
from torch import Tensor, nn

from core.errors import CheckpointError
from core.models.encoders.base import base_folder, load_base, loading
from core.models.interleaving import use_interleaving
from core.models.loading.files import digest, read_weights, save_weights
from core.models.loading.finding import SMALL_SEQ2SEQ, find_checkpoint, read_config
from core.models.loading.pretrained import pretrained
from core.models.seq2seq.network import IGNORED, FidBatch, Target, fan_out
from core.models.span.checkpoints import load_span_network
from core.models.span.network import Prompting
from core.models.span.rows import clip, pad, passage_rows, prompt_row
from core.types import EOI

LOWEST = -1e4  # lowest score: finite in half precision too


@dataclass(frozen=True)
class SmallConfig:
    """Lengths are in tokens.  `inner`: the total width of an attention's heads.  `max_tokens`: the length of a passage row, 512
    at most.

    `encoder`: a bundled span model whose unchanged encoder is used, so that the checkpoint holds only the decoder; `encoder_digest`:
    of its weights ("": own encoder).
    """

    base: str = "minilm"  # encoder whose frozen embeddings the checkpoint does not repeat
    encoder: str = ""
    encoder_digest: str = ""
    prompting: Prompting = "separate"
    max_tokens: int = 192
    max_prompt_tokens: int = 96
    max_question_tokens: int = 48
    max_answer_tokens: int = 48
    layers: int = 2
    heads: int = 4
    inner: int = 128
    feed_forward: int = 448
    target: Target = "step"

    def __post_init__(self) -> None:
        if self.target not in get_args(Target):
            raise ValueError(f"target is {self.target!r}; use {' or '.join(get_args(Target))}")
        if self.prompting not in ("interleaved", "separate"):
            raise ValueError(f"prompting is {self.prompting!r}; the small encoder-decoder has interleaved and separate")
        if not 32 <= self.max_tokens <= 512 or self.max_answer_tokens < 2:
            raise ValueError(
                f"max_tokens {self.max_tokens} must be 32..512 and max_answer_tokens {self.max_answer_tokens} at least 2"
            )
        if self.inner % self.heads or self.layers < 1:
            raise ValueError(
                f"inner {self.inner} must be a multiple of heads {self.heads}, and layers {self.layers} at least 1"
            )


@dataclass
class DecoderState:
    """State between decoding steps: the tokens so far (B, T), and values that depend only on the source."""

    ids: Tensor
    cross: list[tuple[Tensor, Tensor]]  # keys and values (B, H, S, D) a layer
    keys: Tensor  # (B, S, inner) of the copy scores
    edges: Tensor  # (B, S, 2) scores of an answer's start and end


class Attention(nn.Module):
    def __init__(self, width: int, config: SmallConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.q = nn.Linear(width, config.inner)
        self.k = nn.Linear(width, config.inner)
        self.v = nn.Linear(width, config.inner)
        self.o = nn.Linear(config.inner, width)

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)  # (B, H, *, D)

    def memory(self, source: Tensor) -> tuple[Tensor, Tensor]:
        return self._split(self.k(source)), self._split(self.v(source))

    def forward(self, x: Tensor, memory: tuple[Tensor, Tensor], mask: Tensor) -> Tensor:
        out = nn.functional.scaled_dot_product_attention(self._split(self.q(x)), *memory, attn_mask=mask)
        return self.o(out.transpose(1, 2).flatten(2))


class DecoderLayer(nn.Module):
    def __init__(self, width: int, config: SmallConfig) -> None:
        super().__init__()
        self.before_own, self.own = nn.LayerNorm(width), Attention(width, config)
        self.before_cross, self.cross = nn.LayerNorm(width), Attention(width, config)
        self.feed = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, config.feed_forward), nn.GELU(), nn.Linear(config.feed_forward, width)
        )

    def forward(self, x: Tensor, memory: tuple[Tensor, Tensor], source_mask: Tensor, causal: Tensor) -> Tensor:
        normed = self.before_own(x)
        x = x + self.own(normed, self.own.memory(normed), causal)
        x = x + self.cross(self.before_cross(x), memory, source_mask)
        return x + self.feed(x)


class SmallSeq2Seq(nn.Module):
    """`forward` gives log probabilities (B, T, V), which can be used as logits.  `eoi`, `start`, `end`, `separator`: token ids."""

    def __init__(self, encoder: nn.Module, config: SmallConfig, tokenizer: Any) -> None:
        super().__init__()
        self.encoder = use_interleaving(encoder) if config.prompting == "interleaved" else encoder
        self.config = config
        width = int(encoder.config.hidden_size)  # type: ignore[union-attr, arg-type]
        vocabulary = int(encoder.config.vocab_size)  # type: ignore[union-attr, arg-type]
        self.eoi = vocabulary  # [EOI] comes after the base's own tokens
        self.start, self.end = int(tokenizer.cls_token_id), int(tokenizer.eos_token_id)
        (self.separator,) = tokenizer(";", add_special_tokens=False)["input_ids"]
        self.uncopied = sorted({self.start, self.end, int(tokenizer.pad_token_id)})
        self.eoi_vector = nn.Parameter(torch.randn(1, width) * 0.02)
        self.position = nn.Parameter(torch.randn(config.max_answer_tokens + 1, width) * 0.02)
        self.enter = nn.LayerNorm(width)
        self.layers = nn.ModuleList(DecoderLayer(width, config) for _ in range(config.layers))
        self.leave = nn.LayerNorm(width)
        self.word = nn.Linear(width, width)  # state -> the space of the frozen embeddings
        self.word_bias = nn.Parameter(torch.zeros(vocabulary + 1))
        self.gate = nn.Linear(width, 1)
        self.query, self.key = nn.Linear(width, config.inner), nn.Linear(width, config.inner)
        self.edge = nn.Linear(width, 2)  # scores of an answer's start and end at a source token
        self.close = nn.Parameter(torch.tensor(0.5))  # weight of the end score in the gate
        self.hints = nn.Linear(width, 4)  # state -> weights of the four exact features of a source token
        nn.init.zeros_(self.hints.weight)
        with torch.no_grad():
            self.hints.bias.copy_(torch.tensor([3.0, 2.0, -1.0, 1.0]))
            self.word_bias[[self.end, self.separator, self.eoi]] = 4.0
        nn.init.constant_(self.gate.bias, -1.0)

    # ------------------------------------------------------------ reading

    uncased = True  # answers come back in lower case (core.models.seq2seq.decoding.in_passage_words)

    def collate(
        self,
        tokenizer: Any,
        jobs: Sequence[tuple[str, Sequence[tuple[str, str]], Sequence[str]]],
        max_tokens: int | None = None,
    ) -> FidBatch:
        """One batch of jobs (question, passages, previous answers).  A passage longer than a row becomes several rows.

        `max_tokens`: of the first passage, which is then read in rows as long as the base allows; further tokens are ignored.
        """
        config = self.config
        if max_tokens:
            longest = int(self.encoder.config.max_position_embeddings)  # type: ignore[union-attr, arg-type]
            jobs = [(q, [(title, clip(tokenizer, text, max_tokens)) for title, text in pairs], a) for q, pairs, a in jobs]
            config = replace(config, max_tokens=min(max_tokens, longest))
        prompts = [
            prompt_row(tokenizer, question, previous, config.max_prompt_tokens, config.max_question_tokens)
            for question, _, previous in jobs
        ]
        rows_of = [
            passage_rows(tokenizer, question, passages, config.max_tokens, config.max_question_tokens)
            for question, passages, _ in jobs
        ]
        count = 1 + max(map(len, rows_of))
        ids: list[list[int]] = []
        types: list[list[int]] = []
        for (prompt, prompt_types), rows in zip(prompts, rows_of):
            padding: list[list[int]] = [[]] * (count - 1 - len(rows))
            ids += [prompt, *rows.input_ids, *padding]
            types += [prompt_types, *rows.token_type_ids, *padding]
        length = max(len(row) for row in ids)
        return FidBatch(
            input_ids=pad(ids, length, int(tokenizer.pad_token_id)),
            mask=pad([[True] * len(row) for row in ids], length, False),
            rows=count,
            prompt_tokens=max(len(p) for p, _ in prompts),
            steps=torch.tensor([len(previous) for _, _, previous in jobs]),
            types=pad(types, length),
        )

    def encode(self, batch: FidBatch) -> tuple[Tensor, Tensor]:
        """Cat(E, X) (B, S, d) and its mask (B, S).  The mask carries the source tokens as token id + 1, with 0 for padding."""
        p, rows = batch.prompt_tokens, batch.rows
        extra = {"rows": rows, "prompt_tokens": p} if self.config.prompting == "interleaved" else {}
        states = self.encoder(
            input_ids=batch.input_ids, token_type_ids=batch.types, attention_mask=batch.mask.long(), **extra
        ).last_hidden_state
        states = states.view(-1, rows, *states.shape[1:])
        source = ((batch.input_ids + 1) * batch.mask).view(-1, rows, batch.mask.shape[1])
        x = states[:, 1:].reshape(states.shape[0], -1, states.shape[-1])
        return torch.cat([states[:, 0, :p], x], dim=1), torch.cat([source[:, 0, :p], source[:, 1:].flatten(1)], dim=1)

    # ------------------------------------------------------------ writing

    def _words(self) -> Tensor:
        """(V, d): the frozen embeddings, and [EOI]'s."""
        encoder: Any = self.encoder
        embeddings: Tensor = encoder.embeddings.word_embeddings.weight
        return torch.cat([embeddings, self.eoi_vector.to(embeddings.dtype)])

    def decode(self, states: Tensor, mask: Tensor, ids: Tensor, cache: Any = None, keep: bool = False) -> Any:
        """Logits (B, T, V) of the decoder inputs `ids` (B, T); with `keep`, `past_key_values` is the next call's `cache`.

        The previous tokens are few and are read again at each call, which costs less than caching their states; what depends on the source is cached.
        """
        if cache is None:
            cross = [layer.cross.memory(states) for layer in self.layers]  # type: ignore[union-attr, operator]
            cache = DecoderState(ids[:, :0], cross, self.key(states), self.edge(states))
        so_far = torch.cat([cache.ids, ids], dim=1)
        logits = self._logits(mask, so_far, cache)[:, -ids.shape[1] :]
        return SimpleNamespace(logits=logits, past_key_values=replace(cache, ids=so_far) if keep else None)

    @staticmethod
    def repeat_cache(cache: DecoderState, k: int) -> DecoderState:
        """Each question K times in a row."""
        cross = [(fan_out(a, k), fan_out(b, k)) for a, b in cache.cross]
        return DecoderState(fan_out(cache.ids, k), cross, fan_out(cache.keys, k), fan_out(cache.edges, k))

    def _logits(self, mask: Tensor, ids: Tensor, state: DecoderState) -> Tensor:
        length, words = ids.shape[1], self._words()
        causal = torch.ones(length, length, dtype=torch.bool, device=ids.device).tril()
        positions = self.position[torch.arange(length, device=ids.device).clamp(max=self.position.shape[0] - 1)]
        x = self.enter(words[ids] + positions)  # (B, T, d)
        source_mask = (mask > 0)[:, None, None]  # (B, 1, 1, S)
        for layer, memory in zip(self.layers, state.cross):
            x = layer(x, memory, source_mask, causal)
        x = self.leave(x)
        copied, closing = self._copy(x, mask, ids, state)  # (B, T, S), (B, T)
        gate = self.gate(x).float() + (self.close * closing)[..., None]  # (B, T, 1)
        generated = (self.word(x) @ words.t() + self.word_bias).float().log_softmax(-1) + nn.functional.logsigmoid(gate)
        # padding has no weight, so its index (0) does not matter
        source = (mask - 1).clamp(min=0)[:, None].expand(-1, length, -1)
        copied_mass = torch.zeros_like(generated).scatter_add(2, source, copied) * torch.sigmoid(-gate)
        return torch.logaddexp(generated, copied_mass.clamp(min=1e-9).log())

    def _copy(self, x: Tensor, mask: Tensor, ids: Tensor, state: DecoderState) -> tuple[Tensor, Tensor]:
        """(B, T, S) copy attention, 0 at padding and special tokens, and (B, T) scores of an answer's end at the last token written."""
        scores = (self.query(x) @ state.keys.transpose(1, 2)).float() / math.sqrt(self.config.inner)
        source = mask - 1  # (B, S) token ids, -1 at padding
        before = nn.functional.pad(source[:, :-1], (1, 0), value=-1)
        second = nn.functional.pad(source[:, :-2], (2, 0), value=-1)
        last = ids  # (B, T): the token written just before each target position
        earlier = nn.functional.pad(ids[:, :-1], (1, 0), value=-2)
        follows_last = before[:, None] == last[:, :, None]  # (B, T, S)
        follows_two = follows_last & (second[:, None] == earlier[:, :, None])
        appeared = (source[:, None] == last[:, :, None]).cumsum(1) > 0
        starts_answer = ((last == self.start) | (last == self.separator))[:, :, None]
        # whether the last token written is an answer's first
        after_first = nn.functional.pad(starts_answer[:, :-1], (0, 0, 1, 0), value=False)
        weights = self.hints(x).float()  # (B, T, 4)
        exact = (follows_last & ~starts_answer, follows_two & ~starts_answer, appeared)
        for k, feature in enumerate(exact):
            scores = scores + weights[..., k : k + 1] * feature
        starts, ends = state.edges.float().unbind(-1)  # (B, S)
        scores = scores + weights[..., 3:] * starts_answer * starts[:, None]
        # source tokens from which the last token may have been copied
        is_copy = (source[:, None] == last[:, :, None]) & ~starts_answer
        is_exact_copy = is_copy & (after_first | (before[:, None] == earlier[:, :, None]))
        closing = ends[:, None].expand_as(scores).masked_fill(~is_exact_copy, LOWEST).amax(-1)
        closing = closing.masked_fill(~is_exact_copy.any(-1), 0.0)
        hidden = source < 0
        for token in self.uncopied:
            hidden = hidden | (source == token)
        attention = scores.masked_fill(hidden[:, None], LOWEST).softmax(-1)
        return attention.masked_fill(hidden[:, None], 0.0), closing

    def forward(self, batch: FidBatch, labels: Tensor, encoded: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """`labels` (B, T): target, end of sequence, then IGNORED. `encoded`: the cached result of `encode` for the batch, if
        any."""
        states, mask = encoded or self.encode(batch)
        before = labels.new_full((labels.shape[0], 1), self.start)
        inputs = torch.cat([before, labels[:, :-1].masked_fill(labels[:, :-1] == IGNORED, self.end)], dim=1)
        logits: Tensor = self.decode(states, mask, inputs).logits
        return logits


# ---------------------------------------------------------------- making, saving, loading


def small_tokenizer(base: str) -> Any:
    """The base's tokenizer with [EOI] and with [SEP] as the end of a sequence.  Raises CheckpointError."""
    with loading(f"the tokenizer of base model '{base}'"):
        tokenizer = pretrained("AutoTokenizer", base_folder(base), use_fast=True)
    tokenizer.add_special_tokens({"additional_special_tokens": [EOI]}, replace_extra_special_tokens=False)
    tokenizer.eos_token = tokenizer.sep_token
    tokenizer.model_max_length = 1 << 30  # lengths are limited elsewhere
    return tokenizer


def make_small(config: SmallConfig | None = None, encoder: Any = None, seed: int = 0) -> tuple[SmallSeq2Seq, Any]:
    """(network, tokenizer): a new decoder over the base's encoder, or over the given encoder."""
    config = config or SmallConfig()
    tokenizer = small_tokenizer(config.base)
    torch.manual_seed(seed)
    network = SmallSeq2Seq(load_base(config.base) if encoder is None else encoder, config, tokenizer)
    if int(tokenizer.convert_tokens_to_ids(EOI)) != network.eoi:
        raise ValueError(f"the tokenizer of '{config.base}' does not fit its embeddings: [EOI] is not the token after the last")
    return network, tokenizer


def from_span(span: Any, config: SmallConfig | None = None, seed: int = 0) -> tuple[SmallSeq2Seq, Any]:
    """A new decoder over the encoder of a trained SpanNetwork (bundled reader or answerer), with its start and end scores."""
    config = replace(config or SmallConfig(), base=span.config.base)
    network, tokenizer = make_small(config, span.encoder, seed)
    with torch.no_grad():
        network.edge.weight.copy_(span.head.edges.weight)
        network.edge.bias.copy_(span.head.edges.bias)
    return network, tokenizer


def with_own_encoder(network: SmallSeq2Seq) -> None:
    """Marks the encoder as trained here, so that the checkpoint contains it."""
    network.config = replace(network.config, encoder="", encoder_digest="")


def _shared_encoder(config: SmallConfig) -> Any:
    """The encoder of the bundled span model in the configuration.  Raises CheckpointError if its weights have changed."""
    folder = find_checkpoint(config.encoder, config.encoder)
    if (current := digest(folder)) != config.encoder_digest:
        raise CheckpointError(
            f"this decoder was trained over the encoder of checkpoint '{config.encoder}' with the weights {config.encoder_digest}, and that "
            f"has the weights {current} now; train it again with --init small:{config.encoder}"
        )
    return load_span_network(folder).encoder


def _prefix_elsewhere(config: SmallConfig) -> str:
    """The prefix of the weight names that another checkpoint or the base holds."""
    return "encoder." if config.encoder else "encoder.embeddings."


def save_small(network: nn.Module, folder: Path, about: dict[str, Any] | None = None) -> None:
    assert isinstance(network, SmallSeq2Seq)
    prefix = _prefix_elsewhere(network.config)
    weights = {name: tensor for name, tensor in network.state_dict().items() if not name.startswith(prefix)}
    save_weights(weights, folder, {"kind": SMALL_SEQ2SEQ, "config": asdict(network.config), "about": about or {}})


def load_small(folder: Path, config: SmallConfig | None = None) -> tuple[SmallSeq2Seq, Any]:
    """`config` replaces the stored one.  Raises CheckpointError, OSError, ValueError, KeyError, TypeError or SafetensorError if
    something doesn't fit."""
    stored_config = SmallConfig(**read_config(folder)["config"])
    network, tokenizer = make_small(config or stored_config, _shared_encoder(stored_config) if stored_config.encoder else None)
    missing, unexpected = network.load_state_dict(read_weights(folder), strict=False)
    missing = [name for name in missing if not name.startswith(_prefix_elsewhere(stored_config))]
    if missing or unexpected:
        raise ValueError(f"weights do not fit the network: missing {missing[:3]}, unexpected {list(unexpected)[:3]}")
    return network.eval(), tokenizer
