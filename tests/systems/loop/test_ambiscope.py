"""The default system with a reranker beside its weights: it is used, remembered, and can be switched off."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from core import types as t
from core.engine import Engine
from core.errors import CheckpointError, InputError
from core.models.ranking import verifier
from core.models.ranking.features import FEATURES
from core.models.ranking.reranker import Weights, file_of, write_weights
from core.models.span.checkpoints import save_span_network
from core.models.span.model import load_base
from core.models.span.network import SpanConfig, SpanNetwork
from core.settings import Settings
from core.systems.base.base import Options, answer

QUESTION = t.Question("Who won?", passages=(t.Passage("x", "Tour", "Matteo Brisk won in 1999."),))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("answerer")
    config = SpanConfig()
    torch.manual_seed(0)  # the same candidates whichever tests ran before
    save_span_network(SpanNetwork(load_base(config.base), config), folder, {})
    zero = dict.fromkeys(FEATURES, 0.0)
    write_weights(folder, Weights({**zero, "kind": 1.0}, zero, dict.fromkeys(FEATURES, 1.0), -50.0, "a test"))
    return folder


def engine(checkpoint: Path, home: Path) -> Engine:
    return Engine(Settings(home=home, encoder="hashing", device="cpu", answerer=str(checkpoint)))


def test_the_reranker_decides_and_is_remembered(checkpoint: Path, tmp_path: Path) -> None:
    system = engine(checkpoint, tmp_path).system("ambiscope", options=Options(clarify=False), own_passages=True)
    prediction = answer(system, QUESTION)
    assert prediction.answers == ()  # a bias of -50: [EOI] wins at once
    assert prediction.steps[0].eoi_probability > 0.99
    assert prediction.system.settings["reranking"]["bias"] == -50.0


@pytest.mark.parametrize("loop", ["exact", "fast"])
def test_it_can_be_switched_off(checkpoint: Path, tmp_path: Path, loop: str) -> None:
    options = Options(clarify=False, extra={"additions": "none", "loop": loop})
    prediction = answer(engine(checkpoint, tmp_path).system("ambiscope", options=options, own_passages=True), QUESTION)
    assert prediction.system.settings["reranking"] is None
    assert prediction.steps[0].eoi_probability < 0.99


def test_questions_that_bring_their_passages_have_a_reranker_of_their_own(checkpoint: Path, tmp_path: Path) -> None:
    copy = tmp_path / "both"
    shutil.copytree(checkpoint, copy)
    zero = dict.fromkeys(FEATURES, 0.0)
    write_weights(copy, Weights(zero, zero, dict.fromkeys(FEATURES, 1.0), 7.0, "questions with passages"), "own")
    made = engine(copy, tmp_path)
    assert made.system("ambiscope", own_passages=True).info.settings["reranking"]["bias"] == 7.0
    made.library.create("small", [_passages(tmp_path)])
    assert made.system("ambiscope", "small").info.settings["reranking"]["bias"] == -50.0


def _passages(folder: Path) -> Path:
    path = folder / "passages.tsv"
    path.write_text("id\ttext\ttitle\n1\tMatteo Brisk won in 1999.\tTour\n", encoding="utf-8")
    return path


def test_another_word_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="additions"):
        engine(checkpoint, tmp_path).system("ambiscope", options=Options(extra={"additions": "maybe"}), own_passages=True)


def test_ambigprompt_is_the_papers_method_alone(checkpoint: Path, tmp_path: Path) -> None:
    made = engine(checkpoint, tmp_path)
    info = made.system("ambigprompt", own_passages=True).info
    assert info.settings["reranking"] is None
    assert (info.settings["decoding"]["retrieval_prior"], info.settings["decoding"]["repeats"]) == (0.0, True)
    with pytest.raises(CheckpointError, match="no reranker for additions=reranker"):
        made.system("ambigprompt", options=Options(extra={"additions": "reranker"}), own_passages=True)


def test_a_damaged_reranker_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    copy = tmp_path / "damaged"
    copy.mkdir()
    for file in checkpoint.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    (copy / file_of("retrieved")).write_text("{")
    with pytest.raises(CheckpointError, match="damaged"):
        engine(copy, tmp_path).system("ambiscope", own_passages=True)


class Fake:
    """A verifier that is sure of years."""

    def judge(self, question: str, spans: Sequence[tuple[t.Passage, int, int]]) -> list[float]:
        return [9.0 if passage.text[start:end].isdigit() else -9.0 for passage, start, end in spans]


@pytest.fixture
def verified(checkpoint: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "verified"
    shutil.copytree(checkpoint, copy)
    zero, one = dict.fromkeys(FEATURES, 0.0), dict.fromkeys(FEATURES, 1.0)
    write_weights(copy, Weights({**zero, "verifier": 1.0}, zero, one, 0.0, "a test"), "retrieved_verified")
    return copy


def test_a_reranker_that_asks_the_verifier_comes_first(verified: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifier, "load_verifier", lambda name, device: (Fake(), "abc"))
    prediction = answer(
        engine(verified, tmp_path).system("ambiscope", options=Options(clarify=False), own_passages=True), QUESTION
    )
    assert [a.text for a in prediction.answers] == ["1999"]
    assert prediction.system.settings["verifier_digest"] == "abc"


def test_without_the_verifiers_base_the_other_reranker_answers_and_why_is_remembered(
    verified: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str, device: str) -> None:
        raise CheckpointError("package part-001 is not installed")

    monkeypatch.setattr(verifier, "load_verifier", missing)
    used = engine(verified, tmp_path).system("ambiscope", own_passages=True).info.settings
    assert used["reranking"]["bias"] == -50.0
    assert used["verifier"] is None
    assert "part-001" in used["verifier_missing"]
    named = Settings(home=tmp_path, encoder="hashing", device="cpu", answerer=str(verified), verifier="mine")
    with pytest.raises(CheckpointError, match="part-001"):  # who names one wants that one
        Engine(named).system("ambiscope", own_passages=True)
    off = Settings(home=tmp_path, encoder="hashing", device="cpu", answerer=str(verified), verifier="off")
    used = Engine(off).system("ambiscope", own_passages=True).info.settings
    assert (used["verifier"], used["reranking"]["bias"]) == (None, -50.0)
