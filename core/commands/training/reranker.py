"""`python -m core train reranker`: fits the rerankers of an answering model on questions that it was not trained on."""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core import disk, renamed
from core.commands.training import options
from core.commands.training.runs import say
from core.errors import InputError
from core.settings import OFF, Settings

if TYPE_CHECKING:
    from core.models.ranking.reranker import Kind

ABOUT = "the rerankers of an answering model"
TOP_K = 10


def add_options(parser: argparse.ArgumentParser) -> None:
    texts = {
        "annotated": "folders with questions.json and passages.tsv: their held-out questions fit the reranker for retrieved passages",
        "multi": "JSONL(.gz) files of question, passages, answers: they fit the reranker for questions that bring their passages",
    }
    options.data(parser, "annotated", "multi", limit="at most this many questions (default: %(default)s, all)", **texts)
    init = "the answering model (default: the bundled one)"
    options.start_from(parser, init, "reader that is asked beside it (default: AMBISCOPE_READER)")
    options.output(parser)


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Writes OUT: a copy of the checkpoint with a reranker for retrieved passages (--annotated), for questions' own ones (--multi), or both.

    Raises InputError, CheckpointError, StorageError.
    """
    from core.engine import Engine
    from core.models.finding import find_checkpoint
    from core.models.ranking.features import OF_VERIFIER, read_with
    from core.models.ranking.reranker import Weights, write_weights
    from core.models.ranking.verifier import load_verifier
    from core.models.span.answerer import load_answerer
    from core.models.span.reader import load_reader
    from core.training.data.held_out_passages import held_out_passages, own_passages
    from core.training.tasks.reranker import Runs, fit_reranker

    if not args.annotated and not args.multi:
        raise InputError("train reranker needs --annotated FOLDER (questions.json and passages.tsv) or --multi FILE")
    checkpoint = find_checkpoint(args.init or "default", "answerer")
    engine = Engine(settings)
    model, digest = load_answerer(str(checkpoint), settings.device)
    reader, reader_digest = load_reader(args.reader or settings.reader, settings.device)
    encode = engine.library.encoder().encode
    report: dict[str, Any] = {"weights": digest, "reader": reader_digest}
    judge = None
    if settings.verifier != OFF:
        verifier, report["verifier"] = load_verifier(settings.verifier, settings.device)
        judge = verifier.judge
    fitted: dict[Kind, Weights] = {}

    def fit(kind: Kind, verified: Kind, examples: list[Any], passages: list[Any], of: str) -> None:
        """One reranker that asks the verifier, and one for where there is none."""
        said = f"{len(examples)} questions of {of}"
        runs = Runs(model, examples, passages, lambda texts: encode(texts, "query"), read_with(reader), say, judge)
        for name, without in ((kind, OF_VERIFIER), (verified, ())):
            if without or judge is not None:
                fitted[name], figures = fit_reranker(runs, fitted_on=said, without=without)
                report[name] = {"fitted_on": said, **figures}

    if args.annotated:
        names = ", ".join(f.resolve().name for f in args.annotated)
        found = held_out_passages(engine, args.annotated, TOP_K, args.limit, args.seed)
        fit("retrieved", "retrieved_verified", *found, f"{names} held out from training")
    if args.multi:
        names = ", ".join(f.name for f in args.multi)
        fit("own", "own_verified", *own_passages(engine, args.multi, args.limit, args.seed), names)
    out: Path = args.out or settings.runs_dir / "reranker"
    with disk.claimed(out, "a training"):
        for file in checkpoint.iterdir():
            name = renamed.FILES.get(file.name, file.name)
            older = name != file.name and (checkpoint / name).exists()
            if file.is_file() and not older and file.resolve() != (out / name).resolve():
                with disk.replacing(out / name) as draft:
                    shutil.copyfile(file, draft)
        for kind, weights in fitted.items():
            write_weights(out, weights, kind)
    print(json.dumps({"out": str(out), **report}))
    return 0
