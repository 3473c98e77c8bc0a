"""RAMDocs' measure: all gold answers are given and none of the listed wrong ones.

Source: Wang et al. 2025, "Retrieval-Augmented Generation with Conflicting Evidence".  A prediction is a list.  `RAMDocs` counts an answer as
given if some item equals it after normalisation.  `RAMDocs in text` counts it if it stands in some item, as the paper looks for it in a
written response: its published figures are comparable with this one.  Items that are neither gold nor listed as wrong cost nothing
here: F1 answer counts those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from core.metrics.answers import is_match
from core.metrics.base import Example, Value
from core.text import has_answer, normalize_answer

Given = Callable[[Sequence[str], str], bool]  # (aliases of an answer, an item of the prediction): is the answer given there?


def is_within(aliases: Sequence[str], answer: str) -> bool:
    """The normalised words of some alias stand in the item.

    >>> is_within(["Boston"], "the Brighton area, Boston"), is_within(["Boston"], "Bostonians")
    (True, False)
    """
    return has_answer(normalize_answer(answer), map(normalize_answer, aliases))


def all_and_no_wrong(
    answers: Sequence[Sequence[str]], wrong: Sequence[str], predictions: Sequence[str], given: Given = is_match
) -> float:
    """1 or 0.

    >>> all_and_no_wrong([["Rome"], ["Oslo"]], ["Bonn"], ["oslo", "The Rome", "Paris"])
    1.0
    >>> all_and_no_wrong([["Rome"]], ["Bonn"], ["Rome", "bonn"])
    0.0
    """
    every = all(any(given(aliases, p) for p in predictions) for aliases in answers)
    return float(every and not any(given(wrong, p) for p in predictions))


def _ramdocs(given: Given) -> Callable[[Example], Value]:
    def value(example: Example) -> Value:
        sets = example.answer_sets
        if example.wrong_answers is None or not sets:
            return None
        return max(all_and_no_wrong(answers, example.wrong_answers, example.answers, given) for answers in sets)

    return value


ramdocs, ramdocs_in_text = _ramdocs(is_match), _ramdocs(is_within)
