"""RAMDocs' measure: all gold answers are given and none of the listed wrong ones.

Source: Wang et al. 2025, "Retrieval-Augmented Generation with Conflicting Evidence".  The paper looks for the answers in a
written response; here a prediction is a list, so an answer counts if some item equals it after normalisation.  Items that are neither
gold nor listed as wrong cost nothing here: F1 answer counts those.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.metrics.answers import is_match
from core.metrics.base import Example, Metric, Value


def all_and_no_wrong(answers: Sequence[Sequence[str]], wrong: Sequence[str], predictions: Sequence[str]) -> float:
    """1 or 0.

    >>> all_and_no_wrong([["Rome"], ["Oslo"]], ["Bonn"], ["oslo", "The Rome", "Paris"])
    1.0
    >>> all_and_no_wrong([["Rome"]], ["Bonn"], ["Rome", "bonn"])
    0.0
    """
    given = all(any(is_match(aliases, p) for p in predictions) for aliases in answers)
    return float(given and not any(is_match(wrong, p) for p in predictions))


def _ramdocs(example: Example) -> Value:
    sets = example.answer_sets
    if example.wrong_answers is None or not sets:
        return None
    return max(all_and_no_wrong(answers, example.wrong_answers, example.answers) for answers in sets)


RAMDOCS = Metric("RAMDocs", _ramdocs, "higher", "Wang et al. 2025")
