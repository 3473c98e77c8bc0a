"""`python -m core train passages`: the reranker of the system jpr, which picks passages jointly."""

from __future__ import annotations

import argparse
import json
import random
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from core.commands.training import options
from core.commands.training.runs import Made, say, train_network
from core.errors import InputError
from core.settings import Settings

ABOUT = "the reranker that picks passages which complement one another (jpr)"

POOL = 20
HELD_OUT = 200  # questions, for the figures of a run


def add_options(parser: argparse.ArgumentParser) -> None:
    options.data(
        parser, "annotated", limit="at most this many questions, drawn evenly from the folders (default: %(default)s, all)"
    )
    parser.add_argument("--reader", metavar="CHECKPOINT", help="whose states the decoder reads (default: AMBISCOPE_READER)")
    parser.add_argument(
        "--pool", type=int, default=POOL, metavar="N", help="passages retrieved for a question (default: %(default)s)"
    )
    options.output(parser)
    options.length(parser)
    options.optimiser(parser)


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Raises InputError without --annotated."""
    if not args.annotated:
        raise InputError("train passages needs --annotated FOLDER")
    if args.pool < 2:
        raise InputError(f"--pool is {args.pool}; it must be at least 2: there is nothing to choose")
    return train_network(args, settings, _make)


def _make(args: argparse.Namespace, settings: Settings) -> Made:
    from core.models.loading.files import save_weights
    from core.models.ranking.passage_network import KIND, JointConfig, JointNetwork
    from core.models.span.reader import load_reader
    from core.training.retrieval.passages import JointTask

    reader, digest = load_reader(args.reader or settings.reader, settings.device)
    train, held = pools(settings, args.annotated, reader, digest, args.pool, args.limit, HELD_OUT, args.seed)
    say(f"{len(train)} questions, {len(held)} held out")
    network = JointNetwork(JointConfig(digest, states=3 * reader.network.head.edges.in_features))

    def save(network: Any, folder: Path, about: dict[str, Any]) -> None:
        save_weights(network.state_dict(), folder, {"kind": KIND, "config": asdict(network.config), "about": about})

    return network, JointTask(train, held), save


def pools(
    settings: Settings,
    folders: list[Path],
    reader: Any,
    digest: str,
    size: int,
    limit: int,
    held_out: int,
    seed: int,
    whole: bool = False,
) -> tuple[list[Any], list[Any]]:
    """(pools of training questions with several answers, pools of held-out questions), each question over its folder's
    corpus.

    `whole`: every question is held out; for folders that were not trained on.  The reader's output for a pool is kept
    in AMBISCOPE_HOME/cache, so that an interrupted run resumes.
    """
    from core.disk import plain_or_gz
    from core.engine import Engine
    from core.training.data.mixtures import annotated_examples

    engine = Engine(settings)
    out: tuple[list[Any], list[Any]] = ([], [])
    for folder in folders:
        name = folder.resolve().name
        engine.library.create(name, [plain_or_gz(folder / "passages.tsv")])
        train, held = annotated_examples(folder, held_out=0.2, context=2)
        if whole:
            train, held = [], train + held
        several = [e for e in train if len(e.gold) > 1]
        for wanted, most, into in ((several, limit, out[0]), (held, held_out, out[1])):
            size_of_part = min(-(-most // len(folders)) or len(wanted), len(wanted))
            part = random.Random(f"{seed}-{name}").sample(wanted, size_of_part)
            found = engine.corpus(name).search_many([e.question for e in part], size)
            for number, (e, passages) in enumerate(zip(part, found), 1):
                into.append(_pool(e, passages, reader, settings.home / "cache" / f"pools-{digest}"))
                if number % 50 == 0:
                    say(f"{name}: {number} of {len(part)} pools read")
    return out


def _pool(example: Any, passages: Any, reader: Any, cache: Path) -> Any:
    import numpy as np

    from core.disk import replacing
    from core.models.ranking.passage_scorers import CANDIDATES, ReaderScorer
    from core.models.span.reader import Readout
    from core.text import has_answer
    from core.training.retrieval.passages import Pool
    from core.types import Candidate

    key = json.dumps([example.question, [(p.passage.title, p.passage.text) for p in passages]])
    file = cache / f"{sha256(key.encode()).hexdigest()[:24]}.npz"
    if not file.exists():
        readouts, states = reader.read_states(example.question, [p.passage for p in passages], CANDIDATES)
        said = json.dumps([[(c.text, c.probability) for c in r.candidates] for r in readouts])
        with replacing(file) as draft, draft.open("wb") as out:
            np.savez(out, states=states.numpy().astype(np.float16), said=np.array(said))
    with np.load(file) as kept:
        states, said = kept["states"], json.loads(str(kept["said"]))
    readouts = [Readout(p.passage, tuple(Candidate(t, v) for t, v in own), 0.0) for p, own in zip(passages, said)]
    holds = tuple(frozenset(i for i, names in enumerate(example.gold) if has_answer(p.passage.text, names)) for p in passages)
    return Pool(states, ReaderScorer(readouts, [p.similarity for p in passages]), holds, len(example.gold))
