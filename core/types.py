"""The vocabulary of Ambiscope as frozen dataclasses.  Standard library only, so that every module can import it.

Offsets are characters of `Passage.text`, end exclusive.  Probabilities are in 0..1, times in seconds, ranks count from 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, get_args, runtime_checkable

AnnotationType = Literal["single", "multiple", "none"]
Scope = Literal["all", "multi"]  # all questions; those none of whose annotations is a single answer
SCOPES: tuple[Scope, ...] = get_args(Scope)
STEP_CANDIDATES = 8  # that a step offers
EOI = "[EOI]"  # "end of iteration" (AmbigPrompt, section 3.2): no valid answer is left


@dataclass(frozen=True, slots=True)
class Passage:
    """At most `core.text.PASSAGE_WORDS` words of a titled document (the DPR layout)."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class RetrievedPassage:
    passage: Passage
    rank: int  # 1 is the best
    score: float  # comparable inside one list only: cosine, BM25 or fused score
    # cosine of question and passage if a dense retriever compared them, else None; span models use it as a prior
    similarity: float | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A prompt question.  `passages`: read these and retrieve nothing.  `pinned` and `banned`: answers that a person keeps and
    excludes.  `added`: the pinned ones that the person wrote."""

    text: str
    id: str = ""
    pinned: tuple[str, ...] = ()
    banned: tuple[str, ...] = ()
    passages: tuple[Passage, ...] | None = None
    added: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    passage_id: str
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Candidate:
    text: str
    probability: float
    evidence: Evidence | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """An answering model's output at one step: candidates, likeliest first, and the probability of [EOI]."""

    candidates: tuple[Candidate, ...]
    eoi_probability: float


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of the iterative loop.  `choice` is None when the loop ended here.

    With calibrated probabilities (core.models.ranking.calibration), a candidate's is that it is right, and `eoi_probability` that no right answer
    is left.
    """

    number: int  # from 1
    previous: tuple[str, ...]
    prompt: str
    candidates: tuple[Candidate, ...]
    choice: Candidate | None
    eoi_probability: float
    seconds: float
    stopped_because: str = ""  # empty while the loop goes on


@dataclass(frozen=True, slots=True)
class Answer:
    text: str
    probability: float
    evidence: tuple[Evidence, ...] = ()
    step: int | None = None
    pinned: bool = False  # kept or added by a person


@dataclass(frozen=True, slots=True)
class Clarification:
    """A disambiguated question for one answer.  `passed`: asked again, it returned this answer and none of the others, and the reader is sure of it."""

    answer: str
    question: str  # empty if the prompt question stays as it is
    passed: bool
    tried: int = 0
    returned: tuple[str, ...] = ()  # the reader's answers to `question` over the same passages
    why: str = ""
    label: str = ""  # what distinguishes the answer in a few words: "1937 film", "in Deploy with Docker"


@dataclass(frozen=True, slots=True)
class Interpretation:
    """VerDICt's triple.  An abstention, or a passage that could not be read, has an empty answer and a reason in `abstained` or `failed`.

    `passage_id` is empty if no passage is known that supports the answer.
    """

    passage_id: str
    question: str = ""
    answer: str = ""
    probability: float = 0.0
    evidence: Evidence | None = None
    abstained: str = ""
    failed: str = ""
    verified: bool | None = None  # result of a second check; None if there was none


# ---------------------------------------------------------------- events: what a system yields while it runs


@dataclass(frozen=True, slots=True)
class PassagesRetrieved:
    passages: tuple[RetrievedPassage, ...]
    seconds: float
    query: str


@dataclass(frozen=True, slots=True)
class QuestionRelaxed:
    question: str


@dataclass(frozen=True, slots=True)
class StepStarted:
    number: int
    previous: tuple[str, ...]
    prompt: str


@dataclass(frozen=True, slots=True)
class StepFinished:
    step: Step
    answer: Answer | None  # the answer that joined the set, or None at [EOI]


@dataclass(frozen=True, slots=True)
class AnswerRejected:
    answer: str
    why: str


@dataclass(frozen=True, slots=True)
class QuestionClarified:
    clarification: Clarification
    seconds: float


@dataclass(frozen=True, slots=True)
class InterpretationProposed:
    interpretation: Interpretation


@dataclass(frozen=True, slots=True)
class InterpretationPlaced:
    """One interpretation on the map: 2-D coordinates, its cluster (-1: unclustered), and whether it is the medoid."""

    index: int
    x: float
    y: float
    cluster: int
    medoid: bool


@dataclass(frozen=True, slots=True)
class InterpretationsClustered:
    placed: tuple[InterpretationPlaced, ...]


@dataclass(frozen=True, slots=True)
class QuestionsImagined:
    """Pseudo-interpretations: meanings of the question that a language model writes without any passage (VerDICt, Eq. 1)."""

    questions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PassagesPruned:
    """Ids of the retrieved passages that are kept, best first, and of those that are dropped."""

    kept: tuple[str, ...]
    dropped: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class QuestionVerified:
    """The passages that answer a question (VerDICt, Eq. 3), by id."""

    question: str
    passage_ids: tuple[str, ...]
    failed: str = ""  # why verification failed


@dataclass(frozen=True, slots=True)
class ModelCalled:
    """One call of a language model or a reader by a grounded system; VerDICt's Table 1 counts these."""

    role: str  # relax, interpret, verify, ...
    passages: int  # length of the input in passages, Table 1's unit
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    error: str = ""  # empty when it succeeded
    warning: str = ""  # what is doubtful about a success, such as a prompt that the endpoint cut


@dataclass(frozen=True, slots=True)
class InterpretationsChosen:
    """A grounded system's final interpretations, in order.  Two of them may have the same answer."""

    interpretations: tuple[Interpretation, ...]
    why: str = ""  # a note: one meaning, none in the corpus, ...


@dataclass(frozen=True, slots=True)
class LongAnswerWritten:
    """All answers in one connected text (Tree of Clarifications; Kim et al. 2023)."""

    text: str


@dataclass(frozen=True, slots=True)
class QuestionQueued:
    """Other questions are worked on first.  Yielded when the position changes.  It isn't part of a stored trace, because it
    says nothing about the answers."""

    position: int  # in the queue: 1 is next, 0 says that its turn has come
    running: int  # questions that are worked on meanwhile
    part: Literal["answers", "questions"] = "answers"  # what is next: to look for answers, or to rewrite the question for each


@dataclass(frozen=True, slots=True)
class Finished:
    seconds: float
    why: str  # the last step's `stopped_because`, the maximum is reached, one pass, or "stopped by a person"


Event = (
    PassagesRetrieved
    | QuestionRelaxed
    | StepStarted
    | StepFinished
    | AnswerRejected
    | QuestionClarified
    | InterpretationProposed
    | InterpretationsClustered
    | QuestionsImagined
    | PassagesPruned
    | QuestionVerified
    | ModelCalled
    | InterpretationsChosen
    | LongAnswerWritten
    | QuestionQueued
    | Finished
)


@dataclass(frozen=True, slots=True)
class SystemInfo:
    """The system and settings that made a prediction, stored with it so that it can be repeated."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)  # plain JSON values
    corpus: str = ""
    corpus_digest: str = ""
    checkpoint: str = ""
    checkpoint_digest: str = ""

    @property
    def is_calibrated(self) -> bool:
        """Whether the probabilities are calibrated (core.models.ranking.calibration); others are scores that only order the answers."""
        return bool(self.settings.get("calibration"))


@dataclass(frozen=True, slots=True)
class Prediction:
    """The fold of one run's events (see core.trace).  `events` is the whole trace, enough to show the run again."""

    question: Question
    system: SystemInfo
    answers: tuple[Answer, ...]
    clarifications: tuple[Clarification, ...]  # in the order of `answers`; fewer if the run was stopped
    steps: tuple[Step, ...]
    passages: tuple[RetrievedPassage, ...]
    seconds: float
    events: tuple[Event, ...]
    interpretations: tuple[Interpretation, ...] = ()  # of a grounded system, in order; other systems have none

    @property
    def ended(self) -> str:
        """The reason why the run ended and, if every answer was refused, what the corpus doesn't cover; empty if an error ended
        it."""
        return next((e.why for e in reversed(self.events) if isinstance(e, Finished)), "")

    @property
    def long_answer(self) -> str:
        """The answers as one text that the system wrote; empty if it writes none."""
        return next((e.text for e in self.events if isinstance(e, LongAnswerWritten)), "")

    @property
    def rejected(self) -> dict[str, str]:
        """The reason for each answer that was rejected from the set."""
        answers = {a.text for a in self.answers}
        return {e.answer: e.why for e in self.events if isinstance(e, AnswerRejected) and e.answer not in answers}

    def clarification_of(self, answer: str) -> Clarification | None:
        return next((c for c in self.clarifications if c.answer == answer), None)

    def question_of(self, answer: str) -> str:
        """The disambiguated question of an answer; the question as it was asked if there is none."""
        clarification = self.clarification_of(answer)
        return (clarification.question if clarification else "") or self.question.text

    def passage(self, passage_id: str) -> Passage | None:
        return next((p.passage for p in self.passages if p.passage.id == passage_id), None)


# ---------------------------------------------------------------- annotations: AmbigNQ's union type


@dataclass(frozen=True, slots=True)
class QAPair:
    question: str
    answers: tuple[str, ...]  # aliases of one answer
    passage_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Annotation:
    """A person's own answer set for a question.  `single`/`multiple`/`none` are AmbigNQ's three types."""

    type: AnnotationType
    pairs: tuple[QAPair, ...] = ()


@dataclass(frozen=True, slots=True)
class ReferenceQuestion:
    """A question with references (a row of AmbigNQ light, or of a file with its own passages)."""

    id: str
    question: str
    annotations: tuple[Annotation, ...]
    passages: tuple[Passage, ...] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ambiguous(self) -> bool:
        """AmbigQA's *multi*: no annotation is a single answer."""
        return all(a.type == "multiple" for a in self.annotations)


# ---------------------------------------------------------------- protocols


@runtime_checkable
class Retriever(Protocol):
    def search(self, query: str, k: int) -> list[RetrievedPassage]:
        """The k best passages, best first; fewer when the corpus is smaller.  Raises InputError when k < 1."""
        ...


@runtime_checkable
class AnsweringModel(Protocol):
    """Proposes the next answer, given the previous ones."""

    def propose(self, question: str, passages: Sequence[RetrievedPassage], previous: Sequence[str]) -> Proposal: ...


StepInput = tuple[str, Sequence[RetrievedPassage], Sequence[str]]  # question, passages, previous answers


class BatchAnsweringModel(Protocol):
    """An answering model that takes several jobs at once."""

    def propose_many(self, jobs: Sequence[StepInput]) -> list[Proposal]: ...


@runtime_checkable
class AnsweringSystem(Protocol):
    info: SystemInfo

    def run(self, question: Question) -> Iterator[Event]: ...
