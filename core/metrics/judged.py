"""A judge's judgments of one question's interpretations, for the grounded metrics.

Source: Lee et al. 2025 (VerDICt), sections 4.3 and 5.1.1 and appendix A.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JudgedInterpretation:
    """One interpretation with its judgments; None if the judge failed.

    `supported`: its passage supports its answer to its question (V of Eq. 10).  `matched`: it is one of the references' meanings (Eq. 15).
    `relevant`, `answerable` and `right` are the axes of the paper's Figure 3: the passage is about the prompt question, answers some
    meaning of it, and the answer given is right.
    """

    question: str
    answer: str
    passage_id: str
    supported: bool | None
    matched: bool | None
    relevant: bool | None = None
    answerable: bool | None = None
    right: bool | None = None


@dataclass(frozen=True, slots=True)
class Grounding:
    """A judge's judgments of one question.

    `covered[j]`: reference meaning j is among the interpretations (Eq. 18).  `recalled`: for each member of the grounded gold set (Eq. 22:
    reference meanings that the passages support, and supported interpretations that are none of these), whether a cited passage supports it
    (Eq. 21).  `distinct`: number of interpretations without near duplicates.  `calls`, `failed_calls`: those that the judge made of a model.
    `error`: why something is undecided; "" if nothing is.
    """

    interpretations: tuple[JudgedInterpretation, ...]
    covered: tuple[bool | None, ...]
    recalled: tuple[bool | None, ...]
    distinct: int
    calls: int = 0
    failed_calls: int = 0
    error: str = ""
