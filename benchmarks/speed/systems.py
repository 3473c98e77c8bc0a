"""Seconds a question of every bundled system in one process, question by question in turn: all see the same load of the machine.

    python -m benchmarks.speed.systems [--questions 8] [--systems NAME ...]

`benchmarks.quality.systems` gives each system a process of its own and one after another, so that its seconds also tell what else the machine was doing.
Warm models, starter corpus, no disambiguated questions.  Ratios are to `one-pass`, of the same question.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence

from core.datasets import load
from core.engine import Engine, statuses
from core.settings import ROOT, Settings, quiet_libraries
from core.systems import passages_to_read
from core.systems.base.options import Options
from core.systems.base.system import answer
from core.types import Question

YARDSTICK = "one-pass"


def main(argv: Sequence[str] | None = None) -> int:
    quiet_libraries()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=8, help="so many of the starter's ambiguous ones, spread over them")
    parser.add_argument("--systems", nargs="+", metavar="NAME")
    args = parser.parse_args(argv)
    settings = Settings.from_env()
    engine = Engine(settings)
    names = args.systems or [s.name for s in statuses(settings) if s.ready]
    names = [YARDSTICK, *(n for n in names if n != YARDSTICK)]
    systems = {n: engine.system(n, "starter", Options(top_k=passages_to_read(n, settings.top_k), clarify=False)) for n in names}
    ambiguous = [q.question for q in load(ROOT / "data" / "starter" / "questions.json") if q.ambiguous]
    chosen = ambiguous[:: max(1, len(ambiguous) // args.questions)][: args.questions]
    seconds: dict[str, list[float]] = {n: [] for n in names}
    for system in systems.values():
        answer(system, Question(ambiguous[-1]))  # warm
    for text in chosen:
        for name, system in systems.items():
            began = time.perf_counter()
            answer(system, Question(text))
            seconds[name].append(time.perf_counter() - began)
    print("| system | seconds, median | times one-pass |\n|---|--:|--:|")
    for name in names:
        ratio = statistics.median(a / b for a, b in zip(seconds[name], seconds[YARDSTICK]))
        print(f"| `{name}` | {statistics.median(seconds[name]):.2f} | {ratio:.1f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
