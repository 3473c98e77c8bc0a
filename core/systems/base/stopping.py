"""When an answer set is complete: which candidates to keep, given the probability that each is right.

Three rules.  `compare`: the loop of Sun et al. 2023, section 3.2, which ends if [EOI] is likelier than the best candidate.  `threshold`: it ends if the
probability that nothing is left exceeds a value; a system that reads once keeps candidates above its threshold (Min et al. 2020, section 5).  `expected-f1`: the set
with the highest expected F1 is kept (core.systems.base.expected_f1), which needs calibrated probabilities (core.models.ranking.calibration).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from core.errors import InputError
from core.models.loading.finding import named_folder
from core.models.ranking.calibration import Calibration, describe, read_calibration
from core.systems.base.expected_f1 import most_expected
from core.text import answer_key, shares_words
from core.types import Candidate, Question

Rule = Literal["compare", "threshold", "expected-f1"]
OF_LOOPS: tuple[Rule, ...] = ("compare", "threshold", "expected-f1")  # the first one is the default
OF_READERS: tuple[Rule, ...] = ("threshold", "expected-f1")
CALIBRATED = ("on", "off")  # off: uncalibrated probabilities, for fitting a calibration
LEAST = 1  # minimum for `expected-f1`: no reference set is empty
ABOVE = 0.5  # default threshold of a loop


def distinct(candidates: Sequence[Candidate], taken: Sequence[str] = ()) -> list[Candidate]:
    """The candidates that neither contain nor are part of a better one or of `taken`: at most one of two readings of an answer is right."""
    kept: list[Candidate] = []
    for c in candidates:
        if not shares_words(c.text, (*taken, *(k.text for k in kept))):
            kept.append(c)
    return kept


@dataclass(frozen=True)
class Place:
    """The place of a system's calibration: next to the weights of `kind`, under `name`; `weights`: a digest of all that affects its probabilities.

    `instead`: the name that is looked for where there is none under `name`.
    """

    name: str = ""
    kind: str = ""
    weights: str = ""
    instead: str = ""

    def of_own(self) -> Place:
        """The place for questions that bring their passages, which somebody selected; without a calibration there, that of retrieved ones is used."""
        return replace(self, name=f"{self.name} own", instead=self.name)

    def find(self, checkpoint: str, stop: str, wanted: str) -> Calibration | None:
        """Loads the system's calibration, if used.  `checkpoint`: name of the weights; `stop` and `wanted`: the options `stop` and `calibration`.

        Raises InputError if the rule needs a missing calibration, CheckpointError.
        """
        folder = named_folder(checkpoint, self.kind)
        found = None
        if folder is not None and wanted == "on":
            found = read_calibration(folder, self.name, self.weights)
            if found is None and self.instead:
                found = read_calibration(folder, self.instead, self.weights)
        if found is None and stop == "expected-f1":
            raise InputError(
                f"stop=expected-f1 needs calibrated probabilities, but there are none for '{self.name}' with these weights; use another rule, "
                "leave calibration on, or fit one with: python -m core train calibration"
            )
        return found


def digest_of(*parts: object) -> str:
    """First 16 hex digits of the sha256 of everything that affects a system's probabilities."""
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class LoopEnd:
    """When a loop ends.  `above`: of the rule `threshold`; `place`: of its calibration; `repeats`: the model may repeat an answer, which ends the loop."""

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
        """`stop_above`: a threshold set by a person, which selects that rule.  Raises InputError for a rule without a threshold."""
        if stop_above is None:
            return cls(rule, ABOVE, calibration, place)
        if rule == "expected-f1":
            raise InputError("a stopping threshold cannot be combined with stop=expected-f1; remove one of them")
        return cls("threshold", stop_above, calibration, place)

    def shown(self, candidates: Sequence[Candidate], eoi: float, later: bool) -> tuple[tuple[Candidate, ...], float]:
        """The displayed probabilities of a step's candidates and [EOI]: calibrated if possible."""
        if self.calibration is None:
            return tuple(candidates), eoi
        return self.calibration.candidates(candidates, eoi, later), self.calibration.nothing_left(eoi, later)

    def why(
        self, given: Sequence[float], candidates: Sequence[Candidate], eoi: float, shown: Sequence[Candidate], left: float
    ) -> str:
        """Why the loop ends here; empty if it continues.

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
    """The selection of a system that reads once: pinned answers, then the candidates that its rule keeps.  `place`: of its calibration."""

    threshold: float
    rule: Rule = "threshold"
    calibration: Calibration | None = None
    place: Place = Place()

    def keep(
        self, candidates: Sequence[Candidate], question: Question, most: int
    ) -> tuple[list[Candidate], tuple[Candidate, ...]]:
        """(kept candidates, all candidates), calibrated if possible.  `candidates`: likeliest first.

        Keeps no banned candidate, none that is part of another, and at most `most`, including pinned ones.
        """
        banned = {answer_key(b) for b in question.banned}
        pinned = [Candidate(p, 1.0) for p in question.pinned]
        free = distinct([c for c in candidates if answer_key(c.text) not in banned], question.pinned)
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
        """The entry in SystemInfo."""
        return {"stop": self.rule, "calibration": describe(self.calibration)}
