"""Greedy runs of an answering model to [EOI], many questions advancing together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from core.types import BatchAnsweringModel, RetrievedPassage


def run_answers(
    model: BatchAnsweringModel,
    questions: Sequence[str],
    passages: Sequence[Sequence[RetrievedPassage]],
    max_answers: int = 8,
    batch: int = 8,
    previous: Sequence[Sequence[str]] = (),
    ends: Callable[[str], bool] | None = None,
) -> list[list[str]]:
    """Runs to [EOI]; questions of similar length share a batch.

    `previous`: answers that each question already has; they come first in the prompt and are not returned.  `ends`: whether a run can stop after
    an answer.
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
                    if len(answers[i]) < max_answers and not (ends and ends(top.text)):
                        unfinished.append(i)
        running = unfinished
    return answers
