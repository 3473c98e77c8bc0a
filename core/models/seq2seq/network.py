"""The network of FidAnswerer: any encoder-decoder of transformers, its encoder with interleaved prompting, its decoder over Cat(E, X).

Sources: Fusion-in-Decoder (Izacard and Grave 2021, github.com/facebookresearch/FiD, src/data.py for the text of a row); interleaved prompting as in
AmbigPrompt (Sun et al. 2023, Eq. 4, 6 and 7).  A row holds a whole passage or as much of it as fits, as in FiD.
Legend: B questions, N passages, R = N + 1 rows a question, L tokens a row, P prompt tokens, T tokens of an answer, d model width.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from core.models.interleaving import Interleaving, Packing, use_interleaving
from core.models.loading.pretrained import TRANSFORMERS
from core.models.seq2seq.cross_attention import read_states
from core.models.span.network import Prompting, with_learned_prompts
from core.models.span.rows import clip, pad, prompt_text

# the trained output: one answer or [EOI], the whole answer set, or a disambiguated question
Target = Literal["step", "spliced", "question"]
Template = Literal["fid", "ambigprompt"]  # the text of a row: as in FiD's code or in AmbigPrompt's
IGNORED = -100  # label of positions without a loss, as in transformers


@dataclass(frozen=True)
class FidConfig:
    """`prompting`: the paper's mechanism, or one of its ablations (Table 3), named as in SpanConfig.  Lengths are in tokens."""

    prompting: Prompting = "interleaved"
    max_tokens: int = 250  # FiD's text_maxlength
    max_prompt_tokens: int = 128
    max_question_tokens: int = 48
    max_answer_tokens: int = 24
    learned_steps: int = 8  # prompting="learned": one prompt for each step
    learned_tokens: int = 16
    target: Target = "step"
    template: Template = "fid"
    # the paper's equations, or what the authors' code computes, for weights trained with it (core.models.interleaving)
    attention: Interleaving = "paper"

    def __post_init__(self) -> None:
        for name, kind in (("template", Template), ("target", Target), ("prompting", Prompting), ("attention", Interleaving)):
            *others, last = get_args(kind)
            if getattr(self, name) not in (*others, last):
                raise ValueError(f"{name} is {getattr(self, name)!r}; use {', '.join(others)} or {last}")
        if self.attention == "authors" and self.prompting != "interleaved":
            raise ValueError(f"prompting is {self.prompting!r}; the authors' attention is interleaved")
        if self.max_tokens < 8 or self.max_prompt_tokens < 8 or self.max_answer_tokens < 2:
            raise ValueError(
                f"max_tokens {self.max_tokens} and max_prompt_tokens {self.max_prompt_tokens} must be at least 8, "
                f"max_answer_tokens {self.max_answer_tokens} at least 2"
            )
        if self.learned_steps < 1 or self.learned_tokens < 1:
            raise ValueError(f"learned_steps {self.learned_steps} and learned_tokens {self.learned_tokens} must be at least 1")


@dataclass
class FidBatch:
    """Inputs of B questions, R rows each; row 0 of a question is its prompt."""

    input_ids: Tensor  # (B * R, L)
    mask: Tensor  # (B * R, L) boolean, real tokens
    rows: int  # R
    prompt_tokens: int  # P
    steps: Tensor  # (B,) number of previous answers: picks the learned prompt
    types: Tensor | None = None  # (B * R, L) token types, for encoders that have them
    key: tuple[int, int] | None = None  # of the batch in its training data, where it comes again

    def to(self, device: torch.device) -> FidBatch:
        moved: dict[str, Any] = {k: v.to(device) for k, v in vars(self).items() if isinstance(v, Tensor)}
        return replace(self, **moved)


def row_texts(question: str, passages: Sequence[tuple[str, str]], previous: Sequence[str], template: str = "fid") -> list[str]:
    """The prompt row and one row for each passage as text, (title, text) each.  AmbigPrompt's code lower-cases the question."""
    if template == "ambigprompt":
        question = question.lower().strip()
        prompt = f"Question: {question} ## Previous Answers: {prompt_text(previous)}".rstrip()
        return [prompt, *(f"Question: {question} ## Passage: {f'{title} {text}'.strip()}" for title, text in passages)]
    prompt = f"question: {question} answers: {prompt_text(previous)}".rstrip()
    return [prompt, *(f"question: {question} title: {title} context: {text}" for title, text in passages)]


def collate_fid(
    tokenizer: Any, config: FidConfig, jobs: Sequence[tuple[str, Sequence[tuple[str, str]], Sequence[str]]]
) -> FidBatch:
    """One batch of jobs (question, passages, previous answers).  Questions with fewer passages are padded with empty rows."""
    count = 1 + max(len(passages) for _, passages, _ in jobs)
    ids: list[list[int]] = []
    p = 0
    for question, passages, previous in jobs:
        prompt, *passage_texts = row_texts(
            clip(tokenizer, question, config.max_question_tokens), passages, previous, config.template
        )
        first = tokenizer(prompt, truncation=True, max_length=config.max_prompt_tokens)["input_ids"]
        others = tokenizer(passage_texts, truncation=True, max_length=config.max_tokens)["input_ids"] if passage_texts else []
        ids += [first, *others, *([[]] * (count - 1 - len(passages)))]
        p = max(p, len(first))
    length = max(len(row) for row in ids)
    if config.prompting == "learned":  # row 0 must have room for the learned prompt
        length = max(length, config.learned_tokens)
    return FidBatch(
        input_ids=pad(ids, length, int(tokenizer.pad_token_id)),
        mask=pad([[True] * len(row) for row in ids], length, False),
        rows=count,
        prompt_tokens=p,
        steps=torch.tensor([len(previous) for _, _, previous in jobs]),
    )


@contextmanager
def encoding(
    answerer: Any, jobs: Sequence[tuple[str, Sequence[tuple[str, str]], Sequence[str]]], max_tokens: int | None = None
) -> Iterator[tuple[Tensor, Tensor]]:
    """States and mask of jobs (question, passages, previous answers), from the network and tokenizer of a FidAnswerer.  Its
    lock is held meanwhile, because neither is thread-safe.  Uses bf16 on a GPU."""
    device = answerer.device
    autocast = torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda")
    with answerer.lock, torch.inference_mode(), autocast:
        batch = answerer.network.collate(answerer.tokenizer, jobs, max_tokens)
        yield answerer.network.encode(batch.to(device))


def fan_out(x: Tensor, k: int) -> Tensor:
    """(B, ...) -> (B * K, ...), each question K times in a row."""
    return x[:, None].expand(x.shape[0], k, *x.shape[1:]).reshape(-1, *x.shape[1:])


class FidNetwork(nn.Module):
    """`forward` gives the decoder's logits (B, T, vocabulary).  `eoi` is the id of [EOI].

    Raises ValueError if the encoder does not use transformers' attention interface.
    """

    uncased = False

    def __init__(self, model: Any, config: FidConfig, eoi: int) -> None:
        super().__init__()
        with TRANSFORMERS:
            from transformers.modeling_outputs import BaseModelOutput
        self._states = BaseModelOutput  # the type in which the decoder takes encoder states
        encoder = model.get_encoder()
        if not encoder._can_set_attn_implementation():
            raise ValueError(f"the attention of {type(encoder).__name__} cannot be replaced; use a T5 or BART model")
        shared, own_config = encoder.config, copy.deepcopy(encoder.config)
        for module in encoder.modules():  # BART's stacks share a config, and the decoder must keep its attention
            if getattr(module, "config", None) is shared:
                module.config = own_config
        use_interleaving(encoder, config.attention)
        read_states(model)
        self.model = model
        self.config = config
        self.eoi = eoi
        start = model.config.decoder_start_token_id
        self.start = int(model.config.pad_token_id if start is None else start)
        if config.prompting == "learned":
            width = model.get_input_embeddings().weight.shape[1]
            self.prompts = nn.Parameter(torch.randn(config.learned_steps, config.learned_tokens, width) * 0.02)

    def collate(
        self,
        tokenizer: Any,
        jobs: Sequence[tuple[str, Sequence[tuple[str, str]], Sequence[str]]],
        max_tokens: int | None = None,
    ) -> FidBatch:
        """`max_tokens` a row, in place of the config's."""
        return collate_fid(tokenizer, replace(self.config, max_tokens=max_tokens) if max_tokens else self.config, jobs)

    def encode(self, batch: FidBatch) -> tuple[Tensor, Tensor]:
        """Cat(E, X) of Eq. 7 with its mask: (B, P + N * L, d), (B, P + N * L), or without the padding between rows."""
        if self.config.attention == "authors" and len(batch.input_ids) > batch.rows:
            return self._one_by_one(batch)
        if self._packs(batch):
            return self._encode_packed(batch)
        encoder, mask, rows, p = self.model.get_encoder(), batch.mask, batch.rows, batch.prompt_tokens
        if self.config.prompting == "learned":
            embedded = encoder.get_input_embeddings()(batch.input_ids)  # (B * R, L, d)
            inputs, mask = with_learned_prompts(embedded, mask, rows, self.prompts, batch.steps)
            p = inputs["prompt_tokens"]
        else:
            inputs = {"input_ids": batch.input_ids}
            if self.config.prompting == "interleaved":
                inputs |= {"rows": rows, "prompt_tokens": p}
        states = encoder(attention_mask=mask.long(), **inputs).last_hidden_state  # (B * R, L, d)
        states = states.view(-1, rows, *states.shape[1:])
        mask = mask.view(-1, rows, mask.shape[1])
        # prompt first, then all passages of a question in one row: the decoder attends to them together
        x = states[:, 1:].reshape(states.shape[0], -1, states.shape[-1])
        return torch.cat([states[:, 0, :p], x], dim=1), torch.cat([mask[:, 0, :p], mask[:, 1:].flatten(1)], dim=1)

    def _packs(self, batch: FidBatch) -> bool:
        """Whether to compute real tokens only.  This is for CPUs, where padding costs as much as text, and for T5, whose
        positions count inside a row."""
        config: Any = self.model.get_encoder().config
        if config.model_type != "t5" or self.config.attention != "paper" or self.config.prompting == "learned":
            return False
        return batch.input_ids.device.type == "cpu" and not (self.training and config.dropout_rate)

    def _encode_packed(self, batch: FidBatch) -> tuple[Tensor, Tensor]:
        """`encode` without padding between the rows of a question: (B, T, d), (B, T), where T is the longest question's tokens."""
        encoder = self.model.get_encoder()
        lengths = batch.mask.sum(1).tolist()
        packing = Packing(tuple(lengths), None if self.config.prompting == "separate" else batch.rows)
        longest = max(lengths)
        bias = encoder.block[0].layer[0].SelfAttention.compute_bias(longest, longest)  # (1, H, longest, longest)
        states = encoder.dropout(encoder.embed_tokens(batch.input_ids[batch.mask][None]))
        for block in encoder.block:  # the stack's own forward makes a position bias of T * T
            states = block(states, None, bias, packed=packing)[0]
        states = encoder.dropout(encoder.final_layer_norm(states))[0]
        sizes = batch.mask.view(-1, batch.rows * batch.mask.shape[1]).sum(1)
        mask = torch.arange(int(sizes.max())) < sizes[:, None]
        return nn.utils.rnn.pad_sequence(states.split(sizes.tolist()), batch_first=True), mask

    def _one_by_one(self, batch: FidBatch) -> tuple[Tensor, Tensor]:
        """Encodes each question separately, without the padding of the others, which the authors' attention would read."""
        encoded = []
        for first in range(0, len(batch.input_ids), batch.rows):
            mask = batch.mask[first : first + batch.rows]
            rows, length = int(mask.any(1).sum()), int(mask.any(0).sum())
            ids = batch.input_ids[first : first + rows, :length]
            steps = batch.steps[first // batch.rows : first // batch.rows + 1]
            encoded.append(self.encode(FidBatch(ids, mask[:rows, :length], rows, min(batch.prompt_tokens, length), steps)))
        size = max(mask.shape[1] for _, mask in encoded)
        states = torch.cat([nn.functional.pad(s, (0, 0, 0, size - s.shape[1])) for s, _ in encoded])
        return states, torch.cat([nn.functional.pad(m, (0, size - m.shape[1])) for _, m in encoded])

    def decode(self, states: Tensor, mask: Tensor, ids: Tensor, cache: Any = None, keep: bool = False) -> Any:
        """transformers' output for decoder inputs (B, T); with `keep`, `past_key_values` holds the keys and values for the next call."""
        return self.model(
            encoder_outputs=self._states(last_hidden_state=states),
            attention_mask=mask.long(),
            decoder_input_ids=ids,
            past_key_values=cache,
            use_cache=keep,
        )

    @staticmethod
    def repeat_cache(cache: Any, k: int) -> Any:
        """Repeats each question K times; a view if B is 1, so that the passages' keys are not copied."""
        for layer in cache.cross_attention_cache.layers:
            if layer.is_initialized:  # core.models.seq2seq.cross_attention keeps none
                layer.keys, layer.values = fan_out(layer.keys, k), fan_out(layer.values, k)
        cache.self_attention_cache.batch_repeat_interleave(k)
        return cache

    def forward(self, batch: FidBatch, labels: Tensor) -> Tensor:
        """`labels` (B, T): answer, end of sequence, then IGNORED."""
        before = labels.new_full((labels.shape[0], 1), self.start)
        inputs = torch.cat([before, labels[:, :-1].masked_fill(labels[:, :-1] == IGNORED, self.start)], dim=1)
        return self.decode(*self.encode(batch), inputs).logits
