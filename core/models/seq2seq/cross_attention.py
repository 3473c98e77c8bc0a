"""A T5 decoder's attention over the passages' states directly, without computing keys and values from them.

A head's scores are q (W_k x) = (W_k' q) x and its output is W_v (sum of a x), so the projections can move to the decoder's side, as in the absorbed
projections of multi-head latent attention (DeepSeek-AI 2024, arXiv 2405.04434, section 2.1.2).  Keys and values of S states take 2 S d d
multiplications a layer, once, and 2 S d numbers until the last token; this takes 2 S d H a token, and nothing is kept.  It is less work up to about d / H
tokens of all candidates together, 64 for T5-base, and answers are shorter.  For 20 passages of 200 tokens T5-base's keys and values take 295 MB.

Legend: B questions, K candidates of each, S states, H heads, D width of a head, d model width.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from core.models.loading.pretrained import TRANSFORMERS


def attend_to_states(module: Any, hidden: Tensor, states: Tensor, mask: Tensor | None) -> Tensor:
    """(B * K, 1, d) for one decoder token each, from states (B * K, S, d) and a boolean or additive mask (B * K, 1, 1, S) or
    None."""
    heads, width = module.n_heads, module.key_value_proj_dim
    to_k, to_v = (w.weight.unflatten(0, (heads, width)) for w in (module.k, module.v))  # (H, D, d)
    q = module.q(hidden[:, 0]).unflatten(-1, (heads, width))
    queries = torch.einsum("bhk,hkd->bhd", q, to_k)[:, None]  # (B * K, 1, H, d)
    if states.stride(0) == 0:  # candidates of one question: its states are read once for all
        queries, states, mask = queries.reshape(1, 1, -1, queries.shape[-1]), states[:1], None if mask is None else mask[:1]
    memory = states[:, None]
    attended = nn.functional.scaled_dot_product_attention(queries, memory, memory, attn_mask=mask, scale=module.scaling)
    outputs = torch.einsum("bhd,hkd->bhk", attended.reshape(len(hidden), heads, -1), to_v)
    return module.o(outputs.flatten(1))[:, None]


@cache
def _reading() -> type[nn.Module]:
    with TRANSFORMERS:  # takes a second to import
        from transformers.models.t5.modeling_t5 import T5Attention

    class StatesAttention(T5Attention):  # type: ignore[misc]
        def forward(
            self,
            hidden_states: Tensor,
            mask: Tensor | None = None,
            key_value_states: Tensor | None = None,
            position_bias: Tensor | None = None,
            *args: Any,
            **kwargs: Any,
        ) -> Any:
            one_token = hidden_states.shape[1] == 1 and hidden_states.device.type == "cpu"
            if key_value_states is None or not one_token or torch.is_grad_enabled():
                return super().forward(hidden_states, mask, key_value_states, position_bias, *args, **kwargs)
            return attend_to_states(self, hidden_states, key_value_states, mask), position_bias, None

    return StatesAttention


def read_states(model: Any) -> None:
    """Makes a T5's decoder attend to the states directly on a CPU, one token at a time and without gradients.  Elsewhere it
    computes keys and values as usual.

    Weights and their names stay.  Other models are left as they are.
    """
    if model.config.model_type == "t5":
        for block in model.get_decoder().block:
            block.layer[1].EncDecAttention.__class__ = _reading()
