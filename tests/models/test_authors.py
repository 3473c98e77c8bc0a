"""Weights in the authors' formats give the authors' numbers: reference values of their code, computed once (tests/data/authors_t5/README.md)."""

from __future__ import annotations

import json
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tiny_models import word_tokenizer

from core.errors import CheckpointError
from core.models.interleaving import ATTENTION_NAME, authors_attention
from core.models.seq2seq.fid import load_network, make_fid
from core.models.seq2seq.network import FidBatch, FidConfig, FidNetwork
from core.models.seq2seq.released import load_t5
from core.settings import ROOT
from core.training.seq2seq import start
from core.types import EOI

CASES = ROOT / "tests" / "data" / "authors_t5"
TOLERANCE = 1e-4  # of the largest difference
WEIGHTS = "model."  # prefix of the names of a case's weights
NO_EOI = -1  # nothing here asks for [EOI]
NAMES = ("two_passages", "five_passages_padded", "eight_passages")


@pytest.fixture(scope="module")
def cases(one_thread: None) -> dict[str, tuple[dict[str, Any], dict[str, torch.Tensor]]]:
    described = json.loads((CASES / "cases.json").read_text(encoding="utf-8"))
    return {case["case"]: (case, load_file(CASES / f"{case['case']}.safetensors")) for case in described}


def weights_of(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name.removeprefix(WEIGHTS): t for name, t in tensors.items() if name.startswith(WEIGHTS)}


def wrapped(name: str) -> str:
    """A name of T5's encoder as FiD's wrappers make it."""
    return re.sub(r"^encoder\.", "encoder.encoder.", re.sub(r"^encoder\.block\.(\d+)\.", r"encoder.block.\1.module.", name))


def load_weights(weights: dict[str, torch.Tensor], config: dict[str, Any], file: str) -> tuple[Any, FidConfig]:
    """(model, configuration) that `load_t5` reads from weights in a file of this name.  Raises CheckpointError."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / file
        torch.save({name: t.clone() for name, t in weights.items()}, path)
        (path.parent / "config.json").write_text(json.dumps(config))
        return load_t5(path)


def network_of(weights: dict[str, torch.Tensor], config: dict[str, Any], file: str) -> FidNetwork:
    """The network of weights in a file of an author's name and form.  Raises CheckpointError."""
    return FidNetwork(*load_weights(weights, config, file), NO_EOI).eval()


def batch_of(tensors: dict[str, torch.Tensor]) -> FidBatch:
    ids, mask = tensors["input_ids"][0], tensors["attention_mask"][0].bool()  # (R, L)
    return FidBatch(ids, mask, len(ids), ids.shape[1], torch.zeros(1, dtype=torch.long))


def greedy(model: Any, states: torch.Tensor, mask: torch.Tensor, length: int) -> torch.Tensor:
    """Greedily decoded token ids (1, length), padded with 0."""
    from transformers.modeling_outputs import BaseModelOutput

    tokens = model.generate(
        encoder_outputs=BaseModelOutput(last_hidden_state=states),
        attention_mask=mask.long(),
        max_length=length,
        do_sample=False,
        num_beams=1,
    )
    return torch.nn.functional.pad(tokens, (0, length))[:, :length]


def compared(network: FidNetwork, batch: FidBatch, expected: dict[str, torch.Tensor]) -> dict[str, float]:
    """The largest absolute difference of each reference value; of "generated", the number of tokens that differ."""
    with torch.no_grad():
        states, mask = network.encode(batch)
        logits = network(batch, expected["labels"])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), expected["labels"].flatten())
        tokens = greedy(network.model, states, mask, expected["generated"].shape[1])
    expected_states = expected["encoder_states"].flatten(0, 1)[batch.mask.flatten()]  # of R * L tokens
    return {
        "encoder_states": float((states[mask] - expected_states).abs().max()),
        "decoder_logits": float((logits - expected["decoder_logits"]).abs().max()),
        "loss": float((loss - expected["loss"]).abs().max()),
        "generated": float((tokens != expected["generated"]).sum()),
    }


@pytest.mark.parametrize("name", NAMES)
def test_weights_of_ambigprompt_give_its_codes_numbers(name: str, cases: dict[str, Any]) -> None:
    case, tensors = cases[name]
    network, batch = network_of(weights_of(tensors), case["config"], "0.pt"), batch_of(tensors)
    differences = compared(network, batch, tensors)
    assert max(differences.values()) <= TOLERANCE, differences
    equations = FidNetwork(network.model, replace(network.config, attention="paper"), NO_EOI).eval()  # another computation
    assert compared(equations, batch, tensors)["encoder_states"] > 0.1


@pytest.mark.parametrize("name", NAMES)
def test_weights_of_fid_give_the_numbers_of_transformers(name: str, cases: dict[str, Any]) -> None:
    """In FiD's form, against transformers' T5, whose encoder reads each row for itself."""
    case, tensors = cases[name]
    model, _ = load_weights(weights_of(tensors), case["config"], "plain.bin")  # by transformers' names: its own attention
    batch = batch_of(tensors)
    with torch.no_grad():
        states = model.encoder(input_ids=batch.input_ids, attention_mask=batch.mask.long()).last_hidden_state
        all_rows, mask = states.flatten(0, 1)[None], batch.mask.flatten()[None]
        output = model(encoder_outputs=(all_rows,), attention_mask=mask.long(), labels=tensors["labels"])
        tokens = greedy(model, all_rows, mask, tensors["generated"].shape[1])
    expected = {"encoder_states": states, "decoder_logits": output.logits, "loss": output.loss, "generated": tokens}
    fid_weights = {wrapped(name): t for name, t in weights_of(tensors).items()}
    network = network_of(fid_weights, case["config"] | {"architectures": ["FiDT5"]}, "pytorch_model.bin")
    assert network.config == FidConfig("separate")
    differences = compared(network, batch, {"labels": tensors["labels"], **expected})
    assert max(differences.values()) <= TOLERANCE, differences


def test_questions_of_a_batch_read_as_each_alone(cases: dict[str, Any]) -> None:
    """The authors' attention reads padding, too: a batch must add none."""
    case, tensors = cases["eight_passages"]
    network = network_of(weights_of(tensors), case["config"], "0.pt")
    ids = batch_of(tensors).input_ids
    rows, length = ids.shape
    alone = [ids, ids[:4, : length - 3]]
    both = torch.zeros(2 * rows, length, dtype=torch.long)
    mask = torch.zeros_like(both, dtype=torch.bool)
    for i, question in enumerate(alone):
        place = slice(i * rows, i * rows + len(question)), slice(question.shape[1])
        both[place], mask[place] = question, True
    with torch.no_grad():
        states, seen = network.encode(FidBatch(both, mask, rows, length, torch.zeros(2)))
        for i, question in enumerate(alone):
            whole = torch.ones_like(question, dtype=torch.bool)
            expected, _ = network.encode(FidBatch(question, whole, *question.shape, torch.zeros(1)))
            assert torch.allclose(states[i][seen[i]], expected[0], atol=1e-6)


def test_the_loader_sets_it_and_training_has_the_papers(cases: dict[str, Any], tmp_path: Path) -> None:
    tokenizer = word_tokenizer("t5")
    case, tensors = cases["two_passages"]
    weights = weights_of(tensors)
    weights["shared.weight"] = torch.randn(len(tokenizer), weights["shared.weight"].shape[1])
    torch.save({n: t.clone() for n, t in weights.items()}, tmp_path / "9.pt")
    (tmp_path / "config.json").write_text(json.dumps(case["config"] | {"vocab_size": len(tokenizer)}))
    tokenizer.save_pretrained(tmp_path)
    network, _ = load_network(str(tmp_path / "9.pt"))
    assert network.config == FidConfig("interleaved", template="ambigprompt", attention="authors")
    assert FidConfig().attention == "paper"
    for prompting in ("interleaved", "separate"):
        trained, _ = start(str(tmp_path / "9.pt"), prompting, "step", 0)
        assert trained.config.attention == "paper"
        assert trained.model.get_encoder().config._attn_implementation == ATTENTION_NAME


def test_it_is_for_t5_alone(make_tiny: Any) -> None:
    with pytest.raises(ValueError, match="no relative position bias"):
        make_fid(make_tiny("bart"), word_tokenizer("t5"), FidConfig(attention="authors"))
    with pytest.raises(ValueError, match="position bias"):
        authors_attention(torch.nn.Identity(), *(torch.zeros(3, 2, 4, 8),) * 3, None, rows=3)
    with pytest.raises(ValueError, match="the authors' attention is interleaved"):
        FidConfig("separate", attention="authors")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: {(wrapped(n) if "block.1." in n else n): t for n, t in w.items()}, "mixes FiD's form with another one"),
        (lambda w: {(f"module.{n}" if "block.1." in n else n): t for n, t in w.items()}, "with and without 'module.'"),
        (lambda w: w | {"encoder.block.0.layer.0.SelfAttention.q.weight": torch.zeros(30, 32)}, "which 4 heads do not divide"),
        (lambda w: w | {"shared.weight": torch.zeros(97)}, r"shared\.weight has the shape \(97,\)"),
        (lambda w: {n: t for n, t in w.items() if not n.startswith("decoder.block")}, "no decoder.block.0"),
    ],
)
def test_a_checkpoint_of_another_shape_or_form_is_named(
    change: Any, message: str, cases: dict[str, Any], tmp_path: Path
) -> None:
    weights = {n: t.clone() for n, t in weights_of(cases["two_passages"][1]).items()}
    torch.save(change(weights), tmp_path / "0.pt")
    with pytest.raises(CheckpointError, match=message) as refusal:
        load_t5(tmp_path / "0.pt")
    assert "\n" not in str(refusal.value)


QUERIES = "encoder.encoder.block.{}.module.layer.0.SelfAttention.q.weight"
QUESTION = "colour of the ball ?"
TEXTS = [("north", "the ball is red"), ("south", "the ball of the boat is blue")]


def released_fid(folder: Path, model: Any, **changes: Any) -> Path:
    folder.mkdir()
    state = {wrapped(k): v.clone() for k, v in model.state_dict().items()}
    # transformers 3.0 had a bias in the decoder's first cross attention
    state["decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"] = torch.randn(8, 4)
    state.update(changes)
    torch.save({k: v for k, v in state.items() if v is not None}, folder / "pytorch_model.bin")
    config = {k: v for k, v in model.config.to_dict().items() if not k.startswith("_")}
    (folder / "config.json").write_text(json.dumps(config | {"architectures": ["FiDT5"]}))
    word_tokenizer("t5").save_pretrained(folder)
    return folder


def logits_of(network: Any, tokenizer: Any) -> torch.Tensor:
    labels = torch.tensor([[8, 9, 1]])
    with torch.no_grad():
        return network.eval()(network.collate(tokenizer, [(QUESTION, TEXTS, ["red"])]), labels)


def test_a_released_fid_gives_the_logits_of_its_t5(make_tiny: Any, tmp_path: Path) -> None:
    folder = released_fid(tmp_path / "nq_reader_tiny", make_tiny("t5"))
    network, tokenizer = load_network(str(folder))
    assert network.config == FidConfig("separate")
    words = word_tokenizer("t5")
    expected = logits_of(make_fid(make_tiny("t5"), words, FidConfig("separate")), words)
    assert torch.allclose(logits_of(network, tokenizer)[..., : expected.shape[-1] - 1], expected[..., :-1], atol=1e-5)


@pytest.mark.parametrize("form", ["plain", "wrapped", "module"])
def test_a_released_ambigprompt_gives_the_logits_of_its_t5(form: str, make_tiny: Any, tmp_path: Path) -> None:
    state = make_tiny("t5").state_dict()
    name = {"plain": str, "wrapped": wrapped, "module": lambda n: f"module.{n}"}[form]
    torch.save({name(k): v.clone() for k, v in state.items()}, tmp_path / "9.pt")
    word_tokenizer("t5").save_pretrained(tmp_path)
    network, tokenizer = load_network(str(tmp_path / "9.pt"))
    config = FidConfig("interleaved", template="ambigprompt", attention="authors")
    assert network.config == config
    words = word_tokenizer("t5")
    # the shape is read from the tensors alone: buckets, heads, widths, layers; T5's distance of 128 is in no tensor
    model = make_tiny("t5", relative_attention_max_distance=128)
    model.load_state_dict(state)
    expected = logits_of(make_fid(model, words, config), words)
    assert torch.allclose(logits_of(network, tokenizer)[..., : expected.shape[-1] - 1], expected[..., :-1], atol=1e-4)


def test_a_text_stands_for_eoi_where_the_tokenizer_can_write_it(make_tiny: Any, tmp_path: Path) -> None:
    tokenizer = word_tokenizer("t5")
    tokenizer.add_special_tokens({"additional_special_tokens": [EOI]})
    torch.save(make_tiny("t5", vocab_size=len(tokenizer)).state_dict(), tmp_path / "0.pt")
    tokenizer.save_pretrained(tmp_path)
    network, _ = load_network(str(tmp_path / "0.pt"))
    assert network.eoi == len(tokenizer) - 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({QUERIES.format(1): None}, r"1 missing: encoder\.block\.1\.layer\.0\.SelfAttention\.q"),
        ({QUERIES.format(7): torch.zeros(2)}, r"1 unknown: encoder\.block\.7"),
        ({"shared.weight": torch.zeros(3, 32)}, r"of another shape: .*shared\.weight \(3, 32\) instead of"),
    ],
)
def test_what_does_not_fit_is_named(changes: dict[str, Any], message: str, make_tiny: Any, tmp_path: Path) -> None:
    folder = released_fid(tmp_path / "odd", make_tiny("t5"), **changes)
    with pytest.raises(CheckpointError, match=message) as refusal:
        load_network(str(folder))
    assert "pytorch_model.bin does not fit" in str(refusal.value)


@pytest.mark.parametrize("held", [[1, 2], {"a": 1}, {}, {"weight": torch.zeros(2)}])
def test_other_files_are_refused(held: Any, tmp_path: Path) -> None:
    torch.save(held, tmp_path / "x.pt")
    with pytest.raises(CheckpointError, match=r"holds no state dict|is not a T5 of FiD or AmbigPrompt"):
        load_network(str(tmp_path / "x.pt"))
    (tmp_path / "cut.pt").write_bytes((tmp_path / "x.pt").read_bytes()[:40])
    with pytest.raises(CheckpointError, match=r"cut\.pt cannot be read"):
        load_network(str(tmp_path / "cut.pt"))


def test_a_missing_tokenizer_is_asked_for(make_tiny: Any, tmp_path: Path) -> None:
    torch.save(make_tiny("t5").state_dict(), tmp_path / "9.pt")
    with pytest.raises(CheckpointError, match=r"comes without a tokenizer.*put t5-base's tokenizer\.json next to it"):
        load_network(str(tmp_path / "9.pt"))
