"""AmbigPrompt with its trained models: the bundled SpanAnswerer, or a FidAnswerer over encoder-decoder weights (core.models).

Source: Sun et al. 2023, sections 2-3.  The loop itself is core.systems.iterative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from core import types as t
from core.clarification import Ask, Read, ask_each_passage, ask_with
from core.models.passage_reader import PassageReader, load_reader
from core.settings import Settings
from core.systems.base import Options, Parts, read_extra
from core.systems.iterative import AmbigPrompt

ROUND_TRIPS = ("answerer", "reader")


def read_with(reader: PassageReader) -> Read:
    """The reader as clarification wants it: the best span of each passage, or None where abstaining is likelier."""

    def read(pairs: Sequence[tuple[str, t.Passage]]) -> list[tuple[str | None, float]]:
        out: list[tuple[str | None, float]] = []
        for readout in reader.read_pairs(pairs, candidates=1):
            best = readout.best
            out.append((best.text, best.probability) if best else (None, readout.abstain_probability))
        return out

    return read


def _asked(
    who: str, model: t.BatchAnsweringModel, settings: Settings, reader_weight: float = 0.0
) -> tuple[Ask, PassageReader | None, dict[str, Any]]:
    """Who is asked the edited question (the answering model itself, or the per-passage reader), the reader where it has any say, and
    what SystemInfo remembers of both.  Raises CheckpointError."""
    if who == "answerer" and not reader_weight:
        return ask_with(model), None, {"round_trip": who}
    reader, digest = load_reader(settings.reader, settings.device)
    ask = ask_with(model) if who == "answerer" else ask_each_passage(read_with(reader))
    return ask, reader, {"round_trip": who, "reader": settings.reader, "reader_digest": digest}


def build(parts: Parts, options: Options) -> AmbigPrompt:
    """Raises InputError for an option that it does not have, CheckpointError."""
    from core.models.span_answerer import Decoding, load_answerer

    default = Decoding()
    known = {n: getattr(default, n) for n in ("retrieval_prior", "eoi_bias", "reader_weight")} | {"round_trip": ROUND_TRIPS}
    chosen = read_extra(options, "ambigprompt", known)
    who = chosen.pop("round_trip")
    decoding, settings = replace(default, **chosen), parts.settings
    model, digest = load_answerer(settings.answerer, settings.device, decoding)
    ask, reader, used = _asked(who, model, settings, decoding.reader_weight)
    model.reader = reader if decoding.reader_weight else None
    used = {"decoding": asdict(decoding), **used}
    return AmbigPrompt("ambigprompt", parts, options, model, ask, (settings.answerer, digest), used=used)


def build_seq2seq(parts: Parts, options: Options) -> AmbigPrompt:
    """Raises InputError for an option that it does not have, CheckpointError."""
    from core.models.fid import Generation, load_fid

    known = {"eoi_bias": Generation().eoi_bias, "round_trip": ROUND_TRIPS}
    chosen = read_extra(options, "ambigprompt-seq2seq", known)
    generation, settings = Generation(eoi_bias=chosen["eoi_bias"]), parts.settings
    model, digest = load_fid(settings.answerer, settings.device, generation)
    ask, _, used = _asked(chosen["round_trip"], model, settings)
    used = {"decoding": asdict(generation), **used}
    return AmbigPrompt("ambigprompt-seq2seq", parts, options, model, ask, (settings.answerer, digest), used=used)
