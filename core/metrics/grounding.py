"""VerDICt's metrics of interpretations: their number, Sufficient%, ungrounded precision and recall, G-precision, G-recall, G-F1.

Source: Lee et al. 2025, sections 4.3 and 5.1.1 and appendix A.  A judge (core.evaluation.judge) decides what supports and matches what; this module
only counts.  The paper does not say when diversity is sufficient: here, from SUFFICIENT_FROM distinct interpretations on, which
gives the human row of its Table 2 20.7 on ASQA's 948 development questions where 22.02 is printed.  Means are over questions: precision is undefined if nothing was proposed, and G-F1 is the harmonic
mean of the two means, as in the paper's Table 2.
"""

from __future__ import annotations

from collections.abc import Callable

from core.metrics.base import Example, Value
from core.metrics.judged import Grounding

SUFFICIENT_FROM = 5


def share(values: tuple[bool | None, ...]) -> Value:
    """The share of True; None if there is nothing, or if the judge left something undecided, because part of a reply says
    nothing about the rest.

    >>> share((True, False)), share((True, None)), share(())
    (0.5, None, None)
    """
    decided = [v for v in values if v is not None]
    return sum(decided) / len(decided) if decided and len(decided) == len(values) else None


def harmonic(a: Value, b: Value) -> Value:
    """2ab/(a+b); 0 if either is 0, None if either is undefined.

    >>> round(harmonic(0.9282, 0.5725), 4), harmonic(0.0, 1.0), harmonic(None, 1.0)  # the first: GPT-4o of the paper's Table 2
    (0.7082, 0.0, None)
    """
    if a is None or b is None:
        return None
    return 2 * a * b / (a + b) if a > 0 and b > 0 else 0.0


def _judged(value: Callable[[Grounding], Value]) -> Callable[[Example], Value]:
    """The metric that returns `value` of an example's judgments; None without a judge."""
    return lambda example: None if example.grounding is None else value(example.grounding)


interpretations = _judged(lambda g: float(g.distinct))
sufficient = _judged(lambda g: float(g.distinct >= SUFFICIENT_FROM))
precision = _judged(lambda g: share(tuple(i.matched for i in g.interpretations)))
recall = _judged(lambda g: share(g.covered))
g_precision = _judged(lambda g: share(tuple(i.supported for i in g.interpretations)))
g_recall = _judged(lambda g: share(g.recalled))


def g_f1(example: Example) -> Value:
    """One question's G-F1; 0 for a question without any interpretation."""
    recall = g_recall(example)
    return recall and harmonic(g_precision(example) or 0.0, recall)
