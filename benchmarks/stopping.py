"""When an answer set is whole: every rule of core.systems.base.loop and core.systems.base.selection on the same runs, and how true the probabilities are.

    python -m benchmarks.stopping --runs FOLDER/ambiscope-*.jsonl [--cross]
    python -m benchmarks.stopping --follow ambiscope dpr-threshold --questions data/starter/questions.json --corpus starter --out FOLDER

A run is followed beyond where the system would have stopped (core.training.calibration), once; the rules are then tried on what it said.  `--runs`: such
files, of `python -m core train calibration` too; `--cross`: with calibrations fitted on the other four fifths of these runs, for the questions on which the
shipped ones were fitted.  Without it the shipped calibrations are used.  Intervals: 95%, paired bootstrap over questions, of the difference from the first rule.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core import types as t
from core.commands.training.calibration import raw_options
from core.datasets import load
from core.engine import Engine
from core.metrics.answers import f1, matching
from core.metrics.calibration import reliability
from core.metrics.significance.bootstrap import compare, interval
from core.models.ranking.calibration import Calibration
from core.settings import Settings
from core.systems import options_of
from core.systems.base.loop import LoopEnd
from core.systems.base.options import Options
from core.systems.base.selection import Selection
from core.training.calibration import CalibrationQuestion, RecordedRun, cross_fitted, read, record_runs

MOST = 8
THRESHOLDS = {name: getattr(options_of(name)(), "threshold") for name in ("dpr-threshold", "one-pass", "jpr", "rectify")}  # noqa: B009

Said = list[tuple[str, float]]  # answers with their probabilities


def looped(run: RecordedRun, end: LoopEnd) -> Said:
    """What the loop would have given under a rule."""
    given: list[float] = []
    out: Said = []
    for turn in run.turns[:MOST]:
        candidates = [t.Candidate(*c) for c in turn.candidates]
        shown, left = end.shown(candidates, turn.eoi, later=bool(out))
        if end.why(given, candidates, turn.eoi, shown, left):
            break
        out.append((shown[0].text, shown[0].probability))
        given.append(shown[0].probability)
    return out


def kept(run: RecordedRun, selection: Selection) -> Said:
    """What a system that reads once would have kept under a rule."""
    found = [t.Candidate(*c) for turn in run.turns for c in turn.candidates]
    return [(c.text, c.probability) for c in selection.keep(found, t.Question(run.question), MOST)[0]]


def rules(name: str, calibration: Calibration | None) -> dict[str, Any]:
    """The rules of a system by name, its own first."""
    if name in THRESHOLDS:
        own = {f"threshold {THRESHOLDS[name]:g}": Selection(THRESHOLDS[name], "threshold", calibration)}
        return own | ({"expected-f1": Selection(0.0, "expected-f1", calibration)} if calibration else {})
    own_rule: dict[str, Any] = {"compare": LoopEnd("compare", 0.5, calibration)}
    own_rule |= {f"threshold {above:g}": LoopEnd("threshold", above, calibration) for above in (0.4, 0.5, 0.6, 0.7)}
    return own_rule | ({"expected-f1": LoopEnd("expected-f1", 0.5, calibration)} if calibration else {})


def best_f1(run: RecordedRun, said: Said) -> float:
    return max((f1(answers, [text for text, _ in said]) for answers in run.references), default=0.0)


def ambiguous(run: RecordedRun) -> bool:
    return all(len(answers) > 1 for answers in run.references)


def correct(run: RecordedRun, said: Said) -> list[tuple[float, bool]]:
    """The probability of each answer, and whether it is right by the annotation with the highest F1."""
    texts = [text for text, _ in said]
    gold = max(run.references, key=lambda answers: f1(answers, texts), default=())
    right = {j for _, j in matching(gold, texts)}
    return [(p, j in right) for j, (_, p) in enumerate(said)]


def table(name: str, runs: Sequence[RecordedRun], calibrations: Sequence[Calibration | None]) -> list[str]:
    """One line a rule, as Markdown."""
    tried: dict[str, list[Said]] = {}
    for run, calibration in zip(runs, calibrations, strict=True):
        for rule, stopping in rules(name, calibration).items():
            tried.setdefault(rule, []).append(looped(run, stopping) if isinstance(stopping, LoopEnd) else kept(run, stopping))
    lines, first = [], None
    multi = [i for i, run in enumerate(runs) if ambiguous(run)]
    for rule, said in tried.items():
        values = [best_f1(run, own) for run, own in zip(runs, said)]
        first = first or values
        apart = compare(values, first)
        low, high = interval(values) or (0.0, 0.0)
        of_multi = sum(values[i] for i in multi) / max(1, len(multi))
        error = reliability([pair for run, own in zip(runs, said) for pair in correct(run, own)]).error or 0.0
        difference = (
            ""
            if apart.interval is None or values is first
            else f"{_points(apart.difference or 0)} [{_points(apart.interval[0])}, {_points(apart.interval[1])}]"
        )
        lines.append(
            f"| `{name}`, {rule} | {len(runs)} | {100 * sum(values) / len(values):.1f} [{100 * low:.1f}, {100 * high:.1f}] / {100 * of_multi:.1f} | "
            f"{difference} | {sum(map(len, said)) / len(said):.2f} | {100 * error:.1f} |"
        )
    return lines


def _points(share: float) -> str:
    return f"{100 * share:+.1f}"


def shipped(name: str, own_passages: bool, corpus: str, engine: Engine) -> Calibration | None:
    """The calibration that the system answers with."""
    system: Any = engine.system(name, None if own_passages else corpus, Options(clarify=False), own_passages=own_passages)
    found: Calibration | None = system.stopping.calibration
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, nargs="*", default=[], help="files NAME-*.jsonl of followed runs")
    parser.add_argument("--own", action="store_true", help="with --runs: their questions brought their passages")
    parser.add_argument("--follow", nargs="*", default=[], metavar="SYSTEM")
    parser.add_argument("--questions", type=Path)
    parser.add_argument("--corpus", default="starter")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--out", type=Path, help="with --follow: where the runs are kept")
    parser.add_argument("--cross", action="store_true")
    args = parser.parse_args()
    engine = Engine(Settings.from_env())
    found: dict[str, list[RecordedRun]] = {}
    own = args.own
    for file in args.runs:
        name = max((n for n in ("ambiscope", *THRESHOLDS) if file.name.startswith(n + "-")), key=len)
        found.setdefault(name, []).extend(read(file))
    if args.follow:
        questions = [q for q in load(args.questions)[: args.limit] if q.passages is None or q.passages]
        own = all(q.passages is not None for q in questions)
        asked = [
            CalibrationQuestion(
                q.id,
                t.Question(q.question, passages=q.passages),
                str(q.extra.get("source") or q.extra.get("ambiguity") or ""),
                tuple(tuple(p.answers for p in a.pairs) for a in q.annotations if a.pairs),
            )
            for q in questions
        ]
        for name in args.follow:
            system = engine.system(name, None if own else args.corpus, raw_options(name), own_passages=own)
            found[name] = record_runs(system, asked, args.out / f"{name}-{args.questions.stem}.jsonl")
    print("| system, rule | n | F1 answer all [95%] / multi | against the first rule | answers | calibration error, points |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, runs in found.items():
        fitted: Sequence[Calibration | None] = (
            cross_fitted(runs) if args.cross else [shipped(name, own, args.corpus, engine)] * len(runs)
        )
        print("\n".join(table(name, runs, fitted)))
        sources = sorted({run.source for run in runs})
        for source in sources if own and len(sources) > 1 else ():
            some = [i for i, run in enumerate(runs) if run.source == source]
            print("\n".join(f"{line} {source} |" for line in table(name, [runs[i] for i in some], [fitted[i] for i in some])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
