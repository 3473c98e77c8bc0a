"""A test double that answers from a small table through the real loop, in milliseconds.

It has no model: a question that the table lacks gets the capitalised words of its passages as candidates, with falling probabilities.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from core import types as t
from core.disambiguation.clarifiers import by_writing
from core.disambiguation.drafts import AnswerExcerpt, QuestionDraft
from core.disambiguation.evidence import split_title
from core.systems.base.loop import LoopSystem
from core.systems.base.options import Options
from core.systems.base.system import SystemParts
from core.systems.options import ScriptedOptions
from core.text import answer_key, find_spans, question_key

_NAME = re.compile(r"\b[A-Z][a-z]+(?:\s+[A-Z][a-z]+)*|\b\d{4}\b")


class ScriptedModel:
    def __init__(self, table: Mapping[str, Sequence[str]]) -> None:
        self.table = {question_key(q): tuple(a) for q, a in table.items()}

    def propose(self, question: str, passages: Sequence[t.RetrievedPassage], previous: Sequence[str]) -> t.Proposal:
        answers = self.table.get(question_key(question))
        pool = answers if answers is not None else [m for p in passages for m in _NAME.findall(p.passage.text)][:2]
        previous_keys = {answer_key(p) for p in previous}
        remaining = [a for a in dict.fromkeys(pool) if answer_key(a) not in previous_keys]
        share = 0.9 / max(1, len(remaining))
        candidates = tuple(t.Candidate(a, share, self._evidence(a, passages)) for a in remaining)
        return t.Proposal(candidates, 0.1 if remaining else 1.0)

    @staticmethod
    def _evidence(answer: str, passages: Sequence[t.RetrievedPassage]) -> t.Evidence | None:
        spans = ((p.passage, *span) for p in passages for span in find_spans(p.passage.text, answer))
        return next((t.Evidence(p.id, start, end, p.text[start:end]) for p, start, end in spans), None)


def build(name: str, parts: SystemParts, options: Options, config: ScriptedOptions) -> LoopSystem:
    model = ScriptedModel(config.table)

    def read(pairs: Sequence[tuple[str, t.Passage]]) -> list[_Reading]:
        out = []
        for question, passage in pairs:
            prompt, _, name = question.rstrip("?)").rpartition(" (")
            is_meant = name == _name(passage.title).rstrip("?)")
            top = model.propose(f"{prompt}?", [t.RetrievedPassage(passage, 1, 1.0)], ()).candidates if is_meant else ()
            out.append(_Reading([replace(c, probability=0.99) for c in top if c.evidence][:1]))
        return out

    clarifier = by_writing(_write, read)
    return LoopSystem(name, parts, options, lambda _: model, ("scripted", ""), config=config, clarifier=clarifier)


@dataclass(frozen=True)
class _Reading:
    candidates: Sequence[t.Candidate]

    @property
    def best(self) -> t.Candidate | None:
        return self.candidates[0] if self.candidates else None


def _write(question: str, answers: Sequence[AnswerExcerpt]) -> list[list[QuestionDraft]]:
    """The question followed by the text in brackets of each answer's title, or by the title itself, in brackets."""
    body, end = (question[:-1], "?") if question.endswith("?") else (question, "")
    return [[QuestionDraft(f"{body} ({_name(a.title)}){end}", -0.1)] if a.title else [] for a in answers]


def _name(title: str) -> str:
    return split_title(title)[1] or title
