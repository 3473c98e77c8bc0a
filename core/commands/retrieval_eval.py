"""`python -m core retrieval-eval`: R@k and MRecall@k of every retriever on a question file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from core.commands.evaluate import add_question_options
from core.commands.score import percent
from core.errors import InputError
from core.settings import Settings
from core.text import storable


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("retrieval-eval", help="measure dense, BM25 and hybrid retrieval: R@k and MRecall@k")
    add_question_options(parser)
    parser.add_argument("--corpus", help="corpus to search (default: starter)")
    parser.add_argument(
        "--retrievers", default="dense,bm25,hybrid", help="comma-separated retrievers (default: dense,bm25,hybrid)"
    )
    parser.add_argument(
        "--k", default="1,5,10,20,50,100", help="comma-separated numbers of passages (default: 1,5,10,20,50,100)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help="save one run folder per retriever, for `compare` and the Evaluate page"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object with a report for each retriever")
    parser.set_defaults(run=run)


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--k is '{text}'; write whole numbers separated by commas") from None


def run(args: argparse.Namespace, settings: Settings) -> int:
    from core.datasets import load
    from core.disk import write_json
    from core.engine import Engine
    from core.evaluation.folder import ABOUT, REPORT, RUN
    from core.evaluation.retrieval import RETRIEVERS, evaluate_retrieval

    retrievers = [name.strip() for name in args.retrievers.split(",")]
    if unknown := [name for name in retrievers if name not in RETRIEVERS]:
        raise InputError(f"there is no retriever '{unknown[0]}'; use {', '.join(RETRIEVERS)}")
    ks, questions = _numbers(args.k), load(args.questions, args.layout)
    corpus = Engine(settings).corpus(args.corpus)
    reports = {
        name: evaluate_retrieval(
            corpus, questions, name, ks=ks, limit=args.limit, seed=args.seed, facts={"questions": storable(args.questions.name)}
        )
        for name in retrievers
    }
    if args.out:
        for name, report in reports.items():
            folder = args.out / f"retrieval-{name}"
            provenance = report.provenance
            write_json(folder / RUN, {"system": provenance["system"], "questions": provenance["questions_digest"]})
            write_json(folder / ABOUT, {"system": f"retrieval {name}", "total": report.n})
            write_json(folder / REPORT, report.to_json())
    if args.json:
        print(json.dumps({name: report.to_json() for name, report in reports.items()}, ensure_ascii=False))
        return 0
    for name, report in reports.items():
        print(f"{name}: {report.n} questions over {corpus.name}")
        for metric, values in report.scores.items():
            interval = report.intervals[metric]["all"]
            interval_text = f"  [{percent(interval[0])}, {percent(interval[1])}]" if interval else ""
            print(f"  {metric:12} {percent(values['all']):>8} {percent(values['multi']):>9}{interval_text}")
    return 0
