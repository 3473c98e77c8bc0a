"""What we add to the papers: a candidate reranker with the reader's second readings, a verifier for its features, and lists read by their parts.

One stage that every system over spans takes by its option `additions`.  A loop is wrapped: each step's candidates and [EOI] are rescored
(core.models.ranking.reranker).  A system that reads once has each of its candidates rescored on its own, with no knowledge of what else it keeps: so
what remains between the two is the gain of iterating.  Each system has its own weights for each kind of rescoring, fitted by `core train reranker` and
stored next to its model's weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core import types as t
from core.errors import CheckpointError
from core.models.loading.finding import named_folder
from core.settings import OFF
from core.systems.base.lists import PartByPart, by_parts
from core.systems.base.selection import CalibrationKey, digest_of
from core.systems.base.system import SystemParts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from core.models.ranking.features import Judge, QuestionFeatures, Read
    from core.models.ranking.reranker import Kind, Weights
    from core.models.span.reader import Readout

NONE, ALL = "none", "all"  # values of the option `additions`
MAX_CANDIDATES = 12  # rescored in a system that reads once
RETRIEVED: tuple[Kind, ...] = ("retrieved_verified", "retrieved")


@dataclass
class Rescoring:
    """A system's rescoring, none by default.  `kind`: of the weights; `about`: for SystemInfo; `folder`: of the weights."""

    parts: SystemParts
    weights: Weights | None = None
    kind: Kind | None = None
    read: Read | None = None
    judge: Judge | None = None
    about: dict[str, Any] = field(default_factory=lambda: {"reranking": None})
    folder: Path | None = None

    @property
    def on(self) -> bool:
        return self.weights is not None

    def key(self, plain: CalibrationKey) -> CalibrationKey:
        """The key of the calibration with rescoring; `plain`: the system's key without it."""
        if self.weights is None:
            return self.own_key(plain)
        digest = digest_of(plain.weights, self.about["reranking"], self.about["verifier"], self.about["reader_digest"])
        return self.own_key(replace(plain, name=f"{plain.name} {self.kind}", weights=digest))

    def own_key(self, key: CalibrationKey) -> CalibrationKey:
        """The key for questions that bring their passages where the system answers such, unless the kind of the weights says so already."""
        own = self.parts.retriever is None and not (self.kind or "").startswith("own")
        return key.of_own_passages() if own else key

    def looping(self, model: t.AnsweringModel) -> t.AnsweringModel:
        """The answering model, or a loop over one, with its candidates rescored at each step: for one run."""
        if self.weights is None or self.parts.embed is None or self.read is None:
            return model
        from core.models.ranking.reranker import RerankedAnswerer

        reranked = RerankedAnswerer(model, self.weights, self.parts.embed, self.read, self.judge)
        return PartByPart(reranked) if self.parts.retriever is None else reranked

    def rescored(
        self,
        question: str,
        passages: Sequence[t.RetrievedPassage],
        candidates: Sequence[t.Candidate],
        readouts: Sequence[Readout] | None = None,
        whole_lists: bool = False,
    ) -> list[t.Candidate]:
        """The best MAX_CANDIDATES candidates and the reader's second readings, each with the probability that it is right, likeliest first; without
        rescoring, the unchanged candidates.  `readouts`: the reader's of these passages, where the system has them; `whole_lists`: lists are not split."""
        if self.weights is None or self.parts.embed is None or self.read is None or not candidates:
            return list(candidates)
        from core.models.ranking.features import QuestionFeatures

        read = self.read if readouts is None else lambda *_: readouts
        seen = QuestionFeatures(question, passages, self.parts.embed, read, self.judge)
        scorable, features = examined(seen, candidates)
        scores = self.weights.scores(features).tolist()
        rescored = [replace(c, probability=1 / (1 + math.exp(-max(-700.0, z)))) for c, z in zip(scorable, scores)]
        rescored.sort(key=lambda c: -c.probability)
        return rescored if whole_lists or self.parts.retriever is not None else by_parts(rescored, passages)


def examined(seen: QuestionFeatures, candidates: Sequence[t.Candidate]) -> tuple[Sequence[t.Candidate], NDArray[np.float64]]:
    """(the best MAX_CANDIDATES candidates and the reader's second readings, their features)."""
    proposal = seen.with_second_readings((), t.Proposal(tuple(candidates[:MAX_CANDIDATES]), 0.0))
    return proposal.candidates, seen.step((), proposal)


def rescoring_of(system: str, choice: str, parts: SystemParts, checkpoint: tuple[str, str]) -> Rescoring:
    """A system's rescoring.  `choice`: the value of its option `additions`; `checkpoint`: name and kind of its model's weights.

    Raises CheckpointError for damaged files and, if a kind is requested by name but has no weights for this system or cannot run.
    """
    folder = named_folder(*checkpoint)
    if choice == NONE or parts.embed is None:
        return Rescoring(parts, folder=folder)
    from core.models.ranking.features import read_with
    from core.models.ranking.reranker import describe, read_weights
    from core.models.ranking.verifier import load_verifier
    from core.models.span.reader import load_reader

    settings = parts.settings
    about: dict[str, Any] = {"reranking": None, "verifier": None}
    # for questions with their own passages before retrieved ones, with the verifier before without
    kinds: list[Kind] = ["own_verified", "own"] if parts.retriever is None else []
    for kind in (*kinds, *RETRIEVED):
        if choice != ALL and kind.endswith("verified") != (choice == "verifier"):
            continue
        weights = read_weights(folder, kind, system) if folder is not None else None
        if weights is None or (choice == ALL and weights.asks_verifier and settings.verifier == OFF):
            continue
        judge = None
        if weights.asks_verifier:
            try:
                verifier, digest = load_verifier(settings.verifier, settings.device)
            except CheckpointError as error:  # its base (400 MB) may not be installed
                if choice != ALL or settings.verifier != "default":
                    raise
                about["verifier_missing"] = str(error)
                continue
            judge = verifier.judge
            about |= {"verifier": settings.verifier, "verifier_digest": digest}
        reader, reader_digest = load_reader(settings.reader, settings.device)
        about |= {"reranking": describe(weights), "fitted_for": kind, "reader": settings.reader, "reader_digest": reader_digest}
        return Rescoring(parts, weights, kind, read_with(reader), judge, about, folder)
    if choice != ALL:
        raise CheckpointError(
            f"{system} has no reranker for additions={choice} next to the {checkpoint[1]} '{checkpoint[0]}'; use additions=none, or fit one "
            f"with: python -m core train reranker --system {system}"
        )
    return Rescoring(parts, about=about, folder=folder)
