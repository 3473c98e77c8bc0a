"""ASQA's STR-EM and ROUGE-L: a system's answers, written out as one text, against long answers of people.

Source: Stelmakh et al. 2022, ASQA, section 5 (STR-EM: share of the reference's short answers that occur in the text; ROUGE-L: the highest F of
the longest common subsequence over the reference texts, stemmed, split into sentences, as rouge-score's rougeLsum).  Our systems write no prose: the
text is each disambiguated question with its answer, so ROUGE-L says how much of the long answers' content is there, not how well it reads.
Disambig-F1 needs a reader of theirs and is not computed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from core.metrics.base import Example, Metric, Value
from core.text import normalize_answer

_SOURCE = "Stelmakh et al. 2022, ASQA, section 5"


def text_of(example: Example) -> str:
    """The answers as one text: a line each, "question answer." or the answer alone."""
    questions = example.questions or ("",) * len(example.answers)
    return "\n".join(f"{q} {a}.".strip() for q, a in zip(questions, example.answers))


def _str_em(example: Example) -> Value:
    """Source of the test: ASQA's scoring script, which looks for the normalised alias in the normalised text."""
    if example.long_answers is None:
        return None
    text = normalize_answer(text_of(example))
    values = [
        sum(any(n and n in text for n in map(normalize_answer, aliases)) for aliases in answers) / len(answers)
        for answers in example.answer_sets
    ]
    return max(values, default=None)


@lru_cache(maxsize=1)
def _scorer() -> Any:
    from rouge_score.rouge_scorer import RougeScorer  # type: ignore[import-untyped]

    return RougeScorer(["rougeLsum"], use_stemmer=True, split_summaries=False)


def _rouge_l(example: Example) -> Value:
    if not example.long_answers:
        return None
    if not example.answers:
        return 0.0
    found = [_scorer().score(reference, text_of(example))["rougeLsum"].fmeasure for reference in example.long_answers]
    return max(float(f) for f in found)


STR_EM = Metric("STR-EM", _str_em, "higher", _SOURCE)
ROUGE_L = Metric("ROUGE-L", _rouge_l, "higher", _SOURCE)
