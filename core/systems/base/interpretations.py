"""Shared by systems with interpretations: the base class, and how interpretations become answers."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from core import types as t
from core.errors import CancelledError, LanguageModelError
from core.models.language.loading import load_language_generator
from core.models.language.roles import Generator as Generates
from core.models.language.roles import LanguageGenerator, Run
from core.models.scheduling.turns import Place
from core.systems.base.base import STOPPED, Options, Parts, QueuedSystem, as_read, effective_settings, retrieve
from core.systems.base.coverage import Coverage
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
    members: list[int] = field(default_factory=list)  # in the order in which they were chosen


def conclude(
    question: t.Question,
    interpretations: Sequence[t.Interpretation],
    passages: Sequence[t.RetrievedPassage],
    max_answers: int,
    why: str = "",
    passed: Callable[[t.Interpretation], bool] = lambda i: False,
    reword: Callable[[list[t.Interpretation]], Generator[t.Event, None, Sequence[t.Interpretation]]] | None = None,
    unread: int = 0,
) -> Iterator[t.Event]:
    """The final interpretations as events: one StepFinished for each distinct answer, then one QuestionClarified for each, so that every page,
    metric and export treats them as answers, then InterpretationsChosen.  The caller yields Finished.

    Pinned answers come first, banned ones are left out; `passed` says whether an interpretation passed a round trip.  `reword`: rewrites the
    questions of those chosen, as many, after all answers.  An interpretation without a probability (a language model gives none) gets an equal
    share, as does each of the `unread` passages: what they would have said is not known.  Raises CancelledError when a person stops the
    rewording, after the rest of the events.
    """
    banned = {answer_key(b) for b in question.banned}
    answers = {answer_key(p): _Answer(p, True) for p in question.pinned}
    chosen: list[t.Interpretation] = []
    share = 1 / max(1, len(interpretations) + unread)
    for i in interpretations:
        key = answer_key(i.answer)
        if key in banned or (key not in answers and len(answers) >= max_answers):
            continue
        i = i if i.probability > 0 else replace(i, probability=share)
        answers.setdefault(key, _Answer(i.answer)).members.append(len(chosen))
        chosen.append(i)
    shown: list[str] = []
    for answer in answers.values():
        members = [chosen[n] for n in answer.members]
        own = list(dict.fromkeys(i.evidence for i in members if i.evidence is not None))
        found = [
            e
            for e in occurrences(answer.text, passages)
            if all((e.passage_id, e.start) != (o.passage_id, o.start) for o in own)
        ]
        probability = 1.0 if answer.pinned else min(1.0, max(i.probability for i in members))
        candidate = t.Candidate(answer.text, probability, own[0] if own else None)
        step = t.Step(len(shown) + 1, tuple(shown), "", () if answer.pinned else (candidate,), candidate, 0.0, 0.0)
        shown.append(answer.text)
        yield t.StepFinished(step, t.Answer(answer.text, probability, (*own, *found), len(shown), answer.pinned))
    stopped: CancelledError | None = None
    if reword is not None and chosen:
        try:
            chosen = list((yield from reword(chosen)))
        except CancelledError as error:
            stopped = error
    for answer in answers.values():
        for i in (chosen[n] for n in answer.members[:1]):
            ok = passed(i)
            note = "" if ok else "the round trip failed, or this system has none"
            yield t.QuestionClarified(t.Clarification(answer.text, i.question, ok, why=note), 0.0)
    yield t.InterpretationsChosen(tuple(chosen), why)
    if stopped is not None:
        raise stopped


@dataclass(frozen=True, slots=True)
class Found:
    """A grounded system's result: final interpretations, the passages read, and a note."""

    interpretations: tuple[t.Interpretation, ...]
    passages: tuple[t.RetrievedPassage, ...]
    why: str
    unread: int = 0  # passages that could not be read


class GroundedSystem(QueuedSystem):
    """The base class: deadline, cancellation, counted calls and conclusion of a run.  Subclasses implement `find`, and `reword` where questions
    are rewritten when the answers are known."""

    rewords = False

    def __init__(
        self, name: str, parts: Parts, options: Options, generator: Generates, used: Mapping[str, Any] | None = None
    ) -> None:
        """`used`: other settings that affect the answers, as plain JSON values."""
        self.parts, self.options = parts, options
        self.uses_this_machine = "endpoint" not in generator.about
        settings = effective_settings(parts, options, **(used or {}), generator=dict(generator.about))
        self.info = t.SystemInfo(name, settings, parts.corpus, parts.corpus_digest, generator.name)

    @abstractmethod
    def find(self, question: t.Question, run: Run) -> Generator[t.Event, None, Found]:
        """Yields the events before the conclusion, and `run.finish_role()` after each role.  Raises NothingRetrievedError."""

    def search(self, question: t.Question, query: str, k: int) -> t.PassagesRetrieved:
        """The question's own passages, else the k best for the query.  Raises NothingRetrievedError."""
        return retrieve(replace(question, text=query), self.parts, k)

    def reword(
        self, question: t.Question, chosen: list[t.Interpretation], found: Found, run: Run
    ) -> Generator[t.Event, None, Sequence[t.Interpretation]]:
        """The interpretations chosen, as many, with their final questions.  Called after all answers, where the system `rewords`."""
        raise NotImplementedError

    def work(self, question: t.Question, place: Place) -> Iterator[t.Event]:
        """Raises LanguageModelError besides."""
        started = time.perf_counter()
        run = Run.of(self.parts.settings.lm_run_timeout, self.parts.cancelled)
        try:
            found = yield from self.find(question, run)
            yield from run.finish_role()
            coverage = Coverage(as_read(question, found.passages), found.passages, self.options.check_coverage)
            kept, refused = coverage.kept(found.interpretations)
            yield from refused
            why = found.why if question.pinned else coverage.ended(found.why)

            def reword(chosen: list[t.Interpretation]) -> Generator[t.Event, None, Sequence[t.Interpretation]]:
                yield from place.wait_again(self.parts.cancelled)
                return (yield from self.reword(question, chosen, found, run))

            yield from conclude(
                question,
                kept,
                found.passages,
                self.options.max_answers,
                why,
                lambda i: bool(i.verified),
                reword if self.rewords else None,
                found.unread,
            )
        except CancelledError:
            yield from run.events()
            why = STOPPED
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
