"""`python -m core train calibration`: fits systems' calibrations on held-out questions."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from core import types as t
from core.engine import Engine
from core.models.loading.finding import find_checkpoint
from core.models.ranking.calibration import write_calibration
from core.settings import Settings
from core.systems import SYSTEMS, options_of
from core.systems.base.options import TOP_K, Options
from core.training.calibration import (
    MAX_END_PROBABILITY,
    CalibrationQuestion,
    cross_fitted,
    fit_calibration,
    record_runs,
    reliable,
)
from core.training.data.absent import with_another_name, without_support
from core.training.data.examples import MultiExample
from core.training.data.held_out_passages import held_out_passages, own_examples
from core.training.held_out import passages_of
from core.training.options import CalibrationOptions
from core.training.runs import say

ABSENT_SHARE = 0.25  # questions without an answer, for each question of --annotated: real corpora don't hold everything
MAX_ANSWERS = 50  # candidates of a system that reads once


def fit(options: CalibrationOptions, settings: Settings, out: Path) -> dict[str, Any]:
    """Writes OUT/NAME/calibration.json, which belongs next to the weights of the checkpoint NAME, and
    OUT/runs, which later calls reuse.

    Raises InputError, CheckpointError.
    """
    for name in options.systems:
        SYSTEMS[name]
    engine = Engine(settings)
    report: dict[str, Any] = {}
    questions = _questions_by_corpus(engine, options)
    for name in options.systems:
        runs = []
        for corpus, corpus_questions in questions.items():
            system = engine.system(name, corpus or None, raw_options(name), own_passages=not corpus)
            key = getattr(system, "stopping").key  # noqa: B009 - every system of SYSTEMS has it, the protocol has not
            file = out / "runs" / f"{name}-{corpus or 'own'}-{key.weights}.jsonl"
            runs += record_runs(system, corpus_questions, file, say)
        sources = [f"{folder.resolve().name} (held out)" for folder in options.annotated] + [f.name for f in options.multi]
        description = f"{len(runs)} questions of {', '.join(sources)}"
        folder = find_checkpoint(getattr(settings, key.kind), key.kind).name
        write_calibration(out / folder, key.name, fit_calibration(runs, description, key.weights))
        report[key.name] = reliable(runs, cross_fitted(runs))
        say(f"{key.name}: {report[key.name]}")
    return report


def raw_options(name: str) -> Options:
    """Options that make a system continue beyond its normal end, with uncalibrated probabilities."""
    raw = {"calibration": "off"}
    if "loop" in options_of(name).names():
        return Options(top_k=TOP_K, stop_above=MAX_END_PROBABILITY, clarify=False, extra=raw)
    return Options(top_k=TOP_K, max_answers=MAX_ANSWERS, clarify=False, extra={**raw, "threshold": 0.0})


def _questions_by_corpus(engine: Engine, options: CalibrationOptions) -> dict[str, list[CalibrationQuestion]]:
    """The questions by corpus, with "" for those that bring their own passages: the ones of --multi, and those without an answer."""
    questions_by_corpus: dict[str, list[CalibrationQuestion]] = {}
    own: list[CalibrationQuestion] = []
    for folder in options.annotated:
        name, limit = folder.resolve().name, -(-options.limit // len(options.annotated))
        examples, _ = held_out_passages(engine, [folder], 1, limit, options.seed, options.skip)
        questions_by_corpus[name] = [
            CalibrationQuestion(f"{name}/{i}", t.Question(e.question), (e.gold,)) for i, e in enumerate(examples)
        ]
        absent = [*without_support(examples), *with_another_name(examples, options.seed)]
        sampled = random.Random(options.seed).sample(absent, min(len(absent), round(ABSENT_SHARE * len(examples))))
        own += [_with_passages(f"{name}/absent/{i}", e) for i, e in enumerate(sampled)]
    if options.multi:
        own += [_with_passages(str(i), e) for i, e in enumerate(own_examples(options.multi, options.limit, options.seed))]
    if own:
        questions_by_corpus[""] = own
    return questions_by_corpus


def _with_passages(key: str, e: MultiExample) -> CalibrationQuestion:
    return CalibrationQuestion(key, t.Question(e.question, passages=tuple(p.passage for p in passages_of(e))), (e.gold,))
