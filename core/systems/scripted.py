"""A test double that answers from a small table through the real loop, in milliseconds.

It has no model: a question that the table lacks gets the capitalised words of its passages as candidates, with falling probabilities.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from core import types as t
from core.disambiguation.clarifiers import by_round_trip
from core.disambiguation.round_trip import ask_each_passage
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

    def read(pairs: Sequence[tuple[str, t.Passage]]) -> list[tuple[str | None, float]]:
        out: list[tuple[str | None, float]] = []
        for question, passage in pairs:
            top = model.propose(question, [t.RetrievedPassage(passage, 1, 1.0)], ()).candidates
            out.append((top[0].text, top[0].probability) if top else (None, 1.0))
        return out

    def judge(question: str, spans: Sequence[tuple[t.Passage, int, int]]) -> list[float]:
        """Sure of what the table answers."""
        readings = read([(question, passage) for passage, *_ in spans])
        return [4.0 if text == passage.text[start:end] else -4.0 for (text, _), (passage, start, end) in zip(readings, spans)]

    clarifier = by_round_trip(ask_each_passage(read), judge)
    return LoopSystem(name, parts, options, lambda _: model, ("scripted", ""), config=config, clarifier=clarifier)
