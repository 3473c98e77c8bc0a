"""`core train retriever` and `core train passages`: they write weights that load and are used, and go on; bad input is one line."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import write_jsonl

from core.cli import main
from core.engine import Engine
from core.errors import CheckpointError, IndexMismatchError
from core.models.encoders.base import load_base
from core.models.encoders.retriever import find_retriever, index_name, retriever_config
from core.models.encoders.sentence_encoder import PooledEncoder, load_encoder
from core.models.ranking.passage_network import load_joint
from core.models.span.checkpoints import save_span_network
from core.models.span.network import SpanConfig, SpanNetwork
from core.models.span.reader import load_reader
from core.settings import Settings

COLOURS, THINGS = ("red", "blue", "green", "black", "white"), ("ball", "car", "door", "boat", "town")
PLAIN = ["--precision", "fp32", "--evaluate-every", "2"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AMBISCOPE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AMBISCOPE_DEVICE", "cpu")
    return tmp_path / "home"


@pytest.fixture
def annotated(tmp_path: Path) -> Path:
    """A passage a colour and thing, the first of which is so long that a corpus has it in two; a question a thing, whose answers are two colours;
    every fifth question is held out."""
    folder = tmp_path / "things"
    folder.mkdir()
    rows, questions = ["id\ttext\ttitle"], []
    for thing in THINGS:
        rows += [f"{thing}-{colour}\tthe {thing} is {colour} .\t{thing}" for colour in COLOURS]
        for n, colour in enumerate(COLOURS):
            pair = (colour, COLOURS[n - 1])
            pairs = [{"question": f"what colour is the {thing} ?", "answer": [c], "passages": [f"{thing}-{c}"]} for c in pair]
            one = {"type": "multipleQAs", "qaPairs": pairs}
            split = "held out" if n == 4 else "train"
            questions.append({"question": f"colour of the {thing} {n} ?", "annotations": [one], "split": split})
    rows[1] = rows[1].replace(" .", " . " + 1500 * "x")
    (folder / "passages.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "questions.json").write_text(json.dumps(questions), encoding="utf-8")
    return folder


def last(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return row


def test_a_retriever_is_trained_and_searches_its_bases_index(
    annotated: Path, tiny_bert_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, base = tmp_path / "out", str(tiny_bert_folder)
    words = ["train", "retriever", "--annotated", str(annotated), "--base", base, "--batch", "8", *PLAIN]
    assert main([*words, "--rank", "4", "--lr", "5e-3", "--steps", "4", "--out", str(out)]) == 0
    row = last(capsys)
    assert (row["step"], 0 <= row["MRecall@10"] <= 1) == (4, True)
    name = str(out / "last")
    folder = find_retriever(name)
    assert (retriever_config(folder).rank, index_name(name), index_name("minilm")) == (4, index_name(base), "minilm")
    untrained = load_encoder(Settings(encoder=base, device="cpu"))
    trained = load_encoder(Settings(encoder=name, device="cpu"))
    assert trained.name == untrained.name  # an index of the base serves it
    texts = ["the red ball", "the blue car is in the town ."]
    assert np.abs(trained.encode(texts) - untrained.encode(texts)).max() < 1e-5
    assert np.abs(trained.encode(texts, "query") - untrained.encode(texts, "query")).max() > 1e-4
    assert main([*words, "--init", name, "--steps", "1", "--out", str(tmp_path / "more")]) == 0


def test_both_sides_can_be_trained_whole(annotated: Path, tiny_bert_folder: Path, tmp_path: Path, home: Path) -> None:
    base, out = str(tiny_bert_folder), tmp_path / "both"
    words = ["train", "retriever", "--annotated", str(annotated), "--base", base, "--batch", "4", *PLAIN]
    words += ["--side", "both", "--rank", "0", "--pooling", "cls", "--steps", "2", "--out", str(out)]
    assert main(words) == 0
    name = str(out / "last")
    trained = load_encoder(Settings(encoder=name, device="cpu"))
    assert index_name(name) == trained.name != base  # its passages need an index of their own
    assert np.allclose(trained.encode(["the red ball"]), trained.encode(["the red ball"], "query"), atol=1e-2)
    engine = Engine(Settings(home=home, encoder=name, device="cpu", system="scripted"))
    files = [annotated / "passages.tsv"]
    engine.library.create("mine", files)
    info = engine.system(corpus="mine").info
    shutil.rmtree(out)
    assert main([*words, "--seed", "3"]) == 0  # trained again into the same folder: the vectors of before are another encoder's
    again = Engine(engine.settings)
    with pytest.raises(IndexMismatchError, match="encoder"):
        again.corpus("mine")
    assert not again.library.create("mine", files).already_built
    assert again.system(corpus="mine").info != info
    (out / "last" / "model.safetensors").write_bytes(b"cut")
    with pytest.raises(CheckpointError, match="train it again"):
        load_encoder(Settings(encoder=name, device="cpu"))


def test_questions_of_other_files_find_their_passages_by_their_answers(
    annotated: Path, tiny_bert_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = (
        {"question": f"which {t} is {c} ?", "title": t, "passage": f"the {t} is {c} .", "answers": [c], "source": "x"}
        for t in THINGS
        for c in COLOURS
    )
    reading = write_jsonl(tmp_path / "reading.jsonl", *rows)
    words = ["train", "retriever", "--base", str(tiny_bert_folder), "--steps", "1", *PLAIN, "--out", str(tmp_path / "r")]
    assert main([*words, "--reading", str(reading), "--passages", str(annotated / "passages.tsv"), "--limit", "10"]) == 0
    assert "10 questions, 0 held out, 26 passages" in capsys.readouterr().out
    assert main([*words, "--reading", str(reading)]) == 2
    assert "give both" in capsys.readouterr().err


def test_a_checkpoint_of_condensers_gives_its_first_token(tiny_bert_folder: Path, tmp_path: Path) -> None:
    named = tmp_path / "co-condenser-wiki"
    named.symlink_to(tiny_bert_folder)
    first, mean = (load_encoder(Settings(encoder=str(f), device="cpu")) for f in (named, tiny_bert_folder))
    prefixed = load_encoder(Settings(encoder=f"cls:{tiny_bert_folder}", device="cpu"))
    assert isinstance(first, PooledEncoder)
    texts = ["the red ball", "who wrote the book ?"]
    assert np.allclose(first.encode(texts, "query"), prefixed.encode(texts, "query"), atol=1e-6)
    assert np.abs(first.encode(texts) - mean.encode(texts)).max() > 1e-2
    with pytest.raises(CheckpointError, match="cannot be loaded"):
        load_encoder(Settings(encoder="cls:/no/such/folder", device="cpu"))


def test_the_reranker_of_passages_is_trained_over_a_readers_states(
    annotated: Path, tiny_bert_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMBISCOPE_ENCODER", "hashing")
    config = SpanConfig(base=str(tiny_bert_folder), max_tokens=48, max_prompt_tokens=24, max_answer_tokens=4, span_width=8)
    save_span_network(SpanNetwork(load_base(config.base), config), tmp_path / "reader")
    reader = str(tmp_path / "reader")
    words = ["train", "passages", "--annotated", str(annotated), "--reader", reader, "--pool", "8", *PLAIN]
    out = tmp_path / "joint"
    assert main([*words, "--head-lr", "1e-3", "--steps", "4", "--out", str(out)]) == 0
    assert 0 <= last(capsys)["MRecall@5 multi"] <= 1
    _, digest = load_reader(reader, "cpu")
    network, _ = load_joint(str(out / "last"), digest)
    assert network.config == replace(network.config, reader=digest, states=3 * 32)
    with pytest.raises(CheckpointError, match="was trained on the states of reader"):
        load_joint(str(out / "last"), "another")
    with pytest.raises(CheckpointError, match="no passage reranker 'nowhere'"):
        load_joint("nowhere", digest)
    words, out = [w for w in words if w not in ("--reader", reader)], tmp_path / "by the setting"
    monkeypatch.setenv("AMBISCOPE_READER", reader)
    assert main([*words, "--steps", "1", "--out", str(out)]) == 0
    save_span_network(SpanNetwork(load_base(config.base), replace(config, span_width=4)), tmp_path / "another")
    monkeypatch.setenv("AMBISCOPE_READER", str(tmp_path / "another"))
    capsys.readouterr()
    assert main([*words, "--steps", "1", "--out", str(out)]) == 2  # its states are not those that the run began with
    assert "other settings (reader)" in capsys.readouterr().err
