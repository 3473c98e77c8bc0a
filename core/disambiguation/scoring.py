"""How good a rewritten question is: the probability that it has its answer only and that a person could have written it.

A logistic model over signals of the edit and, where there is a verifier, its logits for the rewritten question (core.models.ranking.verifier).  The
weights are fitted by `python -m benchmarks.quality.rewritten fit` on judged questions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from core.disambiguation.edits import KINDS, Edit, propose_edits
from core.disambiguation.evidence import AnswerPlace, clauses_between, sentence_bounds
from core.disambiguation.form import ON_A_DAY
from core.text import content_words, question_key, word_tokens
from core.types import Passage

# logits of spans, (passage, first character, end), as answers to the question
Judge = Callable[[str, Sequence[tuple[Passage, int, int]]], list[float]]
# fitted by `python -m benchmarks.quality.rewritten fit`; MIN_: where nine of ten questions shown are right and natural
WEIGHTS = {
    "bias": 1.36, "half": 0.36, "name": 0.67, "instance": 0.83, "brackets": 0.42, "dated": 0.29, "time": -1.51, "place": -1.95, "document": 0.96,
    "size": 0.16, "own": -0.26, "elsewhere": -0.05, "clauses": -0.32, "day": -0.68, "shared passage": 0.24, "verifier": 0.77, "gain": 0.74,
}  # fmt: skip
PLAIN_WEIGHTS = {  # without a verifier
    "bias": 1.73, "half": 0.46, "name": 0.8, "instance": 0.82, "brackets": 0.56, "dated": 0.26, "time": -1.52, "place": -1.78, "document": 0.49,
    "size": 0.28, "own": -0.23, "elsewhere": -1.09, "clauses": -0.43, "day": -0.55, "shared passage": 0.37,
}  # fmt: skip
MIN_PROBABILITY = 0.65
MIN_PLAIN_PROBABILITY = 0.65
UNSURE = 4.0  # logits are cut at this size: beyond it, differences mean nothing


def signals(question: str, edit: Edit, place: AnswerPlace, others: Sequence[AnswerPlace]) -> dict[str, float]:
    """Of the edit and its evidence, without a model."""
    text = place.passage.text
    begin, end = sentence_bounds(text, place.start)
    at = edit.offset
    here = at is not None and begin <= at < end
    added = [w for w in content_words(edit.question) if w not in word_tokens(question)]
    return {
        **{kind: float(edit.kind == kind) for kind in KINDS},
        "size": min(edit.size, 10) / 5,
        "own": edit.own / max(1, len(added)),
        "elsewhere": float(at is not None and not here),
        "clauses": float(min(3, clauses_between(text[begin:end], place.start - begin, at - begin)))
        if here and at is not None
        else 0.0,
        "day": float(edit.kind == "time" and bool(ON_A_DAY.search(edit.question))),
        "shared passage": float(any(o.passage.id == place.passage.id for o in others)),
    }


def verified(before: float, after: float) -> dict[str, float]:
    """From the verifier's logits of the answer for the prompt and for the rewritten question."""

    def cut(logit: float) -> float:
        return max(-UNSURE, min(UNSURE, logit)) / UNSURE

    return {"verifier": cut(after), "gain": cut(after - before)}


def probability(found: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """The logistic model's value; signals without a weight count nothing."""
    z = weights["bias"] + sum(weights.get(name, 0.0) * value for name, value in found.items())
    return 1 / (1 + math.exp(-z))


def is_good(found: Mapping[str, float], has_verifier: bool) -> bool:
    """Whether the rewritten question is shown."""
    if has_verifier:
        return probability(found, WEIGHTS) >= MIN_PROBABILITY
    return probability(found, PLAIN_WEIGHTS) >= MIN_PLAIN_PROBABILITY


def ranked(question: str, answer: str, place: AnswerPlace, others: Sequence[AnswerPlace], at_least: float = 0.0) -> list[Edit]:
    """The answer's edits, the likeliest first by what is known without a model; those whose probability is `at_least` this."""
    found = [
        (probability(signals(question, e, place, others), PLAIN_WEIGHTS), e)
        for e in propose_edits(question, answer, place, others)
    ]
    return [e for p, e in sorted(found, key=lambda r: (-r[0], r[1].size, r[1].question)) if p >= at_least]


def proposals(question: str, answers: Sequence[str], places: Sequence[AnswerPlace | None]) -> list[list[Edit]]:
    """For each answer its ranked edits, none of which is another answer's too."""
    out: list[list[Edit]] = []
    for text, place in zip(answers, places):
        others = [p for other, p in zip(answers, places) if p is not None and other != text]
        out.append(ranked(question, text, place, others) if place is not None else [])
    owners = Counter(key for edits in out for key in {question_key(e.question) for e in edits})
    return [[e for e in edits if owners[question_key(e.question)] == 1] for edits in out]
