"""Reranking: a log-linear model over features of each candidate of a step (core.models.ranking.features).

The span model finds nearly every answer among its eight best candidates but ranks some fluent wrong ones above them, and its [EOI] is badly
calibrated.  So each step's candidates, and the reader's second readings of their places (core.models.ranking.second_reading), get a new score,
w . f(candidate), [EOI] the score 0, and one softmax over both decides (the loop of Sun et al. 2023, section 3.2, is unchanged).  The
weights are fitted by `python -m core train reranker` and are stored next to the model's.
There are separate weights for retrieved passages, most of which are irrelevant, and for passages that come with the question, which somebody selected.
For each there is a version with the verifier's features (core.models.ranking.verifier) and one without, in case its base is not installed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from core import disk
from core.errors import CheckpointError
from core.models.ranking.features import FEATURES, OF_VERIFIER, Embed, Judge, QuestionFeatures, Read
from core.text import equal_for_scoring
from core.types import AnsweringModel, Candidate, Proposal, RetrievedPassage

Kind = Literal["retrieved", "own", "retrieved_verified", "own_verified"]
# whether passages were retrieved or came with the question, and whether the verifier is used
KINDS: tuple[Kind, ...] = get_args(Kind)
DEFAULT_SYSTEM = "ambiscope"  # its files have no system name


def file_of(kind: Kind, system: str = DEFAULT_SYSTEM) -> str:
    """The name of a system's file beside the weights of its model.

    >>> file_of("own_verified"), file_of("retrieved", "jpr")
    ('reranker_own_verified.json', 'reranker-jpr.json')
    """
    of = "" if system == DEFAULT_SYSTEM else f"-{system}"
    return f"reranker{of}{'' if kind == 'retrieved' else '_' + kind.removeprefix('retrieved_')}.json"


@dataclass(frozen=True)
class Weights:
    """`mean` and `scale` standardise the features; `bias` belongs to every candidate, [EOI] has 0.  A feature that is not named has no weight.

    `first`: added to the weights at the first step, which chooses the best answer; later steps decide whether there is another.
    """

    weights: Mapping[str, float]
    mean: Mapping[str, float]
    scale: Mapping[str, float]
    bias: float
    fitted_on: str = ""  # in words, for the model card and the trace
    first: Mapping[str, float] = field(default_factory=dict)  # empty: same weights at every step

    def __post_init__(self) -> None:
        for part in (self.weights, self.mean, self.scale, self.first or self.weights):
            if odd := sorted(set(part) ^ set(self.weights) | set(part) - set(FEATURES)):
                raise CheckpointError(
                    f"the reranker has features that this version does not know ({', '.join(odd)}); fit it again"
                )
            if not all(math.isfinite(v) for v in part.values()):
                raise CheckpointError("the reranker has a weight that is not a number; fit it again")
        if not math.isfinite(self.bias) or not all(self.scale.values()):
            raise CheckpointError("the reranker has a scale of 0 or a bias that is not a number; fit it again")

    @property
    def asks_verifier(self) -> bool:
        return any(self.weights.get(name) or self.first.get(name) for name in OF_VERIFIER)

    def scores(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """(candidates, features) -> (candidates,)"""
        names = list(self.weights)
        mean, scale, weights = (np.array([part[n] for n in names]) for part in (self.mean, self.scale, self.weights))
        own = (features[:, [FEATURES.index(n) for n in names]] - mean) / scale
        out: NDArray[np.float64] = own @ weights + self.bias
        if self.first:
            out += (own @ np.array([self.first[n] for n in names])) * features[:, FEATURES.index("first_step")]
        return out


def read_weights(folder: Path, kind: Kind = "retrieved", system: str = DEFAULT_SYSTEM) -> Weights | None:
    """A system's reranker beside a checkpoint's weights, or None if there is none.  Raises CheckpointError for a damaged one."""
    if not (path := folder / file_of(kind, system)).is_file():
        return None
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        named = {name: body[name] for name in ("weights", "mean", "scale", "bias", "fitted_on")}
        return Weights(**named, first=body.get("first", {}))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path} is damaged ({error}); fit it again with: python -m core train reranker") from None


def write_weights(folder: Path, weights: Weights, kind: Kind = "retrieved", system: str = DEFAULT_SYSTEM) -> Path:
    """Raises StorageError."""
    path = folder / file_of(kind, system)
    disk.write_text(path, json.dumps(asdict(weights), indent=1))
    return path


def rerank(proposal: Proposal, scores: NDArray[np.float64]) -> Proposal:
    """Applies one softmax over the candidates' scores and [EOI]'s 0.  A proposal has no duplicates after normalisation."""
    if not len(scores):
        return replace(proposal, eoi_probability=1.0)
    top = max(0.0, float(scores.max()))
    mass = np.exp(scores - top)
    total = float(mass.sum()) + math.exp(-top)
    order = np.argsort(-scores, kind="stable")
    candidates = tuple(replace(proposal.candidates[i], probability=float(mass[i]) / total) for i in order)
    return replace(proposal, candidates=candidates, eoi_probability=math.exp(-top) / total)


def with_said(proposal: Proposal, features: NDArray[np.float64], verified: bool) -> Proposal:
    """Each candidate with the model's own probability and, where a verifier was asked, the verifier's."""
    odds = features[:, FEATURES.index("verifier")] if verified else [None] * len(proposal.candidates)
    said = [None if o is None else 1 / (1 + math.exp(-o)) for o in odds]
    told = (replace(c, model=c.probability, verifier=v) for c, v in zip(proposal.candidates, said))
    return replace(proposal, candidates=tuple(told))


@runtime_checkable
class Guided(Protocol):
    """A loop that next reads the passages of the reranker's best candidates (core.models.span.fast_loop)."""

    def judged(self, candidates: Sequence[Candidate], scores: Sequence[float]) -> None:
        """The candidates of the step just proposed and their scores, in that order."""
        ...


class RerankedAnswerer:
    """An answering model, or a loop over one, with rescored candidates.  Features of the last question are cached for its next step."""

    def __init__(self, model: AnsweringModel, weights: Weights, embed: Embed, read: Read, judge: Judge | None = None) -> None:
        self.model, self.weights, self.embed, self.read, self.judge = model, weights, embed, read, judge
        self._last: tuple[tuple[str, tuple[RetrievedPassage, ...]], QuestionFeatures] | None = None

    def propose(self, question: str, passages: Sequence[RetrievedPassage], previous: Sequence[str]) -> Proposal:
        seen = self._seen(question, passages)
        proposal = seen.with_second_readings(previous, self.model.propose(question, passages, previous))
        before = seen.verifying
        features = seen.step(previous, proposal)
        scores = self.weights.scores(features)
        proposal = replace(with_said(proposal, features, self.judge is not None), verifying=seen.verifying - before)
        if isinstance(self.model, Guided):
            self.model.judged(proposal.candidates, scores.tolist())
        return rerank(proposal, scores)

    def _seen(self, question: str, passages: Sequence[RetrievedPassage]) -> QuestionFeatures:
        key, last = (question, tuple(passages)), self._last  # read once: another thread may change it
        if last is not None and last[0] == key:
            return last[1]
        seen = QuestionFeatures(question, passages, self.embed, self.read, self.judge)
        self._last = key, seen
        return seen


def correct(candidate: Candidate, gold: Sequence[Sequence[str]]) -> bool:
    """True if the candidate is an alias of a reference answer."""
    return any(equal_for_scoring(candidate.text, alias) for aliases in gold for alias in aliases)


def describe(weights: Weights) -> dict[str, Any]:
    """What a prediction stores of the reranker, as plain JSON values."""

    def rounded(part: Mapping[str, float]) -> dict[str, float]:
        return {n: round(v, 4) for n, v in part.items()}

    return {"weights": rounded(weights.weights), "first": rounded(weights.first), "bias": round(weights.bias, 4)}
