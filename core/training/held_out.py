"""Held-out figures during training: complete runs of an answering model over many questions at once.

They only monitor a training and compare settings; reported results come from core.evaluation.run.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.decoding import run_answers
from core.text import normalize_answer
from core.training.data.examples import MultiExample
from core.types import BatchAnsweringModel, Passage, RetrievedPassage


def answer_f1(answers: Sequence[str], gold: Sequence[Sequence[str]]) -> float:
    """AmbigQA's F1 answer of one answer set, from 0 to 1; `gold` holds the aliases of each reference answer.

    >>> answer_f1(["Paris", "Lyon"], [["Paris", "City of Light"], ["Nice"]])
    0.5
    """
    left, hits = [normalize_answer(a) for a in answers], 0
    for names in gold:
        match = next((a for a in left if a in {normalize_answer(n) for n in names}), None)
        if match is not None:
            left.remove(match)
            hits += 1
    return 2 * hits / max(1, len(answers) + len(gold))


def run_f1(model: BatchAnsweringModel, examples: Sequence[MultiExample], max_answers: int = 8, batch: int = 8) -> float:
    """Mean F1 answer of runs over the examples' own passages, from 0 to 1.  `batch`: questions at a time."""
    passages = [
        [RetrievedPassage(Passage(str(j), title, text), j + 1, 0.0) for j, (title, text) in enumerate(e.passages)]
        for e in examples
    ]
    runs = run_answers(model, [e.question for e in examples], passages, max_answers, batch)
    return sum(answer_f1(a, e.gold) for a, e in zip(runs, examples)) / max(1, len(examples))
