"""Calibrated probabilities of candidates and of [EOI].

Platt scaling (Platt 1999, "Probabilistic outputs for support vector machines") over the system's log odds, because its
scores are not probabilities of being right: a step's softmax is shared by all right answers, and a thresholded reader multiplies two softmaxes.  A
calibration belongs to one system and its weights.  `python -m core train calibration` fits it to held-out questions and writes it next to the weights.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from core import disk
from core.errors import CheckpointError
from core.types import Candidate

FILE = "calibration.json"
MIN_PROBABILITY = 1e-6  # so that log odds are finite
# signals of a calibration: the candidate's log odds, those of [EOI] at that step, and whether there are answers already
SIGNALS = ("odds", "end", "later")


def log_odds(p: float) -> float:
    """The natural logarithm of p / (1 - p), with p kept at least MIN_PROBABILITY away from 0 and 1."""
    clamped = min(1 - MIN_PROBABILITY, max(MIN_PROBABILITY, p))
    return math.log(clamped / (1 - clamped))


@dataclass(frozen=True)
class Platt:
    """P = 1 / (1 + exp(-(bias + sum of weight x signal))).  Missing signals have weight 0."""

    weights: Mapping[str, float]
    bias: float

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.weights) - set(SIGNALS)):
            raise CheckpointError(
                f"the calibration has signals that this version does not know ({', '.join(unknown)}); fit it again"
            )
        if not all(math.isfinite(v) for v in (*self.weights.values(), self.bias)):
            raise CheckpointError("the calibration has a weight that is not a number; fit it again")
        if self.weights.get("odds", 0.0) <= 0:
            raise CheckpointError(
                "the calibration reverses the order of the candidates (the weight of odds is not above 0); fit it again"
            )

    def __call__(self, signals: Mapping[str, float]) -> float:
        z = self.bias + sum(weight * signals[name] for name, weight in self.weights.items())
        return 1 / (1 + math.exp(-z)) if z > -700 else 0.0


@dataclass(frozen=True)
class Calibration:
    """`answer`: P(a candidate is right); `end`: P(no right answer is left), None for a system without [EOI]."""

    answer: Platt
    end: Platt | None = None
    fitted_on: str = ""  # in words
    weights: str = ""  # digest of the weights it was fitted for

    def candidates(self, candidates: Sequence[Candidate], eoi: float = 0.0, has_answers: bool = False) -> tuple[Candidate, ...]:
        """A step's candidates with calibrated probabilities, in the same order."""
        signals = {"end": log_odds(eoi), "later": float(has_answers)}
        return tuple(replace(c, probability=self.answer({**signals, "odds": log_odds(c.probability)})) for c in candidates)

    def nothing_left(self, eoi: float, has_answers: bool) -> float:
        """The calibrated probability that no right answer remains, given the model's `eoi`."""
        if self.end is None:
            return eoi
        return self.end({"odds": log_odds(eoi), "end": log_odds(eoi), "later": float(has_answers)})


def read_calibration(folder: Path, name: str, weights: str) -> Calibration | None:
    """The calibration of a system for the weights in a folder; None if there is none or it was fitted with other weights.

    `name`: of the system and the options that affect its probabilities; `weights`: their digest.  Raises CheckpointError for a damaged file.
    """
    calibrations = _read(folder)
    fields = calibrations.get(name)
    if fields is None:
        return None
    try:
        end = Platt(**fields["end"]) if fields["end"] else None
        calibration = Calibration(Platt(**fields["answer"]), end, fields["fitted_on"], fields["weights"])
    except (KeyError, TypeError, AttributeError) as error:
        raise _damaged(folder, error) from None
    return calibration if calibration.weights == weights else None


def write_calibration(folder: Path, name: str, calibration: Calibration) -> Path:
    """Writes one calibration to a folder's file and keeps those of other systems.  Raises StorageError."""
    path = folder / FILE
    body = {**_read(folder), name: asdict(calibration)}
    disk.write_json(path, dict(sorted(body.items())))
    return path


def _read(folder: Path) -> dict[str, Any]:
    path = folder / FILE
    if not path.is_file():
        return {}
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(body, dict):
            raise ValueError(f"an object was expected, not {type(body).__name__}")
    except (OSError, ValueError) as error:
        raise _damaged(folder, error) from None
    return body


def _damaged(folder: Path, error: Exception) -> CheckpointError:
    return CheckpointError(f"{folder / FILE} is damaged ({error}); fit it again with: python -m core train calibration")


def describe(calibration: Calibration | None) -> dict[str, Any] | None:
    """The calibration as a prediction stores it, in plain JSON values."""
    return None if calibration is None else asdict(calibration)
