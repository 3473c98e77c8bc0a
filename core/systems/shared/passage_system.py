"""The base class of systems without a loop over one answering model: passages, answers, disambiguated questions.

Subclasses implement how answers are found (`find`) and, if needed, which passages are read (`passages`).
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Mapping
from typing import Any

from core import types as t
from core.clarification.clarifiers import Clarifier, by_round_trip
from core.clarification.round_trip import Ask
from core.errors import CancelledError
from core.models.running.memory import trimmed
from core.systems.shared.base import Options, Parts, as_read, check_question, effective_settings, retrieve
from core.systems.shared.candidates import clarified
from core.systems.shared.coverage import Coverage


class PassageSystem(ABC):
    def __init__(
        self,
        name: str,
        parts: Parts,
        options: Options,
        ask: Ask | None,
        checkpoint: tuple[str, str],
        used: Mapping[str, Any] | None = None,
        clarifier: Clarifier | None = None,
    ) -> None:
        """`ask`: answers edited questions in the round trip (None: no disambiguated questions); `checkpoint`: name and digest of the
        weights; `used`: other settings that affect the answers, as plain JSON values; `clarifier`: replaces the round trip."""
        self.parts, self.options, self.ask = parts, options, ask
        self.clarifier = clarifier or (by_round_trip(ask) if ask is not None else None)
        settings = effective_settings(parts, options, **(used or {}))
        self.info = t.SystemInfo(name, settings, parts.corpus, parts.corpus_digest, *checkpoint)

    @abstractmethod
    def find(self, question: t.Question, passages: tuple[t.RetrievedPassage, ...]) -> Generator[t.Event, None, str]:
        """Yields the events between retrieval and clarification; returns why it ended."""

    def passages(self, question: t.Question) -> t.PassagesRetrieved:
        """The passages to read.  Raises NothingRetrievedError, InputError."""
        return retrieve(question, self.parts, self.options.passages)

    def check_cancelled(self) -> None:
        """Raises CancelledError when a person stopped the run; called between units of work."""
        if self.parts.cancelled():
            raise CancelledError("the run was stopped")

    @trimmed
    def run(self, question: t.Question) -> Iterator[t.Event]:
        """Yields each event as it happens.  Raises InputError for a bad question and NothingRetrievedError."""
        started = time.perf_counter()
        question = check_question(question, self.parts.settings.max_question_chars)
        retrieved = self.passages(question)
        yield retrieved
        passages = {p.passage.id: p for p in retrieved.passages}
        answers: dict[str, t.Answer] = {}
        told: set[str] = set()  # answers that the system disambiguated itself
        why = "stopped by a person"
        asked = as_read(question, retrieved.passages)
        coverage = Coverage(asked, retrieved.passages, self.options.check_coverage)
        try:
            events = coverage.checked(self.find(asked, retrieved.passages))
            while True:
                try:
                    event = next(events)
                except StopIteration as end:
                    why = str(end.value)
                    break
                match event:
                    case t.StepFinished(answer=t.Answer() as answer):
                        answers[answer.text] = answer
                    case t.AnswerRejected(answer=text):
                        answers.pop(text, None)
                    case t.PassagesRetrieved(passages=found):
                        for p in found:
                            passages.setdefault(p.passage.id, p)
                    case t.QuestionClarified(clarification=c):
                        told.add(c.answer)
                yield event
            if self.options.clarify and self.clarifier is not None and answers and not told.issuperset(answers):
                try:
                    yield from clarified(
                        question.text, list(answers.values()), list(passages.values()), self.clarifier, self.parts.cancelled
                    )
                except CancelledError:
                    why = "stopped by a person"
        except CancelledError:
            pass
        yield t.Finished(time.perf_counter() - started, coverage.ended(why))
