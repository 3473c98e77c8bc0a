"""What training gains in retrieving and ranking passages, on practice questions held out from training, each asked of its own folder's corpus.

    python -m benchmarks.retrieval [--annotated FOLDER ...] [--retriever NAME] [--limit N]         # R@k and MRecall@k of retrievers
    python -m benchmarks.retrieval --rerank [--joint FOLDER] [--pool 20] [--limit N]               # MRecall@5 of what ranks a pool

The first compares the base encoder with a retriever of `core train retriever`, alone and in hybrid search.  The second ranks the same pools: as retrieved, by the
reader passage by passage, jointly by the reader with a discount for answers given already, and by the reranker of `core train passages`, if one is
given.  --whole FOLDER ... adds all questions of folders that nothing was trained on.  Intervals are 95% bootstraps over questions; differences and
p-values are paired, against the first row.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.evaluating import markdown_table, mean_points, points
from core.disk import plain_or_gz
from core.engine import Engine
from core.metrics.retrieval import mrecall_at_k, recall_at_k
from core.metrics.significance.compare import compare_values, corrected
from core.settings import ROOT, Settings, quiet_libraries
from core.training.data.examples import MultiExample
from core.training.data.held_out_passages import PRACTICE_FOLDERS
from core.training.data.mixtures import annotated_examples

KS = (1, 5, 10)


def table(rows: dict[str, dict[str, list[float]]], several: Sequence[bool]) -> str:
    """`rows[name][metric]`: a value a question; the difference in the last metric is shown, and its p-value."""
    metrics = list(next(iter(rows.values())))
    heads = [
        "ranking",
        *(f"{m} all" for m in metrics),
        *(f"{m} multi" for m in metrics),
        f"{metrics[-1]} against the first",
        "p (Holm)",
    ]
    first = next(iter(rows.values()))[metrics[-1]]
    differences = corrected({n: compare_values(r[metrics[-1]], first) for n, r in list(rows.items())[1:]})
    lines = []
    for name, scores in rows.items():
        multi = (mean_points([v for v, s in zip(scores[m], several) if s]) for m in metrics)
        cells = ["", ""]
        if name in differences:
            paired, p = differences[name].comparison, differences[name].holm
            cells = [points(paired.difference, paired.interval), "" if p is None else f"{p:.4f}"]
        lines.append([name, *(mean_points(scores[m]) for m in metrics), *multi, *cells])
    return markdown_table(heads, lines)


def questions_of(folder: Path, include_training: bool) -> list[tuple[str, MultiExample]]:
    """(corpus, question) of the held-out questions of a practice folder, or of all its questions."""
    train, dev = annotated_examples(folder, 0.2, context=2)
    return [(folder.resolve().name, e) for e in (train + dev if include_training else dev)]


def retrievers(args: argparse.Namespace, settings: Settings) -> str:
    questions = [pair for folder in args.annotated for pair in questions_of(folder, False)]
    if args.limit:
        questions = random.Random(args.seed).sample(questions, min(args.limit, len(questions)))
    questions += [pair for folder in args.whole for pair in questions_of(folder, True)]
    several = [len(e.gold) > 1 for _, e in questions]
    rows: dict[str, dict[str, list[float]]] = {}
    for encoder in dict.fromkeys((settings.encoder, args.retriever)):
        engine = Engine(replace(settings, encoder=encoder))
        for folder in (*args.annotated, *args.whole):
            engine.library.create(folder.resolve().name, [plain_or_gz(folder / "passages.tsv")])
        for mode in args.modes:
            texts = [[p.passage.text for p in engine.corpus(name).search(e.question, max(KS), mode)] for name, e in questions]
            rows[f"{mode}, {Path(encoder).name}"] = {
                f"{name}@{k}": [measure(t, e.gold, k) for t, (_, e) in zip(texts, questions)]
                for name, measure in (("R", recall_at_k), ("MRecall", mrecall_at_k))
                for k in KS
            }
    return f"{len(several)} questions, {sum(several)} with several answers\n\n{table(rows, several)}"


def rerankers(args: argparse.Namespace, settings: Settings) -> str:
    from core.models.ranking.passage_network import load_joint
    from core.models.ranking.passage_scorers import TrainedScorer
    from core.models.span.reader import load_reader
    from core.training.passages import HELD_OUT, K, PassagePool, mrecall, picks, pools

    reader, digest = load_reader(settings.reader, settings.device)
    _, dev_pools = pools(settings, args.annotated, reader, digest, args.pool, 1, args.limit or HELD_OUT, args.seed)
    dev_pools += pools(settings, args.whole, reader, digest, args.pool, 1, 0, args.seed, hold_out_all=True)[1]

    def by_worth(p: PassagePool) -> list[int]:
        worth = p.reader.log_worth(())
        return sorted(range(len(worth)), key=lambda j: -worth[j])

    rankings: dict[str, Any] = {
        "as retrieved": lambda p: list(range(len(p.holds))),
        "reader, each passage alone": by_worth,
        "reader, jointly": lambda p: picks(p.reader),
    }
    if args.joint:
        network, _ = load_joint(args.joint, digest)
        rankings["trained, jointly"] = lambda p: picks(TrainedScorer(network, p.tensor, p.reader))
    rows = {name: {f"MRecall@{K}": [mrecall(p, ranking(p)) for p in dev_pools]} for name, ranking in rankings.items()}
    return f"{len(dev_pools)} questions, pools of {args.pool}\n\n{table(rows, [p.answers > 1 for p in dev_pools])}"


def main(argv: Sequence[str] | None = None) -> int:
    quiet_libraries()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--annotated", type=Path, nargs="+", default=list(PRACTICE_FOLDERS), metavar="FOLDER")
    parser.add_argument("--modes", nargs="+", choices=("dense", "hybrid"), default=["dense", "hybrid"])
    parser.add_argument("--retriever", default=str(ROOT / "checkpoints" / "retriever"))
    parser.add_argument("--rerank", action="store_true")
    parser.add_argument("--joint", default="", help="what `core train passages` made; with --rerank")
    parser.add_argument("--pool", type=int, default=20)
    parser.add_argument(
        "--limit", type=int, default=0, help="held-out questions, drawn evenly from the folders (0: all; of pools 120)"
    )
    parser.add_argument(
        "--whole", type=Path, nargs="+", default=[], metavar="FOLDER", help="folders of which all questions are asked"
    )
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    settings = Settings.from_env()
    print(rerankers(args, settings) if args.rerank else retrievers(args, settings))
    return 0


if __name__ == "__main__":
    sys.exit(main())
