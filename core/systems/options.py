"""Each system's own options, one frozen dataclass each.  Imports no torch, so that menus and documents can show them.

Where a value was chosen by data, a comment says on which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from core.disambiguation.consolidation import Clustering, EmbeddedText, SameAnswer, Unclustered
from core.errors import InputError
from core.systems.base.options import (
    SHARED,
    ClarifierOptions,
    ReadingOptions,
    Scoring,
    StoppingRule,
    Switch,
    SystemOptions,
    option,
)


@dataclass(frozen=True)
class LoopOptions(ClarifierOptions):
    """Options of `ambigprompt-seq2seq`, and the base of every other loop's."""

    loop: Literal["exact", "fast"] = option(
        "exact", "`fast` rereads only the passages that a new answer may change", in_menu=True
    )
    reread: float = option(0.15, "share of the passages that the fast loop reads again", 0, 1)
    # mechanisms that weights are trained under; "trained": the checkpoint's own
    prompting: Literal["trained", "interleaved", "separate", "learned"] = option(
        "trained", "the ablations of Table 3; weights trained with it are needed"
    )
    eoi_bias: float = option(0.0, "added to the score of [EOI]: lower gives more answers")
    stop: StoppingRule = option("compare", SHARED)
    calibration: Switch = option("on", SHARED)


@dataclass(frozen=True)
class AmbigPromptOptions(LoopOptions):
    """The bias was chosen on held-out practice questions (benchmarks.tuning.decoding)."""

    eoi_bias: float = option(-2.0, "added to the score of [EOI]: lower gives more answers")
    first_eoi_bias: float = option(
        None, "at the first step, where [EOI] means that no passage answers", usual="that of `eoi_bias`"
    )


@dataclass(frozen=True)
class AmbiscopeOptions(AmbigPromptOptions):
    loop: Literal["fast", "exact"] = option("fast", "as in `ambigprompt`", in_menu=True)
    # chosen with the development set, data/starter
    keep_above: float = option(0.1, "what the reader alone gives this probability is always an answer", 0, 1)


@dataclass(frozen=True)
class ScriptedOptions(SystemOptions):
    table: Mapping[str, Sequence[str]] = field(default_factory=dict)  # question -> answers

    def __post_init__(self) -> None:
        if not isinstance(self.table, Mapping):
            raise InputError(f"the option table is '{str(self.table)[:80]}'; it must be an object of questions and answers")
        if not all(isinstance(a, (list, tuple)) and all(isinstance(text, str) for text in a) for a in self.table.values()):
            raise InputError(f"the option table is '{str(self.table)[:80]}'; it has to map questions to lists of answers")


@dataclass(frozen=True)
class OnePassOptions(ReadingOptions):
    scoring: Scoring = option("passage", "a span's own probability, or DPR's score of passage and span", in_menu=True)


@dataclass(frozen=True)
class DprThresholdOptions(OnePassOptions):
    # both thresholds: held-out practice questions (benchmarks.tuning.thresholds)
    threshold: float = option(None, "an answer needs this probability", 0, 1, usual="0.03 (with `scoring=passage`: 0.25)")
    scoring: Scoring = option("dpr", "as in `one-pass`", in_menu=True)

    def usual(self) -> dict[str, Any]:
        return {"threshold": 0.03 if self.scoring == "dpr" else 0.25}


@dataclass(frozen=True)
class JprOptions(ReadingOptions):
    # held-out practice questions (benchmarks.tuning.thresholds)
    threshold: float = option(0.03, "an answer needs this probability", 0, 1)
    reranker: Literal["trained", "reader"] = option("trained", "who scores the next passage, given those picked", in_menu=True)
    pool: int = option(30, "passages retrieved (at most 500)", 1, 500)
    diversity: float = option(0.9, "share of a passage's worth that it loses where its answer is there already", 0, 1)
    length_penalty: float = option(1.0, "exponent for the number of picked passages")


@dataclass(frozen=True)
class RectifyOptions(ReadingOptions):
    # threshold and mix: held-out practice questions, with an earlier reader
    threshold: float = option(0.05, "a candidate needs this probability", 0, 1)
    surplus: int = option(2, "candidates from each passage (at most 20)", 1, 20)
    evidence: int = option(3, "passages that a candidate is verified on (at most 50)", 1, 50)
    mix: float = option(0.9, "weight of the recalling reader in the decision (0: the verifier alone)", 0, 1)


# variants of Fusion-in-Decoder: options of their decoding are fields of core.models.seq2seq.decoding.SequenceDecoding


@dataclass(frozen=True)
class SamplingOptions(ClarifierOptions):
    sequences: int = option(8, "samples; the paper does not give their number", 1, 64)
    temperature: float = option(0.8, "of the sampling", 0)
    seed: int = option(0, "of the sampling")


@dataclass(frozen=True)
class FidNucleusOptions(SamplingOptions):
    top_p: float = option(0.8, "probability mass to sample from", 0, 1)


@dataclass(frozen=True)
class FidTopKOptions(SamplingOptions):
    top_k: int = option(40, "tokens to sample from", 1)


@dataclass(frozen=True)
class FidDiverseBeamOptions(ClarifierOptions):
    sequences: int = option(3, "beams", 1, 64)
    temperature: float = option(0.8, "of the beams' scores", 0)
    diversity: float = option(0.5, "penalty for what another beam says")


@dataclass(frozen=True)
class FidMultiOptions(ClarifierOptions):
    # chosen on 120 held-out practice questions with the weights 92ca0ec301f37deb
    end_bias: float = option(-0.375, "added to the score of the end; other weights want another one")


@dataclass(frozen=True)
class SpanSeqGenOptions(ClarifierOptions):
    pool: int = option(30, "passages retrieved and reranked (at most 500; 100 in the paper)", 1, 500)


@dataclass(frozen=True)
class RefuelOptions(SystemOptions):
    verification: Literal["by generator", "language-model", "exact-match", "none"] = option(
        "by generator", "see below", in_menu=True
    )
    threshold: float = option(0.5, "an answer needs this probability", 0, 1)
    rounds: int = option(2, "maximum round trips (at most 10)", 1, 10)
    further: int = option(5, "passages retrieved for a disambiguated question (at most 100)", 1, 100)


@dataclass(frozen=True)
class DisambigFirstOptions(SystemOptions):
    ambiguous_above: float = option(0.5, "probability from which on meanings are written", 0, 1)
    questions: int = option(3, "maximum meanings (at most 20)", 1, 20)


@dataclass(frozen=True)
class VerdictOptions(SystemOptions):
    generator: Literal["by settings", "readers", "language-model"] = option("by settings", "what relaxes and interprets")
    clustering: Clustering = option("default", "`conservative` gives fewer clusters", in_menu=True)
    embed: EmbeddedText = option("question and answer", "what is embedded", in_menu=True)
    unclustered: Literal["by generator", Unclustered] = option(
        "by generator", "what becomes of interpretations outside every cluster", in_menu=True
    )
    same_answer: Literal["by generator", SameAnswer] = option(
        "by generator", "whether equal answers join clusters and different ones split them"
    )


@dataclass(frozen=True)
class DtvOptions(SystemOptions):
    interpretations: int = option(5, "imagined questions (at most 20)", 1, 20)
    passages_each: int = option(5, "passages for each of them (at most 100)", 1, 100)


@dataclass(frozen=True)
class RacOptions(SystemOptions):
    relax: Literal["yes", "no"] = option("yes", "whether the relaxed question retrieves")


@dataclass(frozen=True)
class RacTreeOptions(RacOptions):
    depth: int = option(2, "expansions from the question to a leaf (1 to 4)", 1, 4)  # Kim et al. stop at 3 or at 10 valid nodes
