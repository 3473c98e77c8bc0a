"""`score`: AmbigQA's metrics of predictions against references, with the values of each question.

Source: Min et al. 2020 and the authors' script, whose values it reproduces (tests/metrics).  `evaluate` serves the same definitions through
`values_of` and `table`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path

from core import json_io
from core.errors import PluginError
from core.metrics import METRICS, SCORE_METRICS, entry_of, metric
from core.metrics.base import Example, Value, mean
from core.metrics.grounding import harmonic
from core.metrics.score.files import Predicted, parse_predictions, parse_references
from core.types import SCOPES, ReferenceQuestion

Table = dict[str, dict[str, Value]]  # metric -> {"all": x, "multi": y}


@dataclass(frozen=True, slots=True)
class Scores:
    """Fractions.  `values[metric]["all" | "multi"]`, None where undefined; `per_question[id][metric]`.

    `without_answer` and `missing`: how many questions have an empty list of answers, and how many no entry in the file.
    """

    values: Table
    per_question: dict[str, dict[str, Value]]
    without_answer: int = 0
    missing: int = 0


def values_of(example: Example, names: Sequence[str]) -> dict[str, Value]:
    """One question's value of each metric.  Raises PluginError if a plugin's metric fails or returns something other than a
    number."""
    return {name: _value(name, example) for name in names}


def _value(name: str, example: Example) -> Value:
    with METRICS.running(name):
        value = metric(name)(example)
        if value is None:
            return None
        if not isinstance(value, Real) or not math.isfinite(value):
            raise ValueError(f"the value is {value!r}; it must be a finite number or None")
        return value if type(value) in (int, float) else float(value)


def values_and_errors(example: Example, names: Sequence[str]) -> tuple[dict[str, Value], dict[str, str]]:
    """The same, with the reason for each plugin's metric that has no value.  The metric is then undefined for this question."""
    values: dict[str, Value] = {}
    errors: dict[str, str] = {}
    for name in names:
        try:
            values[name] = _value(name, example)
        except PluginError as error:
            values[name], errors[name] = None, str(error)
    return values, errors


def table(
    rows: Sequence[Mapping[str, Value]],
    ambiguous: Sequence[bool],
    names: Sequence[str],
    weights: Mapping[str, Sequence[float]] | None = None,
) -> Table:
    """Means over all questions and over the ambiguous ones (AmbigQA's *multi*).

    >>> table([{"F1 answer": 1.0}, {"F1 answer": 0.5}], [False, True], ["F1 answer"])
    {'F1 answer': {'all': 0.75, 'multi': 0.5}}
    """
    means: Table = {}
    for name in names:
        if parts := entry_of(name).harmonic_of:
            a, b = (table(rows, ambiguous, [part])[part] for part in parts)
            means[name] = {scope: harmonic(a[scope], b[scope]) for scope in SCOPES}
            continue
        values = [row.get(name) for row in rows]
        weight = (weights or {}).get(name)
        ambiguous_rows = [i for i, yes in enumerate(ambiguous) if yes]
        multi = mean([values[i] for i in ambiguous_rows], [weight[i] for i in ambiguous_rows] if weight else None)
        means[name] = {"all": mean(values, weight), "multi": multi}
    return means


def score(references: Sequence[ReferenceQuestion], predictions: Mapping[str, Predicted]) -> Scores:
    """AmbigQA's metrics.  The question metrics are None if the predictions have no questions."""
    rows: dict[str, dict[str, Value]] = {}
    for reference in references:
        predicted = predictions[reference.id]
        example = Example(reference.question, reference.annotations, predicted.answers, predicted.questions)
        rows[reference.id] = values_of(example, SCORE_METRICS)
    values = table(list(rows.values()), [r.ambiguous for r in references], SCORE_METRICS)
    missing = sum(p.is_missing for p in predictions.values())
    return Scores(values, rows, sum(not p.answers for p in predictions.values()) - missing, missing)


def score_files(references: Path, predictions: Path) -> Scores:
    """`score` of two files.  Raises FormatError naming file, question and field, or InputError if a file cannot be read."""
    rows = parse_references(json_io.read(references), references.name)
    return score(rows, parse_predictions(json_io.read(predictions), [row.id for row in rows], predictions.name))
