"""RAMDocs' measure: whether all gold answers are given and none of the listed wrong ones.

Source: Wang et al. 2025, "Retrieval-Augmented Generation with Conflicting Evidence".  A prediction is a list.  `RAMDocs` counts an answer as
given if some item equals it after normalisation.  `RAMDocs in text` counts it if it is part of some item, as the paper looks for it in a
written response: its published figures are comparable with this one.  Items that are neither gold nor listed as wrong cost nothing
here: F1 answer counts those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from core.metrics.answers import is_match
from core.metrics.base import Example, Value
from core.text import has_answer, normalize_answer

# (aliases of an answer, an item of the prediction) -> whether the item gives the answer
IsGiven = Callable[[Sequence[str], str], bool]


def is_within(aliases: Sequence[str], answer: str) -> bool:
    """Whether the item contains the normalised words of some alias.

    >>> is_within(["Boston"], "the Brighton area, Boston"), is_within(["Boston"], "Bostonians")
    (True, False)
    """
    return has_answer(normalize_answer(answer), map(normalize_answer, aliases))


def all_and_no_wrong(
    answers: Sequence[Sequence[str]], wrong: Sequence[str], predictions: Sequence[str], is_given: IsGiven = is_match
) -> float:
    """1 if all gold answers and no listed wrong one are given, else 0.

    >>> all_and_no_wrong([["Rome"], ["Oslo"]], ["Bonn"], ["oslo", "The Rome", "Paris"])
    1.0
    >>> all_and_no_wrong([["Rome"]], ["Bonn"], ["Rome", "bonn"])
    0.0
    """
    has_all = all(any(is_given(aliases, p) for p in predictions) for aliases in answers)
    return float(has_all and not any(is_given(wrong, p) for p in predictions))


def _ramdocs(example: Example, is_given: IsGiven) -> Value:
    sets = example.answer_sets
    if example.wrong_answers is None or not sets:
        return None
    return max(all_and_no_wrong(answers, example.wrong_answers, example.answers, is_given) for answers in sets)


ramdocs, ramdocs_in_text = (partial(_ramdocs, is_given=test) for test in (is_match, is_within))
