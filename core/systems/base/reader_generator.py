"""The generator for use without a language model: the bundled per-passage reader.

The roles of Lee et al. 2025 (core.models.language.roles.Generator): relaxing leaves the query as it is; interpreting a passage is one call of the reader
over it (Eq. 8), which may abstain.  An interpretation's answer is always a span of its passage, and its question the query, until all are known
and the system's clarifier writes their own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from core import types as t
from core.models.language.roles import Claim, Run
from core.models.span.reader import PassageReader, Readout, load_reader
from core.settings import Settings
from core.text import overlapping

AT_A_TIME = 5  # passages per batch: small enough to show progress in the grid


class ReaderGenerator:
    """Implements `Generator`.  Runs can share it, because each model serves one caller at a time."""

    name = "bundled reader"  # core.systems.BUNDLED_READER

    def __init__(self, reader: PassageReader, about: Mapping[str, Any] | None = None) -> None:
        self.reader = reader
        self.about: Mapping[str, Any] = {"generator": self.name, **(about or {})}

    def relax(self, query: str, run: Run) -> str:
        """Eq. 6 as the identity: retrieval already covers every meaning of a short question."""
        return query

    def interpret(self, query: str, passages: Sequence[t.Passage], run: Run) -> Iterator[tuple[int, t.Interpretation]]:
        for first in range(0, len(passages), AT_A_TIME):
            run.check()
            batch = range(first, min(first + AT_A_TIME, len(passages)))
            if run.seconds_left <= 0:
                for i in batch:
                    problem = "the time limit was reached before this passage was read"
                    run.count(t.ModelCalled("interpret", 1, 0, 0, 0.0, problem))
                    yield i, t.Interpretation(passages[i].id, failed=problem)
                continue
            for i, readout in zip(batch, self._read(query, [passages[i] for i in batch], run)):
                if isinstance(readout, str):
                    yield i, t.Interpretation(passages[i].id, failed=readout)
                else:
                    yield i, _interpretation(query, readout)

    def _read(self, query: str, passages: Sequence[t.Passage], run: Run) -> list[Readout | str]:
        """One readout for each passage, computed in one batch.  If that fails, each passage is read alone, and a failure
        returns its error message."""
        start = time.perf_counter()
        readouts = self._attempt(query, passages)
        if any(isinstance(readout, str) for readout in readouts):
            readouts = [readout for passage in passages for readout in self._attempt(query, [passage])]
        seconds = (time.perf_counter() - start) / max(1, len(passages))
        for readout in readouts:
            run.count(t.ModelCalled("interpret", 1, 0, 0, seconds, readout if isinstance(readout, str) else ""))
        return readouts

    def _attempt(self, question: str, passages: Sequence[t.Passage], candidates: int = 5) -> list[Readout | str]:
        """One readout per passage, read in one batch; a single error message if that fails."""
        try:
            return list(self.reader.read(question, passages, candidates))
        except Exception as e:
            return [_message(e)]

    def verify(self, claims: Sequence[Claim], run: Run) -> list[bool | None]:
        """A claim holds if the reader, asked its question over one of its passages, returns its answer."""
        out: list[bool | None] = []
        for claim in claims:
            run.check()
            readouts = self._answers_to(claim, run)
            agreements = [
                r.best is not None and overlapping(r.best.text, claim.answer) for r in readouts if isinstance(r, Readout)
            ]
            out.append(True if any(agreements) else None if len(agreements) < len(readouts) else False)
        return out

    def _answers_to(self, claim: Claim, run: Run) -> list[Readout | str]:
        start = time.perf_counter()
        if run.seconds_left <= 0:
            return ["the time limit was reached"]
        readouts = self._attempt(claim.question, claim.passages, 1)
        error = next((f for f in readouts if isinstance(f, str)), "")
        run.count(t.ModelCalled("verify", len(claim.passages), 0, 0, time.perf_counter() - start, error))
        return readouts

    def answer(self, question: str, passages: Sequence[t.Passage], run: Run) -> str | None:
        """The likeliest span of the passages on which the reader doesn't abstain."""
        run.check()
        answers = [r.best for r in self._read(question, passages, run) if isinstance(r, Readout) and r.best is not None]
        return max(answers, key=lambda c: c.probability).text if answers else None


def _message(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]


def _interpretation(query: str, readout: Readout) -> t.Interpretation:
    passage = readout.passage
    best = readout.best
    if best is None or best.evidence is None:
        return t.Interpretation(passage.id, abstained=f"no answer here ({readout.abstain_probability:.0%} confident)")
    return t.Interpretation(passage.id, query, best.text, best.probability, best.evidence)


def load_reader_generator(settings: Settings) -> ReaderGenerator:
    """Raises CheckpointError if the bundled weights are missing or damaged."""
    reader, digest = load_reader(settings.reader, settings.device)
    return ReaderGenerator(reader, {"reader": settings.reader, "reader_digest": digest})
