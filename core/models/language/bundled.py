"""The bundled language model: the decoder SmolLM2-135M-Instruct with low-rank updates for the systems' prompts (core.training.language).

It is asked with the prompts of `prompts/compact`, which it was trained on: the long ones, with examples, would take most of its time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from core.models.language.decoder import load_decoder
from core.models.language.prompts import FOLDER
from core.models.loading.files import digest
from core.models.loading.finding import LANGUAGE
from core.models.loading.once import loaded_once
from core.models.loading.pretrained import TRANSFORMERS
from core.models.scheduling.device import native_bf16, pick_device

with TRANSFORMERS:
    from core.models.language.local import LocalModel

PROMPTS = FOLDER / "compact"
MAX_TOKENS = 8192  # of prompt and reply
# the base's own, without its default system turn
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def chat_tokenizer(folder: str) -> Any:
    """The base's tokenizer with its chat template; pads at the left."""
    with TRANSFORMERS:
        from transformers import PreTrainedTokenizerFast

    ends = {"eos_token": "<|im_end|>", "pad_token": "<|im_end|>"}
    return PreTrainedTokenizerFast(
        tokenizer_file=str(Path(folder) / "tokenizer.json"),
        padding_side="left",
        chat_template=TEMPLATE,
        model_max_length=MAX_TOKENS,
        **ends,
    )


@loaded_once(1)
def _loaded(folder: Path, weights: str, device: str, batch: int) -> LocalModel:
    place = pick_device(device)
    tokenizer, network = load_decoder(folder, LANGUAGE, chat_tokenizer)
    network.merge()
    decoder = network.decoder.to(place, torch.bfloat16 if native_bf16(place) else torch.float32)
    model = LocalModel(decoder.eval(), tokenizer, f"{Path(network.config.base).name}-{folder.name}", batch)
    model.about = {**model.about, "digest": weights}
    return model


def load_bundled(folder: Path, device: str = "auto", batch: int = 8) -> LocalModel:
    """Loads a folder once, bundled or written by `python -m core train language`.  Raises CheckpointError, and InputError for
    an unavailable device."""
    return _loaded(folder, digest(folder), device, batch)
