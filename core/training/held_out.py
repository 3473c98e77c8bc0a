"""Greedy runs of an answering model over many questions at once, and the held-out figures that they give during training.

The figures only monitor a training and compare settings; reported results come from core.evaluation.run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from core.metrics.answers import f1
from core.training.data.examples import MultiExample
from core.types import BatchAnsweringModel, Passage, RetrievedPassage

T = TypeVar("T")


def run_answers(
    model: BatchAnsweringModel,
    questions: Sequence[str],
    passages: Sequence[Sequence[RetrievedPassage]],
    max_answers: int = 8,
    batch: int = 8,
    previous: Sequence[Sequence[str]] = (),
) -> list[list[str]]:
    """Runs to [EOI]; questions of similar length share a batch.

    `previous`: answers that each question already has; they come first in the prompt and are not returned.
    """
    prefixes = previous or [()] * len(questions)
    answers: list[list[str]] = [[] for _ in questions]
    running = sorted(range(len(questions)), key=lambda i: sum(len(p.passage.text) for p in passages[i]))
    while running:
        unfinished = []
        for start in range(0, len(running), batch):
            group = running[start : start + batch]
            jobs = [(questions[i], passages[i], [*prefixes[i], *answers[i]]) for i in group]
            for i, proposal in zip(group, model.propose_many(jobs)):
                top = proposal.candidates[0] if proposal.candidates else None
                if top is not None and top.probability > proposal.eoi_probability:
                    answers[i].append(top.text)
                    if len(answers[i]) < max_answers:
                        unfinished.append(i)
        running = unfinished
    return answers


def passages_of(e: MultiExample) -> list[RetrievedPassage]:
    """The example's own passages, in their order."""
    return [RetrievedPassage(Passage(str(j), title, text), j + 1, 0.0) for j, (title, text) in enumerate(e.passages)]


def figures_of(held_out: Iterable[tuple[str, Sequence[T]]], judge: Callable[[Sequence[T]], float]) -> dict[str, float]:
    """`judge` of each held-out set that has examples, with their mean as "figure", which selects the best weights; {} if there
    are none.  All processes of a training call this together; each judges some of the sets."""
    from accelerate import PartialState
    from accelerate.utils import gather_object

    state, sets = PartialState(), {name: examples for name, examples in held_out if examples}
    judged = {name: judge(sets[name]) for name in list(sets)[state.process_index :: state.num_processes]}
    every = {name: value for part in gather_object([judged]) for name, value in part.items()}
    return {**{name: every[name] for name in sets}, "figure": sum(every.values()) / len(every)} if every else {}


def run_f1(model: BatchAnsweringModel, examples: Sequence[MultiExample], max_answers: int = 8, batch: int = 8) -> float:
    """Mean F1 answer of runs over the examples' own passages, from 0 to 1; of a question without an answer, 1 for an empty run.  `batch`: questions at a time."""
    runs = run_answers(model, [e.question for e in examples], [passages_of(e) for e in examples], max_answers, batch)
    return sum(f1(e.gold, answers) if e.gold else float(not answers) for answers, e in zip(runs, examples)) / max(
        1, len(examples)
    )
