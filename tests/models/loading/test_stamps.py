"""Folders of weights: their digest, computed once a file (a stamp says whether it changed), their training, and which one is the default."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest

from core.errors import CheckpointError
from core.models.loading import files, finding
from core.models.loading.files import TICK_NS, digest
from core.models.loading.finding import WEIGHTS
from core.models.span.checkpoints import Training, training_of


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(files, "_DIGESTS", {})
    (tmp_path / WEIGHTS).write_bytes(b"one" * 100)
    return tmp_path


def age(path: Path) -> None:
    minute_ago = time.time_ns() - 60_000_000_000
    os.utime(path, ns=(minute_ago, minute_ago))


def copy_times(stamp: os.stat_result, path: Path) -> None:
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))


def test_an_unchanged_file_is_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    age(folder / WEIGHTS)
    reads = []
    real = hashlib.file_digest
    monkeypatch.setattr(files.hashlib, "file_digest", lambda file, name: reads.append(name) or real(file, name))
    assert [digest(folder) for _ in range(5)] == [sha(b"one" * 100)] * 5
    assert reads == ["sha256"]


def test_a_fresh_file_is_not_remembered_yet(folder: Path) -> None:
    """Two writings within one tick of the clock could have one stamp: same size, same time, same inode."""
    assert digest(folder) == sha(b"one" * 100)
    stamp = (folder / WEIGHTS).stat()
    with (folder / WEIGHTS).open("r+b") as file:
        file.write(b"two")
    copy_times(stamp, folder / WEIGHTS)
    assert digest(folder) == sha(b"two" + b"one" * 99)
    assert TICK_NS >= 2_000_000_000


@pytest.mark.parametrize(
    ("size", "file", "old_time"),
    [(100, WEIGHTS, False), (100, "new", False), (100, "new", True), (120, WEIGHTS, True)],
    ids=["written over", "replaced", "replaced with an old time", "longer"],
)
def test_other_content_is_noticed(folder: Path, size: int, file: str, old_time: bool) -> None:
    path = folder / WEIGHTS
    age(path)
    assert digest(folder) == sha(b"one" * 100)
    stamp = path.stat()
    (folder / file).write_bytes(b"two" * size)
    if old_time:
        copy_times(stamp, folder / file)
    (folder / file).replace(path)
    assert digest(folder) == sha(b"two" * size)


def test_a_missing_file(folder: Path) -> None:
    age(folder / WEIGHTS)
    digest(folder)
    (folder / WEIGHTS).unlink()
    with pytest.raises(CheckpointError, match="incomplete"):
        digest(folder)


def test_what_a_checkpoint_says_of_its_training(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"config": {"prompting": "learned"}, "about": {"arguments": {"stage": "pretrain"}}}')
    assert training_of(tmp_path) == Training("learned", stage="pretrain")
    config.write_text('{"config": {}}')
    assert training_of(tmp_path) == Training("interleaved")
    for damaged in ("[]", "{", '{"config": 3}'):
        config.write_text(damaged)
        with pytest.raises(CheckpointError, match="damaged"):
            training_of(tmp_path)


@pytest.mark.parametrize(("installed", "expected"), [(True, "mpnet"), (False, "minilm")])
def test_the_strong_reader_reads_where_its_base_is_installed(
    installed: bool, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def folder(_: str) -> Path:
        if not installed:
            raise CheckpointError("the package is not installed")
        return Path()

    monkeypatch.setattr(finding, "NETWORKS", ("mpnet", "minilm"))
    monkeypatch.setattr(finding, "packaged_folder", folder)
    assert {finding.find_checkpoint("default", kind).name for kind in ("reader", "answerer")} == {expected}
