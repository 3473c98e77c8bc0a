"""The options of each target of `core train`, one frozen dataclass a target.

A field made by `option` is an option of the command line: its name, default, type, help text and bounds make the argument
(core.commands.train), the check and what identifies a run (core.training.runs).  Nothing here imports torch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args, get_origin, get_type_hints

from core.errors import InputError
from core.models.loading.packaged import MINILM, SMOLLM
from core.training.trackers import check_tracker

Bound = float | None
ANNOTATED = "folders with questions.json and passages.tsv"
AMBIGNQ = "AmbigNQ light JSON; its question-answer pairs become statements in passages"
PASSAGES = "TSV(.gz) in the DPR format, to search for context passages"
INIT = "checkpoint to start from: a folder or a bundled name (default: the untrained base)"
INIT_SEQ2SEQ = "a folder or hub name of encoder-decoder weights (t5-base), `small` for a new small one, or `small:CHECKPOINT` for one over its encoder"


def option(
    default: Any,
    text: str,
    *,
    low: Bound = None,
    above: Bound = None,
    high: Bound = None,
    default_text: str = "",
    metavar: str | None = None,
    reads: str = "",
) -> Any:
    """A field that is an option.  `default_text`: the default in words.  `low` and `high` are allowed values, `above` is not.
    `reads`: the kind of input, as "files", "folders" (of questions and passages), "excluded" (files that aren't trained on), or
    "checkpoint"."""
    bounds = {"low": low, "above": above, "high": high}
    return field(
        default=default, metadata={"text": text, **bounds, "default_text": default_text, "metavar": metavar, "reads": reads}
    )


def files(text: str) -> Any:
    return option((), text, metavar="FILE", reads="files")


def file(text: str) -> Any:
    return option(None, text, metavar="FILE", reads="files")


def folders(text: str) -> Any:
    return option((), text, metavar="FOLDER", reads="folders")


def checkpoint(text: str) -> Any:
    return option(None, text, metavar="CHECKPOINT", reads="checkpoint")


def excluded_files() -> Any:
    return option(
        (),
        "question files to be evaluated on: a training row that asks one of their questions is left out",
        metavar="FILE",
        reads="excluded",
    )


def limit(text: str, default_text: str = "0, all") -> Any:
    return option(0, text, low=0, default_text=default_text, metavar="N")


def bounds_of(metadata: Mapping[str, Any]) -> str:
    """The bounds of an option in words."""
    low, above, high = metadata["low"], metadata["above"], metadata["high"]
    if high is not None:
        return f"between {low:g} and {high:g}"
    return f"above {above:g}" if low is None else f"at least {low:g}"


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """Checks the values of every option.  Raises InputError."""

    NEEDS: ClassVar[Mapping[str, str]] = {}  # inputs of which one has to be given, and what their values are

    def __post_init__(self) -> None:
        for name, hint in get_type_hints(type(self)).items():
            if get_origin(hint) is Literal and getattr(self, name) not in get_args(hint):
                raise InputError(f"--{name} is '{getattr(self, name)}'; use {', '.join(get_args(hint))}")
        for f in fields(self):
            value, low, above, high = getattr(self, f.name), *(f.metadata.get(n) for n in ("low", "above", "high"))
            if low is None and above is None:
                continue
            small = value < low if low is not None else value <= above
            if not math.isfinite(value) or small or (high is not None and value > high):
                raise InputError(f"--{f.name.replace('_', '-')} is {value}; it must be {bounds_of(f.metadata)}")

        if self.NEEDS and not any(getattr(self, name) for name in self.NEEDS):
            command = type(self).__name__.removesuffix("Options").lower()
            inputs = " or ".join(f"--{name} {value}" for name, value in self.NEEDS.items())
            raise InputError(f"train {command} needs {inputs}")


@dataclass(frozen=True, kw_only=True)
class OutputOptions(TrainingOptions):
    out: Path | None = option(None, "output folder", default_text="a folder in runs/ under AMBISCOPE_HOME", metavar="FOLDER")
    seed: int = option(0, "random seed")


@dataclass(frozen=True, kw_only=True)
class TrainConfig(TrainingOptions):
    """The training of a network.  The learning rate decays linearly towards whichever of `steps` and `minutes` (0: no limit)
    comes first.

    Raises InputError for a number that is out of bounds, and for a tracker that cannot be used.
    """

    steps: int = option(10_000, "training steps", low=1)
    minutes: float = option(0.0, "maximum training time in minutes", low=0, default_text="0.0, no limit")
    evaluate_every: int = option(500, "evaluate every STEPS steps", low=1, metavar="STEPS")
    save_minutes: float = option(
        5.0, "save the state every MINUTES minutes (0: after each step), and at SIGTERM and Ctrl-C", low=0, metavar="MINUTES"
    )
    lr: float = option(5e-5, "learning rate of the encoder", above=0)
    head_lr: float = option(2e-4, "learning rate of all other weights", above=0)
    workers: int = option(
        0,
        "processes that tokenise ahead of the training, for a GPU that would wait for one",
        low=0,
        default_text="0, none",
        metavar="N",
    )
    precision: Literal["auto", "bf16", "fp32"] = option("auto", "auto uses bf16 if the device supports it natively")
    log_with: str = option(
        "",
        "also send losses and held-out figures to tensorboard (files in OUT/logs), trackio or wandb (default: to none)",
        metavar="NAME",
    )
    seed: int = option(0, "random seed")
    warmup: int = 100
    weight_decay: float = 0.01
    clip: float = 1.0
    device: str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_tracker(self.log_with)


@dataclass(frozen=True, kw_only=True)
class NetworkOptions(TrainConfig, OutputOptions):
    """The options of every target that trains a network in steps."""


@dataclass(frozen=True, kw_only=True)
class TokenBatches(NetworkOptions):
    batch_tokens: int = option(4096, "tokens per training step", low=1, metavar="N")


@dataclass(frozen=True, kw_only=True)
class Mixture(TokenBatches):
    reading: tuple[Path, ...] = files("JSONL(.gz) files with question, title, passage and answers")
    multi: tuple[Path, ...] = files("JSONL(.gz) files with question, passages and answers (lists of aliases)")
    annotated: tuple[Path, ...] = folders(ANNOTATED)
    passages: Path | None = file(PASSAGES)
    limit: int = limit("at most this many rows of --reading, drawn at random")


@dataclass(frozen=True, kw_only=True)
class Prompted(TokenBatches):
    prompting: Literal["interleaved", "separate", "learned"] = option(
        "interleaved", "how the previous answers reach the passages"
    )
    freeze: int = option(0, "number of lower encoder layers to freeze", low=0, metavar="LAYERS")


@dataclass(frozen=True, kw_only=True)
class ReadingSources(Prompted, Mixture):
    """The sources that the reader and the answering models share."""

    reading_dev: tuple[Path, ...] = files("held-out files in the format of --reading")
    ambignq: Path | None = file(AMBIGNQ)
    exclude: tuple[Path, ...] = excluded_files()


@dataclass(frozen=True, kw_only=True)
class SpanTraining(ReadingSources):
    base: Literal["minilm", "mpnet"] = option("minilm", "the encoder of a new network")
    rank: int = option(
        0,
        "train low-rank updates of all layers, of this rank, instead of all weights: few questions change little of what the encoder knows",
        low=0,
        high=256,
        default_text="0, train all weights",
    )


@dataclass(frozen=True, kw_only=True)
class ReaderOptions(SpanTraining):
    """The per-passage reader."""

    NEEDS: ClassVar[Mapping[str, str]] = {"reading": "FILE"}
    init: str | None = checkpoint(INIT)


@dataclass(frozen=True, kw_only=True)
class Stepwise(ReadingSources):
    """The options that the two answering models share: AmbigPrompt's two stages."""

    multi_dev: tuple[Path, ...] = files("held-out files in the format of --multi")
    limit: int = limit("maximum number of questions from --reading", "4000; 6000 in post-pretraining")
    stage: Literal["pretrain", "tune", "joint-pretrain", "joint"] = option(
        "tune",
        "post-pretraining (Sun et al. 2023, Eq. 8-9) or tuning (Eq. 10); joint-pretrain and joint: the same, of a span model that also stays a "
        "per-passage reader",
    )
    reader: str | None = checkpoint("for post-pretraining, the reader that makes the pseudo answers")
    context: int = option(6, "passages per question in training", low=2, metavar="PASSAGES")
    eoi_share: float = option(
        0.35, "share of steps whose target is [EOI], lambda of section 3.3", low=0, high=1, metavar="SHARE"
    )
    targets: Literal["remaining", "one"] = option(
        "remaining",
        "what a step of tuning is trained towards: every answer that is not given yet, or one of them at random, as in the paper",
    )
    ray: str | None = option(
        None,
        "use the workers of a Ray cluster: HOST:PORT, auto for the cluster of this machine, local for this machine alone",
        metavar="ADDRESS",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ray and not self.pretrains:
            raise InputError("--ray spreads the pseudo answers of post-pretraining; leave it out here")
        if self.pretrains and not self.reader:
            raise InputError(
                f"--stage {self.stage} needs --reader CHECKPOINT: the reader that makes the pseudo answers (Eq. 8)"
            )

    @property
    def pretrains(self) -> bool:
        """Whether this is post-pretraining (Eq. 8-9)."""
        return self.stage.endswith("pretrain")

    @property
    def is_joint(self) -> bool:
        """Whether the network is trained as a per-passage reader too."""
        return self.stage.startswith("joint")


@dataclass(frozen=True, kw_only=True)
class AnswererOptions(Stepwise, SpanTraining):
    """The answering model of ambiscope and ambigprompt."""

    init: str | None = checkpoint(INIT)


@dataclass(frozen=True, kw_only=True)
class CoTrainingOptions(ReadingSources):
    """Several answering models that complete the single-answer data (AmbigQA, section 5)."""

    NEEDS: ClassVar[Mapping[str, str]] = {"reading": "FILE"}
    models: int = option(3, "models that vote", low=2)
    rounds: int = option(1, "rounds of labelling after the first training", low=1)
    limit: int = limit("at most this many questions of --reading", "2000")
    init: str | None = checkpoint("checkpoint that every model starts from (default: the bundled answering model)")
    context: int = option(6, "passages per question in training", low=2, metavar="PASSAGES")
    eoi_share: float = option(0.35, "share of steps whose target is [EOI]", low=0, high=1, metavar="SHARE")


@dataclass(frozen=True, kw_only=True)
class EncoderDecoder(Prompted):
    init: str | None = checkpoint(INIT_SEQ2SEQ)
    lr: float = option(
        5e-5, "learning rate of the encoder of a small network; other encoder-decoders learn at --head-lr", above=0
    )
    repeat: int = option(
        0,
        "with a small network and --freeze 6: train repeatedly on the first CHUNKS chunks of 96 questions; the encoder reads them once",
        low=0,
        default_text="0, off",
        metavar="CHUNKS",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.init:
            raise InputError(f"an encoder-decoder needs --init: {INIT_SEQ2SEQ}")


@dataclass(frozen=True, kw_only=True)
class Seq2SeqOptions(EncoderDecoder, Stepwise):
    """The answering model over an encoder-decoder (ambigprompt-seq2seq, fid, spanseqgen)."""

    target: Literal["step", "spliced"] = option(
        "step", "one answer per step and [EOI] (ambigprompt-seq2seq), or the whole answer set at once (fid, spanseqgen)"
    )
    joined: float = option(
        0.25, "with --target spliced, share of batches that read all passages as one row", low=0, high=1, metavar="SHARE"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.is_joint:
            raise InputError(f"--stage {self.stage} trains a span model: an encoder-decoder is no per-passage reader")


@dataclass(frozen=True, kw_only=True)
class DisambiguationOptions(EncoderDecoder):
    """An encoder-decoder that writes disambiguated questions (disambig-first; AMBISCOPE_REWRITER names it)."""

    NEEDS: ClassVar[Mapping[str, str]] = {"ambignq": "FILE", "annotated": "FOLDER"}
    ambignq: Path | None = file(AMBIGNQ)
    annotated: tuple[Path, ...] = folders(ANNOTATED)
    passages: Path | None = file(PASSAGES)
    reading: tuple[Path, ...] = files("JSONL(.gz) files whose passages are searched for context beside --passages")
    context: int = option(6, "passages per question in training", low=2, metavar="PASSAGES")


@dataclass(frozen=True, kw_only=True)
class DecoderOptions(TokenBatches):
    """Options of both decoders: low-rank updates of a base."""

    init: str | None = checkpoint("weights to start from: a folder or a bundled name (default: the untrained base)")
    base: str = option(SMOLLM, "decoder of new weights: the packaged one, or a folder", metavar="NAME")
    rank: int = option(32, "of the low-rank updates", low=1, high=256)
    layers: int = option(30, "upper layers that get updates, of 30", low=1, high=30)
    exclude: tuple[Path, ...] = excluded_files()


@dataclass(frozen=True, kw_only=True)
class WriterOptions(DecoderOptions):
    """The decoder that writes disambiguated questions (AMBISCOPE_WRITER names it)."""

    NEEDS: ClassVar[Mapping[str, str]] = {"ambignq": "FILE (with --passages)", "annotated": "FOLDER"}
    ambignq: Path | None = file(
        "AmbigNQ light JSON; a passage with its answer is searched for each of its question-answer pairs"
    )
    annotated: tuple[Path, ...] = folders(ANNOTATED)
    passages: Path | None = file(PASSAGES)
    manuals: tuple[Path, ...] = files("JSONL(.gz) files in the format of --multi whose `conditions` say when each answer holds")
    lists: tuple[Path, ...] = files("JSONL(.gz) files in the format of --multi whose answers are parts of one list")
    layers: int = option(22, "upper layers that get updates, of 30", low=1, high=30)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ambignq and not self.passages:
            raise InputError("--passages is where passages for the pairs of --ambignq are searched: give both")


@dataclass(frozen=True, kw_only=True)
class LanguageOptions(DecoderOptions):
    """The bundled language model: the prompts of dtv, rac, ambigprompt-lm and verdict (AMBISCOPE_LM_LOCAL names it)."""

    NEEDS: ClassVar[Mapping[str, str]] = {"annotated": "FOLDER"}
    annotated: tuple[Path, ...] = folders(ANNOTATED)
    ambignq: Path | None = file("AmbigNQ light JSON; its disambiguated questions are what prompt questions may mean")


@dataclass(frozen=True, kw_only=True)
class PassagesOptions(NetworkOptions):
    """The reranker that picks complementary passages (jpr)."""

    NEEDS: ClassVar[Mapping[str, str]] = {"annotated": "FOLDER"}
    annotated: tuple[Path, ...] = folders(ANNOTATED)
    limit: int = limit("at most this many questions, drawn evenly from the folders")
    reader: str | None = checkpoint("whose states the decoder reads (default: AMBISCOPE_READER)")
    pool: int = option(20, "passages retrieved for a question", low=2, metavar="N")


@dataclass(frozen=True, kw_only=True)
class RetrieverOptions(NetworkOptions):
    """The retriever, which finds the passages that answer a question (AMBISCOPE_ENCODER names it)."""

    NEEDS: ClassVar[Mapping[str, str]] = {
        "annotated": "FOLDER",
        "reading": "FILE (with --passages)",
        "ambignq": "FILE (with --passages)",
    }
    annotated: tuple[Path, ...] = folders(f"{ANNOTATED}: supporting passages answer")
    reading: tuple[Path, ...] = files(
        "JSONL(.gz) files whose questions are asked of --passages: the best by BM25 that contain an answer count as answering"
    )
    ambignq: Path | None = file("AmbigNQ light JSON, asked of --passages likewise")
    passages: Path | None = file("TSV(.gz) in the DPR format, which the questions of --reading and --ambignq are asked of")
    limit: int = limit("at most this many questions of --passages")
    init: str | None = checkpoint("trained retriever to start from: a folder or a bundled name (default: the untrained base)")
    base: str = option(MINILM, "encoder to start from", metavar="NAME")
    side: Literal["question", "both"] = option(
        "question", "what is trained: the encoding of questions, or of passages too, which need a new index then"
    )
    pooling: Literal["mean", "cls"] = option("mean", "of the base")
    rank: int = option(16, "of the low-rank differences; 0: all weights", low=0)
    batch: int = option(64, "questions of a step: the other questions' passages are the negatives", low=2)

    def __post_init__(self) -> None:
        super().__post_init__()
        if bool(self.reading or self.ambignq) != bool(self.passages):
            raise InputError("--passages is where the questions of --reading and --ambignq are asked: give both")


CALIBRATED = ("ambiscope",)


@dataclass(frozen=True, kw_only=True)
class CalibrationOptions(OutputOptions):
    """The calibration of the systems' probabilities."""

    annotated: tuple[Path, ...] = folders(f"{ANNOTATED}, whose held-out questions are asked over their passages")
    multi: tuple[Path, ...] = files("JSONL(.gz) files of question, passages, answers, for questions that bring their passages")
    limit: int = limit("maximum number of questions of --annotated, and of --multi, drawn at random")
    systems: tuple[str, ...] = option(CALIBRATED, "systems to calibrate", default_text=" ".join(CALIBRATED), metavar="NAME")
    skip: int = option(0, "skip the questions of --annotated that --limit N draws with the same seed", low=0, metavar="N")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.annotated or self.multi):
            raise InputError(
                "train calibration needs --annotated FOLDER (questions over a corpus), --multi FILE (questions with their own passages), or both"
            )


@dataclass(frozen=True, kw_only=True)
class AmbiguityOptions(OutputOptions):
    """The classifier of disambig-first."""

    NEEDS: ClassVar[Mapping[str, str]] = {"ambignq": "FILE"}
    ambignq: Path | None = file("AmbigNQ light JSON with ambiguous and unambiguous questions")
    ambignq_dev: Path | None = file("a held-out file in the format of --ambignq")
