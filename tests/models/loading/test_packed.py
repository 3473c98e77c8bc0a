"""Packed weights: every bit comes back, the digest stays, and damage is named in one line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save

from core.errors import CheckpointError
from core.models.loading import packed
from core.models.loading.files import digest, read_weights
from core.models.loading.finding import PACKED, WEIGHTS
from core.models.loading.packed import MAGIC, pack, unpack

EVERY = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(torch.float16)  # NaN and -0 too


def weights(shift: int = 0) -> bytes:
    return save({"encoder.w": EVERY.roll(shift).reshape(256, 256).contiguous(), "head.b": EVERY[:3].clone()}, {"format": "pt"})


@pytest.fixture
def bundled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of checkpoints: `base`, and `tuned` as the difference to it."""
    monkeypatch.setattr(packed, "BUNDLED", tmp_path)
    for name, original, against in (("base", weights(), ""), ("tuned", weights(5), "base")):
        (tmp_path / name).mkdir()
        (tmp_path / name / PACKED).write_bytes(pack(original, against))
    return tmp_path


@pytest.mark.parametrize(("name", "original"), [("base", weights()), ("tuned", weights(5))])
def test_every_bit_comes_back(bundled: Path, name: str, original: bytes) -> None:
    folder = bundled / name
    assert unpack(folder / PACKED) == original
    assert digest(folder) == hashlib.sha256(original).hexdigest()[:16]
    (bundled / "plain").mkdir()
    (bundled / "plain" / WEIGHTS).write_bytes(original)
    assert digest(bundled / "plain") == digest(folder)
    found, plain = read_weights(folder), read_weights(bundled / "plain")
    assert set(found) == set(plain)
    assert all(torch.equal(found[k].view(torch.int16), plain[k].view(torch.int16)) for k in plain)


def test_plain_weights_count_where_both_are_there(bundled: Path) -> None:
    """Training writes plain files, also into a folder with packed ones."""
    (bundled / "base" / WEIGHTS).write_bytes(weights(9))
    assert digest(bundled / "base") == hashlib.sha256(weights(9)).hexdigest()[:16]
    assert torch.equal(
        read_weights(bundled / "base")["encoder.w"].view(torch.int16), EVERY.roll(9).reshape(256, 256).view(torch.int16)
    )
    assert unpack(bundled / "tuned" / PACKED) == weights(5)  # still builds on the packed ones


def header(raw: bytes, **changes: object) -> bytes:
    line, _, rest = raw.removeprefix(MAGIC).partition(b"\n")
    return MAGIC + json.dumps(json.loads(line) | changes).encode() + b"\n" + rest


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda raw: b"", "does not start"),
        (lambda raw: b"x" + raw, "does not start"),
        (lambda raw: raw[:-1], "its header says"),
        (lambda raw: raw + b"x", "its header says"),
        (lambda raw: raw[:-9] + b"\0" + raw[-8:], "sha256"),
        (lambda raw: MAGIC + b"{}\n", "its header"),
        (lambda raw: MAGIC + b"{", "its header"),
        (lambda raw: header(raw, low=-1), "its header"),
        (lambda raw: header(raw, high=10**18), "its header says"),
        (lambda raw: header(raw, sha256="0" * 64), "sha256"),
        (lambda raw: header(raw, sha256=3), "its header"),
        (lambda raw: raw.replace(b"x\x9c", b"\0\0", 1), "while decompressing"),
    ],
)
def test_damage_is_named_in_one_line(bundled: Path, damage: Callable[[bytes], bytes], says: str) -> None:
    path = bundled / "base" / PACKED
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(CheckpointError, match=says) as caught:
        read_weights(path.parent)
    assert "\n" not in str(caught.value)
    assert "base is damaged (model.packed" in str(caught.value)


def test_what_it_builds_on_is_missing_or_another(bundled: Path) -> None:
    tuned, base = bundled / "tuned", bundled / "base" / PACKED
    base.write_bytes(pack(weights(1)))
    with pytest.raises(CheckpointError, match="or the weights of 'base' that it builds on are others"):
        read_weights(tuned)
    base.write_bytes(pack(save({"w": EVERY.clone()})))
    with pytest.raises(CheckpointError, match=r"'base'.*has other tensors"):
        read_weights(tuned)
    base.unlink()
    with pytest.raises(CheckpointError, match="'base', which packed weights build on, cannot be read"):
        read_weights(tuned)


def test_only_float16_is_packed() -> None:
    with pytest.raises(CheckpointError, match="only float16 weights are packed, not F32"):
        pack(save({"w": torch.zeros(2)}))
    with pytest.raises(CheckpointError, match="not a safetensors file"):
        pack(b"\x05\0\0\0\0\0\0\0abcde")
