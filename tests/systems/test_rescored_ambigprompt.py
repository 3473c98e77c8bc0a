"""ambigprompt with a rescorer beside its weights: it is used, remembered, and can be switched off."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from core import types as t
from core.engine import Engine
from core.errors import CheckpointError, InputError
from core.models.checkpoints import save_span_network
from core.models.rescoring import FILES, Weights, write_weights
from core.models.span_model import load_base
from core.models.span_network import SpanConfig, SpanNetwork
from core.models.step_features import FEATURES
from core.settings import Settings
from core.systems.base import Options, answer

QUESTION = t.Question("Who won?", passages=(t.Passage("x", "Tour", "Matteo Brisk won in 1999."),))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("answerer")
    config = SpanConfig()
    save_span_network(SpanNetwork(load_base(config.base), config), folder, {})
    zero = dict.fromkeys(FEATURES, 0.0)
    write_weights(folder, Weights({**zero, "kind": 1.0}, zero, dict.fromkeys(FEATURES, 1.0), -50.0, "a test"))
    return folder


def engine(checkpoint: Path, home: Path) -> Engine:
    return Engine(Settings(home=home, encoder="hashing", device="cpu", answerer=str(checkpoint)))


def test_the_rescorer_decides_and_is_remembered(checkpoint: Path, tmp_path: Path) -> None:
    system = engine(checkpoint, tmp_path).system("ambigprompt", options=Options(clarify=False), own_passages=True)
    prediction = answer(system, QUESTION)
    assert prediction.answers == ()  # a bias of -50: [EOI] wins at once
    assert prediction.steps[0].eoi_probability > 0.99
    assert prediction.system.settings["rescoring"]["bias"] == -50.0


@pytest.mark.parametrize("loop", ["exact", "fast"])
def test_it_can_be_switched_off(checkpoint: Path, tmp_path: Path, loop: str) -> None:
    options = Options(clarify=False, extra={"rescoring": "off", "loop": loop})
    prediction = answer(engine(checkpoint, tmp_path).system("ambigprompt", options=options, own_passages=True), QUESTION)
    assert prediction.system.settings["rescoring"] is None
    assert prediction.steps[0].eoi_probability < 0.99


def test_questions_that_bring_their_passages_have_a_rescorer_of_their_own(checkpoint: Path, tmp_path: Path) -> None:
    copy = tmp_path / "both"
    shutil.copytree(checkpoint, copy)
    zero = dict.fromkeys(FEATURES, 0.0)
    write_weights(copy, Weights(zero, zero, dict.fromkeys(FEATURES, 1.0), 7.0, "questions with passages"), "own")
    made = engine(copy, tmp_path)
    assert made.system("ambigprompt", own_passages=True).info.settings["rescoring"]["bias"] == 7.0
    made.library.create("small", [_passages(tmp_path)])
    assert made.system("ambigprompt", "small").info.settings["rescoring"]["bias"] == -50.0


def _passages(folder: Path) -> Path:
    path = folder / "passages.tsv"
    path.write_text("id\ttext\ttitle\n1\tMatteo Brisk won in 1999.\tTour\n", encoding="utf-8")
    return path


def test_another_word_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="rescoring"):
        engine(checkpoint, tmp_path).system("ambigprompt", options=Options(extra={"rescoring": "maybe"}), own_passages=True)


def test_a_damaged_rescorer_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    copy = tmp_path / "damaged"
    copy.mkdir()
    for file in checkpoint.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    (copy / FILES["retrieved"]).write_text("{")
    with pytest.raises(CheckpointError, match="damaged"):
        engine(copy, tmp_path).system("ambigprompt", own_passages=True)
