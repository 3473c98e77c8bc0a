"""AmbigPrompt's loop over an answering model, and the rules that end it.

Source: Sun et al. 2023, sections 2-3.  A system chooses the model (core.systems.ambigprompt, core.systems.scripted).

Two rules.  `compare`: the loop of section 3.2, which ends if [EOI] is likelier than the best candidate.  `threshold`: it ends if the probability
that no answer remains exceeds a value.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from core import types as t
from core.disambiguation.clarifiers import Clarifier
from core.models.ranking.calibration import Calibration, describe
from core.models.span.rows import prompt_text
from core.systems.base.options import Options, StoppingRule, SystemOptions
from core.systems.base.selection import UNCALIBRATED, CalibrationKey, evidence_of
from core.systems.base.system import MAXIMUM_REACHED, System, SystemParts, SystemRun
from core.text import answer_key, occurrences

STOP_ABOVE = 0.5  # default threshold of P([EOI])


@dataclass(frozen=True)
class LoopEnd:
    """The rule that ends a loop.  `above`: the limit of the rule `threshold`.  `key`: of its calibration.  `repeats`: the model
    may repeat an answer, which ends the loop."""

    rule: StoppingRule = "compare"
    above: float = STOP_ABOVE
    calibration: Calibration | None = None
    key: CalibrationKey = UNCALIBRATED
    repeats: bool = False

    def stopping_above(self, threshold: float | None) -> LoopEnd:
        """The same with a threshold set by a person, if any, which selects that rule."""
        return self if threshold is None else replace(self, rule="threshold", above=threshold)

    def calibrated(
        self, candidates: Sequence[t.Candidate], eoi: float, is_later: bool
    ) -> tuple[tuple[t.Candidate, ...], float]:
        """A step's candidates and [EOI] with the probabilities to show, calibrated if possible.  `is_later`: it isn't the first
        step."""
        if self.calibration is None:
            return tuple(candidates), eoi
        return self.calibration.candidates(candidates, eoi, is_later), self.calibration.nothing_left(eoi, is_later)

    def reason(self, candidates: Sequence[t.Candidate], eoi: float, calibrated_eoi: float) -> str:
        """The reason why the loop ends here; empty if it continues.  `candidates` and `eoi` are the model's own."""
        if not candidates:
            return "no candidate remains" if eoi < 1 else "the model gives no further answer"
        if self.rule == "compare":
            return "no further answer is likely" if eoi >= candidates[0].probability else ""
        reason = f"the probability that no answer remains is above your threshold ({self.above:.0%})"
        return reason if calibrated_eoi > self.above else ""


class LoopSystem(System):
    def __init__(
        self,
        name: str,
        parts: SystemParts,
        options: Options,
        model: Callable[[SystemRun], t.AnsweringModel],
        checkpoint: tuple[str, str] = ("", ""),
        *,
        config: SystemOptions | None = None,
        provenance: Mapping[str, Any] | None = None,
        clarifier: Clarifier | None = None,
        end: LoopEnd | None = None,
    ) -> None:
        """`model` proposes the answers of a run; `end` decides when the loop ends.  The rest is as in `System`."""
        self.model = model
        self.stopping = (end or LoopEnd()).stopping_above(options.stop_above)
        provenance = {"calibration": describe(self.stopping.calibration), **(provenance or {})}
        super().__init__(name, parts, options, checkpoint, config=config, provenance=provenance, clarifier=clarifier)

    def find(self, run: SystemRun) -> Generator[t.Event, None, str]:
        """Propose, choose, append (section 3.2), until the loop ends, the maximum is reached, or no candidate remains.

        A person's pinned answers come first and count as previous answers; banned ones are never chosen, and are also shown to the model as
        previous answers, so that it looks for others.  Yields a StepFinished for each pinned answer, then a StepStarted and a StepFinished a step.
        """
        question, passages, end, model = run.reading, run.passages, self.stopping, self.model(run)
        banned = {answer_key(b) for b in question.banned}
        previous: list[str] = []
        for text in question.pinned:
            step = t.Step(len(previous) + 1, tuple(previous), prompt_text(previous), (), t.Candidate(text, 1.0), 0.0, 0.0)
            previous.append(text)
            yield t.StepFinished(step, t.Answer(text, 1.0, occurrences(text, passages), step.number, pinned=True))
        number = len(previous)
        while len(previous) < self.options.max_answers:
            run.check()
            number += 1
            prompted = [*previous, *(b for b in question.banned if b not in previous)]
            yield t.StepStarted(number, tuple(previous), prompt_text(prompted))
            start = time.perf_counter()
            proposal = model.propose(question.text, passages, prompted)
            yield from run.calls.events()
            previous_keys = {answer_key(p) for p in previous}
            excluded = banned if end.repeats else banned | previous_keys
            by_key: dict[str, t.Candidate] = {}  # the same answer twice counts once
            for candidate in proposal.candidates:
                by_key.setdefault(answer_key(candidate.text), candidate)
            candidates = tuple(c for key, c in by_key.items() if key not in excluded)
            calibrated, eoi = end.calibrated(candidates, proposal.eoi_probability, is_later=bool(previous))
            reason = end.reason(candidates, proposal.eoi_probability, eoi)
            if not reason and answer_key(calibrated[0].text) in previous_keys:
                reason = f"the model chose '{calibrated[0].text}' again"
            choice = None if reason else calibrated[0]
            seconds = time.perf_counter() - start
            step = t.Step(number, tuple(previous), prompt_text(prompted), calibrated, choice, eoi, seconds, reason)
            if choice is None:
                yield t.StepFinished(step, None)
                return reason
            previous.append(choice.text)
            evidence = evidence_of(choice.text, [choice.evidence], passages)
            yield t.StepFinished(step, t.Answer(choice.text, choice.probability, evidence, number))
        return MAXIMUM_REACHED
