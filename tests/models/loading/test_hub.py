"""Checkpoints by a hub's name, against a hub on this machine: push, load, pin, offline, no access, and nothing but data."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hub_server
import pytest
from hub_server import FakeHub
from huggingface_hub import ModelCard, constants

from core import cli
from core.engine import statuses
from core.errors import CheckpointError, DownloadError
from core.models.loading.files import digest
from core.models.loading.finding import BUNDLED, find_answering, find_checkpoint, find_fid, is_span_model
from core.models.loading.hub import fetch, is_name, put
from core.settings import Settings

SPAN = {"config.json": json.dumps({"kind": "span"}).encode(), "model.safetensors": b"weights"}
T5 = {"config.json": b'{"model_type": "t5"}', "model.safetensors": b"weights"}


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with hub_server.serving() as running:
        hub_server.use(running, monkeypatch, tmp_path / "cache", running.token)
        yield running
    fetch.cache_clear()


def test_a_checkpoint_goes_there_and_comes_back(hub: FakeHub, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["push", "minilm", "ada/mine", "--licence", "apache-2.0", "--private", "--json"]) == 0
    output = capsys.readouterr()
    pushed = json.loads(output.out)
    assert hub.token not in output.out + output.err
    assert pushed["name"] == f"ada/mine@{hub.repos['ada/mine']['main']}"
    assert hub.private == {"ada/mine"}
    folder = find_checkpoint(pushed["name"], "answerer")
    assert digest(folder) == digest(BUNDLED / "minilm")
    assert is_span_model(pushed["name"])
    card = ModelCard(hub.commits[pushed["commit"]]["README.md"].decode())
    assert (card.data.license, card.data.library_name) == ("apache-2.0", "ambiscope")
    assert card.text.strip() == (BUNDLED / "minilm" / "README.md").read_text().strip()


def test_a_name_that_is_pinned_stays_what_it_was(hub: FakeHub) -> None:
    first = hub.commit("ada/reader", SPAN)
    hub.commit("ada/reader", {"model.safetensors": b"others"})
    assert (find_checkpoint(f"ada/reader@{first}", "reader") / "model.safetensors").read_bytes() == b"weights"
    assert (find_checkpoint("ada/reader", "reader") / "model.safetensors").read_bytes() == b"others"
    for revision in ("v9", "refs/pr/1"):
        with pytest.raises(CheckpointError, match="no such revision"):
            find_checkpoint(f"ada/reader@{revision}", "reader")


def test_only_data_is_fetched(hub: FakeHub) -> None:
    others = {"modeling.py": b"raise SystemExit", "pytorch_model.bin": b"pickle", "tokenizer.json": b"{}"}
    hub.commit("ada/reader", SPAN | others)
    assert {p.name for p in find_checkpoint("ada/reader", "reader").iterdir()} == {*SPAN, "tokenizer.json"}
    hub.commit("ada/pickled", {"config.json": b'{"model_type": "t5"}', "pytorch_model.bin": b"pickle"})
    with pytest.raises(CheckpointError, match="no safetensors weights"):
        find_fid("ada/pickled")


def test_another_kind_is_refused(hub: FakeHub) -> None:
    hub.commit("ada/reader", SPAN)
    with pytest.raises(CheckpointError, match="holds a span model, not an encoder-decoder"):
        find_fid("ada/reader")
    hub.commit("ada/t5", T5)
    assert Path(find_fid("ada/t5")).is_dir()
    find_answering("ada/t5")


def test_a_full_disk_is_no_fault_of_the_hub(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.commit("ada/reader", SPAN)

    def full(*_: object, **__: object) -> object:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("huggingface_hub.snapshot_download", full)
    with pytest.raises(CheckpointError, match=r"its files cannot be read or written here .*No space left.*HF_HOME"):
        find_checkpoint("ada/reader", "reader")


def test_no_access(hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.commit("ada/secret", SPAN)
    hub.private.add("ada/secret")
    hub.commit("ada/gated", SPAN)
    hub.gated.add("ada/gated")
    find_checkpoint("ada/secret", "reader")
    with pytest.raises(CheckpointError, match="accepted its terms"):
        find_checkpoint("ada/gated", "reader")
    hub_server.use(hub, monkeypatch, tmp_path / "other", token="hf_wrong")
    for name in ("ada/secret", "ada/none"):
        with pytest.raises(CheckpointError, match="no repository of that name on the hub that you may read") as refusal:
            find_checkpoint(name, "reader")
        assert "hf_wrong" not in str(refusal.value)
    with pytest.raises(DownloadError, match=r"refuses access \(401\)") as rejection:
        put("ada/new", {"config.json": b"{}"})
    assert "hf_wrong" not in str(rejection.value)


def test_offline_stays_offline(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.commit("ada/reader", SPAN)
    hub.commit("ada/other", SPAN)
    folder = find_checkpoint("ada/reader", "reader")
    hub.asked.clear()
    fetch.cache_clear()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert find_checkpoint("ada/reader", "reader") == folder
    with pytest.raises(CheckpointError, match="HF_HUB_OFFLINE forbids asking the hub"):
        find_checkpoint("ada/other", "reader")
    with pytest.raises(DownloadError, match="nothing was sent"):
        put("ada/new", {"config.json": b"{}"})
    assert hub.asked == []


def test_a_hub_that_is_away(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(CheckpointError, match="the hub cannot be reached"):
        find_checkpoint("ada/reader", "reader")


def test_looking_what_can_run_asks_no_hub(hub: FakeHub, tmp_path: Path) -> None:
    names = Settings(home=tmp_path, answerer="ada/a", reader="ada/b", seq2seq="ada/c", rewriter="ada/d")
    assert {s.name: s.ready for s in statuses(names)}["ambiscope"]
    assert hub.asked == []


def test_a_path_is_no_name() -> None:
    assert is_name("ada/reader@0a1b")
    assert not any(map(is_name, ("/ada/reader", "~/reader", "ada/reader@", "ada/a b")))  # others: its docstring
    with pytest.raises(CheckpointError, match="no checkpoint 'runs/a/best'"):
        find_checkpoint("runs/a/best", "reader")


@pytest.mark.parametrize(
    ("checkpoint", "repo", "code", "message"),
    [
        ("no/such/folder", "ada/x", 3, "there is no folder no/such/folder"),
        ("notes", "ada/x", 3, "config.json"),
        ("t5", "ada/x", 3, "holds no checkpoint of Ambiscope"),
        ("retriever", "ada/x", 3, "holds a retriever model; push takes span"),
        ("unlicensed", "ada/x", 2, "states no licence; give one with --licence"),
        ("weightless", "ada/x", 3, "has no model.safetensors"),
        ("licensed", "../x", 2, "is no name of a repository"),
        ("licensed", "ada/x/y", 2, "is no name of a repository"),
    ],
)
def test_what_push_refuses(
    hub: FakeHub, tmp_path: Path, monkeypatch: Any, capsys: Any, checkpoint: str, repo: str, code: int, message: str
) -> None:
    folders = {
        "notes": {"notes.txt": b"no checkpoint"},
        "t5": T5,
        "unlicensed": SPAN,
        "weightless": {"config.json": SPAN["config.json"], "model.pt": b"pickle"},
        "licensed": {**SPAN, "README.md": b"---\nlicense: mit\n---\n# Mine\n"},
    }
    for folder, files in folders.items():
        (tmp_path / folder).mkdir()
        for name, content in files.items():
            (tmp_path / folder / name).write_bytes(content)
    monkeypatch.chdir(tmp_path)
    assert cli.main(["push", checkpoint, repo]) == code
    assert message in capsys.readouterr().err
    assert not hub.repos


def test_a_run_without_a_card_gets_one(hub: FakeHub, tmp_path: Path) -> None:
    run = tmp_path / "best"
    run.mkdir()
    config = {"kind": "span", "config": {"base": "minilm"}, "about": {"figures": {"F1": 0.5}}}
    (run / "config.json").write_text(json.dumps(config))
    (run / "model.safetensors").write_bytes(b"weights")
    (run / "optimizer.bin").write_bytes(b"pickle")
    assert cli.main(["push", str(run), "ada/mine", "--licence", "mit", "--branch", "trial"]) == 0
    trial = hub.commits[hub.repos["ada/mine"]["trial"]]
    assert "optimizer.bin" not in trial
    card = trial["README.md"].decode()
    assert '"F1": 0.5' in card
    assert ModelCard(card).data.license == "mit"
    assert "model.safetensors" not in hub.commits[hub.repos["ada/mine"]["main"]]
