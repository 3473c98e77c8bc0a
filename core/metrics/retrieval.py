"""R@k and MRecall@k.

Source: Karpukhin et al. 2020 (DPR, token-wise match in the passage's text, not in its title) and Min et al. 2021 (JPR, section 2).
With several annotations of a question the best counts, as in AmbigQA's F1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from core.metrics.base import Example, Value
from core.text import contains_tokens, word_tokens


def covered(passages: Sequence[str], answers: Sequence[Sequence[str]]) -> int:
    """The number of answers with an alias in some passage.

    >>> covered(["Rome is old.", "Oslo is cold."], [["Rome"], ["Paris", "City of Light"]])
    1
    """
    texts = [word_tokens(p) for p in passages]
    return sum(any(contains_tokens(text, word_tokens(alias)) for text in texts for alias in aliases) for aliases in answers)


def recall_at_k(passages: Sequence[str], answers: Sequence[Sequence[str]], k: int) -> float:
    """1 if some alias of some answer is in the top k passages.

    >>> recall_at_k(["Rome is old.", "Oslo is cold."], [["Oslo"]], 1)
    0.0
    """
    return float(covered(passages[:k], answers) > 0)


def mrecall_at_k(passages: Sequence[str], answers: Sequence[Sequence[str]], k: int) -> float:
    """1 if the top k passages cover all n answers (n <= k), or at least k of them (n > k).

    >>> mrecall_at_k(["Rome or Oslo"], [["Oslo"], ["Rome"]], 2), mrecall_at_k(["Rome or Bonn"], [["Oslo"], ["Rome"]], 2)
    (1.0, 0.0)
    >>> mrecall_at_k(["Rome or Bonn"], [["Oslo"], ["Rome"]], 1)  # two answers, one passage: one is enough
    1.0
    """
    return float(covered(passages[:k], answers) >= min(k, len(answers)))


def _best(example: Example, measure: Callable[[Sequence[str], Sequence[Sequence[str]], int], float]) -> Value:
    sets = example.answer_sets
    if example.passages is None or not example.k or not sets:
        return None
    return max(measure(example.passages, answers, example.k) for answers in sets)


recall, mrecall = (partial(_best, measure=measure) for measure in (recall_at_k, mrecall_at_k))
