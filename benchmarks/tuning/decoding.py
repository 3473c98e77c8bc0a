"""Chooses the decoding of the answerer ([EOI] bias, what the reader alone keeps) on practice questions held out from training; never on a test set.

    python -m benchmarks.tuning.decoding [--answerer FOLDER] [--limit 60]       # of ambiscope
    python -m benchmarks.tuning.decoding --paper [--limit 60]                    # of ambigprompt: the bias of [EOI] alone, nothing kept

The network's scores are kept for each (question, previous answers), so that another setting costs little.  Questions and passages: those that
calibrations are fitted on (core.training.data.held_out_passages).
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Sequence

import torch

from core.engine import Engine
from core.metrics.answers import f1
from core.models.scheduling.device import bf16_autocast
from core.models.span.answerer import Decoding, Scored, SpanAnswerer, load_answerer
from core.models.span.reader import load_reader
from core.settings import Settings, quiet_libraries
from core.text import normalize_answer
from core.training.data.examples import MultiExample
from core.training.data.held_out_passages import PRACTICE_FOLDERS, held_out_passages
from core.types import RetrievedPassage

BIASES = (-4.0, -2.0, -1.0, 0.0)
KEEP_ABOVE = (0.03, 0.05, 0.1, 0.2)


class Runner:
    def __init__(
        self, answerer: SpanAnswerer, examples: Sequence[MultiExample], passages: Sequence[Sequence[RetrievedPassage]]
    ) -> None:
        self.answerer, self.examples, self.passages = answerer, examples, passages
        self.scores: dict[tuple[int, tuple[str, ...]], Scored] = {}
        self.repeated = 0  # runs that ended because an answer was chosen again

    def answers(self, i: int, decoding: Decoding, max_answers: int = 8) -> list[str]:
        previous: list[str] = []
        while len(previous) < max_answers:
            key = (i, tuple(previous))
            if key not in self.scores:
                with bf16_autocast(torch.device("cpu")):
                    (self.scores[key],) = self.answerer.score_many([(self.examples[i].question, self.passages[i], previous)])
            proposal = self.answerer.decide(self.scores[key], self.passages[i], previous, decoding)
            top = proposal.candidates[0] if proposal.candidates else None
            if top is None or proposal.eoi_probability >= top.probability:
                break
            if normalize_answer(top.text) in map(normalize_answer, previous):
                self.repeated += 1
                break
            previous.append(top.text)
        return previous


def main() -> int:
    quiet_libraries()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answerer", default="default")
    parser.add_argument("--reader", default="default")
    parser.add_argument("--paper", action="store_true")
    parser.add_argument("--top-k", type=int, default=10)
    parser.add_argument(
        "--limit", type=int, default=0, help="at most so many questions, drawn evenly from the practice folders"
    )
    args = parser.parse_args()
    settings = Settings.from_env()
    held_out, passages = held_out_passages(Engine(settings), PRACTICE_FOLDERS, args.top_k, args.limit)
    answerer, digest = load_answerer(args.answerer, settings.device, Decoding(keep_above=1.0 if args.paper else 0.0))
    if not args.paper:
        answerer.reader, _ = load_reader(args.reader, settings.device)
    runner = Runner(answerer, held_out, passages)
    rows = []
    for keep_above, bias in itertools.product((1.0,) if args.paper else KEEP_ABOVE, BIASES):
        decoding = Decoding(bias, keep_above, repeats=args.paper)
        runner.repeated = 0
        runs = [runner.answers(i, decoding) for i in range(len(held_out))]
        values = [f1(e.gold, a) for a, e in zip(runs, held_out)]
        multi = [v for v, e in zip(values, held_out) if len(e.gold) > 1]
        rows.append(
            {
                "keep_above": keep_above,
                "eoi_bias": bias,
                "f1": round(sum(values) / len(values), 4),
                "f1_multi": round(sum(multi) / len(multi), 4),
                "again": runner.repeated,
                "answers": round(sum(map(len, runs)) / len(runs), 2),
                "gold": round(sum(len(e.gold) for e in held_out) / len(held_out), 2),
            }
        )
        print(json.dumps(rows[-1]), flush=True)
    best = max(rows, key=lambda r: r["f1"] + r["f1_multi"])
    print(f"best on {len(held_out)} held-out practice questions (weights {digest}): {json.dumps(best)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
