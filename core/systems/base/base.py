"""Shared by every system: options, parts, the iterative loop, and `answer()`, which folds a run's events."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from core import types as t
from core.errors import AmbiscopeError, CancelledError, InputError, NothingRetrievedError
from core.models.scheduling.memory import trimmed
from core.models.scheduling.turns import LINE, Place
from core.registry import did_you_mean
from core.settings import Settings
from core.short_names import spelled_out
from core.systems.base.stopping import LoopEnd
from core.text import answer_key, text_problem
from core.trace import fold

TOP_K = 10  # default number of passages to read
STOPPED = "stopped by a person"  # why a run finished


@dataclass(frozen=True)
class Options:
    """Options of a run.  `top_k`: passages to read; None: the system's default, at most the whole corpus
    (set by the engine).  `stop_above`: a loop stops when P([EOI]) exceeds it; None: as its option `stop` says."""

    top_k: int | None = None
    max_answers: int = 8
    stop_above: float | None = None
    clarify: bool = True
    check_coverage: bool = True  # refuse answers whose document lacks what the question names (core.systems.base.coverage)
    extra: dict[str, Any] = field(default_factory=dict)  # options of one system, by name; checked by read_extra

    def __post_init__(self) -> None:
        if self.top_k is not None and self.top_k < 1:
            raise InputError(f"the number of passages is {self.top_k}; it must be at least 1")
        if not 1 <= self.max_answers <= 50:
            raise InputError(f"the maximum number of answers is {self.max_answers}; it must be 1 to 50")
        if self.stop_above is not None and not 0 <= self.stop_above <= 1:
            raise InputError(f"the stopping threshold is {self.stop_above}; it must be between 0 and 1")

    @property
    def passages(self) -> int:
        return TOP_K if self.top_k is None else self.top_k


@dataclass(frozen=True)
class Parts:
    """What a factory can use.  `retriever` is None if every question has its own passages."""

    settings: Settings
    retriever: t.Retriever | None
    corpus: str = ""
    corpus_digest: str = ""
    cancelled: Callable[[], bool] = lambda: False  # checked between steps; True ends the run
    retrieval: Mapping[str, str] = field(
        default_factory=dict
    )  # retriever mode, index kind and encoder; empty without a retriever
    # cosines of a question and passages that it brings itself; None if no encoder is available
    similarity: Callable[[str, Sequence[t.Passage]], Sequence[float]] | None = None
    embed: Callable[[Sequence[str]], Any] | None = None  # texts -> unit vectors (n, d) of the corpora's encoder


def read_extra(options: Options, system: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """The value of each option in `known`, which maps names to defaults: a float takes finite numbers, a tuple of words takes one of
    them (the first by default), a mapping takes a mapping.

    Raises InputError for an unknown name or a value of the wrong type.
    """
    for name in options.extra:
        if name not in known:
            raise InputError(
                f"{system} has no option '{name[:80]}'.{did_you_mean(name[:80], known)} Its options: {', '.join(known) or 'none'}"
            )
    return {name: _checked(name, options.extra[name], default) for name, default in known.items() if name in options.extra} | {
        name: default[0] if isinstance(default, tuple) else default
        for name, default in known.items()
        if name not in options.extra
    }


def _checked(name: str, value: Any, default: Any) -> Any:
    if isinstance(default, tuple):
        if value not in default:
            raise InputError(f"the option {name} is '{str(value)[:80]}'; use {' or '.join(default)}")
        return value
    if isinstance(default, Mapping):
        if not isinstance(value, Mapping):
            raise InputError(f"the option {name} is '{str(value)[:80]}'; it must be an object of names and values")
        return value
    try:
        number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"the option {name} is '{str(value)[:40]}'; it must be a number")
    return number


def effective_settings(parts: Parts, options: Options, **used: Any) -> dict[str, Any]:
    """The settings in SystemInfo, as plain JSON values: the options, how passages are found, and the system's own.

    Defaults are included, so that a run with other defaults has other settings.
    """
    return {**asdict(options), "retrieval": dict(parts.retrieval), **used}


def one_line(text: str, what: str, limit: int) -> str:
    """The text in one line, with white space collapsed.  Raises InputError naming `what` for what `text_problem` finds and for more than `limit` characters."""
    shown = " ".join(text.split())
    if problem := text_problem(shown, line=True):
        raise InputError(f"{what} cannot be read: {problem}; type it again as plain text")
    if len(shown) > limit:
        raise InputError(f"{what} has {len(shown)} characters; at most {limit} are read: make it shorter")
    return shown


def check_question(question: t.Question, limit: int) -> t.Question:
    """The question with white space collapsed, also in its pinned and banned answers, without empty ones and duplicates.

    Raises InputError for an empty or blank question, an overlong text, one with control characters or lone surrogates, and for an answer that is both
    pinned and banned.
    """
    text = one_line(question.text, "the question", limit)
    if not text:
        raise InputError("the question is empty; type a question")
    if not any(c.isalnum() for c in text):
        raise InputError(f"the question '{text[:40]}' has no letter or digit; type a question in words")
    pinned, banned = (
        _by_key(one_line(a, what, limit) for a in answers)
        for what, answers in (("an answer to keep", question.pinned), ("an answer to strike", question.banned))
    )
    if both := [a for key, a in pinned.items() if key in banned]:
        raise InputError(f"the answer '{both[0][:80]}' is both kept and struck (pinned and banned); leave it out of one")
    return replace(question, text=text, pinned=tuple(pinned.values()), banned=tuple(banned.values()))


def _by_key(answers: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for answer in filter(None, answers):
        found.setdefault(answer_key(answer), answer)
    return found


def as_retrieved(
    question: str, passages: Sequence[t.Passage], similarity: Callable[[str, Sequence[t.Passage]], Sequence[float]] | None
) -> list[t.RetrievedPassage]:
    """A question's own passages, in order, as RetrievedPassage; with cosines if there are several."""
    cosines = similarity(question, passages) if similarity and len(passages) > 1 else [None] * len(passages)
    return [t.RetrievedPassage(p, i, 1.0, c) for i, (p, c) in enumerate(zip(passages, cosines, strict=True), 1)]


def retrieve(question: t.Question, parts: Parts, k: int) -> t.PassagesRetrieved:
    """The question's own passages, or the k best of the corpus.  Raises NothingRetrievedError when there are none."""
    started = time.perf_counter()
    if question.passages is not None:
        found = as_retrieved(question.text, question.passages, parts.similarity)
    elif parts.retriever is None:
        raise InputError("the question has no passages and no corpus is open; choose a corpus")
    else:
        found = parts.retriever.search(question.text, k)
    if not found and question.passages is not None:
        raise NothingRetrievedError("the question has an empty list of passages; add passages to it, or leave the list out")
    if not found:
        raise NothingRetrievedError(
            f"no passage of corpus '{parts.corpus}' matches the question; use other words, or choose another corpus"
        )
    return t.PassagesRetrieved(tuple(found), time.perf_counter() - started, question.text)


def as_read(question: t.Question, passages: Sequence[t.RetrievedPassage]) -> t.Question:
    """The question with short names spelled out as in these passages (core.short_names)."""
    return replace(question, text=spelled_out(question.text, [f"{p.passage.title}. {p.passage.text}" for p in passages]))


class QueuedSystem(ABC):
    """What the runs of all systems share: a question is checked, and waits until those before it have their answers."""

    parts: Parts
    uses_this_machine = True  # to answer; else nothing is gained by waiting

    @trimmed
    def run(self, question: t.Question) -> Iterator[t.Event]:
        """Yields each event as it happens: all answers first, then the disambiguated questions.

        Raises InputError for a bad question, NothingRetrievedError, and what `work` raises.
        """
        started = time.perf_counter()
        question = check_question(question, self.parts.settings.max_question_chars)
        with LINE.place(self.uses_this_machine) as place:
            try:
                yield from place.wait(self.parts.cancelled)
            except CancelledError:
                yield t.Finished(time.perf_counter() - started, STOPPED)
            else:
                yield from self.work(question, place)

    @abstractmethod
    def work(self, question: t.Question, place: Place) -> Iterator[t.Event]:
        """The events of a checked question whose turn has come.  Calls `place.wait_again` between the answers and their questions."""


def queue_note(event: t.QuestionQueued) -> str:
    """What a person who waits reads.

    >>> queue_note(t.QuestionQueued(2, 1))
    'waiting: 1 other question is running first, this one is number 2 in the queue'
    """
    others = f"{event.running} other question{' is' if event.running == 1 else 's are'} running first"
    waiting = "waiting" if event.part == "answers" else "the answers are complete, their rewritten questions wait"
    return f"{waiting}: {others}, this one is number {event.position} in the queue"


def answer(system: t.AnsweringSystem, question: t.Question, watch: Callable[[t.Event], None] | None = None) -> t.Prediction:
    """Runs a system to its end and folds its events; `watch` is called with each of them."""
    events = system.run(question)
    return fold(question, system.info, events if watch is None else _watched(events, watch))


def _watched(events: Iterable[t.Event], watch: Callable[[t.Event], None]) -> Iterator[t.Event]:
    for event in events:
        watch(event)
        yield event


def answer_or_error(system: t.AnsweringSystem, question: t.Question) -> t.Prediction | AmbiscopeError:
    """`answer`, or why there is none: one question of many that fails.  Raises CancelledError."""
    try:
        return answer(system, question)
    except CancelledError:
        raise
    except AmbiscopeError as error:
        return error


def iterate(
    model: t.AnsweringModel,
    question: t.Question,
    passages: Sequence[t.RetrievedPassage],
    prompt: Callable[[Sequence[str]], str],
    options: Options,
    cancelled: Callable[[], bool],
    evidence: Callable[[str, Sequence[t.RetrievedPassage]], tuple[t.Evidence, ...]],
    end: LoopEnd,
) -> Generator[t.Event, None, None]:
    """AmbigPrompt's loop (section 3.2): propose, choose, append, until `end` says so, the maximum is reached, or no candidate is left.

    A person's pinned answers come first and count as previous answers; banned ones are never chosen, and are also shown to the model as
    previous answers, so that it looks for others.  Yields a StepFinished for each pinned answer, then a StepStarted and a
    StepFinished a step; The caller yields Finished.  Raises CancelledError when a person stops the run.
    """
    banned = {answer_key(b) for b in question.banned}
    previous: list[str] = []
    given = [1.0] * len(question.pinned)  # probability of each answer so far
    for text in question.pinned:
        previous.append(text)
        yield t.StepFinished(
            t.Step(len(previous), tuple(previous[:-1]), prompt(previous[:-1]), (), t.Candidate(text, 1.0), 0.0, 0.0),
            t.Answer(text, 1.0, evidence(text, passages), len(previous), pinned=True),
        )
    number = len(previous)
    while len(previous) < options.max_answers:
        if cancelled():
            raise CancelledError("the run was stopped")
        number += 1
        seen = [*previous, *(b for b in question.banned if b not in previous)]
        text = prompt(seen)
        yield t.StepStarted(number, tuple(previous), text)
        started = time.perf_counter()
        proposal = model.propose(question.text, passages, seen)
        known = {answer_key(p) for p in previous}
        taken = banned if end.repeats else banned | known
        fresh: dict[str, t.Candidate] = {}  # the same answer twice counts once
        for candidate in proposal.candidates:
            fresh.setdefault(answer_key(candidate.text), candidate)
        candidates = tuple(c for key, c in fresh.items() if key not in taken)
        shown, left = end.shown(candidates, proposal.eoi_probability, later=bool(previous))
        why = end.why(given, candidates, proposal.eoi_probability, shown, left)
        if not why and answer_key(shown[0].text) in known:
            why = f"the model chose '{shown[0].text}' again"
        choice = None if why else shown[0]
        step = t.Step(
            number, tuple(previous), text, shown, choice, left, time.perf_counter() - started, why, proposal.verifying
        )
        if choice is None:
            yield t.StepFinished(step, None)
            return
        found = evidence(choice.text, passages)
        own = (choice.evidence,) if choice.evidence else ()
        rest = tuple(e for e in found if not own or (e.passage_id, e.start) != (own[0].passage_id, own[0].start))
        previous.append(choice.text)
        given.append(choice.probability)
        yield t.StepFinished(step, t.Answer(choice.text, choice.probability, own + rest, number))
