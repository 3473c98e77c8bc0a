"""Chooses the decoding of the default answerer (retrieval prior, [EOI] bias) on practice questions held out from training; never on a test set.

    python -m benchmarks.tuning.decoding [--answerer FOLDER] [--corpus practice]

Needs the practice corpus: python -m core index --passages data/practice/passages.tsv.gz --name practice
The network's scores are kept for each (question, previous answers), so that a further setting costs little.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from core.cli import quiet_libraries
from core.engine import Engine
from core.models.encoders.precision import quick
from core.models.span.answerer import Decoding, Scored, SpanAnswerer, load_answerer
from core.models.span.reader import load_reader
from core.settings import ROOT, Settings
from core.training.data.examples import MultiExample
from core.training.data.mixtures import annotated_examples
from core.training.held_out import answer_f1
from core.types import RetrievedPassage

PRIORS = (0.0, 3.0, 6.0, 9.0)
BIASES = (-2.0, -1.5, -1.0, -0.5, 0.0, 0.5)
READER_WEIGHTS = (0.0, 0.3, 0.6)


class Runner:
    def __init__(
        self, answerer: SpanAnswerer, examples: Sequence[MultiExample], passages: Sequence[list[RetrievedPassage]]
    ) -> None:
        self.answerer, self.examples, self.passages = answerer, examples, passages
        self.kept: dict[tuple[int, tuple[str, ...]], Scored] = {}

    def answers(self, i: int, decoding: Decoding, most: int = 8) -> list[str]:
        found: list[str] = []
        while len(found) < most:
            key = (i, tuple(found))
            if key not in self.kept:
                with quick(torch.device("cpu")):
                    (self.kept[key],) = self.answerer.score_many([(self.examples[i].question, self.passages[i], found)])
            proposal = self.answerer.decide(self.kept[key], self.passages[i], found, decoding)
            top = proposal.candidates[0] if proposal.candidates else None
            if top is None or proposal.eoi_probability >= top.probability:
                break
            found.append(top.text)
        return found


def main() -> int:
    quiet_libraries()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answerer", default="default")
    parser.add_argument("--reader", default="default")
    parser.add_argument("--corpus", default="practice")
    parser.add_argument("--top-k", type=int, default=10)
    parser.add_argument("--limit", type=int, default=0)
    args = parser.parse_args()
    settings = Settings.from_env()
    _, held_out = annotated_examples(Path(ROOT / "data" / "practice"), held_out=0.2)
    held_out = held_out[: args.limit or None]
    corpus = Engine(settings).corpus(args.corpus)
    found = corpus.search_many([e.question for e in held_out], args.top_k)
    answerer, digest = load_answerer(args.answerer, settings.device, Decoding(reader_weight=1.0))
    answerer.reader, _ = load_reader(args.reader, settings.device)
    runner = Runner(answerer, held_out, found)
    rows = []
    for prior, weight, bias in itertools.product(PRIORS, READER_WEIGHTS, BIASES):
        decoding = Decoding(retrieval_prior=prior, eoi_bias=bias, reader_weight=weight)
        runs = [runner.answers(i, decoding) for i in range(len(held_out))]
        values = [answer_f1(a, e.gold) for a, e in zip(runs, held_out)]
        multi = [v for v, e in zip(values, held_out) if len(e.gold) > 1]
        rows.append(
            {
                "retrieval_prior": prior,
                "reader_weight": weight,
                "eoi_bias": bias,
                "f1": round(sum(values) / len(values), 4),
                "f1_multi": round(sum(multi) / len(multi), 4),
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
