"""AmbigPrompt with its trained models, and the default system: the same loop with our additions.

Source: Sun et al. 2023, sections 2-3.  `ambigprompt` is the paper's method over the bundled SpanAnswerer, `ambigprompt-seq2seq` over a FidAnswerer with
encoder-decoder weights: interleaved prompting, the loop, [EOI], whose bias was chosen on held-out questions.  `ambiscope` adds
core.systems.base.rescoring, a retrieval prior, and a filter of answers that share words with earlier ones.  The loop itself is core.systems.base.iterative;
`loop: fast` is core.models.span.fast_loop.  Zero-shot (appendix B.2) is a checkpoint after post-pretraining alone, from single-answer data: name it in
AMBISCOPE_ANSWERER; a prediction stores its stage.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from core.errors import CheckpointError
from core.models.loading.finding import SEQ2SEQ_ANSWERER
from core.models.ranking.calibration import describe
from core.models.span.reader import load_reader
from core.systems.base.base import Options, Parts, read_extra
from core.systems.base.candidates import check_share
from core.systems.base.clarifying import clarifier_options, make_clarifier
from core.systems.base.iterative import AmbigPrompt
from core.systems.base.rescoring import ADDITIONS, OF_DEFAULT, Additions, additions_of
from core.systems.base.stopping import CALIBRATED, OF_LOOPS, LoopEnd, Place, digest_of

if TYPE_CHECKING:
    from core.models.span.answerer import Decoding

ROUND_TRIPS = ("answerer", "reader")  # the first one is the default
LOOPS = ("exact", "fast")
# the paper's method: no prior, no filter; [EOI] bias tuned by benchmarks.tuning.decoding on practice questions held out from training
PAPERS: dict[str, Any] = {"retrieval_prior": 0.0, "eoi_bias": -2.0, "repeats": True}
# the ablations of Table 3 are mechanisms that weights are trained under; "trained": the checkpoint's own
PROMPTINGS = ("trained", "interleaved", "separate", "learned")


def _check_prompting(wanted: str, trained: str, checkpoint: str) -> None:
    """Raises CheckpointError for weights trained with another mechanism: they would run, but give meaningless answers."""
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
    """(settings of the fast loop, or None for the exact one; their entry in SystemInfo).  Removes the options from `chosen`."""
    from core.models.span.fast_loop import Rereading

    loop, share = chosen.pop("loop"), check_share("reread", chosen.pop("reread"))
    rereading = Rereading(share) if loop == "fast" else None
    return rereading, {"loop": loop} | (asdict(rereading) if rereading else {})


def _end(chosen: dict[str, Any], options: Options, checkpoint: str, place: Place) -> tuple[LoopEnd, dict[str, Any]]:
    """(when the loop ends; its entry in SystemInfo).  Removes the options from `chosen`.  Raises InputError, CheckpointError."""
    stop = chosen.pop("stop")
    end = LoopEnd.chosen(options.stop_above, stop, place.find(checkpoint, stop, chosen.pop("calibration")), place)
    return end, {"stop": end.rule, "calibration": describe(end.calibration)}


def build(parts: Parts, options: Options) -> AmbigPrompt:
    """The paper's method.  Raises InputError for an unknown option, CheckpointError."""
    from core.models.span.answerer import Decoding

    return _over_spans("ambigprompt", ADDITIONS, Decoding(**PAPERS), parts, options)


def build_ambiscope(parts: Parts, options: Options) -> AmbigPrompt:
    """The default system: the paper's method with our additions.  Raises InputError for an unknown option, CheckpointError."""
    from core.models.span.answerer import Decoding

    return _over_spans("ambiscope", OF_DEFAULT, Decoding(), parts, options)


def _over_spans(name: str, additions: tuple[str, ...], default: Decoding, parts: Parts, options: Options) -> AmbigPrompt:
    """`additions`: values of that option, default first; `default`: decoding without options."""
    from core.models.loading.finding import find_checkpoint
    from core.models.span.answerer import load_answerer
    from core.models.span.checkpoints import training_of
    from core.models.span.fast_loop import FastSpanLoop

    known = {n: getattr(default, n) for n in ("retrieval_prior", "eoi_bias", "reader_weight")}
    chosen = read_extra(options, name, known | {"additions": additions} | _loop_options() | clarifier_options(ROUND_TRIPS))
    clarifying = {option: chosen.pop(option) for option in clarifier_options()}
    prompting, wanted, settings = chosen.pop("prompting"), chosen.pop("additions"), parts.settings
    rereading, loop_used = _rereading(chosen)
    stopping = {option: chosen.pop(option) for option in ("stop", "calibration")}
    decoding = replace(default, **chosen)
    trained = training_of(find_checkpoint(settings.answerer, "answerer"))  # fail before weights are loaded
    _check_prompting(prompting, trained.prompting, settings.answerer)
    model, digest = load_answerer(settings.answerer, settings.device, decoding)
    added = additions_of(name, wanted, parts, (settings.answerer, "answerer"))
    said = asdict(decoding)
    if not said["repeats"]:  # unchanged key, so that existing calibrations are found
        del said["repeats"]
    used: dict[str, Any] = {"decoding": said, **loop_used, "prompting": trained.prompting, "stage": trained.stage}
    used |= {"additions": wanted}
    model.reader = None
    if decoding.reader_weight:
        model.reader, used["reader_digest"] = load_reader(settings.reader, settings.device)
        used["reader"] = settings.reader
    known = {**used, **added.about}
    decides = digest_of(digest, *(known.get(n) for n in ("decoding", "reranking", "verifier_digest", "reader_digest")))
    place = added.told_apart(Place(f"{name} {added.kind or 'plain'}", "answerer", decides))
    end, ending = _end(stopping, options, settings.answerer, place)
    clarifier, more = make_clarifier(clarifying, settings, options.clarify, model)
    return AmbigPrompt(
        name,
        parts,
        options,
        model,
        None,
        (settings.answerer, digest),
        used=used | ending | more,
        clarifier=clarifier,
        loop=(lambda: FastSpanLoop(model, rereading)) if rereading else None,
        end=replace(end, repeats=decoding.repeats),
        additions=added,
    )


def build_seq2seq(parts: Parts, options: Options) -> AmbigPrompt:
    """Raises InputError for an unknown option, CheckpointError."""
    from core.models.seq2seq.fid import Generation, load_fid
    from core.models.span.fast_loop import FastTextLoop

    known = {"eoi_bias": Generation().eoi_bias, **_loop_options(), **clarifier_options(ROUND_TRIPS)}
    chosen = read_extra(options, "ambigprompt-seq2seq", known)
    rereading, loop_used = _rereading(chosen)
    generation, settings = Generation(eoi_bias=chosen["eoi_bias"], repeats=True), parts.settings
    model, digest = load_fid(settings.answerer, settings.device, generation)
    if model.config.target != "step":
        raise CheckpointError(
            f"{settings.answerer} was trained to write whole answer sets, not one answer a step: name it in AMBISCOPE_SEQ2SEQ for "
            "fid and spanseqgen, or train one with --target step"
        )
    _check_prompting(chosen["prompting"], model.config.prompting, settings.answerer)
    place = Additions(parts).told_apart(Place("ambigprompt-seq2seq", SEQ2SEQ_ANSWERER, digest_of(digest, asdict(generation))))
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
        end=replace(end, repeats=generation.repeats),
    )
