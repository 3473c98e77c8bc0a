"""AmbigPrompt with its trained models: the bundled SpanAnswerer, or a FidAnswerer over encoder-decoder weights (core.models).

Source: Sun et al. 2023, sections 2-3.  The loop itself is core.systems.iterative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core import types as t
from core.clarification import Read
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


def build(parts: Parts, options: Options) -> AmbigPrompt:
    from core.models.span_answerer import Decoding, load_answerer

    default = Decoding()
    decoding = replace(
        default,
        retrieval_prior=float(options.extra.get("retrieval_prior", default.retrieval_prior)),
        eoi_bias=float(options.extra.get("eoi_bias", default.eoi_bias)),
    )
    settings = parts.settings
    model, digest = load_answerer(settings.answerer, settings.device, decoding)
    reader, _ = load_reader(settings.reader, settings.device)
    return AmbigPrompt("ambigprompt", parts, options, model, read_with(reader), (settings.answerer, digest))


def build_seq2seq(parts: Parts, options: Options) -> AmbigPrompt:
    from core.models.fid import load_fid

    settings = parts.settings
    model, digest = load_fid(settings.answerer, settings.device)
    reader, _ = load_reader(settings.reader, settings.device)
    return AmbigPrompt("ambigprompt-seq2seq", parts, options, model, read_with(reader), (settings.answerer, digest))
