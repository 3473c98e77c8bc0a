"""How good a rewritten question is: the probability that it has its answer only and that a person could have written it.

A logistic model over signals of the edit and its evidence.  Its weights are fitted by `python -m benchmarks.quality.rewritten fit` on the edits that people
made of the practice questions and on judged ones.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from core.disambiguation.edits import KINDS, Edit, propose_edits
from core.disambiguation.evidence import AnswerPlace, clauses_between, sentence_bounds
from core.disambiguation.form import ON_A_DAY
from core.text import content_words, question_key, word_tokens
from core.types import Passage

# logits of spans, (passage, first character, end), as answers to the question
Judge = Callable[[str, Sequence[tuple[Passage, int, int]]], list[float]]
WEIGHTS = {
    "bias": 1.08, "half": 3.83, "name": 0.51, "instance": 0.82, "brackets": -0.06, "dated": 0.42, "time": -1.62, "place": -2.66, "document": -0.54,
    "size": -1.94, "distinctive": 0.74, "clauses": -0.48, "superlative": -1.06, "state": 1.13, "day": -3.28, "shared passage": 1.0,
}  # fmt: skip
SUPERLATIVE = re.compile(r"\b(?:first|last|only|\w{3,}est|most|record)\b", re.IGNORECASE)
STATE = re.compile(r"(?:who|what|which \w+) (?:is|was|are|were) (?!.*ed\b)", re.IGNORECASE)
MIN_PROBABILITY = 0.55  # nine of ten questions that are shown are right and natural


def signals(question: str, edit: Edit, place: AnswerPlace, others: Sequence[AnswerPlace]) -> dict[str, float]:
    """The features of the logistic model, of an edit and its evidence."""
    text = place.passage.text
    begin, end = sentence_bounds(text, place.start)
    added = [w for w in content_words(edit.question) if w not in word_tokens(question)]
    clauses = 0 if edit.offset is None else clauses_between(text[begin:end], place.start - begin, edit.offset - begin)
    return {
        **{kind: float(edit.kind == kind) for kind in KINDS},
        "size": min(edit.size, 10) / 5,
        "distinctive": edit.distinctive / max(1, len(added)),
        "clauses": float(min(3, clauses)),
        "superlative": float(edit.kind == "time" and bool(SUPERLATIVE.search(question))),
        "state": float(edit.kind == "time" and bool(STATE.match(question))),
        "day": float(edit.kind == "time" and bool(ON_A_DAY.search(edit.question))),
        "shared passage": float(any(o.passage.id == place.passage.id for o in others)),
    }


def probability(values: Mapping[str, float]) -> float:
    """The logistic model's value; signals without a weight are ignored."""
    z = WEIGHTS["bias"] + sum(WEIGHTS.get(name, 0.0) * value for name, value in values.items())
    return 1 / (1 + math.exp(-z))


def ranked(question: str, answer: str, place: AnswerPlace, others: Sequence[AnswerPlace], at_least: float = 0.0) -> list[Edit]:
    """The answer's edits with a probability of `at_least` this, the best first."""
    edits = propose_edits(question, answer, place, others)
    scored = [replace(e, probability=probability(signals(question, e, place, others))) for e in edits]
    return sorted((e for e in scored if e.probability >= at_least), key=lambda e: (-e.probability, e.size, e.question))


def proposals(question: str, answers: Sequence[str], places: Sequence[AnswerPlace | None]) -> list[list[Edit]]:
    """For each answer its ranked edits, none of which is another answer's too."""
    out: list[list[Edit]] = []
    for text, place in zip(answers, places):
        others = [p for other, p in zip(answers, places) if p is not None and other != text]
        out.append(ranked(question, text, place, others) if place is not None else [])
    owners = Counter(key for edits in out for key in {question_key(e.question) for e in edits})
    return [[e for e in edits if owners[question_key(e.question)] == 1] for edits in out]
