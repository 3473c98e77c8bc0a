"""The replies of the service, one record each.  OpenAPI shows them, and a client refuses replies that don't fit them.

Plain dataclasses, so that the app needs no web framework.  The layout of `ask` is that of `python -m core ask --json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.disambiguation.conflicts import Conflict
from core.disambiguation.outcome import ClarifyingQuestion, Outcome
from core.engine import SystemStatus
from core.retrieval.library import CorpusInfo
from core.types import Evidence, Passage, RetrievedPassage, Step, SystemInfo


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """The fields that every reply has: the number of the protocol and the version of the service."""

    api: int
    version: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    kind: str  # a class of core.errors
    status: int
    message: str
    retry_after: int = 0  # seconds; 0: another try does not help


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorReply(Reply):
    error: Failure


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerRow:
    text: str
    probability: float
    passages: tuple[str, ...]  # ids
    question: str  # the disambiguated one
    label: str  # what distinguishes the answer in a few words; empty if nothing is known
    round_trip: bool | None
    section: str  # of a how-to question: two to four sentences around the answer, with their code; else empty
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class PassageRow:
    id: str
    title: str
    score: float
    rank: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Calls:
    """Calls of language models."""

    made: int
    failed: int
    errors: tuple[str, ...]
    warnings: tuple[str, ...]  # what is doubtful about calls that succeeded


@dataclass(frozen=True, kw_only=True, slots=True)
class RefusedAnswer:
    answer: str
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class AskReply(Reply):
    question: str
    system: str
    outcome: Outcome
    clarification: ClarifyingQuestion | None  # of an ambiguous question
    conflicts: tuple[Conflict, ...]  # answers of one meaning on which documents disagree
    answers: tuple[AnswerRow, ...]
    rejected: tuple[RefusedAnswer, ...]
    ended: str  # why the run ended, and where every answer was refused, what the corpus does not cover
    steps: tuple[Step, ...]
    passages: tuple[PassageRow, ...]
    seconds: float
    calls: Calls
    info: SystemInfo
    waited: float  # seconds in the queue


@dataclass(frozen=True, kw_only=True, slots=True)
class SystemReply(Reply):
    info: SystemInfo


@dataclass(frozen=True, kw_only=True, slots=True)
class SystemsReply(Reply):
    systems: tuple[SystemStatus, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class CorporaReply(Reply):
    names: tuple[str, ...]
    corpora: tuple[CorpusInfo, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class PassagesReply(Reply):
    total: int
    digest: str
    passages: tuple[Passage, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class PassageReply(Reply):
    passage: Passage


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchReply(Reply):
    passages: tuple[RetrievedPassage, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbedReply(Reply):
    vectors: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class HealthReply(Reply):
    status: str  # ok or loading
    problem: str  # why the models could not be loaded
    waiting: int  # questions in the queue
    running: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatReply:
    """A chat completion in OpenAI's format, in which a message has `annotations`."""

    id: str
    object: str
    created: int  # seconds since 1970
    model: str
    choices: tuple[Mapping[str, Any], ...]
    usage: Mapping[str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelsReply:
    object: str
    data: tuple[Mapping[str, Any], ...]
