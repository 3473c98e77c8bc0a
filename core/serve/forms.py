"""The requests of the service as pydantic models, which check them and show them in OpenAPI with examples."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from core.errors import InputError
from core.settings import Settings
from core.systems.base.asking import Asking
from core.systems.base.options import Options
from core.systems.base.system import check_question
from core.types import Passage, Question

MAX_PASSAGES = 500  # of a question's own, and of a search
MAX_TEXTS = 1000
MAX_MESSAGES = 64
CORPUS_SEPARATOR = "/"  # in a chat model's name: SYSTEM, or SYSTEM/CORPUS


# what OpenAPI shows of values; the engine refuses others with its own messages
NAME_SCHEMA: dict[str, Any] = {"pattern": "^[a-z0-9_-]{1,64}$"}  # of a corpus (core.retrieval.library)
_CONTROLS = r"\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"  # that are not white space
LINE_SCHEMA: dict[str, Any] = {"pattern": rf"^[^{_CONTROLS}]*$"}
# at least one letter or digit
WORDS_SCHEMA: dict[str, Any] = {"pattern": rf"^[^{_CONTROLS}]*[^\W_{_CONTROLS}][^{_CONTROLS}]*$"}


def _integral(value: Any) -> Any:
    """28.0 is a whole number in JSON; true and "28" are not."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


WholeNumber = Annotated[int, BeforeValidator(_integral)]


class StrictForm(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class PassageForm(StrictForm):
    id: str = ""
    title: str = ""
    text: str


class SystemForm(StrictForm):
    """The system, its corpus and its options."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"system": "ambiscope", "corpus": "starter"}]})
    system: str | None = Field(
        None, min_length=1, description="system that answers; the service's AMBISCOPE_SYSTEM if left out"
    )
    corpus: str | None = Field(
        None,
        min_length=1,
        description="corpus to read; the service's AMBISCOPE_CORPUS if left out",
        json_schema_extra=NAME_SCHEMA,
    )
    top_k: WholeNumber | None = Field(
        None, description="number of passages to read, at most those of the corpus", json_schema_extra={"minimum": 1}
    )
    max_answers: WholeNumber | None = Field(
        None, description="maximum number of answers", json_schema_extra={"minimum": 1, "maximum": 50}
    )
    stop_above: float | None = Field(
        None, description="stop when P([EOI]) exceeds it", json_schema_extra={"minimum": 0, "maximum": 1}
    )
    clarify: bool = Field(True, description="write disambiguated questions")
    check_coverage: bool = Field(True, description="refuse answers whose document lacks what the question names")
    options: dict[str, Any] = Field({}, description="options of the system by name")
    own_passages: bool = Field(False, description="questions bring their own passages; no corpus is opened")

    def to_options(self, engine: Asking) -> Options:
        """Raises InputError."""
        common = {name: getattr(self, name) for name in ("top_k", "max_answers", "stop_above", "clarify", "check_coverage")}
        return engine.options(**common, extra=self.options)


class AskForm(SystemForm):
    """A question."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"question": "Who directed A Star Is Born?"},
                {
                    "question": "Who directed A Star Is Born?",
                    "system": "ambiscope",
                    "corpus": "starter",
                    "top_k": 10,
                    "options": {"loop": "fast"},
                    "banned": ["George Cukor"],
                },
            ]
        },
    )
    question: str = Field(json_schema_extra=WORDS_SCHEMA)
    id: str = ""
    pinned: list[Annotated[str, Field(json_schema_extra=LINE_SCHEMA)]] = Field([], description="answers to keep")
    banned: list[Annotated[str, Field(json_schema_extra=LINE_SCHEMA)]] = Field([], description="answers to leave out")
    passages: list[PassageForm] | None = Field(
        None,
        max_length=MAX_PASSAGES,
        description="the question's own passages: these are read, and nothing is retrieved",
        json_schema_extra={"minItems": 1},
    )
    mode: Literal["answer", "clarify"] = Field(
        "answer",
        description="clarify: of an ambiguous question only the clarifying question and its options, without answers and trace",
    )
    timeout: float | None = Field(None, gt=0, description="seconds; at most the service's AMBISCOPE_SERVE_DEADLINE")

    def to_question(self, settings: Settings) -> Question:
        """Raises InputError."""
        passages = None if self.passages is None else tuple(Passage(p.id, p.title, p.text) for p in self.passages)
        question = Question(self.question, self.id, tuple(self.pinned), tuple(self.banned), passages)
        return check_question(question, settings.max_question_chars)

    def seconds(self, settings: Settings) -> float:
        return min(self.timeout or settings.serve_deadline, settings.serve_deadline)


class SearchForm(StrictForm):
    model_config = ConfigDict(json_schema_extra={"examples": [{"query": "A Star Is Born", "corpus": "starter", "k": 3}]})
    query: str = Field(json_schema_extra=LINE_SCHEMA)
    corpus: str | None = Field(None, min_length=1, json_schema_extra=NAME_SCHEMA)
    k: WholeNumber = Field(10, ge=1, le=MAX_PASSAGES)
    mode: str | None = Field(
        None,
        description="dense, bm25 or hybrid; the service's AMBISCOPE_RETRIEVER if left out",
        json_schema_extra={"enum": ["dense", "bm25", "hybrid", None]},
    )


class EmbedForm(StrictForm):
    model_config = ConfigDict(json_schema_extra={"examples": [{"texts": ["Who directed A Star Is Born (1954)?"]}]})
    texts: list[str] = Field(max_length=MAX_TEXTS)


class MessagePart(BaseModel):
    type: str
    text: str = ""


class ChatMessage(BaseModel):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[MessagePart] | None = None


class ChatForm(BaseModel):
    """A request in OpenAI's format.  `model` is a system, or SYSTEM/CORPUS; without the system, the service's own."""

    model_config = ConfigDict(
        extra="ignore",
        json_schema_extra={
            "examples": [{"model": "ambiscope", "messages": [{"role": "user", "content": "Who directed A Star Is Born?"}]}]
        },
    )
    model: str = Field(min_length=1)
    messages: list[ChatMessage] = Field(min_length=1, max_length=MAX_MESSAGES)
    stream: bool = False

    def to_ask_form(self) -> AskForm:
        """The last user message as a question.  Raises InputError."""
        content = next((m.content for m in reversed(self.messages) if m.role == "user"), None)
        parts = [MessagePart(type="text", text=content)] if isinstance(content, str) else content or []
        if other := next((p.type for p in parts if p.type != "text"), None):
            raise InputError(f"messages: the last user message has a part of type '{other[:40]}'; only text is read")
        text = " ".join(p.text for p in parts).strip()
        if not text:
            raise InputError("messages: there is no user message with text; add one with the question")
        system, _, corpus = self.model.partition(CORPUS_SEPARATOR)
        return AskForm.model_validate({"question": text, "system": system or None, "corpus": corpus or None})
