"""EDIT-F1 of question disambiguation with the right answers given (AmbigQA's ablation "gold answers"): copying the prompt, and a trained rewriter.

    python -m benchmarks.quality.disambiguation --ambignq dev_light.json [--rewriter FOLDER --passages wiki.tsv.gz] [--limit N]

Every multi-answer annotation's pairs count; a question takes its best annotation, as in AmbigQA's metrics.  Passages of the rewriter are BM25 neighbours of
question and answers (AmbigNQ brings none), so its figure depends on how much of the evidence that file has.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from core.metrics.questions import bleu, edit_f1, normal_question, variants
from core.settings import Settings, quiet_libraries
from core.training.data.mining import Miner
from core.training.data.mixtures import context_passages
from core.types import Passage

Pairs = list[tuple[str, list[str]]]  # (disambiguated question with its variants, names of the answer)


def load(path: Path) -> list[tuple[str, list[Pairs]]]:
    """(prompt question, its multi-answer annotations)."""
    out = []
    for row in json.loads(path.read_text(encoding="utf-8")):
        annotations = [
            [(p["question"], p["answer"]) for p in a["qaPairs"]] for a in row["annotations"] if a["type"] == "multipleQAs"
        ]
        if annotations:
            out.append((row["question"], annotations))
    return out


def score(prompt: str, pairs: Pairs, written: Sequence[str]) -> tuple[float, float]:
    """(EDIT-F1, BLEU-4), means over the pairs."""
    normal = normal_question(prompt)
    edits = [edit_f1(normal_question(w), variants(q), normal) for w, (q, _) in zip(written, pairs)]
    bleus = [bleu(normal_question(w), variants(q), 4) for w, (q, _) in zip(written, pairs)]
    return sum(edits) / len(pairs), sum(bleus) / len(pairs)


def main(argv: Sequence[str] | None = None) -> int:
    quiet_libraries()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ambignq", type=Path, required=True)
    parser.add_argument("--rewriter", help="folder, bundled or hub name")
    parser.add_argument("--passages", type=Path)
    parser.add_argument("--context", type=int, default=6)
    parser.add_argument("--limit", type=int, default=0)
    args = parser.parse_args(argv)
    questions = load(args.ambignq)[: args.limit or None]
    systems = {"copy of the prompt question": [[[q] * len(p) for p in annotations] for q, annotations in questions]}
    if args.rewriter:
        from core.models.seq2seq.rewriter import load_rewriter

        rewriter, digest = load_rewriter(args.rewriter, Settings.from_env().device)
        miner = Miner(context_passages(args.passages, ()) if args.passages else ())
        texts = [" ".join([q, *(names[0] for _, names in annotations[0])]) for q, annotations in questions]
        found = miner.neighbours(texts, args.context)
        written = []
        for (q, annotations), near in zip(questions, found):
            passages = [Passage(str(i), *miner.passages[int(i)]) for i in near]
            own = []
            for pairs in annotations:
                names = [n[0] for _, n in pairs]
                jobs = [(q, a, [o for o in names if o != a], passages) for a in names]
                own.append([c[0] if c else q for c in rewriter.rewrite_many(jobs)])
            written.append(own)
        systems[f"rewriter {digest}"] = written
    print(f"{len(questions)} questions with several answers\n\n| | EDIT-F1 | BLEU-4 |\n|---|--:|--:|")
    for name, outputs in systems.items():
        best = [
            max((score(q, pairs, w) for pairs, w in zip(annotations, own)), key=lambda s: s[0])
            for (q, annotations), own in zip(questions, outputs)
        ]
        blue = [
            max(score(q, pairs, w)[1] for pairs, w in zip(annotations, own))
            for (q, annotations), own in zip(questions, outputs)
        ]
        print(f"| {name} | {100 * sum(b[0] for b in best) / len(best):.1f} | {100 * sum(blue) / len(blue):.1f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
