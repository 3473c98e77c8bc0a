"""Shared by the one-pass generative systems: one pass of a Writer over the passages, and its answers with evidence.

A system decides how passages are read (a row each, or reranked and joined) and how the answer set is decoded; core.systems.fid and
core.systems.spanseqgen are two.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from typing import Any

from core import types as t
from core.disambiguation.clarifiers import Clarifier
from core.models.seq2seq.decoding import Writer
from core.models.seq2seq.fid import locate
from core.systems.base.base import Options, Parts
from core.systems.base.candidates import SHOWN, answer_events, choose
from core.systems.base.passage_system import PassageSystem


class WrittenAnswers(PassageSystem):
    def __init__(
        self,
        name: str,
        parts: Parts,
        options: Options,
        writer: Writer,
        checkpoint: tuple[str, str],
        used: Mapping[str, Any],
        clarifier: Clarifier | None = None,
    ) -> None:
        super().__init__(name, parts, options, None, checkpoint, used, clarifier)
        self.writer = writer

    def find(self, question: t.Question, passages: tuple[t.RetrievedPassage, ...]) -> Generator[t.Event, None, str]:
        self.check_cancelled()
        yield t.StepStarted(1, question.pinned, "")
        begun = time.perf_counter()
        (written,) = self.writer.write_many([(question.text, passages)])
        seconds = time.perf_counter() - begun
        candidates = [t.Candidate(c.text, c.probability, locate(c.text, passages)) for c in written]
        kept = choose(candidates, question, 0.0, self.options.max_answers)
        if not kept:
            why = "the model wrote no answer"
            yield t.StepFinished(t.Step(1, (), "", tuple(candidates[:SHOWN]), None, 0.0, seconds, why), None)
            return why
        yield from answer_events(kept, candidates, len(question.pinned), passages, seconds)
        if len(kept) >= self.options.max_answers:
            return "the maximum number of answers is reached"
        return "one pass; the model ended the sequence"
