"""The requests that the service takes, as pydantic models: they check, and OpenAPI shows them with their examples."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from core.asking import Asking
from core.settings import Settings
from core.systems.shared.base import Options, check_question
from core.types import Passage, Question

MOST_PASSAGES = 500  # of a question's own, and of a search
MOST_TEXTS = 1000


class Form(BaseModel):
    model_config = ConfigDict(extra="forbid")


class PassageForm(Form):
    id: str = ""
    title: str = ""
    text: str


class SystemForm(Form):
    """Which system over which corpus, and its options."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"system": "ambiscope", "corpus": "starter"}]})
    system: str | None = Field(None, description="system that answers; the service's AMBISCOPE_SYSTEM if left out")
    corpus: str | None = Field(None, description="corpus to read; the service's AMBISCOPE_CORPUS if left out")
    top_k: int | None = Field(None, description="number of passages to read")
    max_answers: int | None = Field(None, description="maximum number of answers")
    stop_above: float | None = Field(None, description="stop when P([EOI]) exceeds it")
    clarify: bool = Field(True, description="write disambiguated questions")
    check_coverage: bool = Field(True, description="refuse answers whose document lacks what the question names")
    options: dict[str, Any] = Field({}, description="options of the system by name")
    own_passages: bool = Field(False, description="questions bring their own passages; no corpus is opened")

    def chosen(self, engine: Asking) -> Options:
        """Raises InputError."""
        common = {name: getattr(self, name) for name in ("top_k", "max_answers", "stop_above", "clarify", "check_coverage")}
        return engine.options(**common, extra=self.options)


class AskForm(SystemForm):
    """A question."""

    model_config = ConfigDict(
        extra="forbid",
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
    question: str
    id: str = ""
    pinned: list[str] = Field([], description="answers to keep")
    banned: list[str] = Field([], description="answers to leave out")
    passages: list[PassageForm] | None = Field(
        None, max_length=MOST_PASSAGES, description="the question's own passages: these are read, and nothing is retrieved"
    )
    timeout: float | None = Field(None, gt=0, description="seconds; at most the service's AMBISCOPE_SERVE_DEADLINE")

    def asked(self, settings: Settings) -> Question:
        """Raises InputError."""
        own = None if self.passages is None else tuple(Passage(p.id, p.title, p.text) for p in self.passages)
        question = Question(self.question, self.id, tuple(self.pinned), tuple(self.banned), own)
        return check_question(question, settings.max_question_chars)

    def seconds(self, settings: Settings) -> float:
        return min(self.timeout or settings.serve_deadline, settings.serve_deadline)


class SearchForm(Form):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"query": "A Star Is Born", "corpus": "starter", "k": 3}]}
    )
    query: str
    corpus: str | None = None
    k: int = Field(10, ge=1, le=MOST_PASSAGES)
    mode: str | None = Field(None, description="dense, bm25 or hybrid; the service's AMBISCOPE_RETRIEVER if left out")


class EmbedForm(Form):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"texts": ["Who directed A Star Is Born (1954)?"]}]}
    )
    texts: list[str] = Field(max_length=MOST_TEXTS)
