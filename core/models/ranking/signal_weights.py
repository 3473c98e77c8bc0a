"""Weights of the signals of core.models.ranking.passage_signals: written by `python -m benchmarks.tuning.verdict --write`, not by hand.

Fitted on 240 practice questions held out from training; cross-validated there, as judged by their annotations: G-precision
85.4%, G-recall 56.3%, G-F1 67.8%, 0.93 interpretations a question.
"""

from core.models.ranking.passage_signals import Weighing

ABSTAIN_BELOW = 0.34
VERIFIED_ABOVE = 0.5
WEIGHING = Weighing(
    passage={
        "cosine_less_than_best": 7.1465,
        "rank": -0.851,
        "covered": 0.7704,
        "covered_less_than_best": 0.4353,
        "title_covers": 0.2135,
        "title_run": 1.0032,
        "title_whole": -0.4842,
        "names": 1.3494,
        "abstain": -0.4049,
        "reader": 0.2997,
        "answerer": 0.1221,
        "answerer_less_than_best": 0.1181,
    },
    passage_bias=-0.5212,
    reading={
        "reader": 0.1865,
        "answerer": 0.1004,
        "answerer_near": 0.0356,
        "reader_first": 0.7811,
        "answerer_first": 0.4505,
        "both_first": 0.4145,
        "kind": 0.1861,
        "length": -0.0827,
        "sentence": 1.1863,
        "long": -0.5615,
        "small_first": -0.2285,
        "who_small": -0.2866,
        "joined": -0.6351,
    },
    nothing=-3.0355,
)
