"""Round-trip prediction: answers, then disambiguated questions, which are fed back into retrieval and reading for more answers,
then verification.

Source: Gao et al. 2021 (Refuel), "Answering Ambiguous Questions through Generative Evidence Fusion and Round-Trip Prediction", section 3.3.  Theirs
generates with BART over fused passages; here the reader of single passages gives the answers of a round, and the writer the questions that are asked back, also
where only one answer was found.  An answer stays where a language model finds that its evidence supports it as the answer to its own question (the
paper's language model is trained for it), or where its own question returns it (the paper's EM verification).
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

from core import types as t
from core.disambiguation.clarifiers import by_writing
from core.disambiguation.drafts import WriteDrafts, excerpt_of
from core.disambiguation.scoring import well_formed
from core.models.language import loading
from core.models.language.prompted import PromptedGenerator
from core.models.language.roles import Claim, Run
from core.models.language.writer import load_writer
from core.models.span.reader import PassageReader, load_reader
from core.systems.base.clarifying import reading_with
from core.systems.base.options import Options
from core.systems.base.selection import answer_events, candidates_of, choose
from core.systems.base.system import System, SystemParts, SystemRun
from core.systems.options import RefuelOptions
from core.text import listed, shares_words

MAX_EVIDENCE = 5  # passages for verifying a claim without evidence


class Refuel(System):
    config: RefuelOptions

    def __init__(
        self,
        parts: SystemParts,
        options: Options,
        config: RefuelOptions,
        reader: PassageReader,
        write: WriteDrafts,
        digests: tuple[str, str],
        judge: PromptedGenerator | None = None,
    ) -> None:
        """`digests` of the reader's and the writer's weights.  `judge`: the language model for verification, if used."""
        if config.verification == "by generator":
            config = replace(config, verification="language-model" if judge is not None else "exact-match")
        self.reader, self.write, self.judge = reader, write, judge
        reader_digest, writer_digest = digests
        provenance: dict[str, Any] = {"writer": parts.settings.writer, "writer_digest": writer_digest}
        provenance |= {"judge": dict(judge.about)} if judge is not None else {}
        clarifier = by_writing(write, reading_with(reader))
        checkpoint = parts.settings.reader, reader_digest
        super().__init__("refuel", parts, options, checkpoint, config=config, provenance=provenance, clarifier=clarifier)

    def find(self, run: SystemRun) -> Generator[t.Event, None, str]:
        question = run.reading
        yield t.StepStarted(1, (), "")
        start = time.perf_counter()
        candidates = self._read(question.text, run.passages)
        selected = choose(candidates, question, self.config.threshold, self.options.max_answers)
        answers: list[t.Answer] = []
        for event in answer_events(selected, candidates, len(question.pinned), run.passages, time.perf_counter() - start):
            yield event
            answers += [event.answer] if event.answer is not None else []
        step, rounds, settled = len(answers), 0, False
        questions: dict[str, str] = {}  # by answer
        while rounds < self.config.rounds and answers and not settled:
            rounds += 1
            run.check()
            unasked = {text: q for text, q in self._own_questions(run, answers).items() if text not in questions}
            questions |= unasked
            new, step = yield from self._round_trip(run, answers, list(unasked.values()), step)
            answers += new
            settled = not new
        failed = 0
        for rejection in self._rejections(run, [a for a in answers if not a.pinned], questions):
            failed += isinstance(rejection, t.AnswerRejected)
            yield rejection
        return f"{listed(rounds, 'round trip')}, {listed(failed, 'answer')} dropped by verification"

    def _read(self, question: str, passages: Sequence[t.RetrievedPassage]) -> list[t.Candidate]:
        return candidates_of(self.reader.read(question, [p.passage for p in passages]))

    def _own_questions(self, run: SystemRun, answers: Sequence[t.Answer]) -> dict[str, str]:
        """The likeliest question for each answer, by answer; empty if only the question itself was written."""
        by_id = {p.passage.id: p.passage for p in run.passages}
        question = run.reading.text
        drafts = self.write(question, [excerpt_of(a, by_id) for a in answers])
        best = (
            next((d.question for d in options if well_formed(question, d.question, a.text)), "")
            for a, options in zip(answers, drafts)
        )
        return {a.text: text for a, text in zip(answers, best) if text}

    def _round_trip(
        self, run: SystemRun, answers: Sequence[t.Answer], questions: Sequence[str], step: int
    ) -> Generator[t.Event, None, tuple[list[t.Answer], int]]:
        """Searches and reads with each disambiguated question.  New answers join the set.

        Returns the new answers and the number of the last step.
        """
        reading = replace(run.reading, pinned=tuple(a.text for a in answers))
        new: list[t.Answer] = []
        for own_question in questions:
            if len(reading.pinned) >= self.options.max_answers:
                break
            run.check()
            start = time.perf_counter()
            passages = yield from self.search_further(run, own_question, self.config.further)
            if not passages:
                continue
            step += 1
            yield t.StepStarted(step, reading.pinned, own_question)
            candidates = self._read(own_question, passages)
            selected = choose(candidates, reading, self.config.threshold, self.options.max_answers)[len(reading.pinned) :]
            seconds = time.perf_counter() - start
            if not selected:
                reason = "its disambiguated question gives no further answer"
                yield t.StepFinished(t.Step(step, reading.pinned, own_question, (), None, 0.0, seconds, reason), None)
                continue
            for event in answer_events(selected, candidates, 0, passages, seconds, step, reading.pinned, own_question):
                step = event.step.number
                yield event
                new += [event.answer] if event.answer is not None else []
            reading = replace(reading, pinned=(*reading.pinned, *(k.text for k in selected)))
        return new, step

    def _rejections(
        self, run: SystemRun, answers: Sequence[t.Answer], questions: dict[str, str]
    ) -> Generator[t.Event, None, None]:
        """An AnswerRejected for each answer that fails verification.  `questions`: disambiguated ones by answer.  Raises LanguageModelError if a
        language model verifies and every call fails."""
        if self.config.verification == "none" or not answers:
            return
        passages, question = run.passages, run.reading.text
        if self.config.verification == "language-model":
            assert self.judge is not None
            calls = Run.of(self.parts.settings.lm_run_timeout, self.parts.cancelled)
            claims = []
            for a in answers:
                sources = {e.passage_id for e in a.evidence}
                evidence = [p.passage for p in passages if p.passage.id in sources]
                evidence = evidence or [p.passage for p in passages[:MAX_EVIDENCE]]
                claims.append(Claim(questions.get(a.text, question), a.text, tuple(evidence)))
            decisions = self.judge.verify(claims, calls)
            yield from calls.events()
            calls.demand(frozenset())
            for claim, decision in zip(claims, decisions):
                if decision is False:
                    reason = f"the language model finds no support for it as the answer to '{claim.question}'"
                    yield t.AnswerRejected(claim.answer, reason)
        else:
            for a in answers:
                run.check()
                own_question = questions.get(a.text, question)
                returned = [r.best.text for r in self.reader.read(own_question, [p.passage for p in passages]) if r.best]
                if not shares_words(a.text, returned):
                    yield t.AnswerRejected(a.text, f"its own question '{own_question}' does not return it")


def build(name: str, parts: SystemParts, options: Options, config: RefuelOptions) -> Refuel:
    settings = parts.settings
    judge = None
    configured = not loading.language_model_needed(settings)
    if config.verification == "language-model" or (config.verification == "by generator" and configured):
        judge = loading.load_language_generator(settings)
    reader, digest = load_reader(settings.reader, settings.device)
    writer, writer_digest = load_writer(settings.writer, settings.device)
    return Refuel(parts, options, config, reader, writer.write, (digest, writer_digest), judge)
