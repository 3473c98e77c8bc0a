"""ASQA's STR-EM, ROUGE-L and Disambig-F1: a system's answers, written out as one text, compared with human long answers.

Source: Stelmakh et al. 2022, ASQA, section 5 (STR-EM: share of the reference's short answers that occur in the text; ROUGE-L: the highest F of
the longest common subsequence over the reference texts, stemmed, split into sentences, as rouge-score's rougeLsum).  Only `rac-tree` writes prose: of the others, the
text is each disambiguated question with its answer, so ROUGE-L measures content, not style.
Disambig-F1: a reader (core.evaluation.long_reader) answers each disambiguated question of the references from the text; the mean over them of the words' F1
with the nearest short answer.  With the bundled reader, the metric has its own name.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache, partial
from typing import Any

from core.metrics.base import Example, Value
from core.text import normalize_answer


def text_of(example: Example) -> str:
    """The answers as one text: the system's own, or else one line each, "question answer." or just the answer."""
    if example.text:
        return example.text
    questions = example.questions or ("",) * len(example.answers)
    return "\n".join(f"{q} {a}.".strip() for q, a in zip(questions, example.answers))


def str_em(example: Example) -> Value:
    """The share of short answers whose normalised alias occurs in the normalised text, as in ASQA's scoring script."""
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


def rouge_l(example: Example) -> Value:
    if not example.long_answers:
        return None
    if not example.answers:
        return 0.0
    text = text_of(example)
    return max(float(_scorer().score(reference, text)["rougeLsum"].fmeasure) for reference in example.long_answers)


def word_f1(answer: str, reference: str) -> float:
    """SQuAD's F1 of the words of two normalised answers.

    >>> word_f1("the red ball", "Red balls"), word_f1("", ""), word_f1("red", "blue")
    (0.5, 1.0, 0.0)
    """
    a, b = normalize_answer(answer).split(), normalize_answer(reference).split()
    if not a or not b:
        return float(a == b)
    common = sum((Counter(a) & Counter(b)).values())
    return 2 * common / (len(a) + len(b))


def _disambig_f1(example: Example, comparable: bool) -> Value:
    readings = example.readings
    if readings is None or readings.comparable is not comparable or not readings.answers:
        return None
    return sum(max(word_f1(answer, alias) for alias in aliases) for answer, aliases in readings.answers) / len(readings.answers)


disambig_f1, disambig_f1_bundled = (partial(_disambig_f1, comparable=flag) for flag in (True, False))
