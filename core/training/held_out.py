"""Held-out figures during training: complete runs of an answering model over many questions at once.

They only monitor a training and compare settings; reported results come from core.evaluation.run.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.decoding import run_answers
from core.metrics.answers import f1
from core.training.data.examples import MultiExample
from core.types import BatchAnsweringModel, Passage, RetrievedPassage


def passages_of(e: MultiExample) -> list[RetrievedPassage]:
    """The example's own passages, in their order."""
    return [RetrievedPassage(Passage(str(j), title, text), j + 1, 0.0) for j, (title, text) in enumerate(e.passages)]


def with_mean(figures: dict[str, float]) -> dict[str, float]:
    """The figures of the held-out sets, and their mean as "figure", by which the best weights are selected; {} without any."""
    return {**figures, "figure": sum(figures.values()) / len(figures)} if figures else {}


def run_f1(model: BatchAnsweringModel, examples: Sequence[MultiExample], max_answers: int = 8, batch: int = 8) -> float:
    """Mean F1 answer of runs over the examples' own passages, from 0 to 1.  `batch`: questions at a time."""
    runs = run_answers(model, [e.question for e in examples], [passages_of(e) for e in examples], max_answers, batch)
    return sum(f1(e.gold, answers) for answers, e in zip(runs, examples)) / max(1, len(examples))
