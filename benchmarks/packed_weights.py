"""Packs the weights of the larger bundled checkpoints, after they were trained anew: model.safetensors becomes model.packed.

    python -m benchmarks.packed_weights

The answering model is kept as the difference to the reader, so both are written; each is read back before its model.safetensors goes.
"""

from __future__ import annotations

from core import disk
from core.models.finding import BUNDLED, PACKED, WEIGHTS
from core.models.weights.packed import pack, unpack

AGAINST = {
    "reader": "",
    "answerer": "reader",
    "verifier": "",
    "rewriter": "",
    "fid": "",
    "answerer-seq2seq": "",
}  # what is built on comes first


def main() -> None:
    originals = {}
    for name in AGAINST:  # all are read before the first is written: packed ones build on the old ones
        plain = BUNDLED / name / WEIGHTS
        originals[name] = plain.read_bytes() if plain.exists() else unpack(BUNDLED / name / PACKED)
    for name, against in AGAINST.items():
        folder, original = BUNDLED / name, originals[name]
        disk.write_bytes(folder / PACKED, pack(original, against))
        assert unpack(folder / PACKED) == original
        (folder / WEIGHTS).unlink(missing_ok=True)
        print(f"{name}: {len(original):,} bytes -> {(folder / PACKED).stat().st_size:,}")


if __name__ == "__main__":
    main()
