"""The part that the one-pass generative systems share: one pass of an AnswerSetWriter over the passages, and its answers with
evidence.

A system decides how passages are read (a row each, or reranked and joined) and how the answer set is decoded; core.systems.fid and
core.systems.spanseqgen are two.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

from core import types as t
from core.models.seq2seq.decoding import AnswerSetWriter
from core.systems.base.options import Options
from core.systems.base.selection import answer_events, choose
from core.systems.base.system import MAXIMUM_REACHED, System, SystemParts, SystemRun


class WritingSystem(System):
    def __init__(
        self, name: str, parts: SystemParts, options: Options, writer: AnswerSetWriter, checkpoint: tuple[str, str], **more: Any
    ) -> None:
        """`more`: as in `System`."""
        super().__init__(name, parts, options, checkpoint, **more)
        self.writer = writer

    def find(self, run: SystemRun) -> Generator[t.Event, None, str]:
        run.check()
        question, passages = run.reading, run.passages
        yield t.StepStarted(1, question.pinned, "")
        start = time.perf_counter()
        (candidates,) = self.writer.write_many([(question.text, passages)])
        seconds = time.perf_counter() - start
        selected = choose(candidates, question, 0.0, self.options.max_answers)
        if not selected:
            reason = "the model wrote no answer"
            yield t.StepFinished(t.Step(1, (), "", tuple(candidates[: t.STEP_CANDIDATES]), None, 0.0, seconds, reason), None)
            return reason
        yield from answer_events(selected, candidates, len(question.pinned), passages, seconds)
        return MAXIMUM_REACHED if len(selected) >= self.options.max_answers else "one pass; the model ended the sequence"
