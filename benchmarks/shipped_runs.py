"""The runs that Evaluate opens on: every bundled system over question files that have their passages beside them, packed into data/shipped/.

    python -m benchmarks.shipped_runs data/starter/questions.json data/starter_test/questions.json [--work var/runs/shipped] [--systems NAME ...]
        [--again NAME ...] [--limit N] [--out FILE]

Each run is a process of its own (`python -m core evaluate --traces`), so that its peak memory is its own, with disambiguated questions and the
references as judge.  An interrupted run continues; one that has its report is not repeated: name another --work, or delete the folder,
after a change.  Where a change touches few systems, --again NAME ... runs only these and keeps the others' runs.  Systems that need a language model
are left out.  The file has at most 3 MB; a test fails where the weights have changed since.

Beside it, systems.json has what these runs say of each system over the first question file: its speed, and why it is not ranked.  With the bundled
weights a system is a *mechanism only* if it gives several answers to fewer than a tenth of the ambiguous questions, or less than half of the F1 there of
one tuned pass, or what its base gives (`SystemEntry.base`): other answers in fewer than a tenth of them, or an F1 less than two points away.
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
from core.disk import write_bytes, write_json
from core.engine import statuses
from core.errors import StorageError
from core.evaluation.folder import ABOUT, read_report, read_traces
from core.json_io import read as read_json
from core.models.loading.finding import BUNDLED
from core.retrieval.library import STARTER, CorpusLibrary
from core.settings import ROOT, Settings
from core.systems import MEASURED, entry_of
from core.text import answer_key
from storage.shipped import runs
from storage.shipped.runs import ArchiveInfo
from storage.shipped.traces import Body, passages, passages_as

MAX_BYTES = 3_000_000
BASELINE = "dpr-threshold"  # one tuned pass
MIN_CHANGED, MIN_SHARE, MIN_POINTS = 0.1, 0.5, 2.0  # of the ambiguous questions; of the baseline's F1; of F1 from the base's
_LZMA = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 64 * 1024 * 1024}]


def bundled() -> list[str]:
    """The systems that can run with what is in the repository alone, whatever the settings are."""
    return [s.name for s in statuses(Settings()) if s.ready]


def corpus_of(questions: Path, library: CorpusLibrary) -> str:
    """The corpus of the passages beside a question file, built if need be.  Raises InputError if one of this name has other passages."""
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
    packed = list(unchanged)
    for folder in runs:
        folder_of_questions = Path(str(read_json(folder / ABOUT)["questions"])).resolve().parent.relative_to(root.resolve())
        known_passages, report = passages(root / folder_of_questions), read_report(folder)
        report["provenance"]["questions"] = folder_of_questions.name  # each file is called questions.json
        traces = [[name, slim(trace, known_passages)] for name, trace in dict(read_traces(folder)).items()]
        packed.append({"folder": folder_of_questions.as_posix(), "report": report, "traces": traces})
    lines = ({name: run[name] for name in part} for run in packed for part in (("folder", "report"), ("traces",)))
    return write([asdict(about), *lines], out, MAX_BYTES)


def slim(trace: Body, known_passages: Mapping[str, Body]) -> Body:
    """Shortens core.trace.to_json of a prediction.  `known_passages` needn't be in it."""
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


def _answers(report: Body) -> dict[str, frozenset[str]]:
    """Of each ambiguous question, by its id."""
    return {row["id"]: frozenset(answer_key(a["text"]) for a in row["answers"]) for row in report["rows"] if row["ambiguous"]}


def mechanism_only(report: Body, baseline: Body, base: Body | None = None) -> str:
    """Why the system of a report is not ranked; empty for one that is.  `baseline`: of one tuned pass; `base`: of the system that it starts from.
    All of them over the same questions."""
    answers, name = _answers(report), "{0[provenance][system][name]}".format
    f1, baseline_f1 = (100 * r["scores"]["F1 answer"]["multi"] for r in (report, baseline))
    several = sum(len(texts) > 1 for texts in answers.values())
    if several < MIN_CHANGED * len(answers):
        return f"several answers to {several} of {len(answers)} ambiguous questions"
    if f1 < MIN_SHARE * baseline_f1:
        return f"F1 {f1:.1f} on ambiguous questions, less than half of {name(baseline)}'s {baseline_f1:.1f}"
    if base is None:
        return ""
    base_answers, base_f1 = _answers(base), 100 * base["scores"]["F1 answer"]["multi"]
    changed = sum(texts != base_answers[i] for i, texts in answers.items())
    if changed < MIN_CHANGED * len(answers):
        return f"other answers than {name(base)} to {changed} of {len(answers)} ambiguous questions"
    if abs(f1 - base_f1) < MIN_POINTS:
        return f"F1 {f1:.1f} on ambiguous questions, where {name(base)} has {base_f1:.1f}"
    return ""


def measured(packed_runs: Iterable[Body]) -> dict[str, Body]:
    """System -> its median seconds a question and, if it is not ranked, `mechanism_only`; by the runs over the first of the question files."""
    reports: dict[str, Body] = {}
    for run in packed_runs:
        report = run["report"]
        if not reports or report["provenance"]["questions"] == next(iter(reports.values()))["provenance"]["questions"]:
            reports[system_of(run)] = report
    rows = {}
    for name, report in reports.items():
        base = entry_of(name).base
        if BASELINE not in reports or (base and base not in reports):
            raise StorageError(f"{name} is compared with {BASELINE}{f' and {base}' * bool(base)}: evaluate these too")
        reason = mechanism_only(report, reports[BASELINE], reports[base] if base else None)
        seconds = report["timings"]["seconds_median"]
        rows[name] = {"seconds": round(seconds, 2), **({"mechanism_only": reason} if reason else {})}
    return rows


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
    write_json(args.out.with_name(MEASURED.name), measured(runs.packed(args.out, traced=False)))
    print(f"{about.runs} runs, {size:,} bytes: {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
