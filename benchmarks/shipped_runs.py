"""The runs that Evaluate opens on: every bundled system over question files that have their passages beside them, packed into data/shipped/.

    python -m benchmarks.shipped_runs data/starter/questions.json data/starter_test/questions.json [--work var/runs/shipped] [--systems NAME ...]
        [--again NAME ...] [--limit N] [--out FILE]

Each run is a process of its own (`python -m core evaluate --traces`), so that its peak memory is its own, with disambiguated questions and the
references as judge.  An interrupted run continues; one that has its report is not repeated: name another --work, or delete the folder,
after a change.  Where a change touches few systems, --again NAME ... runs only these and keeps the others' runs.  Systems that need a language model
are left out.  The file has at most 3 MB; a test fails where the weights have changed since.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.evaluating import evaluate
from core.disk import write_bytes
from core.engine import statuses
from core.errors import StorageError
from core.evaluation.folder import ABOUT, read_report, read_traces
from core.json_io import read as read_json
from core.models.loading.finding import BUNDLED
from core.retrieval.library import STARTER, CorpusLibrary
from core.settings import ROOT, Settings
from storage.shipped import runs
from storage.shipped.runs import ArchiveInfo
from storage.shipped.traces import Body, passages, passages_as

MAX_BYTES = 3_000_000
_LZMA = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 64 * 1024 * 1024}]


def bundled() -> list[str]:
    """The systems that can run with what is in the repository alone, whatever the settings are."""
    return [s.name for s in statuses(Settings()) if s.ready]


def corpus_of(questions: Path, library: CorpusLibrary) -> str:
    """The corpus of the passages beside a question file, built if need be.  Raises InputError where one of this name has other passages."""
    name = questions.resolve().parent.name
    if name != STARTER:  # which is built when it is opened
        library.create(name, [questions.parent / "passages.tsv"])
    return name


def weights() -> dict[str, str]:
    """Checkpoint -> digest of what is read of it: its card does not count."""
    digests = {}
    for folder in sorted(p.parent for p in BUNDLED.glob("*/config.json")):
        digest = hashlib.sha256()
        for path in sorted(p for p in folder.iterdir() if p.suffix != ".md"):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
        digests[folder.name] = digest.hexdigest()[:16]
    return digests


def out_of_date(packed_weights: Mapping[str, str]) -> list[str]:
    """The checkpoints that changed since, are new, or are gone."""
    now = weights()
    return sorted(name for name in now.keys() | packed_weights.keys() if now.get(name) != packed_weights.get(name))


def pack(runs: Sequence[Path], about: ArchiveInfo, out: Path, root: Path = ROOT, unchanged: Iterable[Body] = ()) -> int:
    """Packs run folders of `python -m core evaluate --traces`, after those that stay `unchanged`; returns the bytes of the file.

    Their questions are below `root`, beside a passages.tsv.  Raises StorageError for more than MAX_BYTES, and as `read_report` and
    `read_traces`.
    """
    lines: list[Body] = [asdict(about), *unchanged]
    for folder in runs:
        folder_of_questions = Path(str(read_json(folder / ABOUT)["questions"])).resolve().parent.relative_to(root.resolve())
        known_passages, report = passages(root / folder_of_questions), read_report(folder)
        report["provenance"]["questions"] = folder_of_questions.name  # each file is called questions.json
        traces = [[name, slim(trace, known_passages)] for name, trace in dict(read_traces(folder)).items()]
        lines.append({"folder": folder_of_questions.as_posix(), "report": report, "traces": traces})
    return write(lines, out, MAX_BYTES)


def slim(trace: Body, known_passages: Mapping[str, Body]) -> Body:
    """Of core.trace.to_json of a prediction; `known_passages`: those that need not be in it."""
    fields = {name: trace[name] for name in ("question", "system", "events")}
    slimmed: Body = passages_as(fields, lambda p: p["id"] if isinstance(p, dict) and known_passages.get(p["id"]) == p else p)
    return slimmed


def rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {name: rounded(part) for name, part in value.items()}
    return [rounded(part) for part in value] if isinstance(value, list) else value


def write(rows: Iterable[Body], out: Path, max_bytes: int) -> int:
    """Writes a file of at most `max_bytes` bytes; returns how many it has.  Raises StorageError for more."""
    text = "\n".join(json.dumps(rounded(row), ensure_ascii=False, separators=(",", ":")) for row in rows)
    data = lzma.compress(text.encode(), format=lzma.FORMAT_XZ, filters=_LZMA)
    if len(data) > max_bytes:
        raise StorageError(
            f"{out} would have {len(data):,} bytes; at most {max_bytes:,} are shipped: ask fewer systems or questions"
        )
    write_bytes(out, data)
    return len(data)


def system_of(run: Body) -> str:
    return str(run["report"]["provenance"]["system"]["name"])


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 1 when a system could not be evaluated: then nothing is packed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "questions", type=Path, nargs="+", help="question files below the repository, each beside its passages.tsv"
    )
    parser.add_argument("--work", type=Path, default=ROOT / "var" / "runs" / "shipped", help="folder of the run folders")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--systems", nargs="+", metavar="NAME", default=None)
    choice.add_argument(
        "--again", nargs="+", metavar="NAME", default=None, help="only these; the runs of the others stay as they are in FILE"
    )
    parser.add_argument("--limit", type=int, default=0, help="the first so many questions of each file (0: all)")
    parser.add_argument("--out", type=Path, default=runs.ARCHIVE)
    args = parser.parse_args(argv)
    systems, folders, broken = args.again or args.systems or bundled(), [], []
    for questions in args.questions:
        corpus = corpus_of(questions, CorpusLibrary(Settings.from_env()))
        for name in systems:
            folder = args.work / f"{name}-{corpus}"
            print(f"{name} over {corpus}", flush=True)
            report = evaluate(name, questions, folder, corpus, ["--traces"], args.limit)
            (broken if report is None else folders).append(folder)
    if broken:
        print(f"not evaluated, nothing was packed: {', '.join(f.name for f in broken)}", file=sys.stderr)
        return 1
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    unchanged = [run for run in runs.packed(args.out) if system_of(run) not in args.again] if args.again else []
    systems = list(dict.fromkeys([*map(system_of, unchanged), *systems]))
    about = ArchiveInfo(commit, weights(), systems, args.limit, len(unchanged) + len(folders))
    size = pack(folders, about, args.out, unchanged=unchanged)
    print(f"{about.runs} runs, {size:,} bytes: {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
