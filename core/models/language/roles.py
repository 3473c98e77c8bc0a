"""Protocols of a language model and of the generator's roles in grounded disambiguation.

Source: Lee et al. 2025 (VerDICt), sections 3-4; the docstring of each role names its equation.  Two kinds of generator exist: one over a
language model (core.models.language.prompted) plays every role; the bundled extractive reader plays those of `Generator` alone, so
that `verdict` runs where no language model is configured.  core.models.language.loading chooses by the settings.

Every role takes a `Run`, which can stop it (deadline, cancellation) and counts its calls.  A failed call raises nothing: it is reported in
the return value and in `Run.calls`.  `Run.demand` decides whether enough calls succeeded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from core.errors import CancelledError, LanguageModelError
from core.text import listed
from core.types import Interpretation, ModelCalled, Passage

STOPPED, TOO_LATE = "the run was stopped", "no answer came before the run's time was over"  # errors of calls that did not end
SCRIPTED = "scripted:"  # in AMBISCOPE_LM_URL: the test double of core.models.language.scripted
TEMPERATURE: float = 0  # of every language model; 0: the likeliest text, so that a run can be repeated
MessageRole = Literal["system", "user", "assistant"]
# optional roles: without them the query stays as it is, a claim is not verified, an edit is not tested, no text is written
SPARED = frozenset({"relax", "verify", "second look", "round trip", "deduplicate", "long_answer"})


@dataclass(frozen=True, slots=True)
class Message:
    role: MessageRole
    text: str


@dataclass(frozen=True, slots=True)
class Request:
    """One call.  `schema`: the JSON schema of the object, or None for plain text.  `purpose`: the role that the call is made
    for."""

    messages: tuple[Message, ...]
    schema: Mapping[str, Any] | None = None
    max_tokens: int = 256
    purpose: str = ""


@dataclass(frozen=True, slots=True)
class Completion:
    """The result of a request.  `error` is empty if it succeeded.  `parsed` is the object if a schema was given, else None.
    `cut`: the token limit ended it.  `warning`: a reason to doubt a successful reply."""

    text: str = ""
    parsed: dict[str, Any] | None = None
    error: str = ""
    prompt_tokens: int = 0  # as counted by the model, else estimated from characters
    completion_tokens: int = 0
    seconds: float = 0.0
    cut: bool = False
    warning: str = ""


@runtime_checkable
class LanguageModel(Protocol):
    """Completes requests, several at a time."""

    @property
    def name(self) -> str: ...

    @property
    def about(self) -> Mapping[str, Any]:
        """The facts that determine its output, as plain JSON values; never a key."""
        ...

    def stream(
        self, requests: Sequence[Request], deadline: float, cancelled: Callable[[], bool]
    ) -> Iterator[tuple[int, Completion]]:
        """Yields each request's index and completion as soon as it is ready; every index exactly once.

        `deadline`: value of time.monotonic() after which the call stops waiting.  A request that failed, timed out or was cancelled is a
        Completion with an error; nothing is raised for it.
        """
        ...


@dataclass
class Run:
    """One run of one system: its deadline, cancellation, and all its calls (Table 1).  Runs share a generator, but each has its
    own Run."""

    deadline: float  # value of time.monotonic()
    cancelled: Callable[[], bool] = lambda: False
    calls: list[ModelCalled] = field(default_factory=list)
    remembered: set[str] = field(default_factory=set)  # roles with a cached reply from an earlier run
    _reported: int = 0

    @classmethod
    def of(cls, seconds: float, cancelled: Callable[[], bool] = lambda: False) -> Run:
        """A run whose deadline is `seconds` from now."""
        return cls(time.monotonic() + seconds, cancelled)

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline, at least 0."""
        return max(0.0, self.deadline - time.monotonic())

    def check(self) -> None:
        """Raises CancelledError when a person stopped the run."""
        if self.cancelled():
            raise CancelledError("the run was stopped")

    def count(self, call: ModelCalled) -> None:
        self.calls.append(call)

    def events(self) -> Iterator[ModelCalled]:
        """The calls counted since the last call of this method; a system yields them after each role."""
        while self._reported < len(self.calls):
            self._reported += 1
            yield self.calls[self._reported - 1]

    def demand(self, spared: frozenset[str] = SPARED) -> None:
        """Raises LanguageModelError if every call of a role failed, because such a run says nothing about the question.

        `spared`: roles that may fail.
        """
        by_role: dict[str, list[ModelCalled]] = {}
        for call in self.calls:
            by_role.setdefault(call.role, []).append(call)
        for role, calls in by_role.items():
            if role not in spared | self.remembered and all(c.error for c in calls):
                n = "its one call" if len(calls) == 1 else f"all of {listed(len(calls), 'call')}"
                raise LanguageModelError(f"the language model failed at '{role}' ({n}): {calls[-1].error}")

    def finish_role(self) -> Iterator[ModelCalled]:
        """The events that a system yields after each role: the calls counted since the last time.

        Raises CancelledError when a person stopped the run, LanguageModelError as `demand`.
        """
        yield from self.events()
        self.check()
        self.demand()


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim to verify: that the passages support `answer` as an answer to `question`."""

    question: str
    answer: str
    passages: tuple[Passage, ...]


@runtime_checkable
class Generator(Protocol):
    """The roles that `verdict`, the judge and a chosen interpretation need."""

    @property
    def name(self) -> str:
        """The displayed name: "SmolLM2 at 127.0.0.1:8123", "bundled reader"."""
        ...

    @property
    def about(self) -> Mapping[str, Any]:
        """The model, prompt versions and digests for SystemInfo, as plain JSON values; never a key."""
        ...

    def relax(self, query: str, run: Run) -> str:
        """Eq. 6: the query reworded to cover every meaning.  The query itself if the call failed."""
        ...

    def interpret(self, query: str, passages: Sequence[Passage], run: Run) -> Iterator[tuple[int, Interpretation]]:
        """Eq. 8, one call a passage, in parallel: yields each passage's index with an interpretation, an abstention (reason in `abstained`)
        or a failure (reason in `failed`) as soon as it is ready.  Every index exactly once, unless the run is stopped."""
        ...

    def verify(self, claims: Sequence[Claim], run: Run) -> list[bool | None]:
        """Eq. 10 and 20: whether each claim's passages support it; None if the call failed."""
        ...

    def answer(self, question: str, passages: Sequence[Passage], run: Run) -> str | None:
        """One short answer read from the passages; None if they hold none or the call failed."""
        ...
