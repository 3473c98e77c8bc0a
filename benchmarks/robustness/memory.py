"""Memory and open handles of a process after many different questions.

    python -m benchmarks.robustness.memory [--system ambiscope] [--questions 500] [--corpus practice]

Each question is asked in a separate thread, as the app does.  The questions are distinct and spread over a file; with `--corpus practice` their
passages are read from data/practice into a corpus of that name first.  Exit code 1 where the process grew above `--most` MB, or had more handles
at the end than after the tenth question.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.timing import peak_mb
from core.datasets import load
from core.engine import Engine
from core.errors import AmbiscopeError
from core.retrieval.library import BuildOptions
from core.retrieval.readers.lines import Limits
from core.settings import ROOT, Settings, quiet_libraries
from core.systems import passages_to_read
from core.systems.base.options import Options
from core.systems.base.system import answer
from core.types import Question

REPORTED = (1, 10, 25, 50, 100, 110, 150, 200, 250, 300, 350, 400, 450, 500)


def handles() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir()) - 1  # less the one that looks


def main(argv: Sequence[str] | None = None) -> int:
    quiet_libraries()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--system", help="name of a system (default: AMBISCOPE_SYSTEM)")
    parser.add_argument("--questions", type=int, default=500, help="so many distinct questions")
    parser.add_argument("--file", type=Path, default=ROOT / "data" / "practice" / "questions.json.gz")
    parser.add_argument(
        "--corpus", default="practice", help="practice (built where it is missing), starter, or another one's name"
    )
    parser.add_argument("--no-clarify", action="store_true")
    parser.add_argument("--most", type=float, default=2500, help="most MB that the process may have")
    args = parser.parse_args(argv)
    settings = Settings.from_env()
    engine = Engine(settings)
    if args.corpus == "practice":
        passages = ROOT / "data" / "practice" / "passages.tsv.gz"
        engine.library.create("practice", [passages], options=BuildOptions(Limits.for_own_files(settings)))
    texts = list(dict.fromkeys(q.question for q in load(args.file)))
    if len(texts) < args.questions:
        parser.error(f"{args.file} has {len(texts)} distinct questions")
    selected = texts[:: len(texts) // args.questions][: args.questions]
    name = args.system or settings.system
    options = Options(top_k=passages_to_read(name, settings.top_k), clarify=not args.no_clarify)
    system = engine.system(name, args.corpus, options)
    failed: list[str] = []

    def ask(text: str) -> None:
        try:
            answer(system, Question(text))
        except AmbiscopeError as error:
            failed.append(f"{text}: {error}")

    print(f"{name}, {args.questions} distinct questions of {args.file.name} over {args.corpus}")
    print("| questions | MB | MB at most | handles | seconds a question |\n|--:|--:|--:|--:|--:|")
    peak, open_then, open_now, start = 0.0, 0, 0, time.perf_counter()
    for number, text in enumerate(selected, 1):
        thread = threading.Thread(target=ask, args=(text,))
        thread.start()
        thread.join()
        open_now = handles()
        if number <= 10:
            open_then = open_now
        if number in REPORTED or number == len(selected):
            peak = peak_mb()
            seconds = (time.perf_counter() - start) / number
            print(f"| {number} | {peak_mb(field='VmRSS'):.0f} | {peak:.0f} | {open_now} | {seconds:.2f} |", flush=True)
    for line in failed[:5]:
        print(f"failed: {line}", file=sys.stderr)
    if failed:
        print(f"{len(failed)} questions failed", file=sys.stderr)
    if peak > args.most:
        print(f"the process had {peak:.0f} MB, more than {args.most:.0f}", file=sys.stderr)
    if open_now > open_then:
        print(f"{open_now} handles are open, after the tenth question there were {open_then}", file=sys.stderr)
    return int(peak > args.most or open_now > open_then or len(failed) == len(selected))


if __name__ == "__main__":
    sys.exit(main())
