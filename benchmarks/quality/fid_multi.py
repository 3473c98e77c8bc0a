"""FiD-multi (AmbigPrompt's Figure 5): the bias of the end of the sequence at which `fid` writes as many answers as another system finds.

    python -m benchmarks.quality.fid_multi [--like default | --mean 2.1] [--limit 40]

On the practice questions held out from training, over their own passages; never on a test set.  Prints the bias for `fid-multi`'s option end_bias,
with F1, precision, recall and the number of answers of `fid`, `fid-multi` and the other system.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from core.decoding import run_answers
from core.metrics.answers import matching
from core.models.answering import load_answering
from core.models.seq2seq.decoding import SequenceDecoding, Writer, match_end_bias
from core.models.seq2seq.fid import load_fid
from core.settings import ROOT, Settings, quiet_libraries
from core.training.data.examples import MultiExample
from core.training.data.mixtures import annotated_examples
from core.types import Passage, RetrievedPassage


def figures(runs: Sequence[Sequence[str]], examples: Sequence[MultiExample]) -> dict[str, float]:
    """Means over questions."""
    rows = [(len(matching(e.gold, list(answers))), len(answers), len(e.gold)) for answers, e in zip(runs, examples)]
    n = len(rows)
    return {
        "f1": sum(2 * hit / (got + want) for hit, got, want in rows) / n,
        "precision": sum(hit / max(1, got) for hit, got, _ in rows) / n,
        "recall": sum(hit / want for hit, _, want in rows) / n,
        "answers": sum(got for _, got, _ in rows) / n,
    }


def main(argv: Sequence[str] | None = None) -> int:
    quiet_libraries()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--like", default="default", help="answering model whose mean number of answers is matched")
    parser.add_argument("--mean", type=float, help="match this mean instead")
    parser.add_argument("--limit", type=int, default=40)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args(argv)
    settings = Settings.from_env()
    _, examples = annotated_examples(ROOT / "data" / "practice", held_out=0.2)
    examples = examples[:: max(1, len(examples) // args.limit)][: args.limit]
    found = [[RetrievedPassage(Passage(str(j), *p), j + 1, 0.0) for j, p in enumerate(e.passages)] for e in examples]
    answerer, digest = load_fid(settings.seq2seq, settings.device)

    @cache
    def runs(bias: float) -> list[list[str]]:
        writer = Writer(answerer, SequenceDecoding(end_bias=bias))
        out: list[list[str]] = []
        for i in range(0, len(examples), 8):
            jobs = [(e.question, f) for e, f in zip(examples[i : i + 8], found[i : i + 8])]
            out += [[c.text for c in answers] for answers in writer.write_many(jobs)]
        return out

    rows = {"fid": figures(runs(0.0), examples)}
    target = args.mean
    if target is None:
        other, _ = load_answering(args.like, settings.device)
        rows["the other system"] = figures(run_answers(other, [e.question for e in examples], found), examples)
        target = rows["the other system"]["answers"]
    bias = match_end_bias(lambda b: figures(runs(b), examples)["answers"], target)
    rows[f"fid-multi, end_bias {bias:g}"] = figures(runs(bias), examples)
    print(
        f"{len(examples)} held-out practice questions, weights {digest}\n\n| | F1 | precision | recall | answers |\n|---|--:|--:|--:|--:|"
    )
    for name, r in rows.items():
        print(f"| {name} | {100 * r['f1']:.1f} | {100 * r['precision']:.1f} | {100 * r['recall']:.1f} | {r['answers']:.2f} |")
    if args.out:
        args.out.write_text(json.dumps({"weights": digest, "end_bias": bias, "rows": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
