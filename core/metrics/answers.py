"""AmbigQA's F1 answer, its precision and recall, and the number of answers.

Source: Min et al. 2020, section 3.2, as the authors' script computes it.  It differs from a maximum matching: reference answers are
walked in order and each takes the first free prediction that equals one of its aliases.  Duplicate predictions count as predictions.
An empty set of predictions, which that script rejects, has F1 and recall 0 and no precision.  Answers of which normalisation leaves
nothing ("The The", "A"), all equal for that script, are compared by their own text.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.metrics.base import Example, Value
from core.text import comparable, normalize_answer


def scored_as(answer: str) -> str:
    """The form of an answer that is compared: AmbigQA's normalised text, or the answer itself if that is empty.

    >>> scored_as("The Beatles!"), scored_as("The The"), scored_as("A")
    ('beatles', 'the the', 'a')
    """
    return normalize_answer(answer) or comparable(answer)


def is_match(aliases: Sequence[str], answer: str) -> bool:
    """Exact match after normalisation, against any alias.

    >>> is_match(["The Beatles", "Fab Four"], "beatles!")
    True
    """
    text = scored_as(answer)
    return any(scored_as(alias) == text for alias in aliases)


def matching(references: Sequence[Sequence[str]], predictions: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs (reference, prediction), each side at most once.

    >>> matching([["a1"], ["b1", "b2"]], ["b2", "b1", "x"])
    [(1, 0)]
    """
    predicted = [scored_as(p) for p in predictions]
    free = [True] * len(predicted)
    pairs = []
    for i, aliases in enumerate(references):
        keys = {scored_as(a) for a in aliases}
        j = next((j for j, p in enumerate(predicted) if free[j] and p in keys), None)
        if j is not None:
            free[j] = False
            pairs.append((i, j))
    return pairs


def f1(references: Sequence[Sequence[str]], predictions: Sequence[str]) -> float:
    """2pr/(p+r) for one annotation; 0 when nothing matches.  In 0..1.

    >>> f1([["Paris"], ["Rome"]], ["paris", "Oslo", "Bonn"])  # precision 1/3, recall 1/2
    0.4
    >>> f1([["Paris"]], ["Paris", "Paris"])  # the duplicate is a wrong prediction
    0.6666666666666666
    """
    hits = len(matching(references, predictions))
    return 2 * hits / (len(references) + len(predictions)) if hits else 0.0


def best_set(example: Example) -> tuple[tuple[str, ...], ...] | None:
    """The annotation with the highest F1, the first if tied; None if no annotation has an answer."""
    return max(example.answer_sets, key=lambda answers: f1(answers, example.answers), default=None)


def f1_answer(example: Example) -> Value:
    best = best_set(example)
    return None if best is None else f1(best, example.answers)


def precision(example: Example) -> Value:
    best = best_set(example)
    return None if best is None or not example.answers else len(matching(best, example.answers)) / len(example.answers)


def recall(example: Example) -> Value:
    best = best_set(example)
    return None if best is None else len(matching(best, example.answers)) / len(best)


def exact_set(example: Example) -> Value:
    value = f1_answer(example)
    return None if value is None else float(value == 1.0)


def exact_match(example: Example) -> Value:
    """Single-answer exact match: for questions with only single-answer annotations, the first answer against every alias."""
    if not example.annotations or any(a.type != "single" or not a.pairs for a in example.annotations):
        return None
    first = example.answers[:1]
    return float(any(is_match(p.answers, a) for a in first for note in example.annotations for p in note.pairs))


def number_of_answers(example: Example) -> Value:
    return float(len(example.answers))


def reference_answers(example: Example) -> Value:
    """The mean number of reference answers over annotators."""
    sets = example.answer_sets
    return sum(map(len, sets)) / len(sets) if sets else None
