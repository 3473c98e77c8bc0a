"""The iterative system: retrieval, the loop over an answering model, clarification by round trip.

Source: Sun et al. 2023, sections 2-3.  The caller chooses the model (core.systems.ambigprompt, core.systems.scripted).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from core import types as t
from core.disambiguation.clarifiers import Clarifier, by_round_trip
from core.disambiguation.round_trip import Ask
from core.errors import CancelledError
from core.models.scheduling.turns import Place
from core.models.span.rows import prompt_text
from core.systems.base.base import STOPPED, Options, Parts, QueuedSystem, as_read, effective_settings, iterate, retrieve
from core.systems.base.candidates import clarified
from core.systems.base.coverage import Coverage
from core.systems.base.rescoring import Additions
from core.systems.base.stopping import LoopEnd
from core.text import occurrences


class AmbigPrompt(QueuedSystem):
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

    def work(self, question: t.Question, place: Place) -> Iterator[t.Event]:
        started = time.perf_counter()
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
                yield from place.wait_again(self.parts.cancelled)
                yield from clarified(question.text, answers, retrieved.passages, self.clarifier, self.parts.cancelled)
        except CancelledError:
            why = STOPPED
        yield t.Finished(time.perf_counter() - started, coverage.ended(why))
