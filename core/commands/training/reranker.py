"""`python -m core train reranker`: fits a system's rerankers on questions that its models were not trained on."""

from __future__ import annotations

import json
import shutil
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from core import disk
from core.engine import Engine
from core.errors import CheckpointError, InputError
from core.models.loading.finding import find_checkpoint
from core.models.ranking.calibration import FILE as CALIBRATIONS
from core.models.ranking.calibration import write_calibration
from core.models.ranking.features import OF_VERIFIER
from core.models.ranking.reranker import KINDS, Kind, Weights, read_weights, write_weights
from core.models.scheduling.device import bf16_autocast, pick_device
from core.settings import OFF, Settings
from core.systems import SYSTEMS, options_of
from core.systems.base.options import Options
from core.training import judgments
from core.training.data.held_out_passages import held_out_passages, own_passages
from core.training.options import RerankerOptions
from core.training.output_cache import cached_outputs
from core.training.reranker import LoopRuns, fit_reranker, runs_of
from core.training.runs import say

TOP_K = 10
NEAR = "judgments.json"  # in OUT: what a fit near the present rerankers did


def fit(options: RerankerOptions, settings: Settings, out: Path) -> dict[str, Any]:
    """Writes OUT: a copy of the checkpoint with rerankers for retrieved passages (--annotated), for questions' own
    passages (--multi), or both.

    Raises InputError, CheckpointError, StorageError.
    """
    SYSTEMS[options.system]
    if "additions" not in options_of(options.system).names():
        able = ", ".join(name for name in SYSTEMS if "additions" in options_of(name).names())
        raise InputError(f"{options.system} takes no additions; fit the rerankers of one of {able}")
    settings = replace(settings, answerer=options.init or "default", reader=options.reader or settings.reader)
    engine = Engine(settings)
    report: dict[str, Any] = {"system": options.system}
    fitted: dict[Kind, Weights] = {}
    judged: Any = None  # the runs of judged questions
    checkpoint = find_checkpoint(settings.answerer, "answerer")

    def fit_from_nothing(kind: Kind, verified: Kind, found: Any, corpora: list[str], of: str) -> None:
        """A reranker alone, and one that asks the verifier."""
        nonlocal checkpoint
        said = f"{len(found[0])} questions of {of}"
        runs, about = runs_of(engine, options.system, found[0], found[1], corpora, "verifier" in options.additions, say)
        checkpoint = about.pop("folder")
        report.update(about)
        for name, without in ((kind, OF_VERIFIER), (verified, ())):
            if ("reranker" if without else "verifier") in options.additions and (without or settings.verifier != OFF):
                fitted[name], figures = fit_reranker(runs, fitted_on=said, without=without)
                report[name] = {"fitted_on": said, **figures}

    def fit_all_near(found: Any, of: str) -> None:
        """Each reranker that the system has, near what it is."""
        nonlocal checkpoint, judged
        verified = "verifier" in options.additions and settings.verifier != OFF
        examples, passages = found
        try:
            runs, about = runs_of(engine, options.system, examples, passages, [""] * len(examples), verified, say)
        except CheckpointError:  # its base may not be installed
            if not verified or settings.verifier != "default":
                raise
            verified = False
            runs, about = runs_of(engine, options.system, examples, passages, [""] * len(examples), verified, say)
        judged = runs
        checkpoint = about.pop("folder")
        report.update(about)
        for kind in KINDS:
            present = read_weights(checkpoint, kind, options.system)
            if present is not None and (present.asks_verifier == verified):
                near = judgments.fit_near(runs, present, f"{present.fitted_on}; then {len(found[0])} judged questions of {of}")
                fitted[kind] = near.weights
                report[kind] = near.to_json()
        if not fitted:
            raise InputError(
                f"{options.system} has no reranker beside {checkpoint} that could be fitted further: leave --near out"
            )

    def recalibrate(folder: Path) -> None:
        """Each calibration near what it is; under another reranker it stands for the new weights in any case."""
        if not isinstance(judged, LoopRuns) or not (checkpoint / CALIBRATIONS).is_file():
            return
        for kind, weights in fitted.items():
            before, after = (
                getattr(  # noqa: B009 - every system with calibrations has it, the protocol has not
                    Engine(replace(settings, answerer=str(where))).system(
                        options.system, None, Options(clarify=False), own_passages=kind.startswith("own")
                    ),
                    "stopping",
                )
                for where in (checkpoint, folder)
            )
            if before.calibration is not None:
                questions = sum(bool(e.gold) for e in judged.examples)
                said = f"{before.calibration.fitted_on}; then {questions} judged questions"
                near = judgments.calibrate_near(
                    judgments.recorded(judged, weights), before.calibration, said, after.key.weights
                )
                write_calibration(folder, after.key.name, near.calibration)
                report[kind]["calibration"] = near.to_json()

    with ExitStack() as how:
        if options.keep:
            how.enter_context(cached_outputs(options.keep))
        if options.quick:
            how.enter_context(bf16_autocast(pick_device(settings.device)))
        if options.annotated:
            names = ", ".join(f.resolve().name for f in options.annotated)
            found = held_out_passages(engine, options.annotated, TOP_K, options.limit, options.seed)
            corpora = [e.extra["folder"] for e in found[0]]
            fit_from_nothing("retrieved", "retrieved_verified", found, corpora, f"{names} held out from training")
        names = ", ".join(f.name for f in options.multi)
        if options.near:
            fit_all_near(own_passages(engine, options.multi, options.limit, options.seed, judged=True), names)
        elif options.multi:
            found = own_passages(engine, options.multi, options.limit, options.seed)
            fit_from_nothing("own", "own_verified", found, [""] * len(found[0]), names)
    with disk.locked(out, "a training"):
        for file in checkpoint.iterdir():
            if file.is_file() and file.resolve() != (out / file.name).resolve():
                with disk.replacing(out / file.name) as draft:
                    shutil.copyfile(file, draft)
        for kind, weights in fitted.items():
            write_weights(out, weights, kind, options.system)
        if options.near:
            recalibrate(out)
            disk.write_text(out / NEAR, json.dumps({kind: report[kind] for kind in fitted}, indent=1))
    return report
