"""`python -m core train retriever`: the encoder of questions, and of passages.

It learns from in-batch negatives and hard negatives by BM25.
"""

from __future__ import annotations

import argparse
import random
from dataclasses import asdict
from pathlib import Path
from typing import Any

from core.commands.training import options
from core.commands.training.runs import Made, say, train_network
from core.errors import InputError
from core.models.encoders.packaged import MINILM
from core.models.encoders.retriever import KIND, POOLINGS, SIDES, RetrieverConfig, find_retriever
from core.settings import Settings

ABOUT = "the retriever: which passages answer a question (AMBISCOPE_ENCODER names it)"

HELD_OUT = 600  # questions, for the figures of a run
DEEP = 30  # passages by BM25 in which those that answer are looked for
SILENT = 16  # of them that hold no answer, as hard negatives
POSITIVES = 3  # of them that are taken as answering: the first that hold an answer (Karpukhin et al. 2020, section 4.1)


def add_options(parser: argparse.ArgumentParser) -> None:
    texts = {
        "annotated": "folders with questions.json and passages.tsv: supporting passages answer",
        "reading": "JSONL(.gz) files whose questions are asked of --passages: the best by BM25 that hold an answer are taken as answering",
        "ambignq": "AmbigNQ light JSON, asked of --passages likewise",
        "passages": "tsv(.gz) in the DPR layout",
    }
    options.data(
        parser, "annotated", "reading", "ambignq", "passages", limit="at most this many questions of --passages", **texts
    )
    options.start_from(parser, "trained retriever to start from: a folder or a bundled name (default: the untrained base)")
    group = parser.add_argument_group("retriever")
    group.add_argument("--base", default=MINILM, metavar="NAME", help="encoder to begin with (default: %(default)s)")
    group.add_argument(
        "--side",
        choices=SIDES,
        default="question",
        help="what is trained: the encoding of questions, or of passages too, which need a new index then (default: %(default)s)",
    )
    group.add_argument("--pooling", choices=POOLINGS, default="mean", help="of the base (default: %(default)s)")
    group.add_argument(
        "--rank", type=int, default=16, help="of the low-rank differences; 0: all weights (default: %(default)s)"
    )
    group.add_argument("--batch", type=int, default=64, help="questions of a step (default: %(default)s)")
    options.output(parser)
    options.length(parser)
    options.optimiser(parser)


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Raises InputError without questions, and for questions without passages that could hold their answers."""
    if args.batch < 2:
        raise InputError(f"--batch is {args.batch}; it must be at least 2: the other questions' passages are the negatives")
    asked = bool(args.reading or args.ambignq)
    if not args.annotated and not asked:
        raise InputError("train retriever needs --annotated FOLDER, or --passages FILE with --reading FILE or --ambignq FILE")
    if asked != bool(args.passages):
        raise InputError("--passages is where the questions of --reading and --ambignq are asked: give both")
    return train_network(args, settings, _make)


def _make(args: argparse.Namespace, settings: Settings) -> Made:
    from core.models.encoders.retriever_network import RetrieverNetwork, load_bare_encoder, load_retriever
    from core.models.loading.files import save_weights
    from core.training.retrieval.retriever import RetrieverTask

    try:
        config = RetrieverConfig(args.base, args.side, args.pooling, args.rank)
    except ValueError as error:
        raise InputError(str(error)) from None
    if args.init:
        if (folder := find_retriever(args.init)) is None:
            raise InputError(f"--init is '{args.init}', which is no trained retriever; name a folder of `train retriever`")
        tokenizer, network = load_retriever(folder)
    else:
        tokenizer, encoder = load_bare_encoder(config.base)
        network = RetrieverNetwork(encoder, config)
    examples, held, corpora = _questions(args, settings, network.config.untrained)
    say(f"{len(examples)} questions, {len(held)} held out, {len(corpora.texts)} passages")
    task = RetrieverTask(examples, held, corpora, tokenizer, network.config, args.batch)

    def save(network: Any, folder: Path, about: dict[str, Any]) -> None:
        save_weights(network.trained(), folder, {"kind": KIND, "config": asdict(network.config), "about": about})

    return network, task, save


def _questions(args: argparse.Namespace, settings: Settings, base: str) -> tuple[list[Any], list[Any], Any]:
    """(training questions, held-out ones, the corpora of both).  `base`: the encoder of the corpora's vectors.

    Indexes each folder's corpus if necessary.
    """
    from dataclasses import replace

    import numpy as np

    from core.disk import plain_or_gz
    from core.engine import Engine
    from core.models.encoders.sentence_encoder import passage_text
    from core.text import has_answer
    from core.training.data import mixtures
    from core.training.data.examples import read_passages_tsv
    from core.training.data.mining import Miner
    from core.training.retrieval.retriever import Corpora, HeldOut, RetrieverExample

    engine = Engine(replace(settings, encoder=base))
    rng = random.Random(args.seed)
    examples: list[Any] = []
    held: list[Any] = []
    texts: list[str] = []
    vectors: list[Any] = []
    starts = [0]

    def opened(path: Path, name: str) -> dict[str, int]:
        """Row of each passage by id."""
        engine.library.create(name, [path])
        corpus = engine.corpus(name)
        rows = {p.id: starts[-1] + i for i, p in enumerate(corpus.store)}
        texts.extend(passage_text(p) for p in corpus.store)
        vectors.append(np.asarray(corpus.vectors, np.float32))  # those of a large corpus are float16
        starts.append(len(texts))
        return rows

    for number, folder in enumerate(args.annotated):
        rows = opened(plain_or_gz(folder / "passages.tsv"), folder.resolve().name)
        train, dev = mixtures.annotated_examples(folder, held_out=0.2, context=16)
        for e in [*train, *mixtures.clarified_examples(train)]:
            right = tuple(rows[i] for i in e.extra["supporting"])
            looks = [i for i, p in zip(e.extra["context"], e.passages) if not has_answer(" ".join(p), _names(e.gold))]
            examples.append(RetrieverExample(e.question, right, tuple(rows[i] for i in looks if rows[i] not in right)))
        held += [HeldOut(e.question, e.gold, number) for e in dev]
    if args.passages:
        rows = opened(args.passages, args.passages.name.split(".")[0])
        ids = list(rows)
        asked = [(e.question, e.answers) for e in mixtures.load_reading(args.reading, seed=args.seed)]
        if args.ambignq:
            asked += [(q, tuple(a for _, names in pairs for a in names)) for q, pairs in mixtures.load_pairs(args.ambignq)]
        asked = rng.sample(asked, min(args.limit or len(asked), len(asked)))
        passages = read_passages_tsv(args.passages)
        miner = Miner([passages[i] for i in ids])
        for (question, answers), found in zip(asked, miner.neighbours([q for q, _ in asked], DEEP, settings.home / "cache")):
            holds = {rows[ids[int(i)]]: has_answer(" ".join(miner.passages[int(i)]), answers) for i in found}
            answering = [row for row, held_there in holds.items() if held_there]
            silent = [row for row, held_there in holds.items() if not held_there]
            examples.append(RetrieverExample(question, tuple(answering[:POSITIVES]), tuple(silent[:SILENT])))
    held = rng.sample(held, min(HELD_OUT, len(held)))
    return examples, held, Corpora(texts, np.concatenate(vectors), starts)


def _names(gold: Any) -> list[str]:
    return [name for names in gold for name in names]
