"""Fusion-in-Decoder: encodes every passage with the question; the decoder reads all of them and writes all answers in one pass.

Sources: Izacard and Grave 2021; as a baseline for several answers and with its decoding variants, Sun et al. 2023 (Tables 2 and 5, Figure 5 and appendix).
Table 5 compares decoding in the zero-shot setting; the bundled weights are supervised.
`fid-nucleus`, `fid-top-k` and `fid-diverse-beam` write several sequences and merge their answers; `fid-multi` makes the end of the sequence
less likely, by a bias (core.systems.options says on what it was chosen).
"""

from __future__ import annotations

from dataclasses import asdict, fields

from core.models.seq2seq.decoding import AnswerSetWriter, Method, SequenceDecoding
from core.models.seq2seq.fid import load_fid
from core.systems.base.clarifying import make_clarifier
from core.systems.base.options import ClarifierOptions, Options
from core.systems.base.system import SystemParts
from core.systems.base.writing import WritingSystem

METHODS: dict[str, Method] = {"fid-nucleus": "nucleus", "fid-top-k": "top-k", "fid-diverse-beam": "diverse-beam"}


def build(name: str, parts: SystemParts, options: Options, config: ClarifierOptions) -> WritingSystem:
    settings, decoding_fields = parts.settings, {f.name for f in fields(SequenceDecoding)}
    method = METHODS.get(name, "greedy")
    decoding = SequenceDecoding(method, **{k: v for k, v in config.as_dict().items() if k in decoding_fields})
    answerer, digest = load_fid(settings.seq2seq, settings.device)
    clarifier, provenance = make_clarifier(config, settings, options.clarify)
    provenance |= {"decoding": asdict(decoding)}
    writer, checkpoint = AnswerSetWriter(answerer, decoding), (settings.seq2seq, digest)
    return WritingSystem(name, parts, options, writer, checkpoint, config=config, provenance=provenance, clarifier=clarifier)
