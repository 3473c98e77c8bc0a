"""The base of all systems, and the one way in which they run: check, retrieve, find, clarify, finish.  `answer` folds the
events of a run.

A subclass says how answers are found (`find`) and, if needed, which passages are read (`retrieve`) and how questions are disambiguated (`clarify`).
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from core import types as t
from core.disambiguation.clarifiers import Clarifier
from core.errors import AmbiscopeError, CancelledError, InputError, LanguageModelError, NothingRetrievedError
from core.models.language.roles import Run
from core.models.scheduling.memory import trimmed
from core.models.scheduling.turns import LINE, LinePlace
from core.settings import Settings
from core.short_names import spelled_out
from core.systems.base.coverage import Coverage
from core.systems.base.options import Options, SystemOptions
from core.systems.base.telemetry import recorded
from core.text import answer_key, text_problem
from core.trace import fold

STOPPED = "stopped by a person"  # why a run finished
MAXIMUM_REACHED = "the maximum number of answers is reached"
PassageSimilarity = Callable[[str, Sequence[t.Passage]], Sequence[float]]


@dataclass(frozen=True)
class SystemParts:
    """The parts that a factory can use.  `retriever` is None if every question has its own passages."""

    settings: Settings
    retriever: t.Retriever | None
    corpus: str = ""
    corpus_digest: str = ""
    cancelled: Callable[[], bool] = lambda: False  # checked between steps; True ends the run
    # encoder, and with a retriever its mode and the kind of the index
    retrieval: Mapping[str, str] = field(default_factory=dict)
    similarity: PassageSimilarity | None = (
        None  # cosines of a question and passages that it brings itself; None without an encoder
    )
    embed: Callable[[Sequence[str]], Any] | None = None  # texts -> unit vectors (n, d) of the corpora's encoder


def one_line(text: str, label: str, limit: int) -> str:
    """The text on one line, with white space collapsed.  Raises InputError naming `label` for whatever `text_problem` finds,
    and for more than `limit` characters."""
    line = " ".join(text.split())
    if problem := text_problem(line, line=True):
        raise InputError(f"{label} cannot be read: {problem}; type it again as plain text")
    if len(line) > limit:
        raise InputError(f"{label} has {len(line)} characters; at most {limit} are read: make it shorter")
    return line


def check_question(question: t.Question, limit: int) -> t.Question:
    """The question with white space collapsed, also in its pinned and banned answers, without empty answers and duplicates.

    Raises InputError for an empty or blank question, an overlong text, one with control characters or lone surrogates, and for an answer that is both
    pinned and banned.
    """
    text = one_line(question.text, "the question", limit)
    if not text:
        raise InputError("the question is empty; type a question")
    if not any(c.isalnum() for c in text):
        raise InputError(f"the question '{text[:40]}' has no letter or digit; type a question in words")

    pinned = _by_key(question.pinned, "an answer to keep", limit)
    banned = _by_key(question.banned, "an answer to strike", limit)
    if contradictions := [a for key, a in pinned.items() if key in banned]:
        raise InputError(
            f"the answer '{contradictions[0][:80]}' is both kept and struck (pinned and banned); leave it out of one"
        )
    return replace(question, text=text, pinned=tuple(pinned.values()), banned=tuple(banned.values()))


def _by_key(answers: Iterable[str], label: str, limit: int) -> dict[str, str]:
    lines: dict[str, str] = {}
    for line in filter(None, (one_line(a, label, limit) for a in answers)):
        lines.setdefault(answer_key(line), line)
    return lines


def as_retrieved(
    question: str, passages: Sequence[t.Passage], similarity: PassageSimilarity | None
) -> list[t.RetrievedPassage]:
    """A question's own passages, in order, as RetrievedPassage; with cosines if there are several."""
    cosines = similarity(question, passages) if similarity and len(passages) > 1 else [None] * len(passages)
    return [t.RetrievedPassage(p, i, 1.0, c) for i, (p, c) in enumerate(zip(passages, cosines, strict=True), 1)]


def as_read(question: t.Question, passages: Sequence[t.RetrievedPassage]) -> t.Question:
    """The question with short names spelled out as in these passages (core.short_names)."""
    return replace(question, text=spelled_out(question.text, [f"{p.passage.title}. {p.passage.text}" for p in passages]))


@dataclass
class SystemRun:
    """One question in progress.  `question`: as asked.  `calls`: of language models, with their deadline.  `memo`: data that a
    system's `retrieve` passes to its `find`.  `selected`: the interpretations behind the answers, if any."""

    question: t.Question
    calls: Run = field(default_factory=lambda: Run(0.0))
    passages: tuple[t.RetrievedPassage, ...] = ()  # those to read, and those retrieved later
    answers: dict[str, t.Answer] = field(default_factory=dict)  # by text
    clarified: dict[str, t.QuestionClarified] = field(default_factory=dict)  # by answer: those that `find` disambiguated itself
    memo: Any = None
    selected: list[t.Interpretation] = field(default_factory=list)
    end_reason: str = STOPPED

    def begin(self, passages: Sequence[t.RetrievedPassage], check_coverage: bool) -> None:
        """Sets the passages to read, and the question in the form that is read with them."""
        self.passages = tuple(passages)
        self.reading = as_read(self.question, passages)
        self.coverage = Coverage(self.reading, passages, check_coverage)

    def check(self) -> None:
        """Raises CancelledError if a person stopped the run.  Called between units of work."""
        self.calls.check()

    def follow(self, events: Generator[t.Event, None, str]) -> Generator[t.Event, None, None]:
        """Yields the events of `find` without refused answers, and keeps their answers.  The questions it disambiguated wait
        for the last answer."""

        def checked() -> Generator[t.Event, None, None]:
            self.end_reason = yield from self.coverage.checked(events)

        for event in checked():
            match event:
                case t.StepFinished(answer=t.Answer() as answer):
                    self.answers[answer.text] = answer
                case t.AnswerRejected(answer=text):
                    self.answers.pop(text, None)
                case t.PassagesRetrieved(passages=passages):
                    known_ids = {p.passage.id for p in self.passages}
                    self.passages += tuple(p for p in passages if p.passage.id not in known_ids)
                case t.QuestionClarified(clarification=c):
                    self.clarified[c.answer] = event
                    continue
            yield event

    def own_clarifications(self) -> Iterator[t.QuestionClarified]:
        return (event for answer, event in self.clarified.items() if answer in self.answers)


class System(ABC):
    """The base of all systems.  `uses_this_machine`: answering needs this machine; otherwise waiting for other questions gains
    nothing."""

    uses_this_machine = True

    def __init__(
        self,
        name: str,
        parts: SystemParts,
        options: Options,
        checkpoint: tuple[str, str] = ("", ""),
        *,
        config: SystemOptions | None = None,
        provenance: Mapping[str, Any] | None = None,
        clarifier: Clarifier | None = None,
    ) -> None:
        """`checkpoint`: name and digest of the weights; `config`: the system's own options; `provenance`: whatever else affects the answers, as plain
        JSON values; `clarifier`: writes the disambiguated questions (None: the system has none, or writes them itself)."""
        self.parts, self.options, self.clarifier = parts, options, clarifier
        self.config = config or SystemOptions()
        settings = {**asdict(options), "extra": self.config.as_dict(), "retrieval": dict(parts.retrieval), **(provenance or {})}
        self.info = t.SystemInfo(name, settings, parts.corpus, parts.corpus_digest, *checkpoint)

    @recorded
    @trimmed
    def run(self, question: t.Question) -> Iterator[t.Event]:
        """Yields each event as it happens: all answers first, then the disambiguated questions.

        Raises InputError for a bad question, NothingRetrievedError, LanguageModelError.
        """
        start = time.perf_counter()
        question = check_question(question, self.parts.settings.max_question_chars)
        run = SystemRun(question)
        with LINE.place(self.uses_this_machine) as place:
            try:
                yield from place.wait(self.parts.cancelled)
                start, run.calls = time.perf_counter(), Run.of(self.parts.settings.lm_run_timeout, self.parts.cancelled)
                run.begin((yield from self.retrieve(run)), self.options.check_coverage)
                yield from run.follow(self.find(run))
                run.end_reason = run.coverage.final_reason(run.end_reason)
                yield from self.clarify(run, place)
            except CancelledError:
                yield from run.calls.events()
                yield from run.own_clarifications()
                run.end_reason = STOPPED
            except LanguageModelError:
                yield from run.calls.events()  # the trace shows which calls failed
                raise
        yield t.Finished(time.perf_counter() - start, run.end_reason)

    def retrieve(self, run: SystemRun) -> Generator[t.Event, None, Sequence[t.RetrievedPassage]]:
        """Yields at least one PassagesRetrieved and returns the passages to read.  Raises NothingRetrievedError, InputError."""
        retrieved = self.search(run.question, run.question.text, self.options.passages)
        yield retrieved
        return retrieved.passages

    @abstractmethod
    def find(self, run: SystemRun) -> Generator[t.Event, None, str]:
        """Yields the events between retrieval and clarification, with answers to `run.reading`; returns the reason for the
        end."""

    def clarify(self, run: SystemRun, place: LinePlace) -> Iterator[t.Event]:
        """The disambiguated questions of all answers."""
        yield from run.own_clarifications()
        missing = run.answers.keys() - run.clarified.keys()
        run.clarified.clear()
        if not (self.options.clarify and self.clarifier and missing):
            return
        yield from place.wait_again(self.parts.cancelled)
        start = time.perf_counter()
        answers, passages = list(run.answers.values()), [p.passage for p in run.passages]
        for clarification in self.clarifier(run.question.text, answers, passages):
            yield t.QuestionClarified(clarification, time.perf_counter() - start)
            start = time.perf_counter()
            run.check()

    def search(self, question: t.Question, query: str, k: int) -> t.PassagesRetrieved:
        """The question's own passages, or else the k best of the corpus for the query.  Raises NothingRetrievedError if there
        are none, InputError."""
        start = time.perf_counter()
        if question.passages is not None:
            passages = as_retrieved(query, question.passages, self.parts.similarity)
        elif self.parts.retriever is None:
            raise InputError("the question has no passages and no corpus is open; choose a corpus")
        else:
            passages = self.parts.retriever.search(query, k)
        if not passages and question.passages is not None:
            raise NothingRetrievedError("the question has an empty list of passages; add passages to it, or leave the list out")
        if not passages:
            raise NothingRetrievedError(
                f"no passage of corpus '{self.parts.corpus}' matches the question; use other words, or choose another corpus"
            )
        return t.PassagesRetrieved(tuple(passages), time.perf_counter() - start, query)

    def search_further(self, run: SystemRun, query: str, k: int) -> Generator[t.Event, None, Sequence[t.RetrievedPassage]]:
        """Yields the new passages for another question.  A question's own passages stay the only ones.  Empty if the corpus has
        none."""
        if run.question.passages is not None:
            return run.passages
        try:
            retrieved = self.search(run.question, query, k)
        except NothingRetrievedError:
            return ()
        known_ids = {p.passage.id for p in run.passages}
        if new := tuple(p for p in retrieved.passages if p.passage.id not in known_ids):
            yield t.PassagesRetrieved(new, retrieved.seconds, query)
        return retrieved.passages


def queue_note(event: t.QuestionQueued) -> str:
    """The text for a person who waits.

    >>> queue_note(t.QuestionQueued(2, 1))
    'waiting: 1 other question is running first, this one is number 2 in the queue'
    """
    others = f"{event.running} other question{' is' if event.running == 1 else 's are'} running first"
    waiting = "waiting" if event.part == "answers" else "the answers are complete, their rewritten questions wait"
    return f"{waiting}: {others}, this one is number {event.position} in the queue"


def answer(system: t.AnsweringSystem, question: t.Question, watch: Callable[[t.Event], None] | None = None) -> t.Prediction:
    """Runs a system to its end and folds its events; `watch` is called with each of them."""

    def watched() -> Iterator[t.Event]:
        for event in system.run(question):
            if watch is not None:
                watch(event)
            yield event

    return fold(question, system.info, watched())


def answer_or_error(system: t.AnsweringSystem, question: t.Question) -> t.Prediction | AmbiscopeError:
    """`answer`, or the error of one question among many that fails.  Raises CancelledError."""
    try:
        return answer(system, question)
    except CancelledError:
        raise
    except AmbiscopeError as error:
        return error
