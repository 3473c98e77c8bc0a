"""Losses of the span models.  Each takes span scores that are -inf where no span is allowed."""

from __future__ import annotations

import torch
from torch import Tensor


def marginal_loss(spans: Tensor, nothing: Tensor, gold: Tensor, want_nothing: Tensor, weight: Tensor) -> Tensor:
    """-log of the summed probability of all gold spans, or of "no answer", in one softmax per group.

    spans (G, M): scores of a group's spans; nothing (G,): scores of "no answer"; gold (G, M) and want_nothing (G,):
    boolean; weight (G,): of each group.  A group is a question for the answering model, and a passage for the
    per-passage reader.  Source: Sun et al. 2023, Eq. 9 and 10; the sum keeps the answer set unordered.
    """
    everything = torch.cat([spans, nothing[:, None]], dim=1)
    target = torch.cat([gold, want_nothing[:, None]], dim=1)
    total = torch.logsumexp(everything, dim=1)
    lowest = torch.finfo(everything.dtype).min
    hit = torch.logsumexp(everything.masked_fill(~target, lowest), dim=1)
    loss = total - hit
    return (loss * weight).sum() / weight.sum().clamp(min=1e-6)
