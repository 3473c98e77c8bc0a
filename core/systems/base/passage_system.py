"""The base class of systems without a loop over one answering model: passages, answers, disambiguated questions.

Subclasses implement how answers are found (`find`) and, if needed, which passages are read (`passages`).
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Generator, Iterator, Mapping
from typing import Any

from core import types as t
from core.disambiguation.clarifiers import Clarifier, by_round_trip
from core.disambiguation.round_trip import Ask
from core.errors import CancelledError
from core.models.scheduling.turns import Place
from core.systems.base.base import STOPPED, Options, Parts, QueuedSystem, as_read, effective_settings, retrieve
from core.systems.base.candidates import clarified
from core.systems.base.coverage import Coverage


class PassageSystem(QueuedSystem):
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
        """Yields the events between retrieval and clarification; returns why it ended.  Questions that it clarifies on the way are passed on
        after the last answer."""

    def passages(self, question: t.Question) -> t.PassagesRetrieved:
        """The passages to read.  Raises NothingRetrievedError, InputError."""
        return retrieve(question, self.parts, self.options.passages)

    def check_cancelled(self) -> None:
        """Raises CancelledError when a person stopped the run; called between units of work."""
        if self.parts.cancelled():
            raise CancelledError("the run was stopped")

    def work(self, question: t.Question, place: Place) -> Iterator[t.Event]:
        started = time.perf_counter()
        retrieved = self.passages(question)
        yield retrieved
        passages = {p.passage.id: p for p in retrieved.passages}
        answers: dict[str, t.Answer] = {}
        clear: dict[str, t.QuestionClarified] = {}  # by answer: those that the system disambiguated itself
        why = STOPPED
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
                        clear[c.answer] = event
                        continue
                yield event
            yield from (event for answer, event in clear.items() if answer in answers)
            if self.options.clarify and self.clarifier is not None and answers and not clear.keys() >= answers.keys():
                try:
                    yield from place.wait_again(self.parts.cancelled)
                    yield from clarified(
                        question.text, list(answers.values()), list(passages.values()), self.clarifier, self.parts.cancelled
                    )
                except CancelledError:
                    why = STOPPED
        except CancelledError:
            yield from (event for answer, event in clear.items() if answer in answers)
        yield t.Finished(time.perf_counter() - started, coverage.ended(why))
