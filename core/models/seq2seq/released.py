"""Weights in the formats of FiD's and AmbigPrompt's authors, converted to the names of transformers' T5.

- FiD (github.com/facebookresearch/FiD, src/model.py): a folder with `config.json` and `pytorch_model.bin`; the encoder is wrapped, and so is each of
  its blocks: `encoder.encoder.block.0.module.layer...`.  Trained with transformers 3.0, whose decoder had a relative position bias in its
  first cross attention.  Later versions of T5 have none, and it is left out here as transformers leaves it out: it is constant from the
  decoder's own position on, so that only the scores of the first few source tokens change.
- AmbigPrompt (github.com/sunnweiwei/AmbigPrompt, train.py): a file `N.pt` with the bare state dict of a T5, perhaps behind `module.`; wrapped names
  are taken too.  Its [EOI] is not a token but the text "[EOI]", whose first token represents it here.  Such weights run with the attention that
  they were trained with (core.models.interleaving.authors_attention), one question at a time.  Everything trained here runs with the paper's.

`tests/models/test_authors.py` compares both with reference values: of the authors' code, and of transformers' T5.

Files are read with `weights_only=True`: tensors, no code.  Unexpected and missing weights are reported by name.
"""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from core.errors import CheckpointError
from core.models.loading.pretrained import TRANSFORMERS, pretrained, reason
from core.models.seq2seq.network import FidConfig
from core.types import EOI

TOKENIZER = "t5-base"  # used by both, if the folder has none
# copies of the embeddings, and a bias that T5 no longer has
LEFT_OUT = re.compile(
    r"^(encoder\.embed_tokens\.weight|decoder\.embed_tokens\.weight|decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight)$"
)
_WRAPPED = re.compile(r"^encoder\.encoder\.")
_BLOCK = re.compile(r"^(encoder\.block\.\d+)\.module\.")


def plain_name(name: str) -> str:
    """Translates a released weight name to T5ForConditionalGeneration's.

    >>> plain_name("module.encoder.encoder.block.0.module.layer.0.SelfAttention.q.weight")
    'encoder.block.0.layer.0.SelfAttention.q.weight'
    """
    name = name.removeprefix("module.")
    return _BLOCK.sub(r"\1.", _WRAPPED.sub("encoder.", name))


def read_weights(file: Path) -> dict[str, Tensor]:
    """The tensors of a file under their own names.  Raises CheckpointError for a damaged file or one that contains more than
    tensors."""
    try:
        raw = torch.load(file, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, OSError, EOFError, ValueError) as error:
        raise CheckpointError(
            f"{file} cannot be read as a file of tensors ({reason(error)}); files with other objects are refused because they can run code: "
            "save the state dict alone, or fetch the file again"
        ) from None
    raw = raw.get("state_dict", raw) if isinstance(raw, Mapping) else raw
    if not isinstance(raw, Mapping) or not raw or not all(isinstance(v, Tensor) for v in raw.values()):
        raise CheckpointError(f"{file} holds no state dict (names and tensors); save model.state_dict()")
    return {str(name): tensor.float() for name, tensor in raw.items()}


def plain_tensors(raw: Mapping[str, Tensor], file: Path) -> dict[str, Tensor]:
    """Tensors under T5's names.  Raises CheckpointError for mixed or colliding names."""
    blocks = [n.removeprefix("module.") for n in raw if ".block." in n and not n.removeprefix("module.").startswith("decoder.")]
    wrapped = [n for n in blocks if _WRAPPED.match(n)]
    if 0 < len(wrapped) < len(blocks):
        other = next(n for n in blocks if not _WRAPPED.match(n))
        raise CheckpointError(
            f"{file} mixes FiD's form with another one ({wrapped[0]} beside {other}); give weights of one training"
        )
    if len({n.startswith("module.") for n in raw}) > 1:
        other = next(n for n in raw if not n.startswith("module."))
        raise CheckpointError(
            f"{file} mixes names with and without 'module.' ({other} is without); save one model's state dict"
        )
    return {plain_name(name): tensor for name, tensor in raw.items()}


def infer_config(tensors: Mapping[str, Tensor], file: Path) -> Any:
    """T5's shape, inferred from its tensors, for a file that comes without config.json.  Raises CheckpointError if it isn't a
    T5."""
    with TRANSFORMERS:
        from transformers import T5Config

    first = "encoder.block.0.layer.0.SelfAttention"
    try:
        shared, q = tensors["shared.weight"], tensors[f"{first}.q.weight"]
        bias = tensors[f"{first}.relative_attention_bias.weight"]  # (buckets, heads)
        gated = "encoder.block.0.layer.1.DenseReluDense.wi_0.weight" in tensors
        wide = tensors[f"encoder.block.0.layer.1.DenseReluDense.wi{'_0' if gated else ''}.weight"]
    except KeyError as error:
        some = ", ".join(sorted(tensors)[:3])
        raise CheckpointError(f"{file} is not a T5 of FiD or AmbigPrompt: {error} is missing (it holds {some}, ...)") from None
    if not any(name.startswith("decoder.block.0.") for name in tensors):
        raise CheckpointError(f"{file} is not a T5 of FiD or AmbigPrompt: it has no decoder.block.0")
    for name, tensor in (
        ("shared.weight", shared),
        (f"{first}.q.weight", q),
        ("its position bias", bias),
        ("its wi.weight", wide),
    ):
        if tensor.ndim != 2 or not all(tensor.shape):
            raise CheckpointError(
                f"{file} is not a T5 of FiD or AmbigPrompt: {name} has the shape {tuple(tensor.shape)}, not two sizes"
            )
    if q.shape[0] % bias.shape[1]:
        raise CheckpointError(
            f"{file} is not a T5: {first}.q.weight has {q.shape[0]} rows, which {bias.shape[1]} heads do not divide"
        )

    def layers(stack: str) -> int:
        return 1 + max(int(m.group(1)) for name in tensors if (m := re.match(rf"{stack}\.block\.(\d+)\.", name)))

    head = tensors.get("lm_head.weight")
    return T5Config(
        vocab_size=shared.shape[0],
        d_model=shared.shape[1],
        d_kv=q.shape[0] // bias.shape[1],
        d_ff=wide.shape[0],
        num_heads=bias.shape[1],
        num_layers=layers("encoder"),
        num_decoder_layers=layers("decoder"),
        relative_attention_num_buckets=bias.shape[0],
        feed_forward_proj="gated-gelu" if gated else "relu",
        tie_word_embeddings=head is None or torch.equal(head, shared),
        decoder_start_token_id=0,
        pad_token_id=0,
        eos_token_id=1,
    )


def load_t5(file: Path) -> tuple[Any, FidConfig]:
    """The T5 of a file in either form, and how it reads rows.  Raises CheckpointError naming weights that don't fit."""
    with TRANSFORMERS:
        from transformers import T5Config, T5ForConditionalGeneration

    raw = read_weights(file)
    tensors = plain_tensors(raw, file)
    described = file.parent / "config.json"
    try:
        config = T5Config(**json.loads(described.read_text())) if described.exists() else infer_config(tensors, file)
        model = T5ForConditionalGeneration(config)
    except (ValueError, TypeError, OSError) as error:
        raise CheckpointError(f"{described} is damaged ({error}); fetch it again") from None
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    weights = {name: tensor for name, tensor in tensors.items() if not LEFT_OUT.match(name)}
    if "lm_head.weight" not in weights and config.tie_word_embeddings and "shared.weight" in weights:
        weights["lm_head.weight"] = weights["shared.weight"]
    missing = sorted(name for name in expected if name not in weights and not LEFT_OUT.match(name))
    unknown = sorted(name for name in weights if name not in expected)
    shapes = [
        f"{name} {tuple(tensor.shape)} instead of {expected[name]}"
        for name, tensor in weights.items()
        if name in expected and tuple(tensor.shape) != expected[name]
    ]
    if missing or unknown or shapes:
        parts = [("missing", missing), ("unknown", unknown), ("of another shape", shapes)]
        details = "; ".join(f"{len(names)} {problem}: {', '.join(names[:3])}" for problem, names in parts if names)
        raise CheckpointError(f"{file} does not fit a T5 of its {'config.json' if described.exists() else 'shape'}: {details}")
    model.load_state_dict(weights, strict=False)
    model.tie_weights()
    if file.suffix == ".pt":  # AmbigPrompt
        return model.eval(), FidConfig("interleaved", template="ambigprompt", attention="authors")
    fid = any(_WRAPPED.match(name.removeprefix("module.")) for name in raw)
    return model.eval(), FidConfig("separate") if fid else FidConfig()


def load_released(file: Path) -> tuple[Any, Any, FidConfig, int]:
    """(T5, tokenizer, how its authors read questions and passages, the token that represents [EOI]; -1: add one to the tokenizer).

    Raises CheckpointError naming weights that do not fit.
    """
    model, config = load_t5(file)
    has_tokenizer = any((file.parent / name).exists() for name in ("tokenizer.json", "tokenizer_config.json", "spiece.model"))
    try:
        tokenizer = pretrained("AutoTokenizer", str(file.parent) if has_tokenizer else TOKENIZER, use_fast=True)
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"{file} comes without a tokenizer, and '{TOKENIZER}' cannot be loaded ({reason(error)}); put t5-base's tokenizer.json next to it"
        ) from None
    eoi = eoi_as_text(tokenizer) if config.template == "ambigprompt" else -1
    return model, tokenizer, config, eoi


def eoi_as_text(tokenizer: Any) -> int:
    """The first token of the text "[EOI]", which AmbigPrompt's code writes without adding a token; -1 if it is unknown."""
    if EOI in tokenizer.get_vocab():
        return int(tokenizer.convert_tokens_to_ids(EOI))
    ids = tokenizer(EOI, add_special_tokens=False)["input_ids"]
    return -1 if not ids or ids[0] == tokenizer.unk_token_id else int(ids[0])
