"""Shared by systems with interpretations: the base class, and how interpretations become answers."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from core import types as t
from core.errors import CancelledError, LanguageModelError
from core.models.language.loading import load_language_generator
from core.models.language.roles import Generator as Generates
from core.models.language.roles import LanguageGenerator, Run
from core.models.running.memory import trimmed
from core.systems.shared.base import Options, Parts, check_question, effective_settings, retrieve
from core.text import answer_key, occurrences, question_key


def distinct(interpretations: Sequence[t.Interpretation]) -> list[t.Interpretation]:
    """The interpretations without abstentions, failures and duplicates of both question and answer."""
    seen: set[tuple[str, str]] = set()
    out = []
    for i in interpretations:
        key = (question_key(i.question), answer_key(i.answer))
        if i.answer and i.question and not i.abstained and not i.failed and key not in seen:
            seen.add(key)
            out.append(i)
    return out


@dataclass
class _Answer:
    """One distinct answer and the interpretations that gave it."""

    text: str
    pinned: bool = False
    members: list[t.Interpretation] = field(default_factory=list)


def conclude(
    question: t.Question,
    interpretations: Sequence[t.Interpretation],
    passages: Sequence[t.RetrievedPassage],
    max_answers: int,
    why: str = "",
    passed: Callable[[t.Interpretation], bool] = lambda i: False,
) -> Iterator[t.Event]:
    """The final interpretations as events: one StepFinished and one QuestionClarified for each distinct answer, so that every page, metric
    and export treats them as answers, then InterpretationsChosen.  The caller yields Finished.

    Pinned answers come first, banned ones are left out; `passed` says whether an interpretation passed a round trip.
    An interpretation without a probability (a language model gives none) gets an equal share.
    """
    banned = {answer_key(b) for b in question.banned}
    answers = {answer_key(p): _Answer(p, True) for p in question.pinned}
    chosen: list[t.Interpretation] = []
    share = 1 / max(1, len(interpretations))
    for i in interpretations:
        key = answer_key(i.answer)
        if key in banned or (key not in answers and len(answers) >= max_answers):
            continue
        i = i if i.probability > 0 else replace(i, probability=share)
        answers.setdefault(key, _Answer(i.answer)).members.append(i)
        chosen.append(i)
    shown: list[str] = []
    for answer in answers.values():
        own = list(dict.fromkeys(i.evidence for i in answer.members if i.evidence is not None))
        found = [
            e
            for e in occurrences(answer.text, passages)
            if all((e.passage_id, e.start) != (o.passage_id, o.start) for o in own)
        ]
        probability = 1.0 if answer.pinned else min(1.0, max(i.probability for i in answer.members))
        candidate = t.Candidate(answer.text, probability, own[0] if own else None)
        step = t.Step(len(shown) + 1, tuple(shown), "", () if answer.pinned else (candidate,), candidate, 0.0, 0.0)
        shown.append(answer.text)
        yield t.StepFinished(step, t.Answer(answer.text, probability, (*own, *found), len(shown), answer.pinned))
    for answer in answers.values():
        for i in answer.members[:1]:
            ok = passed(i)
            note = "" if ok else "the round trip failed, or this system has none"
            yield t.QuestionClarified(t.Clarification(answer.text, i.question, ok, why=note), 0.0)
    yield t.InterpretationsChosen(tuple(chosen), why)


@dataclass(frozen=True, slots=True)
class Found:
    """A grounded system's result: final interpretations, the passages read, and a note."""

    interpretations: tuple[t.Interpretation, ...]
    passages: tuple[t.RetrievedPassage, ...]
    why: str


class GroundedSystem(ABC):
    """The base class: deadline, cancellation, counted calls and conclusion of a run.  Subclasses implement `find`."""

    def __init__(
        self, name: str, parts: Parts, options: Options, generator: Generates, used: Mapping[str, Any] | None = None
    ) -> None:
        """`used`: other settings that affect the answers, as plain JSON values."""
        self.parts, self.options = parts, options
        settings = effective_settings(parts, options, **(used or {}), generator=dict(generator.about))
        self.info = t.SystemInfo(name, settings, parts.corpus, parts.corpus_digest, generator.name)

    @abstractmethod
    def find(self, question: t.Question, run: Run) -> Generator[t.Event, None, Found]:
        """Yields the events before the conclusion, and `run.finish_role()` after each role.  Raises NothingRetrievedError."""

    def search(self, question: t.Question, query: str, k: int) -> t.PassagesRetrieved:
        """The question's own passages, else the k best for the query.  Raises NothingRetrievedError."""
        return retrieve(replace(question, text=query), self.parts, k)

    @trimmed
    def run(self, question: t.Question) -> Iterator[t.Event]:
        """Yields each event as it happens.  Raises InputError for a bad question, NothingRetrievedError, LanguageModelError."""
        started = time.perf_counter()
        question = check_question(question, self.parts.settings.max_question_chars)
        run = Run.of(self.parts.settings.lm_run_timeout, self.parts.cancelled)
        try:
            found = yield from self.find(question, run)
            yield from run.finish_role()
            yield from conclude(
                question, found.interpretations, found.passages, self.options.max_answers, found.why, lambda i: bool(i.verified)
            )
            why = found.why
        except CancelledError:
            yield from run.events()
            why = "stopped by a person"
        except LanguageModelError:
            yield from run.events()  # the trace shows which calls failed
            raise
        yield t.Finished(time.perf_counter() - started, why)


class LanguageSystem(GroundedSystem):
    """A grounded system over a generator that plays every role."""

    def __init__(
        self,
        name: str,
        parts: Parts,
        options: Options,
        generator: LanguageGenerator | None,
        used: Mapping[str, Any] | None = None,
    ) -> None:
        """`generator` None: the configured language model.  Then raises NoLanguageModelError, LanguageModelError, CheckpointError."""
        self.generator = generator or load_language_generator(parts.settings)
        super().__init__(name, parts, options, self.generator, used)
