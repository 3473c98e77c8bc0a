"""Weights of the signals of core.models.passage_signals: written by `python -m benchmarks.tune_verdict --write`, not by hand.

Fitted on 135 practice questions held out from training; cross-validated there, as judged by their annotations: G-precision
79.3%, G-recall 50.0%, G-F1 61.3%, 1.61 interpretations a question.
"""

from core.models.passage_signals import Weighing

ABSTAIN_BELOW = 0.18
VERIFIED_ABOVE = 0.38
WEIGHING = Weighing(
    passage={
        "cosine_less_than_best": 6.8022,
        "rank": -0.9853,
        "covered": -0.3266,
        "covered_less_than_best": 0.4938,
        "title_covers": 1.7963,
        "title_run": -2.5551,
        "title_whole": 1.9244,
        "names": 1.4616,
        "abstain": -0.6045,
        "reader": 0.1889,
        "answerer": 0.1368,
        "answerer_less_than_best": 0.0637,
    },
    passage_bias=0.9136,
    reading={
        "reader": 0.1218,
        "answerer": 0.1521,
        "answerer_near": 0.024,
        "reader_first": 1.1133,
        "answerer_first": 0.8212,
        "both_first": 0.0905,
        "kind": 1.156,
        "length": -0.1022,
        "long": -0.6958,
        "small_first": -0.75,
        "who_small": -0.8065,
        "joined": -0.5268,
        "sentence": 0.2408,
    },
    nothing=-1.6586,
)
