"""Models that others wrote: no code that comes with one runs, and no message says how to let it."""

from __future__ import annotations

import ast
import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.errors import CheckpointError
from core.settings import ROOT

PRODUCT = [p for top in ("core", "storage", "pages", "benchmarks") for p in sorted((ROOT / top).rglob("*.py"))]
DOOR = ROOT / "core" / "models" / "encoders" / "pretrained.py"
LOADS = {"from_pretrained", "SentenceTransformer", "CrossEncoder", "SparseEncoder", "load_dataset", "pipeline"}
ADVICE = ("trust_remote_code", "weights_only", "safe_globals", "allow_pickle", "still be loaded")


def called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def test_every_load_goes_through_one_door_that_says_false() -> None:
    wrong, doors = [], 0
    for path in PRODUCT:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            said = {k.arg: ast.unparse(k.value) for k in node.keywords}
            where = f"{path.relative_to(ROOT)}:{node.lineno}"
            if called(node) in LOADS:
                doors += path == DOOR
                if path != DOOR or said.get("trust_remote_code") != "False":
                    wrong.append(f"{where} loads without core.models.encoders.pretrained")
            elif said.get("trust_remote_code", "False") != "False" or said.get("allow_pickle", "False") != "False":
                wrong.append(f"{where} lets code in")
            whole = ast.unparse(node.func)
            if whole == "torch.load" and said.get("weights_only") != "True":
                wrong.append(f"{where} loads more than tensors")
            if whole in ("pickle.load", "pickle.loads", "pickle.Unpickler", "joblib.load", "torch.hub.load", "dill.load"):
                wrong.append(f"{where} opens a pickle")
    assert not wrong
    assert doors == 2


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that code of a model makes when it runs.  A question on the terminal fails."""
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("asked on the terminal"))
    return tmp_path / "ran"


def with_code(folder: Path, made: Path, ran: Path, **changes: Any) -> Path:
    """A copy of a model's folder whose config names classes of a file beside it."""
    shutil.copytree(folder, made)
    (made / "mine.py").write_text(f"from pathlib import Path\nPath({str(ran)!r}).touch()\nclass Mine: pass\n")
    config = json.loads((made / "config.json").read_text())
    classes = ("AutoConfig", "AutoModel", "AutoModelForSeq2SeqLM", "AutoModelForCausalLM")
    config |= {"model_type": "mine", "auto_map": dict.fromkeys(classes, "mine.Mine")} | changes
    (made / "config.json").write_text(json.dumps(config))
    return made


def fid(folder: Path) -> object:
    from core.models.seq2seq.fid import load_network

    return load_network(str(folder))


def base(folder: Path) -> object:
    from core.models.encoders.base import load_base

    return load_base(str(folder))


def encoder(folder: Path) -> object:
    from core.models.encoders.sentence_encoder import SentenceTransformerEncoder

    return SentenceTransformerEncoder(str(folder), "cpu")


def local(folder: Path) -> object:
    from core.models.language.local import load_local

    return load_local(str(folder), "cpu")


LOADERS = [fid, base, encoder, local]


def refused(load: Callable[[], object], ran: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        load()
    text = str(caught.value)
    assert not [advice for advice in ADVICE if advice in text], text
    assert "\n" not in text
    assert not ran.exists()
    return text


@pytest.mark.parametrize("load", LOADERS)
def test_code_that_comes_with_a_model_never_runs(
    load: Callable[[Path], object], tiny_t5_folder: Path, tmp_path: Path, ran: Path
) -> None:
    folder = with_code(tiny_t5_folder, tmp_path / "model", ran)
    text = refused(lambda: load(folder), ran)
    assert "its own code, which is never run here" in text
    assert str(folder) in text


def test_nor_that_of_a_tokenizer(tiny_t5_folder: Path, tmp_path: Path, ran: Path) -> None:
    from core.models.seq2seq.small import small_tokenizer
    from core.models.span.model import load_tokenizer

    folder = with_code(tiny_t5_folder, tmp_path / "model", ran)
    config = folder / "tokenizer_config.json"
    theirs = {"tokenizer_class": "Mine", "auto_map": {"AutoTokenizer": ["mine.Mine", None]}}
    config.write_text(json.dumps(json.loads(config.read_text()) | theirs))
    for load in (lambda f: load_tokenizer(str(f)), lambda f: small_tokenizer(str(f))):
        assert "its own code" in refused(lambda load=load: load(folder), ran)  # type: ignore[misc]


def test_nor_that_of_generation(tiny_t5_folder: Path, tmp_path: Path, ran: Path) -> None:
    """A folder `custom_generate` beside the weights holds another generate(): it is left alone."""
    shutil.copytree(tiny_t5_folder, folder := tmp_path / "model")
    (folder / "custom_generate").mkdir()
    (folder / "custom_generate" / "generate.py").write_text(
        f"from pathlib import Path\nPath({str(ran)!r}).touch()\ndef generate(*args, **kw): pass\n"
    )
    fid(folder)
    assert not ran.exists()


def test_nor_that_of_a_module_of_sentence_transformers(tiny_bert_folder: Path, tmp_path: Path, ran: Path) -> None:
    shutil.copytree(tiny_bert_folder, folder := tmp_path / "model")
    (folder / "mine.py").write_text(f"from pathlib import Path\nPath({str(ran)!r}).touch()\nclass Mine: pass\n")
    (folder / "modules.json").write_text(json.dumps([{"idx": 0, "name": "0", "path": "", "type": "mine.Mine"}]))
    assert "its own code" in refused(lambda: encoder(folder), ran)


class Evil:
    def __init__(self, ran: Path) -> None:
        self.ran = ran

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.ran),)


@pytest.fixture
def pickled(ran: Path) -> bytes:
    """What torch.save makes of a state dict with something else in it."""
    import io

    import torch

    torch.save({"shared.weight": torch.zeros(2, 2), "more": Evil(ran)}, made := io.BytesIO())
    return made.getvalue()


def test_a_file_with_more_than_tensors_is_refused_without_torchs_advice(tmp_path: Path, ran: Path, pickled: bytes) -> None:
    from core.models.seq2seq.released import read_weights

    for name, data in {"saved.pt": pickled, "bare.pt": pickle.dumps({"a": Evil(ran)})}.items():
        (tmp_path / name).write_bytes(data)
        text = refused(lambda name=name: read_weights(tmp_path / name), ran)  # type: ignore[misc]
        assert "it holds more than tensors" in text
        assert name in text
    assert "more than tensors: posix.mkdir" in refused(lambda: read_weights(tmp_path / "saved.pt"), ran)


@pytest.mark.parametrize("load", LOADERS)
def test_nor_is_it_as_the_weights_of_a_folder(
    load: Callable[[Path], object], tiny_t5_folder: Path, tiny_bert_folder: Path, tmp_path: Path, ran: Path, pickled: bytes
) -> None:
    shutil.copytree(tiny_bert_folder if load is base else tiny_t5_folder, folder := tmp_path / "model")
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickled)
    refused(lambda: load(folder), ran)


def test_nor_in_a_saved_state_of_training(tmp_path: Path, ran: Path, pickled: bytes) -> None:
    import torch
    from accelerate import Accelerator

    from core.training.trainer import _load

    accelerator = Accelerator(cpu=True)
    network = torch.nn.Linear(2, 2)
    accelerator.prepare(network, torch.optim.SGD(network.parameters(), 0.1))
    accelerator.save_state(str(tmp_path / "state"))
    (tmp_path / "state" / "position.json").write_text(json.dumps({"positions": [0]}))
    (tmp_path / "state" / "optimizer.bin").write_bytes(pickled)
    assert "holds more than tensors" in refused(lambda: _load(accelerator, tmp_path / "state"), ran)
