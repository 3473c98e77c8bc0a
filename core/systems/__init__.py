"""Answering systems.  A new system is one file here and one entry in SYSTEMS.

`target` names a factory `build(name, parts, options, config) -> AnsweringSystem`; `options` the dataclass of its own options
(core.systems.base.options), an instance of which is `config`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from core.models.loading.finding import BUNDLED
from core.registry import Entry, Registry, load
from core.systems.base.options import TOP_K, Options, SystemOptions

if TYPE_CHECKING:
    from core.systems.base.system import SystemParts
    from core.types import AnsweringSystem

SEQ2SEQ = "encoder-decoder fid"  # bundled; AMBISCOPE_SEQ2SEQ names another
LANGUAGE_MODEL = ("a language model: AMBISCOPE_LM_URL or AMBISCOPE_LM_LOCAL",)
SMALL = "The bundled model is small and trained to show how this method works: its answers are often incomplete or wrong."
LONG = 20  # passages, if AMBISCOPE_TOP_K is lower: Lee et al. 2025, appendix D
BUNDLED_READER = "bundled reader"  # in place of a language model
PRUNED = 5  # passages that diversify-then-verify keeps (the same appendix)

SYSTEMS = Registry(
    "system",
    {
        "ambiscope": Entry(
            "core.systems.ambigprompt:build",
            "finds answers one at a time, each prompted with the earlier ones; a reader of single passages weighs each step's candidates",
            "Sun et al. 2023, section 3, with a reader's probabilities (Eq. 8) in each step",
            ("checkpoint answerer", "checkpoint reader"),
            options="core.systems.options:AmbiscopeOptions",
            title="step by step, double-checked",
        ),
        "ambigprompt": Entry(
            "core.systems.ambigprompt:build",
            "the paper's method only: answers one at a time, each prompted with the earlier ones",
            "Sun et al. 2023, section 3",
            ("checkpoint answerer",),
            expect="It finds fewer answers than the default system, and more of them are wrong.",
            options="core.systems.options:AmbigPromptOptions",
            title="step by step, as published",
        ),
        "ambigprompt-seq2seq": Entry(
            "core.systems.ambigprompt:build_seq2seq",
            "the paper's loop over an encoder-decoder (a small one is bundled; t5-base, a folder): Fusion-in-Decoder with interleaved prompting",
            "Sun et al. 2023, sections 2.2 and 3",
            ("encoder-decoder answerer-seq2seq",),
            expect=SMALL,
            options="core.systems.options:LoopOptions",
            title="step by step, answers written",
        ),
        "ambigprompt-lm": Entry(
            "core.systems.ambigprompt_lm:build",
            "the paper's loop with a language model that answers: one further answer a step, with a quotation that must be in its passage",
            "Sun et al. 2023, section 3",
            LANGUAGE_MODEL,
            options="core.systems.base.options:ClarifierOptions",
            title="step by step, language model",
            speed="Slow",
        ),
        "one-pass": Entry(
            "core.systems.one_pass:build",
            "reads each passage once, separately, and keeps every answer above a threshold",
            "Min et al. 2020 (thresholded reader); Karpukhin et al. 2020",
            ("checkpoint reader",),
            options="core.systems.options:OnePassOptions",
            title="one pass with a threshold",
        ),
        "verdict": Entry(
            "core.systems.verdict:build",
            "one retrieval, at most one interpretation per passage, then one per answer (with a language model: per cluster)",
            "Lee et al. 2025, section 4",
            ("checkpoint reader", "checkpoint answerer"),
            view="interpretations",
            passages=LONG,
            expect="Cautious: with weak evidence it returns few answers or none.",
            missing="without a language model, no relaxing of the question and no clustering",
            options="core.systems.options:VerdictOptions",
            title="passage by passage, merged",
        ),
        "dtv": Entry(
            "core.systems.dtv:build",
            "diversify, then verify: questions imagined without the corpus, a search for each, passages verified, then answers",
            "Lee et al. 2025, section 3.2 (after In et al. 2024)",
            LANGUAGE_MODEL,
            passages=PRUNED,
            options="core.systems.options:DtvOptions",
            title="imagined meanings, verified",
            speed="Slow",
        ),
        "dtv-unverified": Entry(
            "core.systems.dtv:build",
            "the same without verifying the passages",
            "Lee et al. 2025, Table 2",
            LANGUAGE_MODEL,
            passages=PRUNED,
            options="core.systems.options:DtvOptions",
            title="imagined meanings, unverified",
            speed="Slow",
        ),
        "rac": Entry(
            "core.systems.rac:build",
            "retrieval-augmented clarification: one long-context call over all passages",
            "Lee et al. 2025, Eq. 13 (after Kim et al. 2023)",
            LANGUAGE_MODEL,
            passages=LONG,
            options="core.systems.options:RacOptions",
            title="all passages in one prompt",
            speed="Slow",
        ),
        "rac-tree": Entry(
            "core.systems.rac:build",
            "Tree of Clarifications: each interpretation is clarified further, unsupported ones are pruned",
            "Kim et al. 2023",
            LANGUAGE_MODEL,
            passages=LONG,
            options="core.systems.options:RacTreeOptions",
            title="tree of narrower questions",
            speed="Slow",
        ),
        "fid": Entry(
            "core.systems.fid:build",
            "Fusion-in-Decoder: reads every passage, writes all answers in one pass",
            "Izacard and Grave 2021; Sun et al. 2023, section 4.3",
            (SEQ2SEQ,),
            decoding="greedy",
            expect=SMALL,
            options="core.systems.base.options:ClarifierOptions",
            title="one pass, answers written",
            speed="Fast",
        ),
        "fid-nucleus": Entry(
            "core.systems.fid:build",
            "Fusion-in-Decoder, several samples (nucleus, p 0.8, t 0.8) merged into one answer set",
            "Sun et al. 2023, Table 5",
            (SEQ2SEQ,),
            decoding="nucleus",
            expect=SMALL,
            options="core.systems.options:FidNucleusOptions",
            title="merged samples (nucleus)",
            speed="Fast",
        ),
        "fid-top-k": Entry(
            "core.systems.fid:build",
            "Fusion-in-Decoder, several samples (top-k, k 40, t 0.8) merged into one answer set",
            "Sun et al. 2023, Table 5",
            (SEQ2SEQ,),
            decoding="top-k",
            expect=SMALL,
            options="core.systems.options:FidTopKOptions",
            title="merged samples (top-k)",
        ),
        "fid-diverse-beam": Entry(
            "core.systems.fid:build",
            "Fusion-in-Decoder, three diverse beams (t 0.8, penalty 0.5) merged into one answer set",
            "Sun et al. 2023, Table 5",
            (SEQ2SEQ,),
            decoding="diverse beam",
            expect=SMALL,
            options="core.systems.options:FidDiverseBeamOptions",
            title="merged diverse beams",
            speed="Fast",
        ),
        "fid-multi": Entry(
            "core.systems.fid:build",
            "Fusion-in-Decoder with a less likely end of sequence, so that it writes more answers",
            "Sun et al. 2023, Figure 5",
            (SEQ2SEQ,),
            decoding="longer",
            expect=SMALL,
            options="core.systems.options:FidMultiOptions",
            title="one pass, longer lists",
            speed="Fast",
        ),
        "spanseqgen": Entry(
            "core.systems.spanseqgen:build",
            "reranked passages joined up to 1,024 tokens; a sequence-to-sequence model writes the distinct answers",
            "Min et al. 2020, section 5",
            (SEQ2SEQ, "checkpoint reader"),
            expect=SMALL,
            mechanism_only="F1 20.3 on the development set, where `fid` with the same weights has 50.9",
            options="core.systems.options:SpanSeqGenOptions",
            title="joined passages, answers written",
        ),
        "dpr-threshold": Entry(
            "core.systems.one_pass:build",
            "the same reading, each span scored as DPR does, above a threshold tuned on held-out questions",
            "Min et al. 2020, section 5; Karpukhin et al. 2020, section 6.1",
            ("checkpoint reader",),
            options="core.systems.options:DprThresholdOptions",
            title="one pass, tuned threshold",
        ),
        "rectify": Entry(
            "core.systems.rectify:build",
            "recalls many answers passage by passage, keeps each by the combined probability of the recaller and of a verifier of its evidence",
            "Shao and Huang 2022, section 3",
            ("checkpoint reader", "answering model"),
            mechanism_only="its verifier does not raise F1: 79.1 with it on held-out practice questions, 79.8 without",
            options="core.systems.options:RectifyOptions",
            title="many answers, each verified",
            speed="Slow",
        ),
        "refuel": Entry(
            "core.systems.refuel:build",
            "asks each answer's disambiguated question to find further passages and answers, then verifies",
            "Gao et al. 2021, section 3.3",
            (SEQ2SEQ,),
            expect=SMALL,
            mechanism_only="its round trips add an answer to 3 of 132 ambiguous questions",
            options="core.systems.options:RefuelOptions",
            title="answers that lead to more",
            speed="Fast",
        ),
        "jpr": Entry(
            "core.systems.jpr:build",
            "picks passages of a pool that complement one another by tree decoding, answers from them in one pass",
            "Min et al. 2021, section 3",
            ("checkpoint reader",),
            options="core.systems.options:JprOptions",
            title="complementary passages",
            speed="Slow",
        ),
        "disambig-first": Entry(
            "core.systems.disambig_first:build",
            "decides whether the question is ambiguous, writes its meanings without evidence, then answers each",
            "Min et al. 2020, section 5",
            ("checkpoint ambiguity", "checkpoint reader"),
            expect="It imagines the meanings before it reads anything, so it often finds only one answer.",
            mechanism_only="a second answer to 2 of 132 ambiguous questions",
            options="core.systems.options:DisambigFirstOptions",
            title="meanings first, then answers",
            speed="Fast",
        ),
        "scripted": Entry(
            "core.systems.scripted:build",
            "answers from a small table; for tests of everything around a model",
            hidden=True,
            options="core.systems.options:ScriptedOptions",
            title="answers from a small table",
            speed="Fast",
        ),
    },
)


def entry_of(system: str) -> Entry:
    """A system's entry; an empty one for a system that no longer exists, so that its stored runs still open."""
    entry: Entry = SYSTEMS.get(system, Entry("", "a system that no longer exists"))
    return entry


def title_of(system: str) -> str:
    """What pages call a system; its name where it no longer exists.

    >>> title_of("one-pass"), title_of("gone")
    ('One pass with a threshold', 'gone')
    """
    title = entry_of(system).title
    return title[:1].upper() + title[1:] or system


def is_bundled(checkpoint: str) -> bool:
    """Whether weights, by the name that settings and runs give them, come with Ambiscope.

    >>> is_bundled("default"), is_bundled("mpnet"), is_bundled("t5-base")
    (True, True, False)
    """
    return checkpoint in ("default", BUNDLED_READER) or (
        Path(checkpoint).name == checkpoint and (BUNDLED / checkpoint / "config.json").is_file()
    )


def remark(system: str, checkpoint: str = "default") -> str:
    """The remark beside a system or a run with these weights: `mechanism only` (it is not ranked), or which parts of its paper are missing.

    >>> remark("spanseqgen"), remark("spanseqgen", "t5-base"), remark("one-pass")
    ('mechanism only', '', '')
    """
    if not is_rankable(system, checkpoint):
        return "mechanism only"
    return entry_of(system).missing if is_bundled(checkpoint) else ""


def is_rankable(system: str, checkpoint: str = "default") -> bool:
    """Whether a system with these weights does more than show its mechanism."""
    return not (entry_of(system).mechanism_only and is_bundled(checkpoint))


def choice_of(system: str, bundled: bool = True) -> str:
    """A system as lists offer it; `bundled`: with the weights that come with Ambiscope.

    >>> choice_of("one-pass"), choice_of("spanseqgen")
    ('Medium: one pass with a threshold', 'Medium: joined passages, answers written (mechanism only)')
    """
    entry = entry_of(system)
    only = " (mechanism only)" if bundled and entry.mechanism_only else ""
    return f"{entry.speed}: {entry.title}{only}" if entry.title else system


def options_of(system: str) -> type[SystemOptions]:
    """The dataclass of a system's own options; one without fields for a system that takes none or no longer exists."""
    options: type[SystemOptions] = load(entry_of(system).options) if entry_of(system).options else SystemOptions
    return options


def build(name: str, parts: SystemParts, options: Options) -> AnsweringSystem:
    """A system by name.  Its own options are checked before anything is loaded.

    Raises UnknownNameError, InputError for an option that it does not take, CheckpointError, and what loading a language model raises.
    """
    factory = SYSTEMS.resolve(name)
    system: AnsweringSystem = factory(name, parts, options, options_of(name).read(name, options.extra))
    return system


def passages_to_read(system: str, top_k: int) -> int:
    """The number of passages a system reads by default; `top_k`: the setting, which can raise a paper's long list and not its short one.

    >>> passages_to_read("verdict", 10), passages_to_read("verdict", 40), passages_to_read("one-pass", 10), passages_to_read("dtv", 10)
    (20, 40, 10, 5)
    """
    passages: int = entry_of(system).passages
    return passages if 0 < passages < TOP_K else max(top_k, passages)
