"""Exports, snapshots, backups, downloads and checkpoints on disks that are really full: one line, nothing half-written, and then it works."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from small_disks import resize, small_disk, small_files
from storage_samples import prediction

from core.datasets.download import unpack
from core.errors import StorageError
from core.models.loading.files import save_weights
from storage.store import Store


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        for i in range(40):
            saved = store.predictions.save_prediction(prediction(f"Who played Maria {i}? {'x' * 900}"))
            store.labels.judge(saved, 0, "Ada", "correct")
        yield store


WRITERS: dict[str, Callable[[Store, Path], object]] = {
    "export": lambda store, out: store.exports.export("jsonl", out / "all.jsonl"),
    "parquet": lambda store, out: store.exports.export("parquet", out / "all.parquet"),
    "datasets": lambda store, out: store.exports.export("datasets", out / "hub"),
    "snapshot": lambda store, out: store.exports.take_snapshot(out),
    "backup": lambda store, out: store.maintenance.backup(out / "backup.db"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_what_goes_out_is_whole_or_not_there(tmp_path: Path, filled: Store, name: str) -> None:
    with small_disk(tmp_path / "small", 4) as out:
        with pytest.raises(StorageError, match=r"(free in|disk is full|full)") as refused:
            WRITERS[name](filled, out)
        assert "\n" not in str(refused.value)
        assert list(out.rglob("*")) == []
        assert filled.exports.snapshots() == []
        resize(out, 8192)
        WRITERS[name](filled, out)
        assert list(out.iterdir())


def test_a_checkpoint_is_the_old_one_or_the_new(tmp_path: Path) -> None:
    """safetensors has its own error for a full disk, which was shown with all its calls."""
    folder = tmp_path / "best"
    save_weights({"w": torch.ones(10)}, folder, {"kind": "span"})
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    with small_files(4096), pytest.raises(StorageError, match=r"model\.safetensors cannot be written \(File too large\)"):
        save_weights({"w": torch.ones(100_000)}, folder, {"kind": "span", "new": True})
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before


def test_a_member_of_an_archive_is_whole_or_not_there(tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("in/dev.json", "x" * 300_000)
    with small_disk(tmp_path / "small", 128) as out:
        words = rf"^{re.escape(str(out))} cannot be written \(300\.0 kB are needed and 131\.1 kB are free in {out}\); free some space"
        with pytest.raises(StorageError, match=words):
            unpack(archive, ["dev.json"], out)
        assert list(out.iterdir()) == []
        resize(out, 1024)
        unpack(archive, ["dev.json"], out)
        assert (out / "dev.json").stat().st_size == 300_000
    words = r"dev\.json cannot be written \(File too large\); free some space"
    with small_files(100_000), pytest.raises(StorageError, match=words):
        unpack(archive, ["dev.json"], tmp_path / "there")
    assert list((tmp_path / "there").iterdir()) == []
