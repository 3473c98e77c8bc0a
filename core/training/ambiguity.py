"""Trains core.models.ranking.ambiguity on AmbigNQ: a logistic regression on question vectors, and the lexicon of phrases that
people add.

A question counts as ambiguous if all of its annotations hold several question-answer pairs (AmbigQA's *multi*).
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.datasets.ambignq import load
from core.errors import InputError
from core.models.encoders import sentence_encoder
from core.models.encoders.sentence_encoder import Encoder
from core.models.ranking.ambiguity import ANY, ENCODER, Lexicon, cues, normal, opening, save_ambiguity
from core.settings import Settings
from core.text import STOPWORDS, word_tokens
from core.training.options import AmbiguityOptions
from core.training.runs import arguments_of, say
from core.types import ReferenceQuestion

LONGEST = 6  # words of a phrase
LEAST_QUESTIONS = 4  # least number of different questions of a phrase
LEAST_CUE = 6  # least number of ambiguous questions of a cue
PER_CUE = 4  # phrases kept for a cue
SMOOTHING = 5.0
INVERSE_STRENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0)  # of the regularisation: one is chosen on a tenth of the training questions


@dataclass(frozen=True)
class Fitted:
    """`weights` (d,) and `bias` of the classifier; the lexicon; figures on held-out questions."""

    weights: NDArray[np.float32]
    bias: float
    lexicon: Lexicon
    figures: dict[str, Any]


def added(prompt: str, clarified: str) -> str:
    """The phrase that a disambiguated question appends to its prompt question; "" if it changes anything else.

    >>> added("when did it come out", "When did it come out in theaters?")
    'in theaters'
    """
    before, after = word_tokens(prompt), word_tokens(clarified)
    phrase = after[len(before) :]
    if after[: len(before)] != before or not 1 <= len(phrase) <= LONGEST or all(w in STOPWORDS for w in phrase):
        return ""
    return " ".join(phrase)


def learn_lexicon(questions: Sequence[ReferenceQuestion]) -> Lexicon:
    """Phrases by opening and cue, weighted by how often people add them where the cue occurs (smoothed towards 0)."""
    seen: Counter[str] = Counter()
    phrases_of: list[tuple[str, str, set[str]]] = []
    for q in questions:
        pairs = [p for a in q.annotations if a.type == "multiple" for p in a.pairs]
        found = {phrase for p in pairs if (phrase := added(q.question, p.question))}
        if pairs:
            phrases_of.append((opening(q.question), q.question, found))
            seen.update(found)
    common = {phrase for phrase, n in seen.items() if n >= LEAST_QUESTIONS}
    totals: Counter[tuple[str, str]] = Counter()
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for start, question, found in phrases_of:
        for cue in {ANY, *cues(question)}:
            totals[start, cue] += 1
            counts[start, cue].update(found & common)
    out: dict[str, dict[str, list[tuple[str, float]]]] = {}
    for (start, cue), phrases in sorted(counts.items()):
        if totals[start, cue] < LEAST_CUE or (cue in STOPWORDS and cue != ANY):
            continue
        weight = {p: n / (totals[start, cue] + SMOOTHING) for p, n in phrases.items() if n >= (1 if cue == ANY else 2)}
        best = sorted(weight.items(), key=lambda item: (-item[1], item[0]))[: 2 * PER_CUE if cue == ANY else PER_CUE]
        if best:
            out.setdefault(start, {})[cue] = [(p, round(w, 4)) for p, w in best]
    return Lexicon(out)


def fit(train: Path, dev: Path | None, encoder: Encoder, seed: int = 0, say: Callable[[str], None] = lambda _: None) -> Fitted:
    """Fits classifier and lexicon on `train`, and measures both on `dev`.

    Raises InputError if all questions of the file are of the same kind.
    """
    from sklearn.linear_model import LogisticRegression

    questions = [q for q in load(train) if q.annotations]
    labels = np.array([q.ambiguous for q in questions])
    if not questions or labels.all() or not labels.any():
        raise InputError(f"{train}: ambiguous and unambiguous questions are both needed to train on")
    order = list(range(len(questions)))
    random.Random(seed).shuffle(order)
    say(f"{len(questions)} questions, {labels.mean():.1%} of them ambiguous; encoding")
    vectors = encoder.encode([normal(q.question) for q in questions], "query")
    held, rest = order[: max(1, len(order) // 10)], order[max(1, len(order) // 10) :]
    scores: dict[float, float] = {}
    for c in INVERSE_STRENGTHS:
        model = LogisticRegression(C=c, max_iter=1000).fit(vectors[rest], labels[rest])
        scores[c] = float(model.score(vectors[held], labels[held]))
        say(f"C {c:g}: accuracy {scores[c]:.3f} on {len(held)} held-out training questions")
    best = max(scores, key=lambda c: (scores[c], -c))
    model = LogisticRegression(C=best, max_iter=1000).fit(vectors, labels)
    lexicon = learn_lexicon(questions)
    figures: dict[str, Any] = {
        "questions": len(questions),
        "ambiguous": round(float(labels.mean()), 4),
        "C": best,
        "held_out_accuracy": round(scores[best], 4),
        "openings": len(lexicon.phrases),
        "phrases": len({p for by_cue in lexicon.phrases.values() for found in by_cue.values() for p, _ in found}),
    }
    if dev is not None:
        tested = [q for q in load(dev) if q.annotations]
        truth = np.array([q.ambiguous for q in tested])
        guesses = model.predict(encoder.encode([normal(q.question) for q in tested], "query"))
        figures |= {
            "dev_questions": len(tested),
            "dev_accuracy": round(float((guesses == truth).mean()), 4),
            "dev_majority": round(float(max(truth.mean(), 1 - truth.mean())), 4),
            "dev_ambiguous": round(float(truth.mean()), 4),
            "dev_said_ambiguous": round(float(guesses.mean()), 4),
        }
    return Fitted(model.coef_[0].astype(np.float32), float(model.intercept_[0]), lexicon, figures)


def run(options: AmbiguityOptions, settings: Settings, out: Path) -> dict[str, Any]:
    """`core train ambiguity`: writes the weights to `out` and returns the figures.  It takes seconds to minutes on a CPU."""
    assert options.ambignq is not None
    encoder = sentence_encoder.load_encoder(replace(settings, encoder=ENCODER))
    fitted = fit(options.ambignq, options.ambignq_dev, encoder, options.seed, say)
    about = {"arguments": arguments_of("ambiguity", options), "figures": fitted.figures}
    save_ambiguity(out, fitted.weights, fitted.bias, fitted.lexicon, about)
    return fitted.figures
