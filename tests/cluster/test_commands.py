"""The commands with `--ray` against the same ones without: equal results, bit for bit, and a clean stdout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from core import cli
from core.cluster.connect import connected
from core.cluster.jobs import reading
from core.models.encoders.base import load_base
from core.models.span.checkpoints import save_span_network
from core.models.span.network import SpanConfig, SpanNetwork
from core.retrieval import index
from core.settings import ROOT, Settings
from core.training import answerer
from core.training.data.examples import MultiExample
from core.types import Passage, ReferenceQuestion
from storage.__main__ import main as storage
from storage.store import Store

pytest.importorskip("ray")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [n for n in os.environ if n.startswith("AMBISCOPE_")]:
        monkeypatch.delenv(name)
    values = {"HOME": tmp_path / "home", "SYSTEM": "scripted", "ENCODER": "hashing", "DEVICE": "cpu", "THREADS": 1}
    for name, value in values.items():
        monkeypatch.setenv(f"AMBISCOPE_{name}", str(value))
    return tmp_path


def call(capsys: pytest.CaptureFixture[str], main: Callable[..., int], *words: object) -> Any:
    capsys.readouterr()
    code = main([*map(str, words), "--json"])
    stdout, stderr = capsys.readouterr()
    assert code == 0, stderr
    return json.loads(stdout)


@pytest.fixture
def tiny(home: Path, tiny_bert_folder: Path, one_thread: None) -> Path:
    """A span checkpoint of random weights."""
    torch.manual_seed(0)
    config = SpanConfig(base=str(tiny_bert_folder), max_tokens=48, max_prompt_tokens=32, max_answer_tokens=3)
    save_span_network(SpanNetwork(load_base(config.base), config), home / "tiny", {"arguments": {"stage": "tune"}})
    return home / "tiny"


def questions(folder: Path, count: int) -> Path:
    path = folder / "questions.jsonl"
    words = ["red ball in the town", "blue car of the north", "green boat", "black door", "white film one"]
    rows = [
        {
            "id": f"q{i}",
            "question": f"Which {i}?",
            "answers": [["Rome"], [words[i % 5].split()[0]]],
            "passages": [{"id": str(j), "title": "T", "text": words[(i + j) % 5]} for j in range(3)],
        }
        for i in range(count)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def untimed(row: dict[str, Any]) -> dict[str, Any]:
    flat = {**row, **{f"cost: {name}": value for name, value in row["cost"].items()}, "cost": None}
    return {name: value for name, value in flat.items() if "seconds" not in name}


def test_an_index_of_a_local_cluster_is_that_of_one_process(
    home: Path, ray_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a process of its own, since Ray asks for this cluster's token from then on; none is left in the user's folder."""
    monkeypatch.setenv("HOME", str(home))
    passages = home / "a.tsv"
    passages.write_text("id\ttext\ttitle\n" + "".join(f"{i}\tword{i} and word{i % 7}.\tT{i}\n" for i in range(40)))
    start = (
        "import sys\nfrom core import cli\nfrom core.cluster import connect\nfrom core.retrieval import index\n"
        f"index.SHARD_TEXTS, connect.LOCAL_STORE = 16, {80 * 2**20}\nsys.exit(cli.main(sys.argv[1:]))"
    )
    words = ["index", "--passages", str(passages), "--name", "there", "--ray", "local", "--json"]
    child = subprocess.run([sys.executable, "-c", start, *words], capture_output=True, text=True, cwd=ROOT, check=False)
    assert child.returncode == 0, child.stderr
    there = json.loads(child.stdout)
    here = call(capsys, cli.main, "index", "--passages", passages, "--name", "here")
    assert (there["passages"], there["digest"]) == (40, here["digest"])
    vectors = [home / "home" / "corpora" / name / index.VECTORS for name in ("here", "there")]
    assert vectors[0].read_bytes() == vectors[1].read_bytes()
    assert not (home / ".ray").exists()


def test_an_evaluation_over_two_nodes_is_that_of_one_process(
    home: Path, tiny: Path, two_nodes: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real model of random weights."""
    monkeypatch.setenv("AMBISCOPE_ANSWERER", str(tiny))
    path, rows = questions(home, 40), home / "there" / "rows.jsonl"
    words = ["evaluate", "--system", "ambigprompt", "--questions", path, "--no-clarify", "--judge", "none", "--traces"]
    here = call(capsys, cli.main, *words, "--out", home / "here")
    there = call(capsys, cli.main, *words, "--out", home / "there", "--ray", two_nodes.address)
    assert [untimed(row) for row in there["rows"]] == [untimed(row) for row in here["rows"]]
    assert there["scores"] == here["scores"]
    ids = [json.loads(line)["id"] for line in rows.read_text().splitlines()]
    assert sorted(ids) == sorted(f"q{i}" for i in range(40))  # each once
    resumed = call(capsys, cli.main, *words, "--out", home / "there")  # without a cluster, from the same folder
    assert resumed["rows"] == there["rows"]


def test_a_project_is_answered_over_two_nodes(home: Path, two_nodes: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with Store(Settings.from_env().url) as store:
        project = store.projects.create_project("Mia", "parts", systems=("scripted",))
        texts = [f"Which {i}?" for i in range(6)]
        passages = tuple(Passage(name, "T", f"{name} it was.") for name in ("Rome", "Oslo"))
        store.intake.add_items("Mia", project.id, [ReferenceQuestion(text, text, (), passages) for text in texts])
    words = "answer --project parts --by Mia --system scripted --ray".split()
    report = call(capsys, storage, *words, two_nodes.address)
    assert (report["answered"], report["linked"], report["failed"]) == (6, 6, 0)
    with Store(Settings.from_env().url) as store:
        assert sorted(p.question for p in store.predictions.recent_predictions()) == texts


def test_pseudo_answers_are_those_of_one_process(
    home: Path, tiny: Path, two_nodes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answerer, "PSEUDO_PART", 2)
    examples = [
        MultiExample(f"colour of {w}", (("T", f"the {w} is red ."), ("T", f"blue {w} .")), (("red",),), "made")
        for w in ("ball", "car", "boat", "door", "film")
    ]
    lines: list[str] = []
    here = answerer.add_pseudo_answers(examples, str(tiny), "cpu", home / "one", lines.append)
    settings = Settings(home=home, device="cpu", threads=1)
    with connected(two_nodes.address, settings) as cluster:
        elsewhere = reading(cluster, str(tiny))
        there = answerer.add_pseudo_answers(examples, str(tiny), "cpu", home / "two", lines.append, elsewhere)
    assert [e.extra["pseudo"] for e in there] == [e.extra["pseudo"] for e in here]
    assert np.sum([len(e.extra["pseudo"]) for e in here]) > 0
    assert lines == [f"pseudo answers {n} of 5" for n in (2, 4, 5)] * 2
