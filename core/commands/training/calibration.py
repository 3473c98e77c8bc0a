"""`python -m core train calibration`: fits systems' calibrations on held-out questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from core import types as t
from core.engine import Engine
from core.models.loading.finding import find_checkpoint
from core.models.ranking.calibration import write_calibration
from core.settings import Settings
from core.systems import SYSTEMS, options_of
from core.systems.base.options import Options
from core.training.calibration import (
    MAX_END_PROBABILITY,
    CalibrationQuestion,
    cross_fitted,
    fit_calibration,
    record_runs,
    reliable,
)
from core.training.data.held_out_passages import held_out_passages, own_passages
from core.training.options import CalibrationOptions
from core.training.runs import say

TOP_K = 10
MOST = 50  # candidates of a system that reads once


def fit(options: CalibrationOptions, settings: Settings, out: Path) -> dict[str, Any]:
    """Writes OUT/NAME/calibration.json, which belongs next to the weights of the checkpoint NAME, and
    OUT/runs, which later calls reuse.

    Raises InputError, CheckpointError.
    """
    for name in options.systems:
        SYSTEMS[name]
    engine = Engine(settings)
    report: dict[str, Any] = {}
    asked = _asked(engine, options)
    for name in options.systems:
        followed = []
        for corpus, questions in asked.items():
            system = engine.system(name, corpus or None, raw_options(name), own_passages=not corpus)
            place = getattr(system, "stopping").key  # noqa: B009 - every system of SYSTEMS has it, the protocol has not
            file = out / "runs" / f"{name}-{corpus or 'own'}-{place.weights}.jsonl"
            followed += record_runs(system, questions, file, say)
        of = f"{', '.join(asked)} held out from training" if options.annotated else ", ".join(f.name for f in options.multi)
        said = f"{len(followed)} questions of {of}"
        folder = find_checkpoint(getattr(settings, place.kind), place.kind).name
        write_calibration(out / folder, place.name, fit_calibration(followed, said, place.weights))
        report[place.name] = reliable(followed, cross_fitted(followed))
        say(f"{place.name}: {report[place.name]}")
    return report


def raw_options(name: str) -> Options:
    """Options with which a system continues beyond its normal end, with uncalibrated probabilities."""
    raw = {"calibration": "off"}
    if "loop" in options_of(name).names():
        return Options(top_k=TOP_K, stop_above=MAX_END_PROBABILITY, clarify=False, extra=raw)
    return Options(top_k=TOP_K, max_answers=MOST, clarify=False, extra={**raw, "threshold": 0.0})


def _asked(engine: Engine, options: CalibrationOptions) -> dict[str, list[Any]]:
    """The questions by corpus; "" for those that bring their passages."""
    if options.multi:
        found = zip(*own_passages(engine, options.multi, options.limit, options.seed))
        own = [
            CalibrationQuestion(str(i), t.Question(e.question, passages=tuple(p.passage for p in passages)), (e.gold,))
            for i, (e, passages) in enumerate(found)
        ]
        return {"": own}
    out: dict[str, list[Any]] = {}
    for folder in options.annotated:
        name, most = folder.resolve().name, -(-options.limit // len(options.annotated))
        examples, _ = held_out_passages(engine, [folder], 1, most, options.seed, options.skip)
        out[name] = [CalibrationQuestion(f"{name}/{i}", t.Question(e.question), (e.gold,)) for i, e in enumerate(examples)]
    return out
