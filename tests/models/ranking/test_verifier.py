"""The verifier: windows, low-rank differences, judgments, its checkpoint."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.errors import CheckpointError
from core.models.encoders.mpnet import load_mpnet
from core.models.encoders.word_pieces import WordPieces
from core.models.loading.files import save_weights
from core.models.loading.finding import find_verifier
from core.models.ranking import verifier as span_verifier
from core.models.ranking.verifier import UNREAD, SpanVerifier, load_verifier, load_verifier_network
from core.models.ranking.verifier_network import VerifierConfig, VerifierNetwork
from core.models.ranking.verifier_rows import Window, collate_windows, window_bounds
from core.types import Passage

CONFIG = VerifierConfig(rank=2, trained_layers=2, hidden=8, max_tokens=48, window_words=8)
BALL = Passage("p", "Ball", "a red ball is in the car . The blue ball is in the boat . A white door is in town .")
DOOR = Passage("q", "", "the door is black")


@pytest.fixture
def network(tiny_mpnet_folder: Path) -> VerifierNetwork:
    torch.manual_seed(0)
    made = VerifierNetwork(load_mpnet(tiny_mpnet_folder), CONFIG)
    for name, weight in made.named_parameters():
        if name.endswith(".up"):
            torch.nn.init.normal_(weight, std=0.1)
    return made.eval()


@pytest.fixture
def checkpoint(network: VerifierNetwork, tmp_path: Path) -> Path:
    save_weights(network.trained(), tmp_path / "verifier", {"kind": "verifier", "config": asdict(CONFIG)})
    return tmp_path / "verifier"


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.data(), st.integers(1, 60))
def test_a_window_is_of_whole_sentences_around_its_candidate(lengths: list[int], data: st.DataObject, words: int) -> None:
    text = " ".join(" ".join(["Word"] * n) + "." for n in lengths)
    start = data.draw(st.integers(0, len(text) - 2))
    end = data.draw(st.integers(start + 1, min(len(text), start + 30)))
    a, b = window_bounds(text, start, end, words)
    assert 0 <= a <= start < b <= len(text)
    if len(text.split()) <= words:
        assert (a, b) == (0, len(text))
    # a candidate of a few words, the sentences it stands in, and no more than a window and its slack beside those
    assert len(text[a:b].split()) <= max(words + 25, 2 * (words // 2) + len(text[start:end].split()) + 3)


def test_tokens_of_spans_are_those_of_their_words(tiny_mpnet_folder: Path) -> None:
    tokenizer = WordPieces(tiny_mpnet_folder)
    windows = [Window("who is in the car ?", "Ball", "a red ball", ((2, 5), (2, 10))), Window("who ?", "", "blue", ((0, 4),))]
    batch, kept = collate_windows(tokenizer, windows, 48)
    assert kept == [(0, 0), (0, 1), (1, 0)]
    red, ball, blue = (tokenizer(w, add_special_tokens=False)["input_ids"][0] for w in ("red", "ball", "blue"))
    assert [int(batch.input_ids[r, t]) for r, t in zip(batch.row, batch.first)] == [red, red, blue]
    assert [int(batch.input_ids[r, t]) for r, t in zip(batch.row, batch.last)] == [red, ball, blue]
    assert batch.mask.sum(1).tolist() == [14, 6]
    cut, kept = collate_windows(tokenizer, [Window("who ?", "", "red " * 60 + "ball", ((0, 3), (240, 244)))], 32)
    assert kept == [(0, 0)]  # the other one lies beyond the row
    assert cut.input_ids.shape == (1, 32)


def test_differences_begin_at_nothing_and_merge_without_a_change(tiny_mpnet_folder: Path, network: VerifierNetwork) -> None:
    batch, _ = collate_windows(WordPieces(tiny_mpnet_folder), [Window("who ?", "Ball", BALL.text, ((0, 5), (6, 10)))], 48)
    base = load_mpnet(tiny_mpnet_folder)
    fresh = VerifierNetwork(load_mpnet(tiny_mpnet_folder), CONFIG)
    with torch.inference_mode():
        states = base(batch.input_ids, batch.mask).last_hidden_state
        assert torch.equal(fresh.encoder(batch.input_ids, batch.mask).last_hidden_state, states)
        before, _ = network(batch)
        assert not torch.allclose(network.encoder(batch.input_ids, batch.mask).last_hidden_state, states, atol=1e-3)
    trained = {n for n, p in network.named_parameters() if p.requires_grad}
    assert trained == set(network.trained())
    assert all(".layer.0." not in name for name in trained)  # trained_layers counts from the top
    with torch.inference_mode():
        assert torch.allclose(network.merge()(batch)[0], before, atol=1e-5)


def test_a_judgment_does_not_depend_on_what_is_judged_beside_it(tiny_mpnet_folder: Path, network: VerifierNetwork) -> None:
    verifier = SpanVerifier(network.merge(), WordPieces(tiny_mpnet_folder), "cpu")
    spans = [(BALL, 2, 5), (BALL, 2, 10), (BALL, 30, 34), (DOOR, 12, 17)]
    together = verifier.judge("what colour ?", spans)
    assert together == pytest.approx(
        [verifier.judge("what colour ?", [s])[0] for s in spans], abs=2e-2
    )  # bf16 where it is native
    assert len({round(v, 4) for v in together}) > 1
    assert verifier.judge("what colour ?", []) == []
    far = Passage("r", "", "red " * 60 + "ball")
    tight = SpanVerifier(network, WordPieces(tiny_mpnet_folder), "cpu")
    tight.config = VerifierConfig(**{**asdict(CONFIG), "window_words": 100, "max_tokens": 32})
    assert tight.judge("what ?", [(far, 240, 244)]) == [UNREAD]


def test_a_checkpoint_gives_its_network_back(checkpoint: Path, network: VerifierNetwork, tiny_mpnet_folder: Path) -> None:
    read = load_verifier_network(checkpoint, tiny_mpnet_folder)
    assert read.config == CONFIG
    for name, value in network.trained().items():
        assert torch.allclose(read.trained()[name], value, atol=1e-3), name  # stored in half precision
    assert sum(f.stat().st_size for f in checkpoint.iterdir()) < 60_000  # the base is not repeated


@pytest.mark.parametrize("wrong", ["weights", "cut", "config", "rank", "kind"])
def test_a_damaged_checkpoint_is_refused(checkpoint: Path, tiny_mpnet_folder: Path, wrong: str) -> None:
    config, weights = checkpoint / "config.json", checkpoint / "model.safetensors"
    if wrong == "weights":
        weights.unlink()
    elif wrong == "cut":
        weights.write_bytes(weights.read_bytes()[:100])
    elif wrong == "config":
        config.write_text('{"kind": "verifier", "config": {"rank": 0}}')
    elif wrong == "rank":
        config.write_text(config.read_text().replace('"rank": 2', '"rank": 3'))
    else:
        config.write_text('{"kind": "span"}')
        with pytest.raises(CheckpointError, match="holds a span model, not a verifier"):
            find_verifier(str(checkpoint))
        return
    with pytest.raises(CheckpointError, match="damaged or does not fit its base"):
        load_verifier_network(checkpoint, tiny_mpnet_folder)


def test_a_checkpoint_names_its_base(checkpoint: Path, tiny_mpnet_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = checkpoint / "config.json"
    config.write_text(config.read_text().replace('"base": "mpnet"', '"base": "another"'))
    with pytest.raises(CheckpointError, match="no package has a base model 'another'; available: minilm, mpnet"):
        load_verifier(str(checkpoint), "cpu")
    asked: list[str] = []

    def found(name: str) -> Path:
        asked.append(name)
        return tiny_mpnet_folder

    monkeypatch.setattr(span_verifier, "packaged_folder", found)
    load_verifier(str(checkpoint), "cpu")
    assert asked == ["another"]


def test_weights_are_loaded_once_and_anew_when_they_changed(
    checkpoint: Path, tiny_mpnet_folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(span_verifier, "packaged_folder", lambda name: tiny_mpnet_folder)
    first, digest = load_verifier(str(checkpoint), "cpu")
    assert load_verifier(str(checkpoint), "cpu")[0] is first
    other = tmp_path / "other"
    shutil.copytree(checkpoint, other)
    save_weights(
        {n: t + 1 for n, t in load_verifier_network(checkpoint, tiny_mpnet_folder).trained().items()},
        other,
        {"kind": "verifier", "config": asdict(CONFIG)},
    )
    assert load_verifier(str(other), "cpu")[1] != digest
