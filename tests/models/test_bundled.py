"""The weights that come with the repository: they fit one another, and stay small."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from reading_fakes import TableRetriever

from core.engine import Engine
from core.errors import CheckpointError
from core.evaluation.published import examples
from core.models.loading.finding import BUNDLED, SMALL_SEQ2SEQ
from core.models.loading.packaged import MINILM, MPNET, packaged_folder
from core.models.seq2seq.small import load_small
from core.settings import Settings
from core.systems import build
from core.systems.base.options import Options
from core.systems.base.system import SystemParts
from core.types import Question

FOLDERS = sorted(p.parent for p in BUNDLED.glob("*/config.json"))
DECODERS = [f for f in FOLDERS if json.loads((f / "config.json").read_text()).get("kind") == SMALL_SEQ2SEQ]


@pytest.mark.parametrize("folder", DECODERS, ids=lambda f: f.name)
def test_a_decoder_fits_the_encoder_that_it_was_trained_over(folder: Path) -> None:
    """After new weights of the small network the decoders over them are trained again."""
    network, tokenizer = load_small(folder)
    assert network.config.encoder == MINILM
    assert tokenizer.eos_token_id == network.end


@pytest.fixture
def mpnet() -> Settings:
    try:
        packaged_folder(MPNET)
    except CheckpointError as error:
        pytest.skip(str(error))
    return Settings(device="cpu", reader=MPNET, answerer=MPNET)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "loop", "missing"),
    [
        ("ambigprompt-figure-1", "fast", set()),
        ("ambigprompt-table-7", "fast", set()),
        ("ambigprompt-table-8", "exact", set()),
        ("ambigprompt-table-8", "fast", {"Mie Hama"}),  # whom the systems in the paper's table do not give either
        ("ambigqa-figure-1", "fast", set()),
    ],
)
def test_the_default_answers_the_papers_worked_examples(mpnet: Settings, example: str, loop: str, missing: set[str]) -> None:
    """All answers but `missing`, and no wrong one."""
    (row,) = (e for e in examples() if e.id == example)
    question = Question(row.question, passages=row.passages)
    answers = Engine(mpnet).ask(question, clarify=False, extra={"loop": loop}).answers
    spellings = {alias: pair.answers[0] for pair in row.annotations[0].pairs for alias in pair.answers}
    assert sorted(spellings.get(a.text, a.text) for a in answers) == sorted(set(spellings.values()) - missing)


def test_the_calibration_is_of_the_weights_that_are_here(mpnet: Settings) -> None:
    """After new weights of the strong network: core train calibration."""
    parts = SystemParts(mpnet, TableRetriever([]), embed=lambda texts: [])
    system: Any = build("ambiscope", parts, Options(clarify=False))
    assert "held out from training" in system.stopping.calibration.fitted_on


def test_the_bundled_weights_stay_small() -> None:
    assert sum(f.stat().st_size for f in BUNDLED.glob("*/*.safetensors")) <= 55_000_000
