"""The weights that come with the repository: they fit one another, and stay small."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load

from core.errors import CheckpointError
from core.models.loading.files import digest
from core.models.loading.finding import BUNDLED, PACKED, SMALL_SEQ2SEQ
from core.models.loading.packaged import MPNET, packaged_folder
from core.models.loading.packed import unpack
from core.models.seq2seq.small import load_small
from core.settings import Settings
from core.systems import build
from core.systems.base.options import Options
from core.systems.base.system import SystemParts
from core.types import RetrievedPassage

FOLDERS = sorted(p.parent for p in BUNDLED.glob("*/config.json"))
DECODERS = [f for f in FOLDERS if json.loads((f / "config.json").read_text()).get("kind") == SMALL_SEQ2SEQ]


@pytest.mark.parametrize("folder", DECODERS, ids=lambda f: f.name)
def test_a_decoder_fits_the_encoder_that_it_was_trained_over(folder: Path) -> None:
    """After new weights of reader or answering model the decoders over them are trained again."""
    network, tokenizer = load_small(folder)
    assert network.config.encoder in ("reader", "answerer")
    assert tokenizer.eos_token_id == network.end


def test_the_calibration_is_of_the_weights_that_are_here() -> None:
    """After new weights of the strong network: core train calibration."""

    class Nothing:
        def search(self, query: str, k: int) -> list[RetrievedPassage]:
            return []

    try:
        packaged_folder(MPNET)
    except CheckpointError as missing:
        pytest.skip(str(missing))
    given = SystemParts(Settings(device="cpu", reader="mpnet", answerer="mpnet"), Nothing(), embed=lambda texts: [])
    system: Any = build("ambiscope", given, Options(clarify=False))
    assert "held out from training" in system.stopping.calibration.fitted_on


@pytest.mark.parametrize("name", ["reader", "answerer"])
def test_packed_weights_are_the_original_file(name: str) -> None:
    """The digest that decoders, cards and predictions refer to is that of the unpacked file."""
    original = unpack(BUNDLED / name / PACKED)
    assert digest(BUNDLED / name) == hashlib.sha256(original).hexdigest()[:16]
    assert {t.dtype for t in load(original).values()} == {torch.float16}
