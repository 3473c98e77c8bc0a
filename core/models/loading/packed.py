"""Packed weights: `model.packed`, a losslessly compressed float16 safetensors file.

The high bytes of float16 numbers (sign, exponent, two bits of the fraction) compress well, the low bytes are noise: they are stored separately, and only the
high ones are compressed.  Weights fine-tuned from another checkpoint are stored as differences of their bit patterns; zigzag coding maps small
differences of either sign to small numbers.  Unpacking restores the original byte for byte; its sha256 is in the header and is checked on every read.

Layout: the magic line, a line of JSON (`Header`), the original's own safetensors header, the compressed high bytes, the low bytes.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import CheckpointError
from core.models.loading.finding import BUNDLED, PACKED

MAGIC = b"ambiscope weights 1\n"
MAX_HEADER = 1 << 12  # bytes of the line of JSON


@dataclass(frozen=True)
class Header:
    """`sha256` of the original file; `against`: the bundled checkpoint that the differences refer to ("": none); sizes in bytes."""

    sha256: str
    against: str
    head: int
    high: int
    low: int

    def __post_init__(self) -> None:
        if not (isinstance(self.sha256, str) and len(self.sha256) == 64 and isinstance(self.against, str)):
            raise ValueError("the header holds no sha256")
        if not all(type(size) is int and size >= 0 for size in (self.head, self.high, self.low)):
            raise ValueError("the header holds no sizes")


def pack(original: bytes, against: str = "") -> bytes:
    """The packed form of a safetensors file of float16 weights.

    `against`: a bundled checkpoint, itself not packed as differences, with the same names and shapes.  Raises CheckpointError, also for
    weights that are not float16.
    """
    head, numbers = _split(original)
    if against:
        numbers = _zigzag(numbers - _reference(against, head))
    high = zlib.compress((numbers >> 8).astype(np.uint8).tobytes(), 6)
    low = (numbers & 0xFF).astype(np.uint8).tobytes()
    header = Header(hashlib.sha256(original).hexdigest(), against, len(head), len(high), len(low))
    return b"".join((MAGIC, json.dumps(asdict(header)).encode(), b"\n", head, high, low))


def read_header(path: Path) -> Header:
    """Raises CheckpointError for what is no packed file, OSError if it cannot be read."""
    with path.open("rb") as file:
        return _header(file, path)


def unpack(path: Path) -> bytes:
    """The original safetensors file.  Raises CheckpointError for damaged packed weights, OSError if they cannot be read."""
    header, original = _decoded(path)
    if hashlib.sha256(original).hexdigest() != header.sha256:
        also = f", or the weights of '{header.against}' that it builds on are others" if header.against else ""
        raise _damaged(path, f"its content is not what its sha256 says{also}")
    return original


def _decoded(path: Path) -> tuple[Header, bytes]:
    """The header and the decoded file, whose sha256 is not yet checked.  Raises as `unpack`."""
    with path.open("rb") as file:
        header = _header(file, path)
        sizes = (header.head, header.high, header.low)
        if file.tell() + sum(sizes) != path.stat().st_size:
            raise _damaged(path, f"it has {path.stat().st_size:,} bytes, its header says {file.tell() + sum(sizes):,}")
        head, packed_high, packed_low = (file.read(size) for size in sizes)
    try:
        high = np.frombuffer(zlib.decompress(packed_high, bufsize=max(1, header.low)), np.uint8)
        numbers = high.astype("<u2")
        numbers <<= 8
        numbers |= np.frombuffer(packed_low, np.uint8)
    except (zlib.error, ValueError) as error:
        raise _damaged(path, str(error)) from None
    if header.against:
        numbers = _unzigzag(numbers)
        reference = _reference(header.against, head)
        numbers += reference
    return header, head + numbers.tobytes()


def _header(file: Any, path: Path) -> Header:
    if file.read(len(MAGIC)) != MAGIC:
        raise _damaged(path, "it does not start like packed weights")
    try:
        return Header(**json.loads(file.readline(MAX_HEADER)))
    except (ValueError, TypeError) as error:
        raise _damaged(path, f"its header: {error}") from None


def _damaged(path: Path, problem: str) -> CheckpointError:
    return CheckpointError(f"checkpoint {path.parent} is damaged ({path.name}: {problem}); fetch it again")


def _split(original: bytes) -> tuple[bytes, NDArray[np.uint16]]:
    """A safetensors file's header (8 bytes of length, then JSON) and its numbers.  https://github.com/huggingface/safetensors#format"""
    size = 8 + int.from_bytes(original[:8], "little")
    try:
        tensors = json.loads(original[8:size])
        kinds = {about["dtype"] for name, about in tensors.items() if name != "__metadata__"}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"these weights are not a safetensors file ({error})") from None
    if kinds != {"F16"}:
        raise CheckpointError(f"only float16 weights are packed, not {', '.join(sorted(kinds)) or 'none'}")
    return original[:size], np.frombuffer(original, "<u2", offset=size)


def _reference(name: str, head: bytes) -> NDArray[np.uint16]:
    """The numbers of a bundled checkpoint.  Raises CheckpointError if it is missing, or its tensors do not match `head`."""
    path = BUNDLED / name / PACKED
    try:
        own, numbers = _split(_decoded(path)[1])
    except OSError as error:
        raise CheckpointError(
            f"checkpoint '{name}', which packed weights build on, cannot be read ({path}: {error.strerror}); fetch it again"
        ) from None
    if own != head:
        raise CheckpointError(
            f"checkpoint '{name}' ({path}) has other tensors than the weights that build on it; fetch both again"
        )
    return numbers


def _zigzag(differences: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """0, -1, 1, -2 ... -> 0, 1, 2, 3 ..., modulo 2^16."""
    signs = (differences.view(np.int16) >> 15).view(np.uint16)
    return ((differences << 1) ^ signs).astype(np.uint16, copy=False)


def _unzigzag(numbers: NDArray[np.uint16]) -> NDArray[np.uint16]:
    return ((numbers >> 1) ^ -(numbers & 1)).astype(np.uint16, copy=False)
