"""Checkpoints by a hub's name, against a hub on this machine: load, pin, offline, no access, and nothing but data."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from pathlib import Path

import hub_server
import pytest
from hub_server import FakeHub
from huggingface_hub import constants

from core.engine import statuses
from core.errors import CheckpointError
from core.models.loading.files import digest
from core.models.loading.finding import BUNDLED, find_answering, find_checkpoint, find_fid, is_span_model
from core.models.loading.hub import fetch, is_name
from core.settings import Settings

SPAN = {"config.json": json.dumps({"kind": "span"}).encode(), "model.safetensors": b"weights"}
T5 = {"config.json": b'{"model_type": "t5"}', "model.safetensors": b"weights"}


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with hub_server.serving() as running:
        hub_server.use(running, monkeypatch, tmp_path / "cache", running.token)
        yield running
    fetch.cache_clear()


def test_an_uploaded_folder_is_loaded_by_name(hub: FakeHub) -> None:
    commit = hub.commit("ada/mine", {p.name: p.read_bytes() for p in (BUNDLED / "minilm").iterdir()})
    name = f"ada/mine@{commit}"
    assert digest(find_checkpoint(name, "answerer")) == digest(BUNDLED / "minilm")
    assert is_span_model(name)


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
