"""AmbigPrompt with its trained models: the bundled SpanAnswerer, or a FidAnswerer over encoder-decoder weights (core.models).

Source: Sun et al. 2023, sections 2-3.  The loop itself is core.systems.iterative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core import types as t
from core.clarification import Ask, Read, ask_each_passage, ask_with
from core.errors import InputError
from core.models.passage_reader import PassageReader, load_reader
from core.systems.base import Options, Parts
from core.systems.iterative import AmbigPrompt


def read_with(reader: PassageReader) -> Read:
    """The reader as clarification wants it: the best span of each passage, or None where abstaining is likelier."""

    def read(pairs: Sequence[tuple[str, t.Passage]]) -> list[tuple[str | None, float]]:
        out: list[tuple[str | None, float]] = []
        for readout in reader.read_pairs(pairs, candidates=1):
            best = readout.best
            out.append((best.text, best.probability) if best else (None, readout.abstain_probability))
        return out

    return read


def round_trip(parts: Parts, options: Options, model: t.BatchAnsweringModel) -> Ask:
    """Who is asked the edited question: the answering model itself (default), or the per-passage reader.  Raises InputError."""
    who = options.extra.get("round_trip", "answerer")
    if who == "answerer":
        return ask_with(model)
    if who == "reader":
        return ask_each_passage(read_with(load_reader(parts.settings.reader, parts.settings.device)[0]))
    raise InputError(f"the option round_trip is '{who}'; use answerer or reader")


def build(parts: Parts, options: Options) -> AmbigPrompt:
    from core.models.span_answerer import Decoding, load_answerer

    default = Decoding()
    decoding = replace(
        default,
        retrieval_prior=float(options.extra.get("retrieval_prior", default.retrieval_prior)),
        eoi_bias=float(options.extra.get("eoi_bias", default.eoi_bias)),
        reader_weight=float(options.extra.get("reader_weight", default.reader_weight)),
    )
    settings = parts.settings
    model, digest = load_answerer(settings.answerer, settings.device, decoding)
    if decoding.reader_weight:
        model.reader, _ = load_reader(settings.reader, settings.device)
    return AmbigPrompt("ambigprompt", parts, options, model, round_trip(parts, options, model), (settings.answerer, digest))


def build_seq2seq(parts: Parts, options: Options) -> AmbigPrompt:
    from core.models.fid import load_fid

    settings = parts.settings
    model, digest = load_fid(settings.answerer, settings.device)
    ask = round_trip(parts, options, model)
    return AmbigPrompt("ambigprompt-seq2seq", parts, options, model, ask, (settings.answerer, digest))
