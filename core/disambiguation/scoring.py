"""The score of a written question: the probability that it has only its own answer and that a person could have written it.

A logistic model over the writer's log probability and the reader's log odds, for drafts that passed the round trip.  `python -m
benchmarks.quality.written fit` fitted it on drafts that were judged by hand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.text import find_spans, question_key, word_tokens

WEIGHTS = {"bias": -0.12, "log probability": 1.5, "own": 0.52}
MIN_PROBABILITY = 0.75
MAX_LOG_ODDS = 4.0


def well_formed(prompt: str, question: str, answer: str) -> bool:
    """False for anything that isn't one question, for the prompt question itself, for a question that gives its answer away, and
    for one that shares no word with the prompt, as an English one for a prompt in another script or without spaces.

    >>> well_formed("Who made it?", "Who made it in 1951?", "Liska"), well_formed("Who made it?", "Who is Liska?", "Liska")
    (True, False)
    >>> well_formed("谁写了它?", "Who wrote it in 1951?", "Liska")
    False
    """
    ends = question.endswith("?") or not prompt.rstrip().endswith("?")
    gives_away = bool(find_spans(question, answer)) and not find_spans(prompt, answer)
    shares_a_word = not set(word_tokens(prompt)).isdisjoint(word_tokens(question))
    changed = question_key(question) != question_key(prompt)
    return ends and question.count("?") <= 1 and not gives_away and shares_a_word and changed


@dataclass(frozen=True, slots=True)
class Features:
    """`log_probability`: the writer's, a mean over the draft's tokens.  `own`: the reader's log odds of the answer, asked the draft."""

    log_probability: float
    own: float

    @property
    def values(self) -> dict[str, float]:
        """The input of the logistic model."""
        return {"log probability": self.log_probability, "own": max(-MAX_LOG_ODDS, min(MAX_LOG_ODDS, self.own))}

    @property
    def probability(self) -> float:
        """The probability that the draft is right and natural."""
        return 1 / (1 + math.exp(-WEIGHTS["bias"] - sum(WEIGHTS[name] * value for name, value in self.values.items())))
