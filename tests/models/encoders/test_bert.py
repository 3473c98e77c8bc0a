"""core.models.encoders.bert gives the states and the gradients of transformers' BertModel, and spares its imports."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertModel

from core.errors import CheckpointError
from core.models.encoders.base import base_folder, load_base
from core.models.encoders.bert import fits, load_bert
from core.models.interleaving import use_interleaving
from core.settings import ROOT

MASK = torch.tensor([[1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 0, 0]])


def inputs() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(4, 40, MASK.shape, generator=generator)
    types = torch.randint(0, 2, MASK.shape, generator=generator)
    return {"input_ids": ids, "token_type_ids": types, "attention_mask": MASK}


def difference(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    return float((ours - theirs)[MASK.bool()].detach().abs().max())


@pytest.fixture(scope="module")
def folders(tiny_bert_folder: Path) -> dict[str, str]:
    return {"tiny": str(tiny_bert_folder), "minilm": base_folder("minilm")}


@pytest.mark.parametrize("name", ["tiny", "minilm"])
def test_states_and_gradients_are_those_of_transformers(folders: dict[str, str], name: str) -> None:
    theirs = BertModel.from_pretrained(folders[name], add_pooling_layer=False, dtype=torch.float32).eval()
    theirs.set_attn_implementation("eager")
    ours = load_bert(folders[name])
    batch = inputs()
    states = [model(**batch).last_hidden_state for model in (ours, theirs)]
    assert difference(*states) <= 1e-5
    unmasked = [model(input_ids=batch["input_ids"]).last_hidden_state for model in (ours, theirs)]
    assert float((unmasked[0] - unmasked[1]).detach().abs().max()) <= 1e-5
    for output in states:
        (output * MASK[..., None]).square().sum().backward()
    parameters, known = dict(ours.named_parameters()), dict(theirs.named_parameters())
    assert known.keys() == parameters.keys()  # checkpoints hold these names
    for parameter, value in parameters.items():
        expected = known[parameter].grad
        assert torch.allclose(value.grad, expected, atol=1e-4 * max(1.0, float(expected.abs().max()))), parameter


def test_the_interleaved_attention_is_the_same(folders: dict[str, str]) -> None:
    ours = use_interleaving(load_bert(folders["tiny"]))
    theirs = use_interleaving(BertModel.from_pretrained(folders["tiny"], add_pooling_layer=False).eval())
    batch = inputs() | {"rows": 3, "prompt_tokens": 5}
    for gradients in (True, False):
        with torch.set_grad_enabled(gradients):
            assert difference(ours(**batch).last_hidden_state, theirs(**batch).last_hidden_state) <= 1e-5


@pytest.fixture
def copy(tiny_bert_folder: Path, tmp_path: Path) -> Path:
    return shutil.copytree(tiny_bert_folder, tmp_path / "model")


def configure(folder: Path, **changes: Any) -> None:
    config = folder / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | changes))


@pytest.mark.parametrize(
    ("name", "value"),
    [("model_type", "roberta"), ("position_embedding_type", "relative_key"), ("is_decoder", True), ("hidden_act", "swish")],
)
def test_what_it_does_not_compute_goes_through_transformers(copy: Path, name: str, value: object) -> None:
    assert fits(copy)
    configure(copy, **{name: value})
    assert not fits(copy)


def _cut(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:200])


def _fewer(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    save_file({k: v for k, v in weights.items() if "layer.0" not in k}, folder / "model.safetensors")


@pytest.mark.parametrize("damage", [_cut, _fewer])
def test_a_damaged_base_is_named(copy: Path, damage: Callable[[Path], None]) -> None:
    damage(copy)
    with pytest.raises(CheckpointError, match=r"base model .* cannot be loaded"):
        load_base(str(copy))


@pytest.mark.slow
def test_an_answer_of_the_bundled_models_needs_no_transformers() -> None:
    """Seconds of every start: its modelling code imports torch's compiler and its distributed tensors."""
    code = (
        "import sys; from core.cli import main; "
        "assert main(['ask', 'Who directed A Star Is Born?', '--corpus', 'starter', '--no-clarify', '--json']) == 0; "
        "print([m for m in ('torch._dynamo', 'transformers', 'sympy') if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "[]"
