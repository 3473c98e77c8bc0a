"""AmbigPrompt with its trained models, and the default system: the same loop with what we add.

Source: Sun et al. 2023, section 3.  `ambigprompt` is the paper's method over the bundled SpanAnswerer, `ambigprompt-seq2seq` over a FidAnswerer with
encoder-decoder weights: interleaved prompting, the loop, [EOI], whose bias was chosen on held-out questions; docs/systems.md lists what differs.  `ambiscope` adds the answers that the
reader of single passages alone is sure of, and a filter of answers that share words with earlier ones.  The loop itself is core.systems.base.loop; `loop: fast` is core.models.span.fast_loop.
Zero-shot (appendix B) is a checkpoint after post-pretraining alone, from a reader that has seen single-answer data only: name it in
AMBISCOPE_ANSWERER; a prediction stores its stage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from core.errors import CheckpointError
from core.models.loading.finding import SEQ2SEQ_ANSWERER
from core.models.span.reader import load_reader
from core.systems.base.clarifying import make_clarifier
from core.systems.base.loop import LoopEnd, LoopSystem
from core.systems.base.options import Options
from core.systems.base.selection import CalibrationKey, digest_of
from core.systems.base.system import SystemParts
from core.systems.options import AmbigPromptOptions, LoopOptions

if TYPE_CHECKING:
    from core.models.seq2seq.fid import FidAnswerer
    from core.models.span.answerer import SpanAnswerer
    from core.models.span.fast_loop import FastSpanLoop, FastTextLoop


def build(name: str, parts: SystemParts, options: Options, config: AmbigPromptOptions) -> LoopSystem:
    """Builds the system. `ambigprompt` is the paper's method, in which only the prompt keeps the model from repeating
    itself."""
    from core.models.loading.finding import find_checkpoint
    from core.models.span.answerer import Decoding, load_answerer
    from core.models.span.checkpoints import training_of
    from core.models.span.fast_loop import FastSpanLoop, Rereading

    settings, repeats = parts.settings, name == "ambigprompt"
    training = training_of(find_checkpoint(settings.answerer, "answerer"))  # fail before weights are loaded
    _check_prompting(config, training.prompting, settings.answerer)
    keep_above = getattr(config, "keep_above", 1.0)
    decoding = Decoding(config.eoi_bias, config.first_eoi_bias, keep_above, repeats=repeats)
    model, digest = load_answerer(settings.answerer, settings.device, decoding)
    # as in the digests of fitted calibrations
    decoded = {k: v for k, v in asdict(decoding).items() if v is not None and (v or k != "repeats")}
    provenance: dict[str, Any] = {"decoding": decoded, "prompting": training.prompting, "stage": training.stage}
    model.reader = None
    if decoding.keep_above < 1:
        model.reader, provenance["reader_digest"] = load_reader(settings.reader, settings.device)
        provenance["reader"] = settings.reader
    key = CalibrationKey(name, "answerer", digest_of(digest, provenance["decoding"], provenance.get("reader_digest")))
    loop = partial(FastSpanLoop, model, Rereading(config.reread))
    return _loop_system(name, parts, options, config, model, digest, loop, provenance, key, repeats)


def build_seq2seq(name: str, parts: SystemParts, options: Options, config: LoopOptions) -> LoopSystem:
    from core.models.seq2seq.fid import Generation, load_fid
    from core.models.span.fast_loop import FastTextLoop, Rereading

    generation, settings = Generation(eoi_bias=config.eoi_bias, repeats=True), parts.settings
    model, digest = load_fid(settings.answerer, settings.device, generation)
    if model.config.target != "step":
        raise CheckpointError(
            f"{settings.answerer} was trained to write whole answer sets, not one answer a step: name it in AMBISCOPE_SEQ2SEQ for "
            "fid and spanseqgen, or train one with --target step"
        )
    _check_prompting(config, model.config.prompting, settings.answerer)
    provenance = {"decoding": asdict(generation), "prompting": model.config.prompting}
    key = CalibrationKey(name, SEQ2SEQ_ANSWERER, digest_of(digest, asdict(generation)))
    loop = partial(FastTextLoop, model, Rereading(config.reread))
    return _loop_system(name, parts, options, config, model, digest, loop, provenance, key, True)


def _check_prompting(config: LoopOptions, trained: str, checkpoint: str) -> None:
    """Raises CheckpointError for weights trained with another mechanism, which would run but give meaningless answers."""
    if config.prompting not in ("trained", trained):
        raise CheckpointError(
            f"checkpoint '{checkpoint}' was trained with prompting {trained}, not {config.prompting}; train one with "
            f"`python -m core train answerer --prompting {config.prompting}` (seq2seq for an encoder-decoder) and name it in AMBISCOPE_ANSWERER"
        )


def _loop_system(
    name: str,
    parts: SystemParts,
    options: Options,
    config: LoopOptions,
    model: SpanAnswerer | FidAnswerer,
    digest: str,
    make_fast_loop: Callable[[], FastSpanLoop | FastTextLoop],
    provenance: Mapping[str, Any],
    key: CalibrationKey,
    repeats: bool,
) -> LoopSystem:
    """The loop over `model`, or over the result of `make_fast_loop` for each run."""
    checkpoint = parts.settings.answerer
    make_model = make_fast_loop if config.loop == "fast" else lambda: model
    clarifier, clarifier_provenance = make_clarifier(config, parts.settings, options.clarify)
    return LoopSystem(
        name,
        parts,
        options,
        lambda _: make_model(),
        (checkpoint, digest),
        config=config,
        provenance={**provenance, **clarifier_provenance},
        clarifier=clarifier,
        end=LoopEnd(config.stop, calibration=key.find(checkpoint, config.calibration), key=key, repeats=repeats),
    )
