"""Trains core.models.ranking.ambiguity on AmbigNQ: a logistic regression on question vectors.

A question counts as ambiguous if all of its annotations hold several question-answer pairs (AmbigQA's *multi*).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.datasets.ambignq import load
from core.errors import InputError
from core.models.encoders import sentence_encoder
from core.models.encoders.sentence_encoder import Encoder
from core.models.ranking.ambiguity import ENCODER, normal, save_ambiguity
from core.settings import Settings
from core.training.options import AmbiguityOptions
from core.training.runs import arguments_of, say

INVERSE_STRENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0)  # of the regularisation: one is chosen on a tenth of the training questions


@dataclass(frozen=True)
class Fitted:
    """`weights` (d,) and `bias` of the classifier; figures on held-out questions."""

    weights: NDArray[np.float32]
    bias: float
    figures: dict[str, Any]


def fit(train: Path, dev: Path | None, encoder: Encoder, seed: int = 0, say: Callable[[str], None] = lambda _: None) -> Fitted:
    """Fits the classifier on `train` and measures it on `dev`.

    Raises InputError if all questions that are fitted are of the same kind.
    """
    from sklearn.linear_model import LogisticRegression

    questions = [q for q in load(train) if q.annotations]
    labels = np.array([q.ambiguous for q in questions])
    order = list(range(len(questions)))
    random.Random(seed).shuffle(order)
    held_out, fitting = order[: max(1, len(order) // 10)], order[max(1, len(order) // 10) :]
    if len(set(labels[fitting].tolist())) < 2:
        raise InputError(
            f"{train}: ambiguous and unambiguous questions are both needed to train on, beside the tenth that is held out"
        )
    say(f"{len(questions)} questions, {labels.mean():.1%} of them ambiguous; encoding")
    vectors = encoder.encode([normal(q.question) for q in questions], "query")
    scores: dict[float, float] = {}
    for c in INVERSE_STRENGTHS:
        model = LogisticRegression(C=c, max_iter=1000).fit(vectors[fitting], labels[fitting])
        scores[c] = float(model.score(vectors[held_out], labels[held_out]))
        say(f"C {c:g}: accuracy {scores[c]:.3f} on {len(held_out)} held-out training questions")
    best = max(scores, key=lambda c: (scores[c], -c))
    model = LogisticRegression(C=best, max_iter=1000).fit(vectors, labels)
    figures: dict[str, Any] = {
        "questions": len(questions),
        "ambiguous": round(float(labels.mean()), 4),
        "C": best,
        "held_out_accuracy": round(scores[best], 4),
    }
    if dev is not None:
        dev_questions = [q for q in load(dev) if q.annotations]
        dev_labels = np.array([q.ambiguous for q in dev_questions])
        predictions = model.predict(encoder.encode([normal(q.question) for q in dev_questions], "query"))
        figures |= {
            "dev_questions": len(dev_questions),
            "dev_accuracy": round(float((predictions == dev_labels).mean()), 4),
            "dev_majority": round(float(max(dev_labels.mean(), 1 - dev_labels.mean())), 4),
            "dev_ambiguous": round(float(dev_labels.mean()), 4),
            "dev_said_ambiguous": round(float(predictions.mean()), 4),
        }
    return Fitted(model.coef_[0].astype(np.float32), float(model.intercept_[0]), figures)


def run(options: AmbiguityOptions, settings: Settings, out: Path) -> dict[str, Any]:
    """`core train ambiguity`: writes the weights to `out` and returns the figures.  It takes seconds to minutes on a CPU."""
    assert options.ambignq is not None
    encoder = sentence_encoder.load_encoder(replace(settings, encoder=ENCODER))
    fitted = fit(options.ambignq, options.ambignq_dev, encoder, options.seed, say)
    record = {"arguments": arguments_of("ambiguity", options), "figures": fitted.figures}
    save_ambiguity(out, fitted.weights, fitted.bias, record)
    return fitted.figures
