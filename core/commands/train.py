"""`python -m core train reader|answerer`: trains the bundled models, from files in the documented layouts."""

from __future__ import annotations

import argparse
import gzip
import hashlib
import itertools
import json
import random
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.disk import plain_or_gz
from core.errors import InputError
from core.settings import Settings

STARTER_FILES = ("questions.json", "passages.tsv")


# passages without an answer that the reader is shown of each annotated question: all of them would be nine tenths of its rows
EMPTY = 2
HELD_OUT_ROWS = 1_500  # of the annotated folders: reading them all would take minutes at each evaluation


def add_parser(commands: Any) -> None:
    train = commands.add_parser("train", help="train the per-passage reader or the answering model")
    train.add_argument(
        "what",
        choices=[
            "reader",
            "answerer",
            "verifier",
            "seq2seq",
            "disambiguation",
            "cotraining",
            "ambiguity",
            "rescorer",
            "calibration",
        ],
        help="verifier: judges single candidates, over MPNet; seq2seq: the answering model over an encoder-decoder; "
        "disambiguation: an encoder-decoder that rewrites questions; "
        "cotraining: several answering models complete the single-answer data (AmbigQA, section 5); "
        "ambiguity: disambig-first's classifier and lexicon, from --ambignq; "
        "rescorer: the candidates' scores of an answering model (--init), on the held-out questions of --annotated, and for questions that bring "
        "their own passages on those of --multi; "
        "calibration: how true the probabilities of --systems are, on the same kinds of questions",
    )
    train.add_argument("--models", type=int, default=3, help="cotraining: models that vote")
    train.add_argument("--rounds", type=int, default=1, help="cotraining: rounds of labelling after the first training")
    train.add_argument(
        "--repeat",
        type=int,
        default=0,
        help="small seq2seq with --freeze 6: train on the first so many chunks of 96 questions again and again; the encoder reads them once",
    )
    train.add_argument(
        "--freeze",
        type=int,
        default=0,
        help="reader, answerer, small seq2seq, disambiguation: lower encoder layers that stay as they are",
    )
    train.add_argument(
        "--target",
        choices=["step", "spliced"],
        default="step",
        help="seq2seq: one answer a step and [EOI] (ambigprompt-seq2seq), or the whole answer set in one pass (fid, spanseqgen)",
    )
    train.add_argument(
        "--joined", type=float, default=0.25, help="with --target spliced: share of batches that read all passages as one row"
    )
    train.add_argument(
        "--stage", choices=["pretrain", "tune"], default="tune", help="answerer: post-pretraining (Eq. 8-9) or tuning (Eq. 10)"
    )
    train.add_argument("--reading", type=Path, nargs="*", default=[], help="JSONL(.gz): question, title, passage, answers")
    train.add_argument("--reading-dev", type=Path, nargs="*", default=[], help="the same layout, held out")
    train.add_argument(
        "--multi", type=Path, nargs="*", default=[], help="JSONL(.gz): question, passages, answers (alias lists)"
    )
    train.add_argument("--multi-dev", type=Path, nargs="*", default=[], help="the same layout, held out")
    train.add_argument("--ambignq", type=Path, help="AmbigNQ light JSON; its pairs become statements in passages")
    train.add_argument("--ambignq-dev", type=Path, help="ambiguity: the same layout, held out")
    train.add_argument("--annotated", type=Path, nargs="*", default=[], help="folders with questions.json and passages.tsv")
    train.add_argument("--passages", type=Path, help="tsv(.gz) in the DPR layout: where context passages are looked for")
    train.add_argument(
        "--init",
        help="checkpoint to start from (folder or bundled name); seq2seq also takes a hub name, `small` and `small:CHECKPOINT`",
    )
    train.add_argument("--reader", help="reader that makes the pseudo answers (stage pretrain)")
    train.add_argument("--prompting", choices=["interleaved", "separate", "learned"], default="interleaved")
    train.add_argument("--out", type=Path, help="run folder (default: runs/ under AMBISCOPE_HOME)")
    train.add_argument("--steps", type=int, default=10_000)
    train.add_argument("--minutes", type=float, default=0.0, help="end by the clock instead (0: by steps)")
    train.add_argument(
        "--save-minutes",
        type=float,
        default=5.0,
        help="minutes between two saves of the state (default: 5); it is saved at SIGTERM and Ctrl-C too",
    )
    train.add_argument("--lr", type=float, default=5e-5, help="of the encoder; seq2seq trains all weights at --head-lr")
    train.add_argument("--head-lr", type=float, default=2e-4)
    train.add_argument("--context", type=int, default=6, help="passages a question in training, 2 at least")
    train.add_argument(
        "--eoi-share", type=float, default=0.35, help="lambda of section 3.3: share of steps whose target is [EOI]"
    )
    train.add_argument("--systems", nargs="+", metavar="NAME", help="calibration: these systems (all that can be calibrated)")
    train.add_argument(
        "--skip",
        type=int,
        default=0,
        help="calibration: not the questions of --annotated that --limit SKIP with the same seed draws",
    )
    train.add_argument("--batch-tokens", type=int, default=4096)
    train.add_argument("--seed", type=int, default=0)
    train.add_argument("--evaluate-every", type=int, default=500)
    train.add_argument("--precision", choices=["auto", "bf16", "fp32"], default="auto", help="auto: bf16 where it is native")
    train.add_argument(
        "--limit",
        type=int,
        default=0,
        help="at most this many rows of --reading (0: all; as questions for answerer and seq2seq: 4000, with --stage pretrain 6000)",
    )
    train.set_defaults(run=run)


def _check(paths: list[Path | None]) -> None:
    for path in paths:
        if path is not None and not path.exists():
            raise InputError(f"{path}: no such file")


def _check_numbers(args: argparse.Namespace) -> None:
    """What TrainConfig does not hold."""
    for name, least in (("context", 2), ("batch_tokens", 1), ("limit", 0), ("skip", 0), ("freeze", 0), ("repeat", 0)):
        if getattr(args, name) < least:
            raise InputError(f"--{name.replace('_', '-')} is {getattr(args, name)}; it must be at least {least}")
    if args.freeze and args.what in ("cotraining", "ambiguity", "rescorer", "calibration", "verifier"):
        raise InputError(f"train {args.what} freezes no layers: leave --freeze out")
    for name in ("eoi_share", "joined"):
        if not 0 <= getattr(args, name) <= 1:
            raise InputError(f"--{name.replace('_', '-')} is {getattr(args, name)}; it must be between 0 and 1")


def _digest(path: Path) -> dict[str, Any]:
    """Size in bytes and sha256 of a file's content."""
    with path.open("rb") as file:
        return {"size": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def _weights(name: str | None, kind: str) -> Any:
    """Digests of the files of a checkpoint, bundled or a folder; a hub name stands for itself."""
    from core.models.finding import named_folder

    if name is None:
        return None
    name = name.removeprefix("small:")  # a new decoder over this checkpoint's encoder
    if (folder := named_folder(name, kind)) is None:
        return name
    files = sorted(f for f in folder.iterdir() if f.suffix in (".json", ".safetensors", ".packed", ".bin", ".model"))
    return {f.name: _digest(f) for f in files}


def _identity(args: argparse.Namespace) -> dict[str, Any]:
    """What makes a run this run besides its TrainConfig: arguments, and digests of what is read (where it lies does not matter)."""
    plain = (
        "what",
        "stage",
        "prompting",
        "context",
        "eoi_share",
        "batch_tokens",
        "limit",
        "target",
        "joined",
        "freeze",
        "models",
        "rounds",
    )
    files = ("reading", "reading_dev", "multi", "multi_dev", "ambignq", "passages")
    out = {name: getattr(args, name) for name in plain}
    for name in files:
        given = getattr(args, name)
        out[name] = [_digest(p) for p in given] if isinstance(given, list) else given and _digest(given)
    out["annotated"] = [[_digest(f) for n in STARTER_FILES if (f := plain_or_gz(p / n)).exists()] for p in args.annotated]
    out["init"] = _weights(args.init, args.what)
    out["reader"] = _weights(args.reader, "reader")
    return out


def _unpacked_start(path: Path, size: int) -> bytes:
    """At most `size` first bytes of a plain or gzipped file; nothing of one that is damaged, which its reader names."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return file.read(size)
    except (OSError, EOFError, zlib.error):
        return b""


def _refuse_kept_out(paths: list[Path], settings: Settings) -> None:
    """The development set or the test set under its own name, through a link, or as a copy of its files."""
    for path, folder in itertools.product(paths, (settings.starter_dir, settings.starter_dir.with_name("starter_test"))):
        same = any(
            own.exists()
            and (f := plain_or_gz(path / own.name) if path.is_dir() else path).is_file()
            and _unpacked_start(f, own.stat().st_size + 1) == own.read_bytes()
            for own in (folder / name for name in STARTER_FILES)
        )
        if same or folder.resolve() in (path.resolve(), path.resolve().parent):
            raise InputError(f"{path} holds data/{folder.name}, which is never trained on")


def run(args: argparse.Namespace, settings: Settings) -> int:
    given = [
        *args.reading,
        *args.reading_dev,
        *args.multi,
        *args.multi_dev,
        *args.annotated,
        args.ambignq,
        args.passages,
        args.ambignq_dev,
    ]
    _check_numbers(args)
    _check(given)
    _refuse_kept_out([path for path in given if path is not None], settings)
    if args.what == "ambiguity":
        from core.commands.training import ambiguity

        return ambiguity.run(args, settings)
    if args.what == "rescorer":
        from core.commands.training import reranker

        return reranker.run(args, settings)
    if args.what == "calibration":
        from core.commands.training import calibration

        return calibration.run(args, settings)
    from core.training.trainer import TrainConfig, fit

    out: Path = args.out or settings.runs_dir / (
        f"{args.what}-{args.stage}" if args.what in ("answerer", "seq2seq") else args.what
    )
    config = TrainConfig(
        steps=args.steps,
        minutes=args.minutes,
        lr=args.lr,
        head_lr=args.head_lr,
        seed=args.seed,
        evaluate_every=args.evaluate_every,
        precision=args.precision,
        device=settings.device,
        save_minutes=args.save_minutes,
    )
    # names, not paths: where the files lay is nobody's business, and a checkpoint travels
    about = {k: _named(v) for k, v in vars(args).items() if k not in ("run", "command")}
    if args.what == "cotraining":
        from core.training.tasks.cotraining_run import run as cotrain

        found = cotrain(args, settings, config, out, _miner, _say, _identity(args), about)
        print(json.dumps({"out": str(out), **found}))
        return 0
    network, task, write = _make(args, settings)

    rescorer = _rescorer_of(args)

    def save(network: Any, folder: Path, row: dict[str, Any]) -> None:
        write(network, folder, {"arguments": about, "figures": row})
        if rescorer:
            rescorer(folder)

    row = fit(network, task, config, out, save, identity=_identity(args))
    print(json.dumps({"out": str(out), **row}))
    return 0


def _rescorer_of(args: argparse.Namespace) -> Callable[[Path], object] | None:
    """Weights that are trained further keep the rescorer of those they began from: without it they would do worse for that alone."""
    if args.what != "answerer" or args.stage != "tune" or not args.init:
        return None
    from core.models.finding import find_checkpoint
    from core.models.ranking.reranker import FILES, read_weights, write_weights

    folder = find_checkpoint(args.init, "answerer")
    found = {kind: weights for kind in FILES if (weights := read_weights(folder, kind))}

    def keep(out: Path) -> None:
        for kind, weights in found.items():
            write_weights(out, weights, kind)

    return keep if found else None


def _make(args: argparse.Namespace, settings: Settings) -> tuple[Any, Any, Any]:
    """(network, task, how to save)."""
    if args.what == "disambiguation":
        from core.training.tasks.disambiguation import build

        return build(args, _miner, settings, _say)
    if args.what == "verifier":
        from core.commands.training import verifier

        return verifier.build(args, settings, _miner, _say)
    if args.what == "seq2seq":
        from core.models.span.network import SpanConfig
        from core.training.tasks import seq2seq

        seq2seq.check(args)
        return seq2seq.build(args, answerer_task(args, settings, SpanConfig()))
    return make_span(args, settings)


def _named(value: Any) -> Any:
    if isinstance(value, list):
        return [_named(v) for v in value]
    looks_like_a_path = isinstance(value, Path) or (isinstance(value, str) and Path(value).is_absolute())
    return Path(value).name if looks_like_a_path else value


def make_span(args: argparse.Namespace, settings: Settings) -> tuple[Any, Any, Any]:
    """(network, task, how to save) of the reader or of the answering model with a span head."""
    if args.what == "reader" and not args.reading:  # before anything is loaded
        raise InputError("train reader needs --reading FILE")
    if args.what == "answerer" and args.stage == "pretrain" and not args.reader:
        raise InputError("--stage pretrain needs --reader CHECKPOINT: the reader that makes the pseudo answers (Eq. 8)")
    from core.models.finding import find_checkpoint
    from core.models.span.checkpoints import load_span_network, save_span_network
    from core.models.span.model import load_base
    from core.models.span.network import SpanConfig, SpanNetwork
    from core.training.freezing import freeze

    if args.init:
        network = load_span_network(find_checkpoint(args.init, args.what), args.prompting)
    else:
        span = SpanConfig(prompting=args.prompting)
        network = SpanNetwork(load_base(span.base), span)
    freeze(network, args.freeze)
    task = (reader_task if args.what == "reader" else answerer_task)(args, settings, network.config)
    return network, task, save_span_network


def _miner(args: argparse.Namespace, settings: Settings, reading: Any) -> tuple[Any, Path]:
    from core.training.data.mining import Miner
    from core.training.data.mixtures import context_passages

    return Miner(context_passages(args.passages, reading)), settings.home / "cache"


def _say(text: str) -> None:
    print(text, flush=True)


def reader_task(args: argparse.Namespace, settings: Settings, config: Any) -> Any:
    from core.training.data import mixtures
    from core.training.tasks.reader import ReaderTask, Reading

    reading = mixtures.load_reading(args.reading, seed=args.seed)
    if args.limit:
        reading = random.Random(args.seed).sample(reading, min(args.limit, len(reading)))
    miner, cache = _miner(args, settings, reading)
    rows = mixtures.reader_rows(reading, miner, cache, args.seed, _say)
    rows += mixtures.reader_rows_of_multi(mixtures.load_multi(args.multi), args.seed)
    if args.ambignq:
        rows += mixtures.reader_rows_of_multi(
            mixtures.statement_examples(args.ambignq, miner, cache, context=2, seed=args.seed)
        )
    held: list[Reading] = []
    for folder in args.annotated:
        train, dev = mixtures.annotated_examples(folder, held_out=0.2)
        rows += mixtures.reader_rows_of_multi(train, args.seed, EMPTY)
        rows += mixtures.reader_rows_of_multi(mixtures.clarified_examples(train), args.seed, EMPTY)
        held += mixtures.reader_rows_of_multi(dev)
    rng = random.Random(args.seed)
    dev_reading = mixtures.load_reading(args.reading_dev, keep={})
    dev_reading = rng.sample(dev_reading, min(400, len(dev_reading)))
    held = rng.sample(held, min(HELD_OUT_ROWS, len(held))) + mixtures.reader_rows(dev_reading, miner, cache, args.seed, _say)
    _say(f"{len(rows)} training rows ({sum(not r.answers for r in rows)} without an answer), {len(held)} held out")
    return ReaderTask(rows, held, config, args.batch_tokens)


def answerer_task(args: argparse.Namespace, settings: Settings, config: Any) -> Any:
    from core.training.tasks.answerer import build

    return build(args, settings, config, _miner, _say)
