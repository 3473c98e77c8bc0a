"""Packs the weights of the larger bundled checkpoints, after they were trained anew: model.safetensors becomes model.packed.

    python -m benchmarks.packed_weights [--folder FOLDER]

The answering model is kept as the difference to the reader, so both are written; each is read back before its model.safetensors goes.  In
another folder of that layout nothing is a difference: what differences refer to is the bundled checkpoint.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from core import disk
from core.models.loading.finding import BUNDLED, PACKED, WEIGHTS
from core.models.loading.packed import pack, unpack

AGAINST = {
    "reader": "",
    "answerer": "reader",
    "rewriter": "",
    "fid": "",
    "answerer-seq2seq": "",
}  # what is built on comes first


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--folder", type=Path, default=BUNDLED, help="holds reader/, answerer/ and the others (default: the bundled ones)"
    )
    where: Path = parser.parse_args(argv).folder
    originals = {}
    for name in AGAINST:  # all are read before the first is written: packed ones build on the old ones
        plain = where / name / WEIGHTS
        originals[name] = plain.read_bytes() if plain.exists() else unpack(where / name / PACKED)
    for name, against in AGAINST.items():
        folder, original = where / name, originals[name]
        disk.write_bytes(folder / PACKED, pack(original, against if where.resolve() == BUNDLED.resolve() else ""))
        assert unpack(folder / PACKED) == original
        (folder / WEIGHTS).unlink(missing_ok=True)
        print(f"{name}: {len(original):,} bytes -> {(folder / PACKED).stat().st_size:,}")


if __name__ == "__main__":
    main()
