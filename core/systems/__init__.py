"""Answering systems.  A further system is one file here and one entry in SYSTEMS.

`target` names a factory `build(parts: Parts, options: Options) -> AnsweringSystem` (core.systems.base).
"""

from core.registry import Entry, Registry

SYSTEMS = Registry(
    "system",
    {
        "ambigprompt": Entry(
            "core.systems.ambigprompt:build",
            "finds the answers one by one, each prompted by those before it, until [EOI]",
            "Sun et al. 2023, section 3",
            ("checkpoint answerer",),
        ),
        "ambigprompt-seq2seq": Entry(
            "core.systems.ambigprompt:build_seq2seq",
            "the same loop over an encoder-decoder (t5-base, a folder): Fusion-in-Decoder with interleaved prompting",
            "Sun et al. 2023, sections 2.2 and 3",
            ("encoder-decoder weights in AMBISCOPE_ANSWERER",),
        ),
        "one-pass": Entry(
            "core.systems.one_pass:build",
            "reads every passage for itself, once, and keeps each answer above a threshold",
            "Min et al. 2020 (thresholded reader); Karpukhin et al. 2020",
            ("checkpoint reader",),
        ),
        "scripted": Entry(
            "core.systems.scripted:build", "answers from a small table; for tests of everything around a model", hidden=True
        ),
    },
)
