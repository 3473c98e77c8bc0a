"""DPR's pickled vectors, read without loading any code.

Source: `generate_dense_embeddings.py` of https://github.com/facebookresearch/DPR writes a pickled list of (id, vector).  A pickle may name any
function to call.  Here it may name those that numpy pickles its arrays with, and each stands for a plain holder of ours; every other name is an
error.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import FormatError, InputError

FLOATS = ("f2", "f4", "f8")


class _Kind:
    """Stands for numpy's dtype."""

    def __init__(self, name: str = "", *_: object) -> None:
        if name not in FLOATS:
            raise pickle.UnpicklingError(f"it holds numbers of the type {name!r:.40}, not floats")
        self.name, self.order = name, "<"

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, tuple) and len(state) > 1 and state[1] in ("<", ">"):
            self.order = state[1]


class _Array:
    """Stands for numpy's array: (shape, kind, bytes) until `values` is read."""

    def __init__(self, shape: object = (), kind: object = None, raw: object = b"") -> None:
        self.shape, self.kind, self.raw = shape, kind, raw

    def __setstate__(self, state: Any) -> None:
        if not isinstance(state, tuple) or len(state) != 5:
            raise pickle.UnpicklingError("an array in it is damaged")
        _, self.shape, self.kind, _, self.raw = state  # the third says that columns come first: the same for one dimension

    def values(self) -> NDArray[Any]:
        """The numbers (d,).  Raises UnpicklingError for anything but one row of floats."""
        raw = self.raw.encode("latin1") if isinstance(self.raw, str) else self.raw
        if not isinstance(self.kind, _Kind) or not isinstance(raw, (bytes, bytearray)):
            raise pickle.UnpicklingError("an array in it is damaged")
        shape = self.shape if isinstance(self.shape, tuple) else (self.shape,)
        long = [size for size in shape if size != 1]
        flat = np.frombuffer(raw, np.dtype(self.kind.order + self.kind.name))
        if long != [len(flat)]:
            raise pickle.UnpicklingError(f"an array in it has the shape {shape}, not one row")
        return flat


def _reconstruct(kind: object, shape: object, code: object) -> _Array:
    return _Array()


def _from_buffer(raw: object, kind: object, shape: object, order: object, *_: object) -> _Array:
    return _Array(shape, kind, raw)


def _encode(text: object, encoding: object = "latin1") -> bytes:
    """How Python 2's byte strings are written."""
    if not isinstance(text, str) or encoding != "latin1":
        raise pickle.UnpicklingError("it holds bytes in an unusual form")
    return text.encode("latin1")


_NAMES: dict[tuple[str, str], Any] = {
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _reconstruct for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): _from_buffer for core in ("core", "_core")},
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Kind,
    ("_codecs", "encode"): _encode,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _NAMES[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it asks to load '{module[:60]}.{name[:60]}'") from None


def is_pickle(path: Path) -> bool:
    """True if the file begins as a pickle of protocol 2 to 5: DPR's shards have no suffix."""
    with path.open("rb") as file:
        return file.read(2) in {bytes((0x80, protocol)) for protocol in range(2, 6)}


def read(path: Path) -> tuple[list[str], NDArray[np.float32]]:
    """Ids and vectors (n, d) of a pickled list of (id, vector).  Raises FormatError for anything else."""
    try:
        with path.open("rb") as file:
            found = _Unpickler(file).load()
        if not isinstance(found, list) or not found:
            raise pickle.UnpicklingError("it is not a list")
        pairs = [(pair[0], pair[1].values()) for pair in found if isinstance(pair, tuple) and len(pair) == 2]
        if len(pairs) != len(found) or len({len(vector) for _, vector in pairs}) != 1:
            raise pickle.UnpicklingError("not every entry of its list is an id and a vector of the same dimension")
        if not all(isinstance(i, (str, int)) for i, _ in pairs):
            raise pickle.UnpicklingError("an id in it is neither text nor a whole number")
    except OSError as e:
        raise InputError(f"{path} cannot be read ({e.strerror or e}); check the file") from e
    except Exception as e:  # a damaged pickle fails in a dozen ways
        said = " ".join(str(e).split())[:150] or type(e).__name__
        raise FormatError(
            f"not DPR's list of (id, vector), or cut short: {said}. Nothing in it was run; where it was made, save the ids as lines of "
            "text and the vectors with numpy.save, then give --vectors FILE.npy --ids FILE.txt",
            file=path.name,
        ) from e
    return [str(i) for i, _ in pairs], np.stack([np.asarray(vector, np.float32) for _, vector in pairs])
