"""What models said is asked for once, by whichever system, and only of these weights."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from core import types as t
from core.models.span.answerer import Decoding, SpanAnswerer
from core.models.span.model import load_base
from core.models.span.network import SpanConfig, SpanNetwork
from core.models.span.reader import PassageReader
from core.training.output_cache import cached_outputs

PASSAGES = [t.Passage(str(i), "title", text) for i, text in enumerate(["red ball in the town", "blue car of the north"])]
FOUND = [t.RetrievedPassage(p, i, 1.0, 0.5) for i, p in enumerate(PASSAGES, 1)]


def network(base: Path, seed: int) -> SpanNetwork:
    torch.manual_seed(seed)
    config = SpanConfig(base=str(base), max_tokens=48, max_prompt_tokens=32, max_answer_tokens=3)
    return SpanNetwork(load_base(config.base), config)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each run of a network had."""
    seen: list[int] = []
    scores = PassageReader.scores

    def counted(self: PassageReader, batch: object) -> object:
        seen.append(1)
        return scores(self, batch)  # type: ignore[arg-type]

    monkeypatch.setattr("core.models.span.model.SpanModel.scores", counted)
    return seen


def test_a_passage_is_read_once_for_all_systems_and_again_by_other_weights(
    tiny_bert_folder: Path, tmp_path: Path, calls: list[int]
) -> None:
    own, other = (network(tiny_bert_folder, seed) for seed in (0, 1))
    reader = PassageReader(own, own.config, "cpu")
    plain = reader.read("colour ?", PASSAGES, 2)
    calls.clear()
    with cached_outputs(tmp_path / "kept.db"):
        first = reader.read("colour ?", PASSAGES, 2)
        assert (first, len(calls)) == (plain, 1)
        assert reader.read("colour ?", PASSAGES, 3)[0].candidates[:2] == plain[0].candidates
        assert len(calls) == 1
        PassageReader(other, other.config, "cpu").read("colour ?", PASSAGES, 2)
        assert len(calls) == 2
    reader.read("colour ?", PASSAGES, 2)  # outside, nothing is kept
    assert len(calls) == 3


def test_a_step_is_told_apart_by_its_decoding_and_its_previous_answers(
    tiny_bert_folder: Path, tmp_path: Path, calls: list[int]
) -> None:
    answerer = SpanAnswerer(network(tiny_bert_folder, 0), "cpu")
    plain = answerer.propose("colour ?", FOUND, [])
    calls.clear()
    with cached_outputs(tmp_path / "kept.db"):
        assert [answerer.propose("colour ?", FOUND, []) for _ in range(3)] == [plain] * 3
        assert len(calls) == 1
        answerer.propose("colour ?", FOUND, ["red"])
        answerer.decoding = Decoding(repeats=True)
        answerer.propose("colour ?", FOUND, ["red"])
        assert len(calls) == 3
