"""How many answers the passages that are read hold: retrievers, fusion weights and rerankers, on questions that nothing was trained on.

    python -m benchmarks.retrieval [--annotated FOLDER ...] [--retriever NAME] [--limit N]                # R@k and MRecall@k of retrievers
    python -m benchmarks.retrieval --modes hybrid --weights 0.2 0.1 0.3 ... --retriever ""                # of hybrid search by BM25's weight
    python -m benchmarks.retrieval --rerank [--joint FOLDER] [--pool 20] [--k 5] [--limit N]              # MRecall@k of what ranks a pool

The questions are the practice questions held out from training, each asked of its own folder's corpus.  --whole FOLDER ... adds all questions of
folders that nothing was trained on, --questions FILE ... those over the documentation of projects, as `python -m benchmarks.manuals corpora` writes it:
FILE is OUT/PROJECT.jsonl, the documents are in OUT/PROJECT.

The first compares the base encoder with a retriever of `core train retriever`, alone and in hybrid search.  The last ranks the same pools: as
retrieved, by the reader passage by passage (whether it answers; its likeliest answer with the cosine), jointly by the reader with a discount for answers given already, and by the
reranker of `core train passages`, if one is given.  Intervals are 95% bootstraps over questions; differences and p-values are paired, against the first row.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.evaluating import markdown_table, mean_points, points
from core import json_io
from core.disk import plain_or_gz
from core.engine import Engine
from core.metrics.retrieval import mrecall_at_k, recall_at_k
from core.metrics.significance.compare import compare_values, corrected
from core.retrieval import hybrid
from core.retrieval.library import Corpus
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


def asked(args: argparse.Namespace, settings: Settings) -> list[tuple[Corpus, MultiExample]]:
    """The questions, each with the corpus that it is asked of."""
    engine = Engine(settings)

    def corpus(name: str, path: Path) -> Corpus:
        engine.library.create(name, [path])
        return engine.corpus(name)

    held_out, all_of_them = [], []
    for folder in (*args.annotated, *args.whole):
        train, dev = annotated_examples(folder, 0.2, context=2)
        folder_corpus = corpus(folder.resolve().name, plain_or_gz(folder / "passages.tsv"))
        held_out += [(folder_corpus, e) for e in dev] if folder in args.annotated else []
        all_of_them += [(folder_corpus, e) for e in train + dev] if folder in args.whole else []
    for file in args.questions:
        file_corpus = corpus(file.stem, file.with_suffix(""))
        rows = [row for _, row in json_io.read_lines(file)]
        all_of_them += [
            (file_corpus, MultiExample(r["question"], (), tuple(map(tuple, r["answers"])), file.stem)) for r in rows
        ]
    drawn = random.Random(args.seed)
    return [pair for part in (held_out, all_of_them) for pair in (drawn.sample(part, min(args.limit or len(part), len(part))))]


def retrievers(args: argparse.Namespace, settings: Settings) -> str:
    rows: dict[str, dict[str, list[float]]] = {}
    several: list[bool] = []
    for encoder in dict.fromkeys((settings.encoder, *([args.retriever] if args.retriever else ()))):
        questions = asked(args, replace(settings, encoder=encoder))
        several = [len(e.gold) > 1 for _, e in questions]
        for mode, weight in [(m, w) for m in args.modes for w in (args.weights if m == "hybrid" else [0.0])]:
            with mock.patch.object(hybrid, "BM25_WEIGHT", weight):
                texts = [[p.passage.text for p in corpus.search(e.question, max(KS), mode)] for corpus, e in questions]
            rows[f"{mode}{f' {weight:g}' if mode == 'hybrid' else ''}, {Path(encoder).name}"] = {
                f"{name}@{k}": [measure(t, e.gold, k) for t, (_, e) in zip(texts, questions)]
                for name, measure in (("R", recall_at_k), ("MRecall", mrecall_at_k))
                for k in KS
            }
    return f"{len(several)} questions, {sum(several)} with several answers\n\n{table(rows, several)}"


def rerankers(args: argparse.Namespace, settings: Settings) -> str:
    from core.models.ranking.passage_network import load_joint
    from core.models.ranking.passage_scorers import TrainedScorer
    from core.models.span.reader import load_reader
    from core.training.passages import mrecall, picks, read_pool

    reader, digest = load_reader(settings.reader, settings.device)
    cache = settings.home / "cache" / f"read-{digest}"
    dev_pools = [read_pool(e, corpus.search(e.question, args.pool), reader, cache) for corpus, e in asked(args, settings)]

    def best_first(scores: Sequence[float]) -> list[int]:
        return sorted(range(len(scores)), key=lambda j: -scores[j])

    rankings: dict[str, Any] = {
        "as retrieved": lambda p: list(range(len(p.holds))),
        "reader, whether a passage answers": lambda p: best_first(p.answering),
        "reader, each passage alone": lambda p: best_first(p.reader.log_worth(())),
        "reader, jointly": lambda p: picks(p.reader, args.k),
    }
    if args.joint:
        network, _ = load_joint(args.joint, digest)
        rankings["trained, jointly"] = lambda p: picks(TrainedScorer(network, p.tensor, p.reader), args.k)
    rows = {
        name: {f"MRecall@{args.k}": [mrecall(p, ranking(p), args.k) for p in dev_pools]} for name, ranking in rankings.items()
    }
    complete = mean_points([mrecall(p, range(len(p.holds)), args.pool) for p in dev_pools])
    heading = f"{len(dev_pools)} questions, pools of {args.pool}, of which {complete}% hold all answers"
    return f"{heading}\n\n{table(rows, [p.answers > 1 for p in dev_pools])}"


def main(argv: Sequence[str] | None = None) -> int:
    quiet_libraries()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--annotated", type=Path, nargs="*", default=list(PRACTICE_FOLDERS), metavar="FOLDER")
    parser.add_argument("--modes", nargs="+", choices=("dense", "hybrid"), default=["dense", "hybrid"])
    parser.add_argument("--weights", type=float, nargs="+", default=[hybrid.BM25_WEIGHT], metavar="W", help="of BM25")
    parser.add_argument("--retriever", default=str(ROOT / "checkpoints" / "retriever"))
    parser.add_argument("--rerank", action="store_true")
    parser.add_argument("--joint", default="", help="what `core train passages` made; with --rerank")
    parser.add_argument("--pool", type=int, default=20)
    parser.add_argument("--k", type=int, default=5, help="passages of a pool that are read")
    parser.add_argument("--limit", type=int, default=0, help="questions, of those held out and of all others (0: all)")
    parser.add_argument(
        "--whole", type=Path, nargs="+", default=[], metavar="FOLDER", help="folders of which all questions are asked"
    )
    parser.add_argument("--questions", type=Path, nargs="+", default=[], metavar="FILE", help="over the documents beside it")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    settings = Settings.from_env()
    print(rerankers(args, settings) if args.rerank else retrievers(args, settings))
    return 0


if __name__ == "__main__":
    sys.exit(main())
