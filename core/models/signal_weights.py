"""Weights of the signals of core.models.passage_signals: written by `python -m benchmarks.tune_verdict --write`, not by hand.

Fitted on 267 practice questions held out from training; cross-validated there, as judged by their annotations: G-precision
84.2%, G-recall 49.0%, G-F1 61.9%, 1.18 interpretations a question.
"""

from core.models.passage_signals import Weighing

ABSTAIN_BELOW = 0.42
VERIFIED_ABOVE = 0.58
WEIGHING = Weighing(
    passage={
        "cosine_less_than_best": 5.3748,
        "rank": -0.6701,
        "covered": -0.6399,
        "covered_less_than_best": 1.6694,
        "title_covers": 0.4319,
        "title_run": -0.1252,
        "title_whole": 0.1184,
        "names": 0.5945,
        "abstain": -0.3149,
        "reader": 0.5184,
        "answerer": 0.1792,
        "answerer_less_than_best": 0.0216,
    },
    passage_bias=2.322,
    reading={
        "reader": 0.209,
        "answerer": 0.133,
        "answerer_near": 0.0045,
        "reader_first": 0.6764,
        "answerer_first": 0.3625,
        "both_first": 0.3315,
        "kind": 0.3542,
        "length": -0.0893,
        "long": -1.1722,
        "small_first": -0.3303,
        "who_small": -0.5059,
        "joined": 0.0083,
        "sentence": 0.7498,
    },
    nothing=-3.6775,
)
