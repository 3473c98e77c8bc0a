"""What systems share that read their passages once: candidates and their selection."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any

from core import types as t
from core.models.ranking.calibration import describe
from core.models.span.reader import PassageReader
from core.systems.base.clarifying import by_reader
from core.systems.base.options import Options, ReadingOptions
from core.systems.base.selection import CalibrationKey, Selection, answer_events
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
        """`key`: of the calibration, which is stored with the weights of its kind; `digest`: of these weights; `clarifies`: by a round trip
        with the reader.  The rest as in `System`.

        Raises CheckpointError.
        """
        self.reader, weights = reader, getattr(parts.settings, key.kind)
        self.stopping = Selection(config.threshold, key.find(weights, config.calibration), key)
        provenance = {**provenance, "calibration": describe(self.stopping.calibration)}
        clarifier = by_reader(reader) if clarifies else None
        super().__init__(name, parts, options, (weights, digest), config=config, provenance=provenance, clarifier=clarifier)

    @abstractmethod
    def candidates(self, run: SystemRun) -> list[t.Candidate]:
        """The candidates, likeliest first."""

    def rejections(
        self, run: SystemRun, candidates: Sequence[t.Candidate], selected: Sequence[t.Candidate]
    ) -> Iterable[t.AnswerRejected]:
        """Why candidates are not answers, where the system says so."""
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
