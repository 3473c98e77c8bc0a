"""What iterating is worth: the answering weights asked once, every candidate of the first step above a threshold taken as an answer.

    python -m benchmarks.quality.first_step [--questions data/starter/questions.json --corpus starter]

`benchmarks.quality.default` compares the loop with the per-passage reader, which has weights of its own; here the weights, the passages and the retrieval
prior are the loop's.  Each threshold is tried on the very questions that are reported, which favours this baseline.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from benchmarks.quality.default import add_questions
from core import types as t
from core.datasets import load
from core.engine import Engine
from core.metrics.base import Example
from core.metrics.score.scoring import table, values_of
from core.models.span.answerer import Decoding, load_answerer
from core.settings import Settings, quiet_libraries
from core.systems.base.selection import choose

THRESHOLDS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5)
CANDIDATES = 20
MOST = 10
F1 = "F1 answer"


def main(argv: Sequence[str] | None = None) -> int:
    quiet_libraries()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_questions(parser)
    args = parser.parse_args(argv)
    settings = Settings.from_env()
    questions = load(args.questions)
    found = Engine(settings).corpus(args.corpus).search_many([q.question for q in questions], args.top_k)
    model, digest = load_answerer(settings.answerer, settings.device, Decoding(candidates=CANDIDATES))
    candidates = [model.propose(q.question, passages, []).candidates for q, passages in zip(questions, found)]
    print(f"{len(questions)} questions, answering weights {digest}; F1 answer, all / multi")
    for threshold in THRESHOLDS:
        rows = []
        for q, own in zip(questions, candidates):
            answers = tuple(c.text for c in choose(own, t.Question(q.question), threshold, MOST))
            rows.append(values_of(Example(q.question, q.annotations, answers), [F1]))
        means = table(rows, [q.ambiguous for q in questions], [F1])[F1]
        print(f"threshold {threshold}: " + " / ".join(f"{100 * (v or 0):.1f}" for v in means.values()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
