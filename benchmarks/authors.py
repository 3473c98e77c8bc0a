"""`python -m benchmarks.authors --cases FOLDER`: do weights in the authors' formats give the numbers of the authors' code?

AmbigPrompt: each case has a small T5, inputs, and the outputs of the authors' released code (tests/data/authors_t5/README.md says which version,
and how).  The weights are written as the authors save them, read as every checkpoint is, and compared in encoder states, logits, loss and greedy tokens.
FiD: the same weights in FiD's released form, compared with transformers' own T5: each row encoded for itself, the decoder over all rows joined.
For comparison alone: how far the paper's equations are from the authors' code.

Exit code 1 where the largest difference of a case is above 1e-4, or a greedy token differs.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from core.errors import AmbiscopeError, InputError
from core.models.seq2seq.network import FidBatch, FidConfig, FidNetwork
from core.models.seq2seq.released import load_t5
from core.settings import ROOT

CASES = ROOT / "tests" / "data" / "authors_t5"
TOLERANCE = 1e-4
WEIGHTS = "model."  # prefix of the names of a case's weights
NO_EOI = -1  # nothing here asks for [EOI]
EQUATIONS = "the paper's equations"  # shown for comparison: they are not the authors' code
Differences = dict[str, float]


def read_cases(folder: Path) -> list[tuple[dict[str, Any], dict[str, Tensor]]]:
    """(description, tensors) of each case.  Raises InputError where the folder has none."""
    try:
        described = json.loads((folder / "cases.json").read_text(encoding="utf-8"))
        return [(case, load_file(folder / f"{case['case']}.safetensors")) for case in described]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{folder} holds no cases that can be read ({error}); give the folder with cases.json") from None


def weights_of(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(WEIGHTS): t for name, t in tensors.items() if name.startswith(WEIGHTS)}


def wrapped(name: str) -> str:
    """A name of T5's encoder as FiD's wrappers make it.

    >>> wrapped("encoder.block.0.layer.0.layer_norm.weight")
    'encoder.encoder.block.0.module.layer.0.layer_norm.weight'
    """
    return re.sub(r"^encoder\.", "encoder.encoder.", re.sub(r"^encoder\.block\.(\d+)\.", r"encoder.block.\1.module.", name))


def load_weights(weights: dict[str, Tensor], config: dict[str, Any], file: str) -> tuple[Any, FidConfig]:
    """(model, configuration) that `load_t5` reads from weights in a file of this name.  Raises CheckpointError."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / file
        torch.save({name: t.clone() for name, t in weights.items()}, path)
        (path.parent / "config.json").write_text(json.dumps(config))
        return load_t5(path)


def network_of(weights: dict[str, Tensor], config: dict[str, Any], file: str) -> FidNetwork:
    """The network of weights in a file of an author's name and form.  Raises CheckpointError."""
    return FidNetwork(*load_weights(weights, config, file), NO_EOI).eval()


def batch_of(tensors: dict[str, Tensor]) -> FidBatch:
    ids, mask = tensors["input_ids"][0], tensors["attention_mask"][0].bool()  # (R, L)
    return FidBatch(ids, mask, len(ids), ids.shape[1], torch.zeros(1, dtype=torch.long))


def greedy(model: Any, states: Tensor, mask: Tensor, length: int) -> Tensor:
    """Greedily decoded token ids (1, length), padded with 0."""
    from transformers.modeling_outputs import BaseModelOutput

    tokens = model.generate(
        encoder_outputs=BaseModelOutput(last_hidden_state=states),
        attention_mask=mask.long(),
        max_length=length,
        do_sample=False,
        num_beams=1,
    )
    return nn.functional.pad(tokens, (0, length))[:, :length]


def compared(network: FidNetwork, batch: FidBatch, expected: dict[str, Tensor]) -> Differences:
    """The largest absolute difference of each reference value; of "generated", the number of tokens that differ."""
    with torch.no_grad():
        states, mask = network.encode(batch)
        logits = network(batch, expected["labels"])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), expected["labels"].flatten())
        tokens = greedy(network.model, states, mask, expected["generated"].shape[1])
    expected_states = expected["encoder_states"].flatten(0, 1)[batch.mask.flatten()]  # of R * L tokens
    return {
        "encoder_states": float((states[mask] - expected_states).abs().max()),
        "decoder_logits": float((logits - expected["decoder_logits"]).abs().max()),
        "loss": float((loss - expected["loss"]).abs().max()),
        "generated": float((tokens != expected["generated"]).sum()),
    }


def ambigprompt(case: dict[str, Any], tensors: dict[str, Tensor], attention: str = "authors") -> Differences:
    """A case in AmbigPrompt's form against what the authors' code made of it; `attention="paper"`: as if it were trained here."""
    network = network_of(weights_of(tensors), case["config"], "0.pt")
    if attention != network.config.attention:
        network = FidNetwork(network.model, replace(network.config, attention="paper"), NO_EOI).eval()
    return compared(network, batch_of(tensors), tensors)


def fid(case: dict[str, Any], tensors: dict[str, Tensor]) -> Differences:
    """A case's weights in FiD's form against transformers' T5, whose encoder reads each row for itself."""
    # transformers' names, so that the model has transformers' own attention
    model, _ = load_weights(weights_of(tensors), case["config"], "plain.bin")
    batch = batch_of(tensors)
    with torch.no_grad():
        states = model.encoder(input_ids=batch.input_ids, attention_mask=batch.mask.long()).last_hidden_state
        all_rows, mask = states.flatten(0, 1)[None], batch.mask.flatten()[None]
        output = model(encoder_outputs=(all_rows,), attention_mask=mask.long(), labels=tensors["labels"])
        tokens = greedy(model, all_rows, mask, tensors["generated"].shape[1])
    expected = {
        "labels": tensors["labels"],
        "encoder_states": states,
        "decoder_logits": output.logits,
        "loss": output.loss,
        "generated": tokens,
    }
    fid_weights = {wrapped(name): t for name, t in weights_of(tensors).items()}
    network = network_of(fid_weights, case["config"] | {"architectures": ["FiDT5"]}, "pytorch_model.bin")
    if network.config != FidConfig("separate"):
        raise InputError("weights in FiD's form were not taken for FiD's")
    return compared(network, batch, expected)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path, default=CASES, help="folder with cases.json and a .safetensors a case")
    args = parser.parse_args(argv)
    differences_by_case: dict[str, dict[str, Differences]] = {}
    try:
        for case, tensors in read_cases(args.cases):
            differences_by_case[case["case"]] = {
                "AmbigPrompt": ambigprompt(case, tensors),
                "FiD": fid(case, tensors),
                EQUATIONS: ambigprompt(case, tensors, "paper"),
            }
    except AmbiscopeError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    largest = max(max(d.values()) for kinds in differences_by_case.values() for kind, d in kinds.items() if kind != EQUATIONS)
    for name, kinds in differences_by_case.items():
        for kind, differences in kinds.items():
            figures = ", ".join(f"{value_name} {value:.1e}" for value_name, value in differences.items())
            aside = "  (for comparison)" if kind == EQUATIONS else ""
            print(f"{name:22} {kind:22} largest {max(differences.values()):.1e}: {figures}{aside}")
    print(f"largest difference {largest:.1e}, at most {TOLERANCE:g} is allowed")
    return 0 if largest <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
