"""Questions read together against one by one: one step of the answering model by passages a question, and the encoding of questions.

    python -m benchmarks.speed.service.together [--questions 8] [--repeats 5] [--device cpu]

Prints milliseconds a question one by one, and how many times as fast two, four and all questions together are (best of the repeats).  What waits
together is bounded by BUDGET in core/models/scheduling/turns.py, which this measures.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from typing import Any

from benchmarks.speed.service.at_once import starter_questions
from benchmarks.speed.timing import seconds, show
from core.engine import Engine
from core.settings import Settings, let_threads_sleep, quiet_libraries


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    let_threads_sleep()
    quiet_libraries()
    from core.models.span.answerer import load_answerer

    engine = Engine(replace(Settings.from_env(), device=args.device))
    corpus, questions = engine.corpus("starter"), starter_questions(args.questions)
    model, _ = load_answerer(device=args.device)
    groups = [n for n in (2, 4, args.questions) if n <= args.questions]
    steps = {}
    for k in (1, 2, 3, 5, 10):
        jobs = [(q, corpus.search(q, k), ()) for q in questions]
        tokens = sum(len(row) for q, found, _ in jobs for row in model.rows(q, [p.passage for p in found]).input_ids)

        def read(size: int, jobs: list[Any] = jobs) -> None:
            for i in range(0, len(jobs), size):
                model.score_many(jobs[i : i + size])

        alone = min(seconds(lambda read=read: read(1), args.repeats))  # type: ignore[misc]
        faster = {n: round(alone / min(seconds(lambda read=read, n=n: read(n), args.repeats)), 2) for n in groups}  # type: ignore[misc]
        steps[k] = {"tokens_a_question": tokens // len(jobs), "ms": round(1000 * alone / len(jobs), 1), "times_as_fast": faster}
    encoder: Any = engine.library.encoder()
    alone = min(seconds(lambda: [encoder._compute([q], "query") for q in questions], args.repeats))
    together = min(seconds(lambda: encoder._compute(questions, "query"), args.repeats))
    encoding = {"ms": round(1000 * alone / len(questions), 1), "times_as_fast": {len(questions): round(alone / together, 2)}}
    show({"steps": steps, "encoding": encoding, "load": [round(x, 1) for x in os.getloadavg()]}, None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
