"""Asks one question, in the same way for an engine of this process and for one behind a service."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from core.settings import Settings
from core.systems.base.options import Options
from core.systems.base.system import answer, check_question
from core.types import AnsweringSystem, Event, Prediction, Question

_COMMON = {f.name for f in fields(Options)}


class Asking(ABC):
    """The base of both engines.  Builds on `settings` and `system`."""

    settings: Settings

    @abstractmethod
    def system(
        self,
        name: str | None = None,
        corpus: str | None = None,
        options: Options | None = None,
        cancelled: Callable[[], bool] | None = None,
        own_passages: bool = False,
    ) -> AnsweringSystem:
        """The system that answers, here or at the service."""

    def options(self, **values: Any) -> Options:
        """Options of a run: fields of `Options`, and options of one system by name.  None: the default of the settings or the system.

        Raises InputError for a value that is out of range.
        """
        values = {name: value for name, value in values.items() if value is not None}
        extra = {**values.pop("extra", {}), **{name: values.pop(name) for name in values.keys() - _COMMON}}
        return Options(**{"max_answers": self.settings.max_answers, **values}, extra=extra)

    def ask(
        self,
        question: str | Question,
        system: str | None = None,
        corpus: str | None = None,
        *,
        watch: Callable[[Event], None] | None = None,
        **options: Any,
    ) -> Prediction:
        """Answers one question.  `watch` is called with each event; other parameters and errors are those of `stream`."""
        prompt, answering_system = self._ready(question, system, corpus, options)
        return answer(answering_system, prompt, watch)

    def stream(
        self, question: str | Question, system: str | None = None, corpus: str | None = None, **options: Any
    ) -> Iterator[Event]:
        """The events of one question as they happen (core.types); core.trace folds them into a prediction.

        `question`: its text, or a Question with answers to keep or to strike, or with passages of its own (then no corpus is opened).
        `options`: as `options` takes them.  Raises InputError for a bad question or option, UnknownNameError, NotFoundError,
        CheckpointError: before the first event.
        """
        prompt, answering_system = self._ready(question, system, corpus, options)
        return answering_system.run(prompt)

    def _ready(
        self, question: str | Question, system: str | None, corpus: str | None, options: Mapping[str, Any]
    ) -> tuple[Question, AnsweringSystem]:
        """The checked question and the system that answers it; a bad question fails before models are loaded."""
        prompt = Question(question) if isinstance(question, str) else question
        prompt = check_question(prompt, self.settings.max_question_chars)
        return prompt, self.system(system, corpus, self.options(**options), own_passages=prompt.passages is not None)
