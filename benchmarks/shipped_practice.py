"""The default system's answers to the twelve questions of the practice project, with their traces, packed into data/shipped/.

python -m benchmarks.shipped_practice [--system NAME] [--out FILE]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.shipped_runs import slim, write
from core.engine import Engine
from core.settings import Settings
from core.systems.base.options import Options
from core.trace import fold, to_json
from core.types import Question
from storage.shipped import practice
from storage.shipped.traces import passages

MAX_BYTES = 300_000


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--system", default=Settings().system)
    parser.add_argument("--out", type=Path, default=practice.PREDICTIONS)
    args = parser.parse_args(argv)
    settings = Settings.from_env()
    system = Engine(settings).system(args.system, "starter", Options(max_answers=settings.max_answers))
    known_passages, rows = passages(practice.STARTER), []
    for reference in practice.questions():
        question = Question(reference.question, id=reference.id)
        prediction = fold(question, system.info, system.run(question))
        rows.append(slim(to_json(prediction), known_passages))
        print(f"{question.text} {', '.join(a.text for a in prediction.answers)}", flush=True)
    print(f"{len(rows)} predictions, {write(rows, args.out, MAX_BYTES):,} bytes: {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
