"""Metrics: one function each, found by name.  They depend on no data set or model; undefined values are None, never NaN or 0."""

from __future__ import annotations

from collections.abc import Callable

from core.metrics.base import Example, Value
from core.registry import Entry, Registry, load

_OURS = "no paper"
_RAMDOCS = "Wang et al. 2025, Retrieval-Augmented Generation with Conflicting Evidence"
_AMBIGQA = "Min et al. 2020, AmbigQA, section 3.2; the authors' ambigqa_evaluate_script.py"
_VERDICT = "Lee et al. 2025, VerDICt, sections 4.3 and 5.1.1, appendix A"
_ASQA = "Stelmakh et al. 2022, ASQA, section 5"
_DPR = "Karpukhin et al. 2020, Dense Passage Retrieval"
_JPR = "Min et al. 2021, Joint Passage Ranking for Diverse Multi-Answer Retrieval, section 2"

METRICS = Registry(
    "metric",
    {
        "F1 answer": Entry("core.metrics.answers:f1_answer", "F1 of the answer set", _AMBIGQA),
        "precision": Entry("core.metrics.answers:precision", "share of the given answers that are right", _AMBIGQA),
        "recall": Entry("core.metrics.answers:recall", "share of the reference answers that were given", _AMBIGQA),
        "exact set": Entry("core.metrics.answers:exact_set", "1 if exactly the reference answers are given", _OURS),
        "EM": Entry(
            "core.metrics.answers:exact_match",
            "1 if the first answer to a single-answer question is right",
            "Lee et al. 2019 (NQ-open); Sun et al. 2023, Table 4",
        ),
        "answers": Entry("core.metrics.answers:number_of_answers", "number of answers given", "Sun et al. 2023, Figure 5"),
        "reference answers": Entry("core.metrics.answers:reference_answers", "number of reference answers", _OURS),
        "F1 bleu1": Entry("core.metrics.questions:f1_bleu1", "F1 with BLEU-1 of the questions", _AMBIGQA),
        "F1 bleu2": Entry("core.metrics.questions:f1_bleu2", "F1 with BLEU-2 of the questions", _AMBIGQA),
        "F1 bleu3": Entry("core.metrics.questions:f1_bleu3", "F1 with BLEU-3 of the questions", _AMBIGQA),
        "F1 bleu4": Entry("core.metrics.questions:f1_bleu4", "F1 with BLEU-4 of the questions", _AMBIGQA),
        "F1 edit-f1": Entry("core.metrics.questions:f1_edit", "F1 with the F1 of the questions' edits", _AMBIGQA),
        "R@k": Entry("core.metrics.retrieval:recall", "1 if any answer is in the passages", _DPR),
        "MRecall@k": Entry("core.metrics.retrieval:mrecall", "1 if all answers (or k) are in the passages", _JPR),
        "RAMDocs": Entry(
            "core.metrics.documents:ramdocs",
            "1 if all gold answers and no wrong one are given",
            _RAMDOCS,
        ),
        "RAMDocs in text": Entry(
            "core.metrics.documents:ramdocs_in_text",
            "the same, where an answer also counts as part of a longer one",
            _RAMDOCS,
        ),
        "clarified": Entry(
            "core.metrics.clarifications:clarified",
            "share of the right answers whose question passed the round trip",
            "the round trip of core.disambiguation.round_trip",
        ),
        "Brier": Entry(
            "core.metrics.calibration:brier",
            "squared distance of an answer's probability from 1 if it is right, from 0 if it is wrong",
            "Brier 1950; the reliability diagram beside it: Guo et al. 2017",
        ),
        "interpretations": Entry("core.metrics.grounding:interpretations", "number of distinct interpretations", _VERDICT),
        "Sufficient%": Entry(
            "core.metrics.grounding:sufficient", "1 if there are at least 5 distinct interpretations", _VERDICT
        ),
        "ungrounded precision": Entry(
            "core.metrics.grounding:precision", "share of the interpretations that match the references", _VERDICT
        ),
        "ungrounded recall": Entry(
            "core.metrics.grounding:recall", "share of the references' meanings among the interpretations", _VERDICT
        ),
        "G-precision": Entry(
            "core.metrics.grounding:g_precision", "share of the interpretations that their passage supports", _VERDICT
        ),
        "G-recall": Entry(
            "core.metrics.grounding:g_recall", "share of the meanings of the corpus that a cited passage supports", _VERDICT
        ),
        "G-F1": Entry("core.metrics.grounding:g_f1", "harmonic mean of G-precision and G-recall", _VERDICT),
        "STR-EM": Entry("core.metrics.long_answers:str_em", "share of the short answers that occur in the text", _ASQA),
        "ROUGE-L": Entry("core.metrics.long_answers:rouge_l", "longest common subsequence with long answers of people", _ASQA),
        "Disambig-F1": Entry(
            "core.metrics.long_answers:disambig_f1",
            "word F1 of a reader's answers from the text to each disambiguated question",
            _ASQA,
        ),
        "Disambig-F1 (bundled reader, not comparable)": Entry(
            "core.metrics.long_answers:disambig_f1_bundled", "the same by the bundled reader, which is not ASQA's", _ASQA
        ),
    },
)

# What AmbigQA's script prints, in its order.
SCORE_METRICS = ("F1 answer", "F1 bleu1", "F1 bleu2", "F1 bleu3", "F1 bleu4", "F1 edit-f1")
# undefined for a system without disambiguated questions
QUESTION_METRICS = (*SCORE_METRICS[1:], "interpretations", "Sufficient%")
COUNT_METRICS = ("answers", "reference answers", "interpretations")  # counts; all others are fractions
# Metrics that are means over answers rather than questions, and the function that lists a question's answers: their number is its weight.
_ANSWER_LISTS = {"Brier": "core.metrics.calibration:judged", "clarified": "core.metrics.clarifications:right_ones"}
HARMONIC = {"G-F1": ("G-precision", "G-recall")}  # the mean over questions is the harmonic mean of these metrics' means


def metric(name: str) -> Callable[[Example], Value]:
    """The metric of that name.  Raises UnknownNameError with the list."""
    function: Callable[[Example], Value] = METRICS.resolve(name)
    return function


def weights_of(example: Example) -> dict[str, float]:
    """A question's weight in the means of the metrics over answers; in those of all others it is 1."""
    return {name: float(len(load(target)(example))) for name, target in _ANSWER_LISTS.items()}
