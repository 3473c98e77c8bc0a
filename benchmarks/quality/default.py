"""Answer quality on questions that no training saw: the default system, one-pass reading with its best threshold, and the ablations.

    python -m benchmarks.quality.default [--questions data/starter/questions.json --corpus starter] [--ablations FOLDER ...] [--out FILE]
    python -m benchmarks.quality.default --questions FILE.jsonl.gz          # questions that bring their own passages

One-pass reading uses the same reader weights; its threshold is the best on the very questions that are reported, which favours the baseline.
`--ablations` names run folders of `core train answerer` (NAME=FOLDER), judged like the default.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.datasets import load
from core.engine import Engine
from core.evaluation.report import Report
from core.evaluation.run import evaluate
from core.settings import Settings, quiet_libraries
from core.systems.base.options import Options
from core.types import ReferenceQuestion

THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
SHOWN = ("F1 answer", "precision", "recall", "answers", "reference answers", "MRecall@k", "clarified", "RAMDocs")


def report_of(settings: Settings, system: str, questions: Sequence[ReferenceQuestion], corpus: str, options: Options) -> Report:
    own = all(q.passages is not None for q in questions)
    engine = Engine(settings)
    return evaluate(engine.system(system, corpus, options, own_passages=own), questions, seed=0)


def best_one_pass(settings: Settings, questions: Sequence[ReferenceQuestion], corpus: str, top_k: int) -> tuple[float, Report]:
    """One-pass reading under each threshold; the passages are read once (a cache around the reader), so trying many costs little."""
    from core.systems import one_pass
    from core.systems.options import OnePassOptions

    engine = Engine(settings)
    own = all(q.passages is not None for q in questions)
    reader, digest = one_pass.load_reader(settings.reader, settings.device)
    read, kept = reader.read, {}

    def cached(question: str, passages: Any, candidates: int = 5) -> Any:
        key = (question, tuple(p.id for p in passages))
        if key not in kept:
            kept[key] = read(question, passages, candidates)
        return kept[key]

    reader.read = cached  # type: ignore[method-assign]
    best: tuple[float, Report] | None = None
    for threshold in THRESHOLDS:
        built = engine.system("one-pass", corpus, Options(top_k=top_k, extra={"threshold": threshold}), own_passages=own)
        assert isinstance(built, one_pass.OnePass)
        own = OnePassOptions(threshold=threshold)
        system = one_pass.OnePass("one-pass", built.parts, built.options, own, reader, digest)
        report = evaluate(system, questions, seed=0)
        if best is None or (report.scores["F1 answer"]["multi"] or 0) > (best[1].scores["F1 answer"]["multi"] or 0):
            best = threshold, report
    assert best is not None
    return best


def line(name: str, report: Report, top_k: int) -> str:
    cells = [name]
    for metric in SHOWN:
        values = report.scores.get(metric.replace("@k", f"@{top_k}"))
        if values is None:
            cells.append("–")
            continue
        scale, digits = (1, 2) if metric in ("answers", "reference answers") else (100, 1)
        both = [f"{scale * v:.{digits}f}" if v is not None else "undefined" for v in (values["all"], values["multi"])]
        interval = (report.intervals.get(metric) or {}).get("all")
        between = f" [{100 * interval[0]:.1f}, {100 * interval[1]:.1f}]" if interval and metric == "F1 answer" else ""
        cells.append(f"{both[0]}{between} / {both[1]}")
    return "| " + " | ".join(cells) + " |"


def add_questions(parser: argparse.ArgumentParser) -> None:
    """Which questions, over which corpus, with how many passages."""
    parser.add_argument("--questions", type=Path, default=Path("data/starter/questions.json"))
    parser.add_argument("--corpus", default="starter")
    parser.add_argument("--top-k", type=int, default=10)


def main(argv: Sequence[str] | None = None) -> int:
    quiet_libraries()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_questions(parser)
    parser.add_argument("--ablations", nargs="*", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--no-clarify", action="store_true")
    parser.add_argument("--skip-one-pass", action="store_true")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args(argv)
    settings = Settings.from_env()
    questions = load(args.questions)
    options = Options(top_k=args.top_k, clarify=not args.no_clarify)
    reports = {"ambiscope": report_of(settings, "ambiscope", questions, args.corpus, options)}
    if not args.skip_one_pass:
        threshold, reports["one-pass"] = best_one_pass(settings, questions, args.corpus, args.top_k)
        reports[f"one-pass (threshold {threshold})"] = reports.pop("one-pass")
    for pair in args.ablations:
        name, _, folder = pair.partition("=")
        changed = replace(settings, answerer=folder)
        reports[name] = report_of(changed, "ambiscope", questions, args.corpus, replace(options, clarify=False))
    print(f"{len(questions)} questions; values are all / multi, with 95% bootstrap intervals of all\n")
    print("| system | " + " | ".join(SHOWN) + " |\n|---|" + "---|" * len(SHOWN))
    for name, report in reports.items():
        print(line(name, report, args.top_k))
    main_report = reports["ambiscope"]
    print(f"\nfailed {main_report.failed}; {json.dumps(main_report.timings)}; {json.dumps(main_report.provenance)}")
    for group in ("by_source", "by_ambiguity"):
        for key, row in getattr(main_report, group).items():
            print(
                f"{group[3:]} {key}: n {row['n']}, "
                + ", ".join(f"{m} {v['all']:.3f}" for m, v in row["scores"].items() if m in SHOWN and v["all"] is not None)
            )
    if args.out:
        args.out.write_text(json.dumps({name: r.to_json() for name, r in reports.items()}, indent=1, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
