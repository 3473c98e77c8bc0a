"""Metrics: one function each, found by name; plugins add their own (core.plugins).  They depend on no data set or model;
undefined values are None, never NaN or 0."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from core.metrics.base import Example, Value
from core.registry import Entry, Registry, load

_OURS = "no paper"
_RAMDOCS = "Wang et al. 2025, Retrieval-Augmented Generation with Conflicting Evidence"
_AMBIGQA = "Min et al. 2020, AmbigQA, section 3.2; the authors' ambigqa_evaluate_script.py"
_VERDICT = "Lee et al. 2025, VerDICt, sections 4.3 and 5.1.1, appendix A"
_ASQA = "Stelmakh et al. 2022, ASQA, section 5"
_DPR = "Karpukhin et al. 2020, Dense Passage Retrieval"
_JPR = "Min et al. 2021, Joint Passage Ranking for Diverse Multi-Answer Retrieval, section 2"


@dataclass(frozen=True, slots=True)
class MetricEntry(Entry):
    """`target`: a function of one `Example`.  Its mean over the questions is a run's figure."""

    is_count: bool = False  # a number; all others are shares
    of_questions: bool = False  # undefined for a system without disambiguated questions
    answers: str = ""  # of a mean over answers: the function that lists a question's answers, whose number is its weight
    harmonic_of: tuple[str, ...] = ()  # the figure of a run is the harmonic mean of these metrics' means
    better: Literal["higher", "lower", ""] = "higher"  # empty for one that is neither good nor bad


METRICS = Registry(
    "metric",
    {
        "F1 answer": MetricEntry("core.metrics.answers:f1_answer", "F1 of the answer set", _AMBIGQA),
        "precision": MetricEntry("core.metrics.answers:precision", "share of the given answers that are right", _AMBIGQA),
        "recall": MetricEntry("core.metrics.answers:recall", "share of the reference answers that were given", _AMBIGQA),
        "exact set": MetricEntry("core.metrics.answers:exact_set", "1 if exactly the reference answers are given", _OURS),
        "EM": MetricEntry(
            "core.metrics.answers:exact_match",
            "1 if the first answer to a single-answer question is right",
            "Lee et al. 2019 (NQ-open); Sun et al. 2023, Table 4",
        ),
        "answers": MetricEntry(
            "core.metrics.answers:number_of_answers",
            "number of answers given",
            "Sun et al. 2023, Figure 5",
            is_count=True,
            better="",
        ),
        "reference answers": MetricEntry(
            "core.metrics.answers:reference_answers", "number of reference answers", _OURS, is_count=True, better=""
        ),
        "F1 bleu1": MetricEntry(
            "core.metrics.questions:f1_bleu1", "F1 with BLEU-1 of the questions", _AMBIGQA, of_questions=True
        ),
        "F1 bleu2": MetricEntry(
            "core.metrics.questions:f1_bleu2", "F1 with BLEU-2 of the questions", _AMBIGQA, of_questions=True
        ),
        "F1 bleu3": MetricEntry(
            "core.metrics.questions:f1_bleu3", "F1 with BLEU-3 of the questions", _AMBIGQA, of_questions=True
        ),
        "F1 bleu4": MetricEntry(
            "core.metrics.questions:f1_bleu4", "F1 with BLEU-4 of the questions", _AMBIGQA, of_questions=True
        ),
        "F1 edit-f1": MetricEntry(
            "core.metrics.questions:f1_edit", "F1 with the F1 of the questions' edits", _AMBIGQA, of_questions=True
        ),
        "R@k": MetricEntry("core.metrics.retrieval:recall", "1 if any answer is in the passages", _DPR),
        "MRecall@k": MetricEntry("core.metrics.retrieval:mrecall", "1 if all answers (or k) are in the passages", _JPR),
        "RAMDocs": MetricEntry(
            "core.metrics.documents:ramdocs",
            "1 if all gold answers and no wrong one are given",
            _RAMDOCS,
        ),
        "RAMDocs in text": MetricEntry(
            "core.metrics.documents:ramdocs_in_text",
            "the same, where an answer also counts as part of a longer one",
            _RAMDOCS,
        ),
        "clarified": MetricEntry(
            "core.metrics.questions:clarified",
            "share of the right answers whose question passed the round trip",
            "the round trip of core.disambiguation.round_trip",
            answers="core.metrics.questions:right_ones",
        ),
        "Brier": MetricEntry(
            "core.metrics.calibration:brier",
            "squared distance of an answer's probability from 1 if it is right, from 0 if it is wrong",
            "Brier 1950; the reliability diagram beside it: Guo et al. 2017",
            answers="core.metrics.calibration:judged",
            better="lower",
        ),
        "interpretations": MetricEntry(
            "core.metrics.grounding:interpretations",
            "number of distinct interpretations",
            _VERDICT,
            is_count=True,
            of_questions=True,
            better="",
        ),
        "Sufficient%": MetricEntry(
            "core.metrics.grounding:sufficient",
            "1 if there are at least 5 distinct interpretations",
            _VERDICT,
            of_questions=True,
        ),
        "ungrounded precision": MetricEntry(
            "core.metrics.grounding:precision", "share of the interpretations that match the references", _VERDICT
        ),
        "ungrounded recall": MetricEntry(
            "core.metrics.grounding:recall", "share of the references' meanings among the interpretations", _VERDICT
        ),
        "G-precision": MetricEntry(
            "core.metrics.grounding:g_precision", "share of the interpretations that their passage supports", _VERDICT
        ),
        "G-recall": MetricEntry(
            "core.metrics.grounding:g_recall", "share of the meanings of the corpus that a cited passage supports", _VERDICT
        ),
        "G-F1": MetricEntry(
            "core.metrics.grounding:g_f1",
            "harmonic mean of G-precision and G-recall",
            _VERDICT,
            harmonic_of=("G-precision", "G-recall"),
        ),
        "STR-EM": MetricEntry("core.metrics.long_answers:str_em", "share of the short answers that occur in the text", _ASQA),
        "ROUGE-L": MetricEntry(
            "core.metrics.long_answers:rouge_l", "longest common subsequence with long answers of people", _ASQA
        ),
        "Disambig-F1": MetricEntry(
            "core.metrics.long_answers:disambig_f1",
            "word F1 of a reader's answers from the text to each disambiguated question",
            _ASQA,
        ),
        "Disambig-F1 (bundled reader, not comparable)": MetricEntry(
            "core.metrics.long_answers:disambig_f1_bundled", "the same by the bundled reader, which is not ASQA's", _ASQA
        ),
    },
    "ambiscope.metrics",
    MetricEntry,
)

# What AmbigQA's script prints, in its order.
SCORE_METRICS = ("F1 answer", "F1 bleu1", "F1 bleu2", "F1 bleu3", "F1 bleu4", "F1 edit-f1")


def entry_of(name: str) -> MetricEntry:
    """A metric's entry, or an empty one for an unregistered name of an earlier report."""
    entry: MetricEntry = METRICS.get(name, MetricEntry("", "a metric that is not installed"))
    return entry


def metric(name: str) -> Callable[[Example], Value]:
    """The metric of that name.  Raises UnknownNameError with the list."""
    function: Callable[[Example], Value] = METRICS.resolve(name)
    return function


def goodness(name: str, value: float) -> float:
    """The value of a metric, or the difference of two, signed so that higher is better.  A metric without a better direction is
    returned unchanged.

    >>> goodness("F1 answer", 0.5), goodness("Brier", 0.2), goodness("answers", 3.0)
    (0.5, -0.2, 3.0)
    """
    return -value if better_of(name) == "lower" else value


def better_of(name: str) -> str:
    """ "higher", "lower", or nothing if neither is better.  A metric with a cut ("R@5") is treated as its family.

    >>> better_of("R@5"), better_of("Brier"), better_of("answers")
    ('higher', 'lower', '')
    """
    entry = METRICS.get(name)
    return entry.better if entry else "higher"


def weights_of(example: Example) -> dict[str, float]:
    """A question's weight in the means of the metrics over answers.  In all other means it is 1."""
    return {name: float(len(load(entry.answers)(example))) for name, entry in METRICS.items() if entry.answers}
