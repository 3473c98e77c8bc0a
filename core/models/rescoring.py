"""Rescoring: a log-linear model over what the answering model, the retriever and the wording say of each candidate of a step.

The span model finds nearly every answer among its eight best candidates but ranks some fluent wrong ones above them, and its [EOI] is badly
calibrated.  So each step's candidates get a new score, w . f(candidate), [EOI] the score 0, and one softmax over both decides as before
(Sun et al. 2023, section 3.2: the loop itself is unchanged).  The weights are fitted by `python -m core train rescorer` on questions that the
answering model was not trained on, and lie beside its weights as rescorer.json.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.edits.shared import evidence_sentence
from core.errors import CheckpointError
from core.models.passage_signals import kind
from core.text import contains_tokens, content_words, normalize_answer, words
from core.types import AnsweringModel, Candidate, Proposal, RetrievedPassage

FILE = "rescorer.json"
LEAST = 1e-6  # probability below which candidates count alike
Embed = Callable[[Sequence[str]], NDArray[np.float32]]  # texts -> unit vectors (n, d)

FEATURES = (
    "log_probability",  # of the answering model, among spans and [EOI]
    "over_eoi",  # log probability - log P([EOI])
    "below_best",  # log probability - that of the step's best candidate
    "similarity",  # cosine of question and passage
    "below_best_passage",  # that cosine - the best passage's
    "sentence",  # cosine of the question and the candidate's sentence with the passage's title
    "kind",  # does the answer fit the question word
    "like_previous",  # is it of the shape of the answers so far (0 at the first step)
    "length",  # words, at most 8
    "in_title",
    "asked_again",  # share of its words that the question has
    "support",  # other passages that hold it, at most 3
    "passage_taken",  # its passage holds an answer found before
    "first_step",
    "previous",  # answers found before, at most 6
)


@dataclass(frozen=True)
class Weights:
    """`mean` and `scale` standardise the features; `bias` belongs to every candidate, [EOI] has 0."""

    weights: Mapping[str, float]
    mean: Mapping[str, float]
    scale: Mapping[str, float]
    bias: float
    fitted_on: str = ""  # in words, for the model card and the trace

    def __post_init__(self) -> None:
        for part in (self.weights, self.mean, self.scale):
            if set(part) != set(FEATURES):
                odd = sorted(set(part) ^ set(FEATURES))
                raise CheckpointError(f"the rescorer has other features than this version ({', '.join(odd)}); fit it again")
            if not all(math.isfinite(v) for v in part.values()):
                raise CheckpointError("the rescorer has a weight that is no number; fit it again")
        if not math.isfinite(self.bias) or not all(self.scale.values()):
            raise CheckpointError("the rescorer has a scale of 0 or a bias that is no number; fit it again")

    def scores(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """(candidates, features) -> (candidates,)"""
        mean, scale, weights = (np.array([part[n] for n in FEATURES]) for part in (self.mean, self.scale, self.weights))
        out: NDArray[np.float64] = ((features - mean) / scale) @ weights + self.bias
        return out


def read_weights(folder: Path) -> Weights | None:
    """The rescorer beside a checkpoint's weights, or None where there is none.  Raises CheckpointError for a damaged one."""
    path = folder / FILE
    if not path.is_file():
        return None
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        return Weights(**{name: body[name] for name in ("weights", "mean", "scale", "bias", "fitted_on")})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path} is damaged ({error}); fit it again with: python -m core train rescorer") from None


def write_weights(folder: Path, weights: Weights) -> Path:
    path = folder / FILE
    draft = path.with_suffix(".tmp")
    draft.write_text(json.dumps(asdict(weights), indent=1), encoding="utf-8")
    draft.replace(path)
    return path


def shape(text: str) -> tuple[bool, bool, bool]:
    """(has a digit, has a four-digit year, starts a word with a capital): answers to one question mostly agree in these."""
    return bool(re.search(r"\d", text)), bool(re.search(r"\b[12]\d{3}\b", text)), bool(re.search(r"\b[A-Z]", text))


def _alike(answer: str, previous: Sequence[str]) -> float:
    """-1 to 1: share of the traits of `shape` in which the answer agrees with the previous answers; 0 where there are none."""
    if not previous:
        return 0.0
    own = shape(answer)
    agree = [x == y for other in previous for x, y in zip(own, shape(other))]
    return 2.0 * sum(agree) / len(agree) - 1.0


def features(
    question: str, passages: Sequence[RetrievedPassage], previous: Sequence[str], proposal: Proposal, embed: Embed
) -> NDArray[np.float64]:
    """(candidates, len(FEATURES)) of one step."""
    candidates = proposal.candidates
    if not candidates:
        return np.zeros((0, len(FEATURES)))
    by_id = {p.passage.id: p for p in passages}
    best_similarity = max((p.similarity for p in passages if p.similarity is not None), default=0.0)
    asked = set(content_words(question))
    tokens = {p.passage.id: words(p.passage.text) for p in passages}
    found = [words(p) for p in previous]
    taken = {key for key, text in tokens.items() if any(contains_tokens(text, f) for f in found)}
    vectors = embed([question, *(_sentence(c, by_id) for c in candidates)])
    sentence = vectors[1:] @ vectors[0]
    logs = [math.log(max(LEAST, c.probability)) for c in candidates]
    eoi = math.log(max(LEAST, proposal.eoi_probability))
    rows = []
    for i, candidate in enumerate(candidates):
        own = by_id.get(candidate.evidence.passage_id) if candidate.evidence else None
        similarity = own.similarity if own is not None and own.similarity is not None else best_similarity
        said = words(candidate.text)
        content = content_words(candidate.text) or said
        holding = sum(contains_tokens(t, said) for t in tokens.values())
        rows.append(
            {
                "log_probability": logs[i],
                "over_eoi": logs[i] - eoi,
                "below_best": logs[i] - max(logs),
                "similarity": similarity,
                "below_best_passage": similarity - best_similarity,
                "sentence": float(sentence[i]),
                "kind": kind(question, candidate.text),
                "like_previous": _alike(candidate.text, previous),
                "length": min(8.0, len(said)),
                "in_title": float(own is not None and contains_tokens(words(own.passage.title), said)),
                "asked_again": sum(w in asked for w in content) / max(1, len(content)),
                "support": float(min(3, max(0, holding - 1))),
                "passage_taken": float(own is not None and own.passage.id in taken),
                "first_step": float(not previous),
                "previous": float(min(6, len(previous))),
            }
        )
    return np.array([[row[name] for name in FEATURES] for row in rows])


def _sentence(candidate: Candidate, by_id: Mapping[str, RetrievedPassage]) -> str:
    found = by_id.get(candidate.evidence.passage_id) if candidate.evidence else None
    if found is None or candidate.evidence is None:
        return candidate.text
    sentence = evidence_sentence(found.passage, candidate.evidence.start)
    return f"{found.passage.title}. {sentence}" if found.passage.title else sentence


def rescore(proposal: Proposal, scores: NDArray[np.float64]) -> Proposal:
    """One softmax over the candidates' scores and [EOI]'s 0.  Equal normalised texts never occur twice in a proposal."""
    if not len(scores):
        return replace(proposal, eoi_probability=1.0)
    top = max(0.0, float(scores.max()))
    mass = np.exp(scores - top)
    total = float(mass.sum()) + math.exp(-top)
    order = np.argsort(-scores, kind="stable")
    return Proposal(
        tuple(replace(proposal.candidates[i], probability=float(mass[i]) / total) for i in order), math.exp(-top) / total
    )


class RescoredAnswerer:
    """An answering model, or a loop over one, whose candidates are scored anew."""

    def __init__(self, model: AnsweringModel, weights: Weights, embed: Embed) -> None:
        self.model, self.weights, self.embed = model, weights, embed

    def propose(self, question: str, passages: Sequence[RetrievedPassage], previous: Sequence[str]) -> Proposal:
        proposal = self.model.propose(question, passages, previous)
        return rescore(proposal, self.weights.scores(features(question, passages, previous, proposal, self.embed)))


def correct(candidate: Candidate, gold: Sequence[Sequence[str]]) -> bool:
    """True if the candidate is an alias of a reference answer."""
    return any(normalize_answer(candidate.text) == normalize_answer(alias) for aliases in gold for alias in aliases)


def describe(weights: Weights) -> dict[str, Any]:
    """What a prediction remembers of the rescorer, as plain JSON values."""
    return {"weights": {n: round(v, 4) for n, v in weights.weights.items()}, "bias": round(weights.bias, 4)}
