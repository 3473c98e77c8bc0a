"""The part that systems share that read their passages once: candidates and their selection."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any

from core import types as t
from core.models.ranking.calibration import describe
from core.models.span.reader import PassageReader
from core.systems.base.clarifying import make_clarifier
from core.systems.base.options import ClarifierOptions, Options, ReadingOptions
from core.systems.base.selection import CalibrationKey, OnePassSelection, answer_events
from core.systems.base.system import System, SystemParts, SystemRun


class ReadingSystem(System):
    """Subclasses implement `candidates`."""

    def __init__(
        self,
        name: str,
        parts: SystemParts,
        options: Options,
        config: ReadingOptions,
        reader: PassageReader,
        digest: str,
        key: CalibrationKey,
        provenance: Mapping[str, Any],
        clarifies: bool = True,
    ) -> None:
        """`key`: the calibration's name, stored with the weights of its kind.  `digest`: a digest of these weights.
        `clarifies`: disambiguates by a round trip with the reader.  The rest is as in `System`.

        Raises CheckpointError.
        """
        self.reader, weights = reader, getattr(parts.settings, key.kind)
        self.stopping = OnePassSelection(config.threshold, key.find(weights, config.calibration), key)
        clarifier, writer = make_clarifier(ClarifierOptions(), parts.settings, clarifies and options.clarify, reader)
        provenance = {**provenance, **writer, "calibration": describe(self.stopping.calibration)}
        super().__init__(name, parts, options, (weights, digest), config=config, provenance=provenance, clarifier=clarifier)

    @abstractmethod
    def candidates(self, run: SystemRun) -> list[t.Candidate]:
        """The candidates, likeliest first."""

    def rejections(
        self, run: SystemRun, candidates: Sequence[t.Candidate], selected: Sequence[t.Candidate]
    ) -> Iterable[t.AnswerRejected]:
        """The reasons why candidates aren't answers, if the system gives them."""
        return ()

    def summary(self, run: SystemRun, candidates: Sequence[t.Candidate]) -> str:
        return f"one pass; {self.stopping.description()}"

    def find(self, run: SystemRun) -> Generator[t.Event, None, str]:
        yield t.StepStarted(1, (), "")
        start = time.perf_counter()
        candidates = self.candidates(run)
        selected, calibrated = self.stopping.keep(candidates, run.reading, self.options.max_answers)
        seconds = time.perf_counter() - start
        yield from self.rejections(run, candidates, selected)
        yield from answer_events(selected, calibrated, len(run.question.pinned), run.passages, seconds)
        return self.summary(run, candidates)
