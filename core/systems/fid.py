"""Fusion-in-Decoder: every passage is encoded with the question, the decoder reads all of them and writes all answers in one pass.

Sources: Izacard and Grave 2021; as a baseline for several answers and with its decoding variants, Sun et al. 2023 (Tables 2 and 5, Figure 5 and appendix).
Table 5 compares decoding in the zero-shot setting; the bundled weights are supervised.
`fid-nucleus`, `fid-top-k` and `fid-diverse-beam` write several sequences and merge their answers; `fid-multi` makes the end of the sequence
less likely, by a bias that matches another system's mean number of answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from core.models.seq2seq.decoding import SequenceDecoding, Writer
from core.models.seq2seq.fid import load_fid
from core.systems.base.base import Options, Parts, read_extra
from core.systems.base.clarifying import clarifier_options, make_clarifier
from core.systems.base.generative import WrittenAnswers

SAMPLES = 8  # number of samples; the paper does not give it
# as many answers as `ambiscope` on 120 held-out practice questions (weights 92ca0ec301f37deb); other weights want another bias
MULTI_BIAS = -0.375
VARIANTS: Mapping[str, SequenceDecoding] = {
    "fid": SequenceDecoding(),
    "fid-nucleus": SequenceDecoding("nucleus", SAMPLES, top_p=0.8, temperature=0.8),
    "fid-top-k": SequenceDecoding("top-k", SAMPLES, top_k=40, temperature=0.8),
    "fid-diverse-beam": SequenceDecoding("diverse-beam", 3, temperature=0.8, diversity=0.5),
    "fid-multi": SequenceDecoding(end_bias=MULTI_BIAS),
}
# options of each variant
TUNED: Mapping[str, tuple[str, ...]] = {
    "fid": (),
    "fid-nucleus": ("sequences", "top_p", "temperature", "seed"),
    "fid-top-k": ("sequences", "top_k", "temperature", "seed"),
    "fid-diverse-beam": ("sequences", "temperature", "diversity"),
    "fid-multi": ("end_bias",),
}


def chosen_decoding(name: str, options: Options) -> tuple[SequenceDecoding, dict[str, Any]]:
    """(the variant's decoding with the given options, how its questions are disambiguated).  Raises InputError."""
    writing = VARIANTS[name]
    known = {option: getattr(writing, option) for option in TUNED[name]}
    chosen = read_extra(options, name, {**known, **clarifier_options()})
    own: dict[str, Any] = {k: int(chosen.pop(k)) if isinstance(known[k], int) else chosen.pop(k) for k in known}
    return replace(writing, **own), chosen


def build(parts: Parts, options: Options, name: str = "fid") -> WrittenAnswers:
    """Raises InputError for an unknown option, CheckpointError."""
    writing, clarifying = chosen_decoding(name, options)
    settings = parts.settings
    answerer, digest = load_fid(settings.seq2seq, settings.device)
    clarifier, used = make_clarifier(clarifying, settings, options.clarify)
    used = {"decoding": asdict(writing), **used}
    return WrittenAnswers(name, parts, options, Writer(answerer, writing), (settings.seq2seq, digest), used, clarifier)


Build = Callable[[Parts, Options], WrittenAnswers]
build_nucleus: Build = partial(build, name="fid-nucleus")
build_top_k: Build = partial(build, name="fid-top-k")
build_diverse_beam: Build = partial(build, name="fid-diverse-beam")
build_multi: Build = partial(build, name="fid-multi")
