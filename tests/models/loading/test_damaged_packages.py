"""Packaged weights whose source file is damaged or missing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from core.errors import CheckpointError
from core.models.loading.packaged import REPAIR, Quantised

PACKAGE = "quantised_for_this_test"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages with one that holds a GGUF file."""
    record = tmp_path / f"{PACKAGE}-1.0.dist-info"
    record.mkdir()
    (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 1.0\n")
    (record / "RECORD").write_text("decoder.gguf,,\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return tmp_path


@pytest.mark.parametrize(
    "content",
    [b"", b"not a decoder" * 100, b"GGUF" + b"\xff" * 2_000, b"GGUF" + (3).to_bytes(4, "little") + bytes([1, *[0] * 7] * 2)],
    ids=["empty", "other", "counts", "ends early"],
)
def test_a_damaged_gguf_file_is_named_with_the_command(site: Path, content: bytes) -> None:
    (site / "decoder.gguf").write_bytes(content)
    with pytest.raises(CheckpointError) as refused:
        Quantised("decoder", [PACKAGE], "0" * 64).folder()
    assert str(site / "decoder.gguf") in str(refused.value)
    assert REPAIR in str(refused.value)
    assert not list(site.glob("decoder-unpacked*"))


def test_a_missing_gguf_file_is_a_damaged_package(site: Path) -> None:
    with pytest.raises(CheckpointError) as refused:
        Quantised("decoder", [PACKAGE], "0" * 64).check()
    assert PACKAGE in str(refused.value)
    assert REPAIR in str(refused.value)
