"""The conversion of interpretations to answers, shared by the systems that have interpretations."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from core import types as t
from core.disambiguation.labels import labels_of
from core.errors import CancelledError
from core.models.language.roles import Generator as Generates
from core.models.scheduling.turns import LinePlace
from core.systems.base.options import Options, SystemOptions
from core.systems.base.selection import evidence_of
from core.systems.base.system import System, SystemParts, SystemRun
from core.text import answer_key, question_key


def unique(interpretations: Sequence[t.Interpretation]) -> list[t.Interpretation]:
    """The interpretations without abstentions, failures and duplicates of both question and answer."""
    by_key: dict[tuple[str, str], t.Interpretation] = {}
    for i in interpretations:
        if i.answer and i.question and not i.abstained and not i.failed:
            by_key.setdefault((question_key(i.question), answer_key(i.answer)), i)
    return list(by_key.values())


def select(
    question: t.Question, interpretations: Sequence[t.Interpretation], max_answers: int, unread: int = 0
) -> list[t.Interpretation]:
    """The interpretations whose answers aren't banned, for at most `max_answers` answers, including pinned ones.

    One without a probability (a language model gives none) gets an equal share, as does each of the `unread` passages: what they would have said is
    not known.
    """
    banned = {answer_key(b) for b in question.banned}
    keys = {answer_key(p) for p in question.pinned}
    selected: list[t.Interpretation] = []
    for i in interpretations:
        key = answer_key(i.answer)
        if key not in banned and (key in keys or len(keys) < max_answers):
            keys.add(key)
            share = 1 / max(1, len(interpretations) + unread)
            selected.append(i if i.probability > 0 else replace(i, probability=share))
    return selected


def interpretation_events(
    question: t.Question, selected: Sequence[t.Interpretation], passages: Sequence[t.RetrievedPassage]
) -> Iterator[t.StepFinished]:
    """One StepFinished for each distinct answer, pinned ones first, so that every page, metric and export treats interpretations as answers."""
    answers: dict[str, tuple[str, list[t.Interpretation]]] = {answer_key(p): (p, []) for p in question.pinned}
    for i in selected:
        answers.setdefault(answer_key(i.answer), (i.answer, []))[1].append(i)
    previous: list[str] = []
    for number, (text, members) in enumerate(answers.values(), 1):
        pinned = number <= len(question.pinned)
        evidence = [i.evidence for i in members if i.evidence is not None]
        probability = 1.0 if pinned else min(1.0, max(i.probability for i in members))
        candidate = t.Candidate(text, probability, evidence[0] if evidence else None)
        step = t.Step(number, tuple(previous), "", () if pinned else (candidate,), candidate, 0.0, 0.0)
        previous.append(text)
        yield t.StepFinished(step, t.Answer(text, probability, evidence_of(text, evidence, passages), number, pinned))


@dataclass(frozen=True, slots=True)
class Interpreted:
    """The interpretations of a run, and a note on them."""

    interpretations: tuple[t.Interpretation, ...]
    note: str
    unread: int = 0  # passages that could not be read


class InterpretationSystem(System):
    """Subclasses implement `interpret`, and `reword` if questions are rewritten once the answers are known (`rewords`)."""

    rewords = False

    def __init__(
        self,
        name: str,
        parts: SystemParts,
        options: Options,
        generator: Generates,
        config: SystemOptions | None = None,
        provenance: Mapping[str, Any] | None = None,
    ) -> None:
        """`config`, `provenance`: as in `System`."""
        self.generator, self.uses_this_machine = generator, "endpoint" not in generator.about
        provenance = {**(provenance or {}), "generator": dict(generator.about)}
        super().__init__(name, parts, options, (generator.name, ""), config=config, provenance=provenance)

    @abstractmethod
    def interpret(self, run: SystemRun) -> Generator[t.Event, None, Interpreted]:
        """Yields the events before the answers, and `run.calls.finish_role()` after each role.  Raises NothingRetrievedError."""

    def reword(self, run: SystemRun, selected: list[t.Interpretation]) -> Generator[t.Event, None, list[t.Interpretation]]:
        """The chosen interpretations, the same number, with their final questions.  Called after all answers if the system
        `rewords`."""
        raise NotImplementedError

    def find(self, run: SystemRun) -> Generator[t.Event, None, str]:
        interpreted = yield from self.interpret(run)
        yield from run.calls.finish_role()
        accepted, refusals = run.coverage.accepted(interpreted.interpretations)
        yield from refusals
        run.selected = select(run.question, accepted, self.options.max_answers, interpreted.unread)
        yield from interpretation_events(run.question, run.selected, run.passages)
        return interpreted.note

    def clarify(self, run: SystemRun, place: LinePlace) -> Iterator[t.Event]:
        """The questions of the answers, then InterpretationsChosen, even if a person stops the rewording."""
        stopped: CancelledError | None = None
        if self.rewords and run.selected:
            try:
                yield from place.wait_again(self.parts.cancelled)
                run.selected = yield from self.reword(run, run.selected)
            except CancelledError as error:
                stopped = error
        by_key = {answer_key(i.answer): i for i in reversed(run.selected)}  # the first of each answer
        own = {answer: i for answer in run.answers if (i := by_key.get(answer_key(answer)))}
        labels = labels_of(run.question.text, [i.question for i in own.values()])
        for (answer, i), label in zip(own.items(), labels):
            unchecked = "this system does not check its rewritten questions" if i.verified is None else "the check failed"
            question = "" if question_key(i.question) == question_key(run.question.text) else i.question
            note = "" if i.verified else unchecked
            yield t.QuestionClarified(t.Clarification(answer, question, bool(i.verified), why=note, label=label), 0.0)
        yield t.InterpretationsChosen(tuple(run.selected), run.end_reason)
        if stopped is not None:
            raise stopped
