"""core.models.encoders.mpnet gives the states of transformers' MPNetModel; damaged folders are told apart."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from transformers import MPNetModel

from core.models.encoders.mpnet import load_mpnet


@pytest.mark.parametrize("length", [5, 150])  # beyond 128 tokens all distances share a bucket
def test_states_are_those_of_transformers(tiny_mpnet_folder: Path, length: int) -> None:
    theirs = MPNetModel.from_pretrained(tiny_mpnet_folder, add_pooling_layer=False, dtype=torch.float32).eval()
    ours = load_mpnet(tiny_mpnet_folder)
    ids = torch.randint(4, 40, (3, length), generator=torch.Generator().manual_seed(3))
    mask = torch.ones(3, length, dtype=torch.long)
    ids[1, 3:], mask[1, 3:] = 1, 0
    with torch.inference_mode():
        states = ours(ids, mask).last_hidden_state
        expected = theirs(input_ids=ids, attention_mask=mask).last_hidden_state
        assert float((states - expected)[mask.bool()].abs().max()) <= 1e-4
        assert float((ours(ids[:1]).last_hidden_state - states[:1]).abs().max()) <= 1e-4  # no mask: nothing is padding


def test_a_folder_of_another_model_or_without_a_weight_is_refused(
    tiny_mpnet_folder: Path, tiny_bert_folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="bert model, not of MPNet"):
        load_mpnet(tiny_bert_folder)
    folder = shutil.copytree(tiny_mpnet_folder, tmp_path / "cut")
    config = json.loads((folder / "config.json").read_text()) | {"num_hidden_layers": 4}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="lacks 16 weights"):
        load_mpnet(folder)
