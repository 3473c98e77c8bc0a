"""The iterative system: retrieval, the loop over an answering model, clarification by round trip.

Source: Sun et al. 2023, sections 2-3.  The caller chooses the model (core.systems.ambigprompt, core.systems.scripted).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from core import types as t
from core.clarification.clarifiers import Clarifier, by_round_trip
from core.clarification.round_trip import Ask
from core.errors import CancelledError
from core.models.running.memory import trimmed
from core.models.span.rows import prompt_text
from core.systems.shared.additions import Additions
from core.systems.shared.base import Options, Parts, as_read, check_question, effective_settings, iterate, retrieve
from core.systems.shared.coverage import Coverage
from core.systems.shared.stopping import LoopEnd
from core.text import occurrences


class AmbigPrompt:
    def __init__(
        self,
        name: str,
        parts: Parts,
        options: Options,
        model: t.AnsweringModel,
        ask: Ask | None,
        checkpoint: tuple[str, str],
        template: Callable[[Sequence[str]], str] = prompt_text,
        used: Mapping[str, Any] | None = None,
        clarifier: Clarifier | None = None,
        loop: Callable[[], t.AnsweringModel] | None = None,
        end: LoopEnd | None = None,
        additions: Additions | None = None,
    ) -> None:
        """`checkpoint`: name and digest of the weights; `used`: other settings that affect the answers, as plain JSON values; `clarifier`:
        replaces the round trip with `ask`; `loop`: creates a stateful replacement of `model` for each run; `end`: when the loop ends;
        `additions`: rescore the candidates of each step."""
        self.parts, self.options, self.model, self.ask, self.template = parts, options, model, ask, template
        self.additions = additions or Additions(parts)
        self.loop: Callable[[], t.AnsweringModel] = lambda: self.additions.looping(loop() if loop else model)
        self.stopping = end or LoopEnd.chosen(options.stop_above)
        self.clarifier = clarifier or (by_round_trip(ask) if ask is not None else None)
        self.info = t.SystemInfo(
            name,
            effective_settings(parts, options, **self.additions.about, **(used or {})),
            parts.corpus,
            parts.corpus_digest,
            *checkpoint,
        )

    @trimmed
    def run(self, question: t.Question) -> Iterator[t.Event]:
        """Yields each event as it happens.  Raises InputError for a bad question and NothingRetrievedError."""
        started = time.perf_counter()
        question = check_question(question, self.parts.settings.max_question_chars)
        retrieved = retrieve(question, self.parts, self.options.passages)
        yield retrieved
        answers: list[t.Answer] = []
        why = "the maximum number of answers is reached"
        asked = as_read(question, retrieved.passages)
        coverage = Coverage(asked, retrieved.passages, self.options.check_coverage)
        try:
            loop = iterate(
                self.loop(),
                asked,
                retrieved.passages,
                self.template,
                self.options,
                self.parts.cancelled,
                occurrences,
                self.stopping,
            )
            for event in coverage.checked(loop):
                if isinstance(event, t.StepFinished):
                    if event.answer is not None:
                        answers.append(event.answer)
                    if event.step.stopped_because:
                        why = event.step.stopped_because
                elif isinstance(event, t.AnswerRejected):
                    answers = [a for a in answers if a.text != event.answer]
                yield event
            if self.options.clarify and self.clarifier is not None and answers:
                passages = [p.passage for p in retrieved.passages]
                begun = time.perf_counter()
                for clarification in self.clarifier(question.text, answers, passages):
                    yield t.QuestionClarified(clarification, time.perf_counter() - begun)
                    begun = time.perf_counter()
                    if self.parts.cancelled():
                        raise CancelledError("the run was stopped")
        except CancelledError:
            why = "stopped by a person"
        yield t.Finished(time.perf_counter() - started, coverage.ended(why))
