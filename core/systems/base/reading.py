"""What systems share that read their passages once: candidates, rescored and selected."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any

from core import types as t
from core.disambiguation.clarifiers import by_round_trip
from core.models.span.reader import PassageReader, Readout
from core.systems.base.clarifying import ask_reader, make_judge
from core.systems.base.options import Options, ReadingOptions
from core.systems.base.rescoring import rescoring_of
from core.systems.base.selection import CalibrationKey, Selection, answer_events
from core.systems.base.system import System, SystemParts, SystemRun


class ReadingSystem(System):
    """Subclasses implement `candidates`."""

    def __init__(
        self,
        name: str,
        parts: SystemParts,
        options: Options,
        own: ReadingOptions,
        reader: PassageReader,
        checkpoint: tuple[str, str],
        key: CalibrationKey,
        used: Mapping[str, Any],
        clarifies: bool = True,
    ) -> None:
        """`key`: of the calibration without rescoring; `clarifies`: by a round trip with the reader.  The rest as in `System`.

        Raises InputError if the stopping rule needs a missing calibration, CheckpointError.
        """
        weights = getattr(parts.settings, key.kind)  # the name of those beside which reranker and calibration are
        self.reader, self.rescoring = reader, rescoring_of(name, own.additions, parts, (weights, key.kind))
        key = self.rescoring.key(key)
        self.stopping = Selection(own.threshold, own.stop, key.find(weights, own.stop, own.calibration), key)
        judge, confirming = make_judge(parts.settings) if clarifies and options.clarify else (None, {})
        used = {**used, **self.stopping.about(), **self.rescoring.about, **confirming}
        clarifier = by_round_trip(ask_reader(reader), judge) if clarifies else None
        super().__init__(name, parts, options, checkpoint, own=own, used=used, clarifier=clarifier)

    @abstractmethod
    def candidates(self, run: SystemRun) -> tuple[list[t.Candidate], Sequence[Readout]]:
        """(the candidates, likeliest first; what the reader read of `run.passages`)."""

    def rejections(
        self, run: SystemRun, candidates: Sequence[t.Candidate], kept: Sequence[t.Candidate]
    ) -> Iterable[t.AnswerRejected]:
        """Why candidates are no answers, where the system says so."""
        return ()

    def summary(self, run: SystemRun, candidates: Sequence[t.Candidate]) -> str:
        return f"one pass; {self.stopping.description()}"

    def find(self, run: SystemRun) -> Generator[t.Event, None, str]:
        yield t.StepStarted(1, (), "")
        begun = time.perf_counter()
        candidates, readouts = self.candidates(run)
        candidates = self.rescoring.rescored(run.reading.text, run.passages, candidates, readouts)
        kept, calibrated = self.stopping.keep(candidates, run.reading, self.options.max_answers)
        seconds = time.perf_counter() - begun
        yield from self.rejections(run, candidates, kept)
        yield from answer_events(kept, calibrated, len(run.question.pinned), run.passages, seconds)
        return self.summary(run, candidates)
