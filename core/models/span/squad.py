"""Third-party extractive readers in transformers' question-answering format, for metrics that use one."""

from __future__ import annotations

from typing import Any

import torch

from core.errors import CheckpointError
from core.models.encoders.base import loading
from core.models.encoders.sentence_encoder import weights_of
from core.models.loading.pretrained import pretrained
from core.models.scheduling.device import pick_device

MAX_TOKENS, STRIDE = 384, 128  # of a window, as usual for SQuAD readers
MAX_ANSWER_TOKENS = 30


class SquadReader:
    """The best span of a text, or "" where the first token scores higher (SQuAD 2.0: no answer)."""

    def __init__(self, name: str, device: str = "auto") -> None:
        """`name`: a folder or a hub name.  Raises CheckpointError if it cannot be loaded or is not a reader."""
        with loading(f"the reader '{name}'"):
            self.tokenizer = pretrained("AutoTokenizer", name, use_fast=True)
            network, info = pretrained("AutoModelForQuestionAnswering", name, output_loading_info=True)
        if missing := [key for key in info["missing_keys"] if key.startswith("qa_outputs")]:
            raise CheckpointError(f"'{name}' is not a reader: it lacks {missing[0]}; name one that was trained on SQuAD 2.0")
        self.device = pick_device(device)
        self.network: Any = network.to(self.device).eval()
        self.weights = weights_of(network)

    def read(self, question: str, text: str) -> str:
        if not text.strip():
            return ""
        encoded = self.tokenizer(
            question,
            text,
            truncation="only_second",
            max_length=MAX_TOKENS,
            stride=STRIDE,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
            padding=True,
            return_tensors="pt",
        )
        inputs = {k: v.to(self.device) for k, v in encoded.items() if k in self.tokenizer.model_input_names}
        with torch.inference_mode():
            out = self.network(**inputs)
        best_score = float((out.start_logits[:, 0] + out.end_logits[:, 0]).min())  # the lowest "no answer" score of a window
        answer = ""
        for row, offsets in enumerate(encoded["offset_mapping"].tolist()):
            inside = torch.tensor([part == 1 for part in encoded.sequence_ids(row)])
            span = best_span(out.start_logits[row].cpu(), out.end_logits[row].cpu(), inside)
            if span is not None and span[2] > best_score:
                first, last, best_score = span
                answer = text[offsets[first][0] : offsets[last][1]]
        return answer


def best_span(starts: torch.Tensor, ends: torch.Tensor, inside: torch.Tensor) -> tuple[int, int, float] | None:
    """(first token, last token, score) of the best span of at most MAX_ANSWER_TOKENS tokens within `inside`; None if there is
    none.

    >>> best_span(torch.tensor([9.0, 0.0, 2.0, 1.0]), torch.tensor([9.0, 3.0, 0.0, 2.0]), torch.tensor([False, True, True, True]))
    (2, 3, 4.0)
    """
    if not inside.any():
        return None
    scores = (starts[:, None] + ends[None, :]).float()
    is_allowed = (
        torch.ones_like(scores, dtype=torch.bool).triu().tril(MAX_ANSWER_TOKENS - 1) & inside[:, None] & inside[None, :]
    )
    flat = int(scores.masked_fill(~is_allowed, float("-inf")).argmax())
    first, last = divmod(flat, len(starts))
    return first, last, float(scores[first, last])
