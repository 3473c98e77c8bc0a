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
    given: Sequence[Sequence[str]] = (),
    ends: Callable[[str], bool] | None = None,
) -> list[list[str]]:
    """Runs to [EOI]; questions of similar length share a batch.

    `given`: answers that each question already has; they come first in the prompt and are not returned.  `ends`: whether a run can stop after
    an answer.
    """
    before = [list(g) for g in given] or [[] for _ in questions]
    done: list[list[str]] = [[] for _ in questions]
    going = sorted(range(len(questions)), key=lambda i: sum(len(p.passage.text) for p in passages[i]))
    while going:
        still = []
        for k in range(0, len(going), batch):
            group = going[k : k + batch]
            for i, proposal in zip(
                group, model.propose_many([(questions[i], passages[i], before[i] + done[i]) for i in group])
            ):
                top = proposal.candidates[0] if proposal.candidates else None
                if top is not None and top.probability > proposal.eoi_probability:
                    done[i].append(top.text)
                    if len(done[i]) < max_answers and not (ends and ends(top.text)):
                        still.append(i)
        going = still
    return done
