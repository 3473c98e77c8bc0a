"""Answering systems: ours by name, and those of plugins (core.plugins).  To add one of ours, write one file here and one entry
in SYSTEMS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from core.json_io import read as read_json
from core.models.loading.finding import BUNDLED
from core.registry import Entry, Registry, load
from core.settings import ROOT
from core.systems.base.options import TOP_K, Options, SystemOptions

if TYPE_CHECKING:
    from core.systems.base.system import SystemParts
    from core.types import AnsweringSystem, Event, Question

Speed = Literal["Fast", "Medium", "Slow"]  # seconds a question: below 1, 1 to 3, more
MEASURED = ROOT / "data" / "shipped" / "systems.json"  # what the shipped runs say of each system (benchmarks.shipped_runs)
SEQ2SEQ = "encoder-decoder fid"  # bundled; AMBISCOPE_SEQ2SEQ names another
LANGUAGE_MODEL = ("a language model: AMBISCOPE_LM_URL, AMBISCOPE_LM_LOCAL, or an adapter named language among the checkpoints",)
SMALL_MODEL_NOTE = "Its bundled decoder has two layers and was trained for minutes."
SMALL_DECODER = (
    "Unless a language model is configured, it takes a decoder of 135 M parameters, whose adapter `core train language` makes."
)
LONG_LIST_PASSAGES = 20  # passages, if AMBISCOPE_TOP_K is lower: Lee et al. 2025, appendix D
BUNDLED_READER = "bundled reader"  # in place of a language model
PRUNED_PASSAGES = 5  # passages that diversify-then-verify keeps (the same appendix)


@dataclass(frozen=True, slots=True)
class SystemEntry(Entry):
    """`target`: a factory `build(name, parts, options, config) -> AnsweringSystem`, in which `config` is an instance of
    `options`."""

    needs: tuple[str, ...] = ()  # checkpoints or packages, readable
    options: str | type[SystemOptions] = ""  # "module:attribute" of the dataclass of a system's own options, or the dataclass
    # how pages show the trace of a run: a line for each step, or what each passage gave and a map of the interpretations
    view: Literal["answers", "interpretations"] = "answers"
    passages: int = 0  # that a system reads by default, as in its paper; 0: the setting says it
    base: str = ""  # the system whose answers this one's method adds to or selects from
    missing: str = ""  # which parts of its paper a system lacks where no language model is configured
    expect: str = ""  # what people should know of the bundled weights, in plain words; how good they are is measured
    decoding: str = ""  # how a system writes all answers in one pass; charts compare systems that set this
    title: str = ""  # a system's name in a few plain words, for lists that people read
    speed: Speed = "Medium"  # where no shipped run was measured

    def problem(self, name: str) -> str:
        if problem := Entry.problem(self, name):
            return problem
        if self.speed not in get_args(Speed):
            return f"the speed is '{self.speed}'; use one of {', '.join(get_args(Speed))}"
        return ""

    def import_targets(self) -> None:
        Entry.import_targets(self)
        if not issubclass(load(self.options or SystemOptions), SystemOptions):
            raise TypeError(f"{self.options} is no subclass of SystemOptions")


SYSTEMS = Registry(
    "system",
    {
        "ambiscope": SystemEntry(
            "core.systems.ambigprompt:build",
            "finds answers one at a time, each prompted with the earlier ones, and goes on until it has those that a reader of single passages is sure of",
            "Sun et al. 2023, section 3, with the answers of a reader of single passages",
            ("checkpoint answerer", "checkpoint reader"),
            options="core.systems.options:AmbiscopeOptions",
            title="step by step, with what one pass is sure of",
        ),
        "ambigprompt": SystemEntry(
            "core.systems.ambigprompt:build",
            "the paper's loop: finds answers one at a time, each prompted with the earlier ones",
            "Sun et al. 2023, section 3",
            ("checkpoint answerer",),
            options="core.systems.options:AmbigPromptOptions",
            title="step by step",
        ),
        "ambigprompt-seq2seq": SystemEntry(
            "core.systems.ambigprompt:build_seq2seq",
            "the paper's loop over an encoder-decoder (a small one is bundled; t5-base, a folder): Fusion-in-Decoder with interleaved prompting",
            "Sun et al. 2023, sections 2.2 and 3",
            ("encoder-decoder answerer-seq2seq",),
            expect=SMALL_MODEL_NOTE,
            options="core.systems.options:LoopOptions",
            title="step by step, answers written",
        ),
        "ambigprompt-lm": SystemEntry(
            "core.systems.ambigprompt_lm:build",
            "the paper's loop with a language model that answers: one further answer a step, with a quotation that must be in its passage",
            "after Sun et al. 2023, section 3",
            LANGUAGE_MODEL,
            expect=SMALL_DECODER,
            options="core.systems.base.options:ClarifierOptions",
            title="step by step, language model",
            speed="Slow",
        ),
        "one-pass": SystemEntry(
            "core.systems.one_pass:build",
            "reads each passage once, separately, and keeps every answer above a threshold",
            "Min et al. 2020 (thresholded reader); Karpukhin et al. 2020",
            ("checkpoint reader",),
            options="core.systems.options:OnePassOptions",
            title="one pass with a threshold",
        ),
        "verdict": SystemEntry(
            "core.systems.verdict:build",
            "one retrieval, at most one interpretation per passage, then one per answer (with a language model: per cluster)",
            "Lee et al. 2025, section 4",
            ("checkpoint reader", "checkpoint answerer"),
            view="interpretations",
            passages=LONG_LIST_PASSAGES,
            missing="without a language model, no relaxing of the question and no clustering",
            base="one-pass",
            options="core.systems.options:VerdictOptions",
            title="passage by passage, merged",
        ),
        "dtv": SystemEntry(
            "core.systems.dtv:build",
            "diversify, then verify: questions imagined without the corpus, a search for each, passages verified, then answers",
            "Lee et al. 2025, section 3.2 (after In et al. 2024)",
            LANGUAGE_MODEL,
            expect=SMALL_DECODER,
            passages=PRUNED_PASSAGES,
            options="core.systems.options:DtvOptions",
            title="imagined meanings, verified",
            speed="Slow",
        ),
        "dtv-unverified": SystemEntry(
            "core.systems.dtv:build",
            "the same without verifying the passages",
            "Lee et al. 2025, Table 2",
            LANGUAGE_MODEL,
            expect=SMALL_DECODER,
            passages=PRUNED_PASSAGES,
            options="core.systems.options:DtvOptions",
            title="imagined meanings, unverified",
            speed="Slow",
        ),
        "rac": SystemEntry(
            "core.systems.rac:build",
            "retrieval-augmented clarification: one long-context call over all passages",
            "Lee et al. 2025, Eq. 13 (after Kim et al. 2023)",
            LANGUAGE_MODEL,
            expect=SMALL_DECODER,
            passages=LONG_LIST_PASSAGES,
            options="core.systems.options:RacOptions",
            title="all passages in one prompt",
            speed="Slow",
        ),
        "rac-tree": SystemEntry(
            "core.systems.rac:build",
            "Tree of Clarifications: each interpretation is clarified further, unsupported ones are pruned",
            "Kim et al. 2023",
            LANGUAGE_MODEL,
            expect=SMALL_DECODER,
            passages=LONG_LIST_PASSAGES,
            options="core.systems.options:RacTreeOptions",
            title="tree of narrower questions",
            speed="Slow",
        ),
        "fid": SystemEntry(
            "core.systems.fid:build",
            "Fusion-in-Decoder: reads every passage, writes all answers in one pass",
            "Izacard and Grave 2021; Sun et al. 2023, section 4.3",
            (SEQ2SEQ,),
            decoding="greedy",
            expect=SMALL_MODEL_NOTE,
            options="core.systems.base.options:ClarifierOptions",
            title="one pass, answers written",
        ),
        "fid-nucleus": SystemEntry(
            "core.systems.fid:build",
            "Fusion-in-Decoder, several samples (nucleus, p 0.8, t 0.8) merged into one answer set",
            "Sun et al. 2023, Table 5",
            (SEQ2SEQ,),
            decoding="nucleus",
            expect=SMALL_MODEL_NOTE,
            base="fid",
            options="core.systems.options:FidNucleusOptions",
            title="merged samples (nucleus)",
        ),
        "fid-top-k": SystemEntry(
            "core.systems.fid:build",
            "Fusion-in-Decoder, several samples (top-k, k 40, t 0.8) merged into one answer set",
            "Sun et al. 2023, Table 5",
            (SEQ2SEQ,),
            decoding="top-k",
            expect=SMALL_MODEL_NOTE,
            base="fid",
            options="core.systems.options:FidTopKOptions",
            title="merged samples (top-k)",
        ),
        "fid-diverse-beam": SystemEntry(
            "core.systems.fid:build",
            "Fusion-in-Decoder, three diverse beams (t 0.8, penalty 0.5) merged into one answer set",
            "Sun et al. 2023, Table 5",
            (SEQ2SEQ,),
            decoding="diverse beam",
            expect=SMALL_MODEL_NOTE,
            base="fid",
            options="core.systems.options:FidDiverseBeamOptions",
            title="merged diverse beams",
        ),
        "fid-multi": SystemEntry(
            "core.systems.fid:build",
            "Fusion-in-Decoder with a less likely end of sequence, so that it writes more answers",
            "Sun et al. 2023, Figure 5",
            (SEQ2SEQ,),
            decoding="longer",
            expect=SMALL_MODEL_NOTE,
            base="fid",
            options="core.systems.options:FidMultiOptions",
            title="one pass, longer lists",
        ),
        "spanseqgen": SystemEntry(
            "core.systems.spanseqgen:build",
            "reranked passages joined up to 1,024 tokens; a sequence-to-sequence model writes the distinct answers",
            "Min et al. 2020, section 5",
            (SEQ2SEQ, "checkpoint reader"),
            expect=SMALL_MODEL_NOTE,
            options="core.systems.options:SpanSeqGenOptions",
            title="joined passages, answers written",
        ),
        "dpr-threshold": SystemEntry(
            "core.systems.one_pass:build",
            "reads each passage once, scores each span as DPR does, and keeps those above a threshold tuned on held-out questions",
            "Min et al. 2020, section 5; Karpukhin et al. 2020, section 6.1",
            ("checkpoint reader",),
            options="core.systems.options:DprThresholdOptions",
            title="one pass, tuned threshold",
        ),
        "rectify": SystemEntry(
            "core.systems.rectify:build",
            "recalls many answers passage by passage, keeps each by the combined probability of the recaller and of a verifier of its evidence",
            "Shao and Huang 2022, section 3",
            ("checkpoint reader", "answering model"),
            base="dpr-threshold",
            options="core.systems.options:RectifyOptions",
            title="many answers, each verified",
        ),
        "refuel": SystemEntry(
            "core.systems.refuel:build",
            "asks each answer's disambiguated question to find further passages and answers, then verifies",
            "Gao et al. 2021, section 3.3",
            ("checkpoint reader", "checkpoint writer"),
            base="one-pass",
            options="core.systems.options:RefuelOptions",
            title="answers that lead to more",
            speed="Slow",
        ),
        "jpr": SystemEntry(
            "core.systems.jpr:build",
            "picks passages of a pool that complement one another by tree decoding, answers from them in one pass",
            "Min et al. 2021, section 3",
            ("checkpoint reader",),
            base="dpr-threshold",
            options="core.systems.options:JprOptions",
            title="complementary passages",
        ),
        "disambig-first": SystemEntry(
            "core.systems.disambig_first:build",
            "decides whether the question is ambiguous, writes its meanings without evidence, then answers each",
            "Min et al. 2020, section 5",
            ("checkpoint ambiguity", "checkpoint reader"),
            options="core.systems.options:DisambigFirstOptions",
            title="meanings first, then answers",
        ),
        "scripted": SystemEntry(
            "core.systems.scripted:build",
            "answers from a small table; for tests of everything around a model",
            hidden=True,
            options="core.systems.options:ScriptedOptions",
            title="answers from a small table",
            speed="Fast",
        ),
    },
    "ambiscope.systems",
    SystemEntry,
)


def entry_of(system: str) -> SystemEntry:
    """A system's entry, or an empty one for a system that isn't installed here, so that its stored runs still open."""
    entry: SystemEntry = SYSTEMS.get(system, SystemEntry("", "a system that is not installed"))
    return entry


@lru_cache
def _measured() -> dict[str, dict[str, Any]]:
    measured: dict[str, dict[str, Any]] = read_json(MEASURED)
    return measured


def mechanism_only(system: str) -> str:
    """Why a system is not ranked with the bundled weights, by its shipped run; empty for one that is."""
    return str(_measured().get(system, {}).get("mechanism_only", ""))


def speed_of(system: str) -> Speed:
    """By the median seconds a question of its shipped run, where there is one."""
    if "seconds" not in (measured := _measured().get(system, {})):
        return entry_of(system).speed
    seconds = float(measured["seconds"])
    return "Fast" if seconds < 1 else "Medium" if seconds <= 3 else "Slow"


def is_bundled(checkpoint: str) -> bool:
    """Whether weights, named as in settings and runs, come with Ambiscope.

    >>> is_bundled("default"), is_bundled("mpnet"), is_bundled("t5-base")
    (True, True, False)
    """
    return checkpoint in ("default", BUNDLED_READER) or (
        Path(checkpoint).name == checkpoint and (BUNDLED / checkpoint / "config.json").is_file()
    )


def remark(system: str, checkpoint: str = "default") -> str:
    """The remark shown beside a system or a run with these weights: `mechanism only` (it isn't ranked), or the parts of its
    paper that are missing.

    >>> remark("spanseqgen"), remark("spanseqgen", "t5-base"), remark("one-pass")
    ('mechanism only', '', '')
    """
    if not is_rankable(system, checkpoint):
        return "mechanism only"
    return entry_of(system).missing if is_bundled(checkpoint) else ""


def is_rankable(system: str, checkpoint: str = "default") -> bool:
    """Whether a system with these weights does more than show its mechanism."""
    return not (mechanism_only(system) and is_bundled(checkpoint))


def choice_of(system: str, bundled: bool = True) -> str:
    """A system's text in a list, which starts with its name.  `bundled`: it runs with the weights that come with Ambiscope.

    >>> choice_of("one-pass"), choice_of("spanseqgen"), choice_of("gone")
    ('one-pass: one pass with a threshold (fast)', 'spanseqgen: joined passages, answers written (slow, mechanism only)', 'gone')
    """
    entry = entry_of(system)
    only = ", mechanism only" if bundled and mechanism_only(system) else ""
    return f"{system}: {entry.title} ({speed_of(system).lower()}{only})" if entry.title else system


def options_of(system: str) -> type[SystemOptions]:
    """The dataclass of a system's own options, without fields for a system that takes none or no longer exists."""
    options: type[SystemOptions] = load(entry_of(system).options or SystemOptions)
    return options


class _FromPlugin:
    """A plugin's system.  An unexpected error in its run becomes a PluginError."""

    def __init__(self, name: str, system: AnsweringSystem) -> None:
        self._name, self._system = name, system

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self._system, attribute)

    def run(self, question: Question) -> Iterator[Event]:
        with SYSTEMS.running(self._name):
            yield from self._system.run(question)


def build(name: str, parts: SystemParts, options: Options) -> AnsweringSystem:
    """Builds a system by name.  Its own options are checked before anything is loaded.

    Raises UnknownNameError, InputError for an option that it does not take, CheckpointError, PluginError, and what loading a language model raises.
    """
    factory = SYSTEMS.resolve(name)
    with SYSTEMS.running(name):
        system: AnsweringSystem = factory(name, parts, options, options_of(name).read(name, options.extra))
    return _FromPlugin(name, system) if SYSTEMS.origin(name) else system


def passages_to_read(system: str, top_k: int) -> int:
    """The number of passages a system reads by default.  `top_k` is the setting: it can lengthen a paper's long list,
    and leaves a short one as it is.

    >>> passages_to_read("verdict", 10), passages_to_read("verdict", 40), passages_to_read("one-pass", 10), passages_to_read("dtv", 10)
    (20, 40, 10, 5)
    """
    passages: int = entry_of(system).passages
    return passages if 0 < passages < TOP_K else max(top_k, passages)
