"""Our additions to the papers: a candidate reranker with the reader's second readings, a verifier for its features, and lists read by their parts.

One stage that every system over spans takes by its option `additions`.  A loop is wrapped: each step's candidates and [EOI] are rescored
(core.models.ranking.reranker).  A system that reads once has each of its candidates weighed on its own, with no knowledge of what else it keeps: so
what is left between the two is what iterating brings.  Each system has its own weights for each addition, fitted by `core train reranker` and
stored next to its model's weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core import types as t
from core.errors import CheckpointError
from core.models.loading.finding import named_folder
from core.settings import OFF
from core.systems.base.base import Parts
from core.systems.base.lists import PartByPart, by_parts
from core.systems.base.stopping import Place, digest_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from core.models.ranking.features import Judge, QuestionFeatures, Read
    from core.models.ranking.reranker import Kind, Weights
    from core.models.span.reader import Readout

NONE, ALL = "none", "all"
ADDITIONS = (NONE, "reranker", "verifier")  # verifier: reranker with verifier features; default first
OF_DEFAULT = (ALL, "verifier", "reranker", NONE)  # all: everything available, as in the default system
EXAMINED = 12  # candidates scored in a system that reads once
KEPT_FROM = 0.5  # default least probability of a kept candidate


class Additions:
    """A system's additions, none by default.  `about`: for SystemInfo; `kind`: of the weights found; `folder`: of the weights."""

    def __init__(
        self,
        parts: Parts,
        weights: Weights | None = None,
        kind: Kind | None = None,
        read: Read | None = None,
        judge: Judge | None = None,
        about: dict[str, Any] | None = None,
        folder: Path | None = None,
    ) -> None:
        self.folder = folder
        self.parts, self.weights, self.kind, self.read, self.judge = parts, weights, kind, read, judge
        self.about: dict[str, Any] = {"reranking": None, **(about or {})}

    @property
    def on(self) -> bool:
        return self.weights is not None

    def place(self, own: Place, system: str = "") -> Place:
        """The place of the calibration with additions; `own`: the system's place without them; `system`: its name, if `own` has another."""
        if self.weights is None:
            return self.told_apart(own)
        said = digest_of(own.weights, self.about["reranking"], self.about["verifier"], self.about["reader_digest"])
        return self.told_apart(replace(own, name=f"{system or own.name} {self.kind}", weights=said))

    def told_apart(self, place: Place) -> Place:
        """The place for questions that bring their passages where the system answers such, unless the kind of the weights tells them apart."""
        own = self.parts.retriever is None and not (self.kind or "").startswith("own")
        return place.of_own() if own else place

    def looping(self, model: t.AnsweringModel) -> t.AnsweringModel:
        """The answering model, or a loop over one, with its candidates rescored at each step: for one run."""
        if self.weights is None or self.parts.embed is None or self.read is None:
            return model
        from core.models.ranking.reranker import RerankedAnswerer

        judged = RerankedAnswerer(model, self.weights, self.parts.embed, self.read, self.judge)
        return PartByPart(judged) if self.parts.retriever is None else judged

    def weighed(
        self,
        question: str,
        passages: Sequence[t.RetrievedPassage],
        candidates: Sequence[t.Candidate],
        readouts: Sequence[Readout] | None = None,
        whole: bool = False,
    ) -> list[t.Candidate]:
        """The best EXAMINED candidates and the reader's second readings, each with the probability that it is right, likeliest first; without
        additions, the unchanged candidates.  `readouts`: the reader's of these passages, where the system has them; `whole`: lists stay whole."""
        if self.weights is None or self.parts.embed is None or self.read is None or not candidates:
            return list(candidates)
        from core.models.ranking.features import QuestionFeatures

        read = self.read if readouts is None else lambda *_: readouts
        seen = QuestionFeatures(question, passages, self.parts.embed, read, self.judge)
        weighable, features = examined(seen, candidates)
        scores = self.weights.scores(features).tolist()
        found = [replace(c, probability=1 / (1 + math.exp(-max(-700.0, z)))) for c, z in zip(weighable, scores)]
        found.sort(key=lambda c: -c.probability)
        return found if whole or self.parts.retriever is not None else by_parts(found, passages)


def examined(seen: QuestionFeatures, candidates: Sequence[t.Candidate]) -> tuple[Sequence[t.Candidate], NDArray[np.float64]]:
    """(the best EXAMINED candidates and the reader's second readings, their features)."""
    proposal = seen.with_second_readings((), t.Proposal(tuple(candidates[:EXAMINED]), 0.0))
    return proposal.candidates, seen.step((), proposal)


def additions_of(system: str, wanted: str, parts: Parts, checkpoint: tuple[str, str]) -> Additions:
    """A system's additions.  `wanted`: the value of its option; `checkpoint`: name and kind of its model's weights.

    Raises CheckpointError for damaged files and, if an addition is requested by name but has no weights for this system or cannot run.
    """
    folder = named_folder(*checkpoint)
    if wanted == NONE or parts.embed is None:
        return Additions(parts, folder=folder)
    from core.models.ranking.features import read_with
    from core.models.ranking.reranker import describe, read_weights
    from core.models.ranking.verifier import load_verifier
    from core.models.span.reader import load_reader

    settings = parts.settings
    kept: dict[str, Any] = {"verifier": None}
    for kind in _order(wanted, own=parts.retriever is None):
        weights = read_weights(folder, kind, system) if folder is not None else None
        if weights is None or (wanted == ALL and weights.asks_verifier and settings.verifier == OFF):
            continue
        judge = None
        if weights.asks_verifier:
            try:
                verifier, digest = load_verifier(settings.verifier, settings.device)
            except CheckpointError as error:  # its base (400 MB) may not be installed
                if wanted != ALL or settings.verifier != "default":
                    raise
                kept["verifier_missing"] = str(error)
                continue
            judge = verifier.judge
            kept |= {"verifier": settings.verifier, "verifier_digest": digest}
        reader, reader_digest = load_reader(settings.reader, settings.device)
        kept |= {"reranking": describe(weights), "fitted_for": kind, "reader": settings.reader, "reader_digest": reader_digest}
        return Additions(parts, weights, kind, read_with(reader), judge, kept, folder)
    if wanted != ALL:
        raise CheckpointError(
            f"{system} has no reranker for additions={wanted} next to the {checkpoint[1]} '{checkpoint[0]}'; use additions=none, or fit one "
            f"with: python -m core train reranker --system {system}"
        )
    return Additions(parts, about=kept, folder=folder)


def _order(wanted: str, own: bool) -> list[Kind]:
    """The kinds of weights to try: for questions with their own passages before retrieved ones, with the verifier before without."""
    order: list[Kind] = ["retrieved_verified", "retrieved"]
    if own:
        order = ["own_verified", "own", *order]
    if wanted == ALL:
        return order
    return [kind for kind in order if kind.endswith("verified") == (wanted == "verifier")]
