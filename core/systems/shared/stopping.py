"""When an answer set is whole, as a decision: which candidates are worth keeping, given the probability that each is right.

Three rules.  `compare`: the loop of Sun et al. 2023, section 3.2, which ends where [EOI] is likelier than the best candidate.  `threshold`: it ends where the
probability that nothing is left exceeds a value; a system that reads once keeps what reaches its threshold (Min et al. 2020, section 5).  `expected-f1`: what is
kept is what has the highest expected F1 (core.systems.shared.expected_f1), which needs calibrated probabilities (core.models.ranking.calibration).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from core.errors import InputError
from core.models.finding import named_folder
from core.models.ranking.calibration import Calibration, describe, read_calibration
from core.systems.shared.expected_f1 import most_expected
from core.text import normalize_answer, overlapping
from core.types import Candidate, Question

Rule = Literal["compare", "threshold", "expected-f1"]
OF_LOOPS: tuple[Rule, ...] = ("compare", "threshold", "expected-f1")  # the first one is the default
OF_READERS: tuple[Rule, ...] = ("threshold", "expected-f1")
CALIBRATED = ("on", "off")  # off: probabilities as the model gives them, for fitting a calibration
LEAST = 1  # answers of `expected-f1`: no set of references is empty, so an empty set is surely wrong
ABOVE = 0.5  # of `threshold` in a loop where no other value is given


def distinct(candidates: Sequence[Candidate], taken: Sequence[str] = ()) -> list[Candidate]:
    """Those that are no part of a better one or of what is taken, and that hold none: of two readings of one answer one at most is right."""
    kept: list[Candidate] = []
    for c in candidates:
        if not any(overlapping(c.text, other) for other in (*taken, *(k.text for k in kept))):
            kept.append(c)
    return kept


@dataclass(frozen=True)
class Place:
    """Where the calibration of a system lies: beside the weights of `kind`, under `name`; `weights`: a digest of all that decides its probabilities."""

    name: str = ""
    kind: str = ""
    weights: str = ""

    def find(self, checkpoint: str, stop: str, wanted: str) -> Calibration | None:
        """The calibration that a system answers with.  `checkpoint`: name of the weights; `stop` and `wanted`: the options `stop` and `calibration`.

        Raises InputError if the rule needs a calibration and there is none, CheckpointError.
        """
        folder = named_folder(checkpoint, self.kind)
        found = read_calibration(folder, self.name, self.weights) if folder is not None and wanted == "on" else None
        if found is None and stop == "expected-f1":
            raise InputError(
                f"stop=expected-f1 needs calibrated probabilities, and there are none of '{self.name}' for these weights; use another rule, "
                "leave calibration on, or fit one with: python -m core train calibration"
            )
        return found


def digest_of(*parts: object) -> str:
    """First 16 hex digits of the sha256 of what decides a system's probabilities, as text."""
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class LoopEnd:
    """When a loop ends.  `above`: of the rule `threshold`; `place`: of its calibration; `repeats`: the model may choose an answer again, which ends it."""

    rule: Rule = "compare"
    above: float = ABOVE
    calibration: Calibration | None = None
    place: Place = Place()
    repeats: bool = False

    @classmethod
    def chosen(
        cls,
        stop_above: float | None,
        rule: Rule = "compare",
        calibration: Calibration | None = None,
        place: Place = Place(),
    ) -> LoopEnd:
        """`stop_above`: a person's value of `threshold`, which chooses that rule.  Raises InputError if one was chosen that has no value."""
        if stop_above is None:
            return cls(rule, ABOVE, calibration, place)
        if rule == "expected-f1":
            raise InputError("a stopping threshold was given and stop=expected-f1, which has none; leave one of them out")
        return cls("threshold", stop_above, calibration, place)

    def shown(self, candidates: Sequence[Candidate], eoi: float, later: bool) -> tuple[tuple[Candidate, ...], float]:
        """What a step's candidates and [EOI] are said to be worth: calibrated where that is known."""
        if self.calibration is None:
            return tuple(candidates), eoi
        return self.calibration.candidates(candidates, eoi, later), self.calibration.nothing_left(eoi, later)

    def why(
        self, given: Sequence[float], candidates: Sequence[Candidate], eoi: float, shown: Sequence[Candidate], left: float
    ) -> str:
        """Why the loop ends here, in words; empty if it goes on.

        `given`: the probabilities of the answers so far; `candidates` and `eoi`: as the model gives them; `shown` and `left`: as `shown` gives them.
        """
        if not candidates:
            return "no candidate is left"
        if self.rule == "threshold":
            return f"P([EOI]) exceeds the threshold {self.above:g}" if left > self.above else ""
        if self.rule == "expected-f1":
            further = most_expected([c.probability for c in distinct(shown)], given, LEAST)
            return "" if further else "a further answer would lower the expected F1"
        return "[EOI] is likelier than every answer" if eoi >= candidates[0].probability else ""


@dataclass(frozen=True)
class Selection:
    """What a system keeps that reads once: pinned answers, then the candidates that its rule takes.  `place`: of its calibration."""

    threshold: float
    rule: Rule = "threshold"
    calibration: Calibration | None = None
    place: Place = Place()

    def keep(
        self, candidates: Sequence[Candidate], question: Question, most: int
    ) -> tuple[list[Candidate], tuple[Candidate, ...]]:
        """(what is kept, all candidates), both as they are shown: calibrated where that is known.  `candidates`: the likeliest first.

        None that is banned is kept, none that is part of another, and no more than `most`, pinned ones included.
        """
        banned = {normalize_answer(b) for b in question.banned}
        pinned = [Candidate(p, 1.0) for p in question.pinned]
        free = distinct([c for c in candidates if normalize_answer(c.text) not in banned], question.pinned)
        free = free[: max(0, most - len(pinned))]
        if self.rule == "threshold":
            free = [c for c in free if c.probability >= self.threshold]
        calibration = self.calibration
        if calibration is None:
            return [*pinned, *free], tuple(candidates)
        free = list(calibration.candidates(free))
        if self.rule == "expected-f1":
            free = free[: most_expected([c.probability for c in free], [1.0] * len(pinned), LEAST)]
        return [*pinned, *free], calibration.candidates(candidates)

    def description(self) -> str:
        """Which answers were kept, for `Finished.why`."""
        return (
            "the answers of the highest expected F1" if self.rule == "expected-f1" else f"every answer above {self.threshold:g}"
        )

    def about(self) -> dict[str, Any]:
        """What SystemInfo remembers."""
        return {"stop": self.rule, "calibration": describe(self.calibration)}
