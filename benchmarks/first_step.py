"""What iterating is worth: the answering weights asked once, every candidate of the first step above a threshold taken as an answer.

    python -m benchmarks.first_step [--questions data/starter/questions.json --corpus starter]

`benchmarks.quality` compares the loop with the per-passage reader, which has weights of its own; here the weights, the passages and the retrieval
prior are the loop's.  Each threshold is tried on the very questions that are reported, which favours this baseline.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from core import types as t
from core.cli import quiet_libraries
from core.datasets import load
from core.engine import Engine
from core.metrics.answers import f1
from core.models.span_answerer import Decoding, load_answerer
from core.settings import Settings
from core.systems.reading import choose

THRESHOLDS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5)
CANDIDATES = 20
MOST = 10


def best_f1(question: t.ReferenceQuestion, answers: Sequence[str]) -> float:
    return max(f1([p.answers for p in a.pairs], answers) for a in question.annotations)


def is_multi(question: t.ReferenceQuestion) -> bool:
    return any(len(a.pairs) > 1 for a in question.annotations)


def main(argv: Sequence[str] | None = None) -> int:
    quiet_libraries()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=Path, default=Path("data/starter/questions.json"))
    parser.add_argument("--corpus", default="starter")
    parser.add_argument("--top-k", type=int, default=10)
    args = parser.parse_args(argv)
    settings = Settings.from_env()
    questions = load(args.questions)
    found = Engine(settings).corpus(args.corpus).search_many([q.question for q in questions], args.top_k)
    model, digest = load_answerer(settings.answerer, settings.device, Decoding(candidates=CANDIDATES))
    candidates = [model.propose(q.question, passages, []).candidates for q, passages in zip(questions, found)]
    print(f"{len(questions)} questions, answering weights {digest}; F1 answer, all / multi")
    for threshold in THRESHOLDS:
        scores = [
            best_f1(q, [c.text for c in choose(own, t.Question(q.question), threshold, MOST)])
            for q, own in zip(questions, candidates)
        ]
        multi = [s for q, s in zip(questions, scores) if is_multi(q)]
        means = [100 * sum(values) / max(1, len(values)) for values in (scores, multi)]
        print(f"threshold {threshold}: {means[0]:.1f} / {means[1]:.1f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
