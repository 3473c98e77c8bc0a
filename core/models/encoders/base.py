"""Bare encoders and their tokenizers, from a packaged base, a folder or a hub name.  Plain BERT and MPNet are loaded without
transformers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from core.errors import CheckpointError
from core.models.encoders.bert import fits, load_bert
from core.models.encoders.mpnet import load_mpnet
from core.models.encoders.word_pieces import FILE as WORD_PIECES
from core.models.encoders.word_pieces import WordPieces
from core.models.loading.packaged import PACKAGES, PREPARED, packaged_folder
from core.models.loading.pretrained import pretrained, reason


def base_folder(name: str) -> str:
    """The folder of a packaged base, or else the name itself (a local folder or a hub name).  Raises CheckpointError if it is
    missing."""
    return str(packaged_folder(name)) if name in (*PACKAGES, *PREPARED) else name


@contextmanager
def loading(name: str) -> Iterator[None]:
    """Turns every error raised inside into a CheckpointError about `name`, because libraries and hub clients raise many
    kinds."""
    try:
        yield
    except CheckpointError:
        raise
    except Exception as error:
        raise CheckpointError(f"{name} cannot be loaded ({type(error).__name__}: {reason(error)})") from error


def base_tokenizer(base: str) -> Any:
    """A new tokenizer of a base.  Raises CheckpointError."""
    with loading(f"the tokenizer of base model '{base}'"):
        folder = base_folder(base)
        if (fits(folder) or fits(folder, "mpnet")) and (Path(folder) / WORD_PIECES).is_file():
            return WordPieces(folder)
        tokenizer = pretrained("AutoTokenizer", folder, use_fast=True)
        tokenizer.model_max_length = 1 << 30  # lengths are ours to bound (max_tokens); silences a warning that does not apply
        return tokenizer


def load_base(base: str) -> Any:
    """The bare encoder in eval mode, without dropout.  Raises CheckpointError."""
    with loading(f"base model '{base}'"):
        folder = base_folder(base)
        if fits(folder):
            return load_bert(folder)
        if fits(folder, "mpnet"):
            return load_mpnet(folder)
        rates = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        return pretrained("AutoModel", folder, add_pooling_layer=False, **rates).eval()
