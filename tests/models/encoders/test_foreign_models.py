"""Models that others wrote: no code that comes with one runs, and no message says how to let it."""

from __future__ import annotations

import ast
import io
import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator

from core.errors import CheckpointError
from core.models.encoders.base import load_base
from core.models.encoders.sentence_encoder import SentenceTransformerEncoder
from core.models.language.local import load_local
from core.models.seq2seq.fid import load_network
from core.models.seq2seq.released import read_weights
from core.models.seq2seq.small import small_tokenizer
from core.models.span.model import load_tokenizer
from core.settings import ROOT
from core.training.trainer import _load

PRODUCT = [p for top in ("core", "storage", "pages", "benchmarks") for p in sorted((ROOT / top).rglob("*.py"))]
DOOR = ROOT / "core" / "models" / "loading" / "pretrained.py"
LOADS = {"from_pretrained", "SentenceTransformer", "CrossEncoder", "SparseEncoder", "load_dataset", "pipeline"}
FLAGS = ("trust_remote_code", "allow_pickle", "weights_only")
ADVICE = ("trust_remote_code", "weights_only", "safe_globals", "allow_pickle", "still be loaded")


def called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def test_every_load_goes_through_one_door_that_says_false() -> None:
    wrong, doors = [], 0
    for path in PRODUCT:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            keywords = {k.arg: ast.unparse(k.value) for k in node.keywords if k.arg in FLAGS}
            where = f"{path.relative_to(ROOT)}:{node.lineno}"
            if called(node) in LOADS:
                doors += path == DOOR
                if path != DOOR or keywords.get("trust_remote_code") != "False":
                    wrong.append(f"{where} loads without core.models.loading.pretrained")
            elif {keywords.get(name, "False") for name in ("trust_remote_code", "allow_pickle")} != {"False"}:
                wrong.append(f"{where} lets code in")
            whole = ast.unparse(node.func) if called(node) in ("load", "loads", "Unpickler") else ""
            if whole == "torch.load" and keywords.get("weights_only") != "True":
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


def with_code(folder: Path, copy: Path, ran: Path, file: str = "mine.py", code: str = "class Mine: pass") -> Path:
    """A copy of a model's folder with code in a file."""
    shutil.copytree(folder, copy)
    (copy / file).parent.mkdir(exist_ok=True)
    (copy / file).write_text(f"from pathlib import Path\nPath({str(ran)!r}).touch()\n{code}\n")
    return copy


@pytest.fixture
def coded(tiny_t5_folder: Path, tmp_path: Path, ran: Path) -> Path:
    """A model whose config names classes of a file beside it."""
    config = with_code(tiny_t5_folder, tmp_path / "model", ran) / "config.json"
    classes = ("AutoConfig", "AutoModel", "AutoModelForSeq2SeqLM", "AutoModelForCausalLM")
    changes = {"model_type": "mine", "auto_map": dict.fromkeys(classes, "mine.Mine")}
    config.write_text(json.dumps(json.loads(config.read_text()) | changes))
    return config.parent


LOADERS: dict[str, Callable[[Path], object]] = {
    "fid": lambda folder: load_network(str(folder)),
    "base": lambda folder: load_base(str(folder)),
    "encoder": lambda folder: SentenceTransformerEncoder(str(folder), "cpu"),
    "local": lambda folder: load_local(str(folder), "cpu"),
}


def refused(load: Callable[[Path], object], folder: Path, ran: Path) -> str:
    with pytest.raises(CheckpointError) as refusal:
        load(folder)
    text = str(refusal.value)
    assert not [advice for advice in ADVICE if advice in text], text
    assert "\n" not in text
    assert not ran.exists()
    return text


@pytest.mark.parametrize("load", LOADERS.values(), ids=LOADERS)
def test_code_that_comes_with_a_model_never_runs(load: Callable[[Path], object], coded: Path, ran: Path) -> None:
    text = refused(load, coded, ran)
    assert "its own code, which is never run here" in text
    assert str(coded) in text


@pytest.mark.parametrize("load", [load_tokenizer, small_tokenizer])
def test_nor_that_of_a_tokenizer(load: Callable[[str], object], coded: Path, ran: Path) -> None:
    config = coded / "tokenizer_config.json"
    changes = {"tokenizer_class": "Mine", "auto_map": {"AutoTokenizer": ["mine.Mine", None]}}
    config.write_text(json.dumps(json.loads(config.read_text()) | changes))
    assert "its own code" in refused(lambda folder: load(str(folder)), coded, ran)


def test_nor_that_of_generation(tiny_t5_folder: Path, tmp_path: Path, ran: Path) -> None:
    """A folder `custom_generate` beside the weights holds another generate(): it is left alone."""
    code = "def generate(*args, **kw): pass"
    LOADERS["fid"](with_code(tiny_t5_folder, tmp_path / "model", ran, "custom_generate/generate.py", code))
    assert not ran.exists()


def test_nor_that_of_a_module_of_sentence_transformers(tiny_bert_folder: Path, tmp_path: Path, ran: Path) -> None:
    folder = with_code(tiny_bert_folder, tmp_path / "model", ran)
    (folder / "modules.json").write_text(json.dumps([{"idx": 0, "name": "0", "path": "", "type": "mine.Mine"}]))
    assert "its own code" in refused(LOADERS["encoder"], folder, ran)


class Evil:
    def __init__(self, ran: Path) -> None:
        self.ran = ran

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.ran),)


@pytest.fixture
def pickled(ran: Path) -> bytes:
    """The bytes that torch.save makes of a state dict with something else in it."""
    torch.save({"shared.weight": torch.zeros(2, 2), "more": Evil(ran)}, file := io.BytesIO())
    return file.getvalue()


def test_a_file_with_more_than_tensors_is_refused_without_torchs_advice(tmp_path: Path, ran: Path, pickled: bytes) -> None:
    for name, data in {"saved.pt": pickled, "bare.pt": pickle.dumps({"a": Evil(ran)})}.items():
        (tmp_path / name).write_bytes(data)
        text = refused(read_weights, tmp_path / name, ran)
        assert "it holds more than tensors" in text
        assert name in text
    assert "more than tensors: posix.mkdir" in refused(read_weights, tmp_path / "saved.pt", ran)


@pytest.mark.parametrize("kind", LOADERS)
def test_nor_is_it_as_the_weights_of_a_folder(
    kind: str, tiny_t5_folder: Path, tiny_bert_folder: Path, tmp_path: Path, ran: Path, pickled: bytes
) -> None:
    shutil.copytree(tiny_bert_folder if kind == "base" else tiny_t5_folder, folder := tmp_path / "model")
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickled)
    refused(LOADERS[kind], folder, ran)


def test_nor_in_a_saved_state_of_training(tmp_path: Path, ran: Path, pickled: bytes) -> None:
    accelerator = Accelerator(cpu=True)
    network = torch.nn.Linear(2, 2)
    accelerator.prepare(network, torch.optim.SGD(network.parameters(), 0.1))
    accelerator.save_state(str(tmp_path / "state"))
    (tmp_path / "state" / "position.json").write_text(json.dumps({"positions": [0]}))
    (tmp_path / "state" / "optimizer.bin").write_bytes(pickled)
    assert "holds more than tensors" in refused(lambda folder: _load(accelerator, folder), tmp_path / "state", ran)
