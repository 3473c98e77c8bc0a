"""`python -m core train rescorer`: fits the rescorer of an answering model on annotated questions that it was not trained on."""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

from core.settings import Settings

TOP_K = 10


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Writes OUT: a copy of the checkpoint with its rescorer.json.  Raises InputError, CheckpointError."""
    from core.engine import Engine
    from core.models.finding import find_checkpoint
    from core.models.passage_reader import load_reader
    from core.models.rescoring import write_weights
    from core.models.span_answerer import load_answerer
    from core.models.step_features import read_with
    from core.training.held_out_passages import held_out_passages
    from core.training.rescorer_task import Runs, fit_rescorer

    checkpoint = find_checkpoint(args.init or "default", "answerer")
    engine = Engine(settings)
    examples, passages = held_out_passages(engine, args.annotated, TOP_K, args.limit, args.seed)
    model, digest = load_answerer(str(checkpoint), settings.device)
    said = f"{len(examples)} questions of {', '.join(f.resolve().name for f in args.annotated)} held out from training"
    reader, reader_digest = load_reader(args.reader or settings.reader, settings.device)
    encode = engine.library.encoder().encode
    runs = Runs(model, examples, passages, lambda texts: encode(texts, "query"), read_with(reader), _say)
    weights, figures = fit_rescorer(runs, fitted_on=said)
    out: Path = args.out or settings.runs_dir / "rescorer"
    out.mkdir(parents=True, exist_ok=True)
    for file in checkpoint.iterdir():
        if file.is_file() and file.resolve() != (out / file.name).resolve():
            shutil.copyfile(file, out / file.name)
    write_weights(out, weights)
    print(json.dumps({"out": str(out), "weights": digest, "reader": reader_digest, "fitted_on": said, **figures}))
    return 0


def _say(text: str) -> None:
    print(text, flush=True)
