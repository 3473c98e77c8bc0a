"""A few rows of every training file in the same layout, so that a whole plan can be rehearsed in seconds a stage."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core import disk

READING = 60  # rows
MULTI = 12  # questions
AMBIGNQ = 80
PASSAGES = 200
TRAIN, HELD_OUT = 12, 12  # questions of each annotated folder, and of all of them together
OTHERS = 20  # passages of an annotated folder that these questions do not name


def write_small(
    data: Path, annotated: Sequence[Path], more: Sequence[Path], copied: Sequence[str], out: Path, seed: int = 0
) -> list[Path]:
    """Writes `out`, which stands for `data`; returns the folders that stand for `annotated`.  Written again, every file is the same byte for byte.

    `more`: further files in the layout of `multi`, each below the name of its folder.  `copied`: files of `data` that stay whole.
    """
    rng = random.Random(seed)
    for name, count in (("reading/train.jsonl.gz", READING), ("multi/train.jsonl.gz", MULTI)):
        _write(out / name, _some(_lines(data / name), count, rng))
    for path in more:
        _write(out / path.parent.name / path.name, _some(_lines(path), MULTI, rng))
    for name in copied:
        disk.write_bytes(out / name, (data / name).read_bytes())
    pairs = json.loads((data / "ambignq" / "train_light.json").read_text(encoding="utf-8"))
    disk.write_text(out / "ambignq" / "train_light.json", json.dumps(_some(pairs, AMBIGNQ, rng)))
    first, *rows = _lines(data / "passages" / "wiki.tsv.gz")
    _write(out / "passages" / "wiki.tsv.gz", [first, *_some(rows, PASSAGES, rng)])
    held_out = -(-HELD_OUT // len(annotated))
    return [_annotated(folder, out / folder.name, held_out, rng) for folder in annotated]


def _annotated(folder: Path, out: Path, held_out: int, rng: random.Random) -> Path:
    questions = json.loads("\n".join(_lines(disk.plain_or_gz(folder / "questions.json"))))
    selected = [
        q
        for split, count in (("train", TRAIN), ("held out", held_out))
        for q in _some([q for q in questions if q.get("split") == split], count, rng)
    ]
    named_ids = {
        i for q in selected for a in q["annotations"] for pair in (a, *a.get("qaPairs", ())) for i in pair.get("passages", ())
    }
    first, *rows = _lines(disk.plain_or_gz(folder / "passages.tsv"))
    others = {row.partition("\t")[0] for row in _some(rows, OTHERS, rng)}
    disk.write_text(out / "questions.json", json.dumps(selected))
    kept_rows = [row for row in rows if row.partition("\t")[0] in named_ids | others]
    disk.write_text(out / "passages.tsv", "".join(f"{line}\n" for line in (first, *kept_rows)))
    return out


def _some(rows: Sequence[Any], count: int, rng: random.Random) -> list[Any]:
    """At most this many rows, in their order."""
    return [rows[i] for i in sorted(rng.sample(range(len(rows)), min(count, len(rows))))]


def _lines(path: Path) -> list[str]:
    """The lines of a plain or gzipped file."""
    raw = path.read_bytes()
    return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8").removesuffix("\n").split("\n")


def _write(path: Path, lines: Sequence[str]) -> None:
    text = "".join(f"{line}\n" for line in lines).encode()
    disk.write_bytes(path, gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)
