"""Questions asked at the same moment, each in a thread of its own as in the app, against the same questions in turn.

    python -m benchmarks.speed.service.at_once [--questions 5] [--rounds 3] [--top-k 10] [--no-clarify] [--gather 1]

One process, the default system over the starter corpus, warm models.  Rounds alternate between in turn and at once; medians of the rounds.  Figures:
seconds to the last first answer, until all are finished, to the end of the quickest question, and of all cores (which other work on the machine hardly
changes).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core.engine import Engine
from core.settings import ROOT, Settings, let_threads_sleep, quiet_libraries
from core.systems.base.options import Options
from core.types import Question, StepFinished


def starter_questions(count: int) -> list[str]:
    """Ambiguous questions of the starter corpus's development set, in its order."""
    rows = json.loads((ROOT / "data" / "starter" / "questions.json").read_text(encoding="utf-8"))
    several = [r["question"] for r in rows if len(r["annotations"][0].get("qaPairs", ())) >= 2]
    return [several[i % len(several)] for i in range(count)]


@dataclass(frozen=True)
class Round:
    """`answers`: seconds from the start to the first answer and to the end of each question; `cpu`: seconds of this process, all threads."""

    answers: list[tuple[float, float]]
    cpu: float


def ask(engine: Engine, text: str, options: Options, started: float, system: str = "ambiscope") -> tuple[float, float]:
    """Seconds since `started` to the first answer and to the end."""
    first = 0.0
    for event in engine.system(system, "starter", options).run(Question(text)):
        if isinstance(event, StepFinished) and event.answer is not None and not first:
            first = time.perf_counter() - started
    end = time.perf_counter() - started
    return first or end, end


def in_turn(engine: Engine, questions: Sequence[str], options: Options, system: str = "ambiscope") -> Round:
    started, cpu = time.perf_counter(), time.process_time()
    answers = [ask(engine, text, options, started, system) for text in questions]
    return Round(answers, time.process_time() - cpu)


def at_once(engine: Engine, questions: Sequence[str], options: Options) -> Round:
    cpu = time.process_time()
    out: list[tuple[float, float]] = [(0.0, 0.0)] * len(questions)
    barrier = threading.Barrier(len(questions) + 1)
    started = [0.0]

    def work(at: int) -> None:
        barrier.wait()
        out[at] = ask(engine, questions[at], options, started[0])

    threads = [threading.Thread(target=work, args=(at,)) for at in range(len(questions))]
    for thread in threads:
        thread.start()
    started[0] = time.perf_counter()
    barrier.wait()
    for thread in threads:
        thread.join()
    return Round(out, time.process_time() - cpu)


def shown(rounds: Sequence[Round]) -> dict[str, float]:
    def median(of: Any) -> float:
        return round(statistics.median(of(r) for r in rounds), 2)

    return {
        "last_first_answer": median(lambda r: max(first for first, _ in r.answers)),
        "all_finished": median(lambda r: max(end for _, end in r.answers)),
        "quickest": median(lambda r: min(end for _, end in r.answers)),
        "cpu_seconds": median(lambda r: r.cpu),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--top-k", type=int, default=10)
    parser.add_argument("--no-clarify", action="store_true")
    parser.add_argument("--gather", type=int, default=1, help="questions that a model may read together")
    args = parser.parse_args()
    let_threads_sleep()
    quiet_libraries()
    engine = Engine(Settings.from_env())
    engine.warm("starter")
    if args.gather > 1:
        from core.models.scheduling import turns

        turns.gather(args.gather)
    questions, options = starter_questions(args.questions), Options(top_k=args.top_k, clarify=not args.no_clarify)
    in_turn(engine, questions[:2], options)
    rounds = [(in_turn(engine, questions, options), at_once(engine, questions, options)) for _ in range(args.rounds)]
    found = {"in_turn": shown([r for r, _ in rounds]), "at_once": shown([r for _, r in rounds])}
    print(json.dumps({**found, "load": [round(x, 1) for x in os.getloadavg()]}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
