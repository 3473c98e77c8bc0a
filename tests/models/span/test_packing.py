"""Rows without padding say the same as padded rows, in states, scores and gradients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from core.models.encoders.base import load_base
from core.models.interleaving import Packing, interleaved_attention, use_interleaving
from core.models.span.checkpoints import load_span_network, save_span_network
from core.models.span.model import SpanModel
from core.models.span.network import RowBatch, SpanConfig, SpanNetwork

LENGTHS = [[3, 7, 5, 9], [6, 0, 4, 8], [11, 2, 2, 12]]


def batch(lengths: list[list[int]], prompted: bool, seed: int = 0) -> RowBatch:
    generator = torch.Generator().manual_seed(seed)
    flat = [n for rows in lengths for n in rows]
    longest = max(flat)
    mask = torch.arange(longest)[None] < torch.tensor(flat)[:, None]
    ids = torch.randint(4, 40, mask.shape, generator=generator)  # random ids in the padding too
    rows = len(lengths[0])
    edges = mask.clone()
    if prompted:
        edges.view(len(lengths), rows, -1)[:, 0] = False
    return RowBatch(ids, torch.zeros_like(ids), mask, edges, edges, rows, max(r[0] for r in lengths), prompted)


@pytest.fixture(scope="module", params=[("bert", 0), ("mpnet", 2)], ids=["bert", "mpnet-low-rank"])
def network(request: pytest.FixtureRequest) -> SpanNetwork:
    base, rank = request.param
    folder = request.getfixturevalue(f"tiny_{base}_folder")
    torch.manual_seed(1)
    config = SpanConfig(base=str(folder), max_tokens=48, max_prompt_tokens=32, max_answer_tokens=3, rank=rank)
    network = SpanNetwork(load_base(config.base), config).eval()
    for name, parameter in network.named_parameters():
        if name.endswith(".up"):  # zero in a new network
            torch.nn.init.normal_(parameter, std=0.05)
    return network


@pytest.mark.parametrize("prompted", [True, False])
def test_states_and_scores_equal_those_of_padded_rows(
    network: SpanNetwork, prompted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = batch(LENGTHS, prompted)
    with torch.inference_mode():
        assert network._packs()
        states, (spans, nothing) = network.encode(inputs), network(inputs)
    assert not states[~inputs.mask].any()
    monkeypatch.setattr(SpanNetwork, "_packs", lambda self: False)
    with torch.inference_mode():  # padded, row by row
        padded, (padded_spans, padded_nothing) = network.encode(inputs), network(inputs)
    whole = network.encode(inputs).detach()  # padded, all rows at once: as on a GPU
    for other in (padded, whole):
        assert float((states - other)[inputs.mask].abs().max()) <= 3e-5
    torch.testing.assert_close(spans, padded_spans, atol=1e-5, rtol=0)
    difference = (nothing - padded_nothing).abs()
    if not prompted:  # a row of padding says nothing that anybody reads
        difference = difference[inputs.mask.view(*difference.shape, -1).any(-1)]
    assert float(difference.max()) <= 1e-5


def test_padding_in_front_is_computed_all_at_once(make_tiny: Any) -> None:
    encoder = use_interleaving(make_tiny("bert"))
    ids = torch.randint(4, 40, (3, 6), generator=torch.Generator().manual_seed(0))
    mask = torch.tensor([[0, 0, 1, 1, 1, 1], [1, 1, 1, 0, 1, 1], [1, 1, 1, 1, 1, 1]])
    states = []
    for gradients in (False, True):
        with torch.set_grad_enabled(gradients):
            output = encoder(input_ids=ids, attention_mask=mask, rows=3, prompt_tokens=6)
        states.append(output.last_hidden_state.detach()[mask.bool()])
    torch.testing.assert_close(*states, atol=1e-5, rtol=0)


def test_a_packing_that_does_not_fit() -> None:
    with pytest.raises(ValueError, match="3 rows are not a multiple of 2 rows"):
        Packing((1, 2, 3), 2)
    x = torch.zeros(1, 2, 5, 4)
    with pytest.raises(ValueError, match="packing of 6"):
        interleaved_attention(torch.nn.Module().eval(), x, x, x, None, packed=Packing((3, 3)))


def test_a_checkpoint_holds_what_was_trained_and_reads_back(network: SpanNetwork, tmp_path: Path) -> None:
    save_span_network(network, tmp_path)
    stored = set(load_file(tmp_path / "model.safetensors"))
    assert not any(".embeddings." in name for name in stored)
    assert bool(network.config.rank) != ("encoder.encoder.layer.0.attention.self.query.weight" in stored)
    inputs = batch(LENGTHS, True)
    with torch.inference_mode():
        spans, nothing = network(inputs)
        for merge in (True, False):  # for inference, and to train on
            loaded = load_span_network(tmp_path, merge=merge)(inputs)
            torch.testing.assert_close(loaded, (spans, nothing), atol=0.05, rtol=0)  # half precision
    trainable = {n for n, p in load_span_network(tmp_path, merge=False).named_parameters() if p.requires_grad}
    if network.config.rank:
        assert {n for n in trainable if n.startswith("encoder.")} == {n for n in stored if n.startswith("encoder.")}


def test_a_network_in_training_keeps_its_precision_when_it_is_asked(network: SpanNetwork) -> None:
    """Training in fp32 evaluates with models over its own network; only one that is merged, for inference, may change its matrices."""
    SpanModel(network, "cpu")
    assert {p.dtype for p in network.parameters()} == {torch.float32}
