"""AmbigPrompt with its trained models: the bundled SpanAnswerer, or a FidAnswerer over encoder-decoder weights (core.models).

Source: Sun et al. 2023, sections 2-3.  With the bundled answerer a candidate reranker, second readings and a verifier are added, which the paper has not.  The loop itself is core.systems.shared.iterative; `loop: fast` is core.models.span.fast_loop.  Zero-shot (appendix B.2) is a
checkpoint after post-pretraining alone, from single-answer data: name it in AMBISCOPE_ANSWERER; a prediction remembers its stage.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import CheckpointError
from core.models.finding import SEQ2SEQ_ANSWERER
from core.models.ranking.calibration import describe
from core.models.span.reader import load_reader
from core.settings import OFF
from core.systems.shared.base import Options, Parts, read_extra
from core.systems.shared.candidates import check_share
from core.systems.shared.clarifying import clarifier_options, make_clarifier
from core.systems.shared.iterative import AmbigPrompt
from core.systems.shared.stopping import CALIBRATED, OF_LOOPS, LoopEnd, Place, digest_of
from core.types import AnsweringModel

if TYPE_CHECKING:
    from core.models.ranking.features import Judge
    from core.models.ranking.reranker import Kind, Weights

ROUND_TRIPS = ("answerer", "reader")  # the first one is the default
LOOPS = ("exact", "fast")
RERANKING = ("on", "off")  # on: where the checkpoint has a reranker (core.models.ranking.reranker)
# the ablations of Table 3 are mechanisms that weights are trained under; "trained": the checkpoint's own
PROMPTINGS = ("trained", "interleaved", "separate", "learned")


def _check_prompting(wanted: str, trained: str, checkpoint: str) -> None:
    """Raises CheckpointError for weights that were trained under another mechanism: they would run, and their answers mean nothing."""
    if wanted not in ("trained", trained):
        raise CheckpointError(
            f"checkpoint '{checkpoint}' was trained with prompting {trained}, not {wanted}; train one with "
            f"`python -m core train answerer --prompting {wanted}` (seq2seq for an encoder-decoder) and name it in AMBISCOPE_ANSWERER"
        )


def _loop_options() -> dict[str, Any]:
    from core.models.span.fast_loop import Rereading

    ending = {"stop": OF_LOOPS, "calibration": CALIBRATED}
    return {"loop": LOOPS, "reread": Rereading().share, "prompting": PROMPTINGS, **ending}


def _rereading(chosen: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """(how a fast loop rereads, or None for the exact one; what SystemInfo remembers of it).  Takes the options out of `chosen`."""
    from core.models.span.fast_loop import Rereading

    loop, share = chosen.pop("loop"), check_share("reread", chosen.pop("reread"))
    rereading = Rereading(share) if loop == "fast" else None
    return rereading, {"loop": loop} | (asdict(rereading) if rereading else {})


def _end(chosen: dict[str, Any], options: Options, checkpoint: str, place: Place) -> tuple[LoopEnd, dict[str, Any]]:
    """(when the loop ends, what SystemInfo remembers of it).  Takes the options out of `chosen`.  Raises InputError, CheckpointError."""
    stop = chosen.pop("stop")
    end = LoopEnd.chosen(options.stop_above, stop, place.find(checkpoint, stop, chosen.pop("calibration")), place)
    return end, {"stop": end.rule, "calibration": describe(end.calibration)}


def _reranker(folder: Path, parts: Parts) -> tuple[Kind | None, Weights | None, Judge | None, dict[str, Any]]:
    """(which reranker beside a checkpoint's weights is used, the reranker, the verifier that it asks, what SystemInfo remembers of that one).

    The first that there is: one for questions that bring their passages before one for retrieved ones, one that asks the verifier before one that does
    not, where the verifier can run.  Raises CheckpointError for damaged files.
    """
    from core.models.ranking.reranker import read_weights
    from core.models.ranking.verifier import load_verifier

    settings = parts.settings
    kept: dict[str, Any] = {"verifier": None}
    order: list[Kind] = ["retrieved_verified", "retrieved"]
    if parts.retriever is None:
        order = ["own_verified", "own", *order]
    for kind in order:
        weights = read_weights(folder, kind)
        if weights is None or (weights.asks_verifier and settings.verifier == OFF):
            continue
        if not weights.asks_verifier:
            return kind, weights, None, kept
        try:
            verifier, digest = load_verifier(settings.verifier, settings.device)
            return kind, weights, verifier.judge, {"verifier": settings.verifier, "verifier_digest": digest}
        except CheckpointError as error:  # its base is a package of 400 MB, which an installation may lack
            if settings.verifier != "default":
                raise
            kept["verifier_missing"] = str(error)
    return None, None, None, kept


def build(parts: Parts, options: Options) -> AmbigPrompt:
    """Raises InputError for an option that it does not have, CheckpointError."""
    from core.models.finding import find_checkpoint
    from core.models.ranking.features import read_with
    from core.models.ranking.reranker import RerankedAnswerer, describe
    from core.models.span.answerer import Decoding, load_answerer
    from core.models.span.checkpoints import training_of
    from core.models.span.fast_loop import FastSpanLoop

    default = Decoding()
    known = {n: getattr(default, n) for n in ("retrieval_prior", "eoi_bias", "reader_weight")}
    chosen = read_extra(
        options, "ambigprompt", known | {"reranking": RERANKING} | _loop_options() | clarifier_options(ROUND_TRIPS)
    )
    clarifying = {name: chosen.pop(name) for name in clarifier_options()}
    prompting, reranking, settings = chosen.pop("prompting"), chosen.pop("reranking"), parts.settings
    rereading, loop_used = _rereading(chosen)
    stopping = {name: chosen.pop(name) for name in ("stop", "calibration")}
    decoding = replace(default, **chosen)
    folder = find_checkpoint(settings.answerer, "answerer")
    trained = training_of(folder)  # before weights are loaded for nothing
    _check_prompting(prompting, trained.prompting, settings.answerer)
    model, digest = load_answerer(settings.answerer, settings.device, decoding)
    used: dict[str, Any] = {"decoding": asdict(decoding), **loop_used, "prompting": trained.prompting, "stage": trained.stage}
    kind, reranker, judge = None, None, None
    if reranking == "on" and parts.embed is not None:
        kind, reranker, judge, verified = _reranker(folder, parts)
        used |= verified
    used["reranking"] = describe(reranker) if reranker else None
    reader, model.reader = None, None
    if decoding.reader_weight or reranker:
        reader, reader_digest = load_reader(settings.reader, settings.device)
        used |= {"reader": settings.reader, "reader_digest": reader_digest}
    if decoding.reader_weight:
        model.reader = reader
    decides = digest_of(digest, *(used.get(n) for n in ("decoding", "reranking", "verifier_digest", "reader_digest")))
    end, ending = _end(stopping, options, settings.answerer, Place(f"ambigprompt {kind or 'plain'}", "answerer", decides))
    used |= ending
    clarifier, more = make_clarifier(clarifying, settings, options.clarify, model)

    def reranked(proposing: AnsweringModel) -> AnsweringModel:
        if reranker is None or parts.embed is None or reader is None:
            return proposing
        return RerankedAnswerer(proposing, reranker, parts.embed, read_with(reader), judge)

    return AmbigPrompt(
        "ambigprompt",
        parts,
        options,
        reranked(model),
        None,
        (settings.answerer, digest),
        used=used | more,
        clarifier=clarifier,
        loop=(lambda: reranked(FastSpanLoop(model, rereading))) if rereading else None,
        end=end,
    )


def build_seq2seq(parts: Parts, options: Options) -> AmbigPrompt:
    """Raises InputError for an option that it does not have, CheckpointError."""
    from core.models.seq2seq.fid import Generation, load_fid
    from core.models.span.fast_loop import FastTextLoop

    known = {"eoi_bias": Generation().eoi_bias, **_loop_options(), **clarifier_options(ROUND_TRIPS)}
    chosen = read_extra(options, "ambigprompt-seq2seq", known)
    rereading, loop_used = _rereading(chosen)
    generation, settings = Generation(eoi_bias=chosen["eoi_bias"]), parts.settings
    model, digest = load_fid(settings.answerer, settings.device, generation)
    if model.config.target != "step":
        raise CheckpointError(
            f"{settings.answerer} was trained to write whole answer sets, not one answer a step: name it in AMBISCOPE_SEQ2SEQ for "
            "fid and spanseqgen, or train one with --target step"
        )
    _check_prompting(chosen["prompting"], model.config.prompting, settings.answerer)
    place = Place("ambigprompt-seq2seq", SEQ2SEQ_ANSWERER, digest_of(digest, asdict(generation)))
    end, ending = _end(chosen, options, settings.answerer, place)
    clarifier, more = make_clarifier(chosen, settings, options.clarify, model)
    used = {"decoding": asdict(generation), **loop_used, "prompting": model.config.prompting, **ending, **more}
    return AmbigPrompt(
        "ambigprompt-seq2seq",
        parts,
        options,
        model,
        None,
        (settings.answerer, digest),
        used=used,
        clarifier=clarifier,
        loop=(lambda: FastTextLoop(model, rereading)) if rereading else None,
        end=end,
    )
