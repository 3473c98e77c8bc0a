"""The weights that come with the repository: they fit one another, and stay small."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import CheckpointError
from core.models.loading.finding import BUNDLED, SMALL_SEQ2SEQ
from core.models.loading.packaged import MINILM, MPNET, packaged_folder
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
    """After new weights of the small network the decoders over them are trained again."""
    network, tokenizer = load_small(folder)
    assert network.config.encoder == MINILM
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


def test_the_bundled_weights_stay_small() -> None:
    assert sum(f.stat().st_size for f in BUNDLED.rglob("*.safetensors")) <= 40_000_000
