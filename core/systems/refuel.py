"""Round-trip prediction: answers, then disambiguated questions, which are fed back into retrieval and reading for more answers, then verification.

Source: Gao et al. 2021 (Refuel), "Answering Ambiguous Questions through Generative Evidence Fusion and Round-Trip Prediction", section 3.3.  Theirs
generates with BART over fused passages; here Fusion-in-Decoder writes the answers of a round.  The questions come from
core.disambiguation.round_trip.  An answer stays where a language model finds that its evidence supports it as the answer to its own question (the
paper's language model is trained for it), or where its own question returns it (the paper's EM verification).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace

from core import types as t
from core.disambiguation.clarifiers import by_round_trip
from core.disambiguation.round_trip import clarify
from core.models.language import loading
from core.models.language.prompted import PromptedGenerator
from core.models.language.roles import Claim, Run
from core.models.seq2seq.decoding import SequenceDecoding, Writer
from core.models.seq2seq.fid import load_fid
from core.models.span.reader import PassageReader, load_reader
from core.systems.base.clarifying import judge_with
from core.systems.base.options import Options
from core.systems.base.selection import answer_events, choose
from core.systems.base.system import System, SystemParts, SystemRun
from core.systems.options import RefuelOptions
from core.text import listed, shares_words

MAX_EVIDENCE = 5  # passages for verifying a claim without evidence


class FusedReader:
    """Fusion-in-Decoder, which gives all answers to a question at once."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer

    def read(self, question: str, passages: Sequence[t.RetrievedPassage]) -> list[t.Candidate]:
        """Every answer with its probability and its place in the passages."""
        return self.writer.write_many([(question, passages)])[0]

    def ask(
        self, pairs: Sequence[tuple[str, Sequence[t.Passage]]], ends: Callable[[str], bool] | None = None
    ) -> list[list[str]]:
        """Its answers to each question, in one pass (core.disambiguation.round_trip.AskAgain)."""
        jobs = [(q, [t.RetrievedPassage(p, rank, 0.0) for rank, p in enumerate(passages, 1)]) for q, passages in pairs]
        return [[c.text for c in answers] for answers in self.writer.write_many(jobs)]


class Refuel(System):
    config: RefuelOptions

    def __init__(
        self,
        parts: SystemParts,
        options: Options,
        config: RefuelOptions,
        model: FusedReader,
        digest: str,
        reader: PassageReader,
        judge: PromptedGenerator | None = None,
    ) -> None:
        """`reader`: confirms disambiguated questions; `judge`: the language model for verification, if used."""
        if config.verification == "by generator":
            config = replace(config, verification="language-model" if judge is not None else "exact-match")
        self.model, self.judge = model, judge
        checkpoint = parts.settings.seq2seq, digest
        provenance = {"judge": dict(judge.about)} if judge is not None else {}
        self.confirm = judge_with(reader)
        clarifier = by_round_trip(model.ask, self.confirm)
        super().__init__("refuel", parts, options, checkpoint, config=config, provenance=provenance, clarifier=clarifier)

    def find(self, run: SystemRun) -> Generator[t.Event, None, str]:
        question = run.reading
        yield t.StepStarted(1, (), "")
        start = time.perf_counter()
        candidates = self.model.read(question.text, run.passages)
        selected = choose(candidates, question, 0.0, self.options.max_answers)  # an answer set: nothing is below a threshold
        answers: list[t.Answer] = []
        for event in answer_events(selected, candidates, len(question.pinned), run.passages, time.perf_counter() - start):
            yield event
            answers += [event.answer] if event.answer is not None else []
        step, rounds, settled = len(answers), 0, False
        clarified: dict[str, t.QuestionClarified] = {}  # by answer
        while rounds < self.config.rounds and answers and not settled:
            rounds += 1
            run.check()
            unclarified = {a.text for a in answers if a.text not in clarified}
            start = time.perf_counter()
            for c in clarify(question.text, answers, [p.passage for p in run.passages], self.model.ask, self.confirm):
                clarified[c.answer] = t.QuestionClarified(c, time.perf_counter() - start)
                start = time.perf_counter()
                run.check()
            unasked = [event.clarification for text, event in clarified.items() if text in unclarified]
            new, step = yield from self._round_trip(run, answers, unasked, step)
            answers += new
            settled = not new
        questions = {text: event.clarification.question for text, event in clarified.items() if event.clarification.question}
        failed: set[str] = set()
        for rejection in self._rejections(run, [a for a in answers if not a.pinned], questions):
            if isinstance(rejection, t.AnswerRejected):
                failed.add(rejection.answer)
            yield rejection
        if settled and self.options.clarify:  # reuse the questions of the round trip
            yield from (clarified[a.text] for a in answers if a.text in clarified and a.text not in failed)
        return f"{listed(rounds, 'round trip')}, {listed(len(failed), 'answer')} dropped by verification"

    def _round_trip(
        self, run: SystemRun, answers: Sequence[t.Answer], clarified: Sequence[t.Clarification], step: int
    ) -> Generator[t.Event, None, tuple[list[t.Answer], int]]:
        """Searches and reads with each disambiguated question; new answers join the set.

        Returns the new answers and the number of the last step.
        """
        reading = replace(run.reading, pinned=tuple(a.text for a in answers))
        new: list[t.Answer] = []
        for c in clarified:
            if not c.question or len(reading.pinned) >= self.options.max_answers:
                continue
            run.check()
            start = time.perf_counter()
            passages = yield from self.search_further(run, c.question, self.config.further)
            if not passages:
                continue
            step += 1
            yield t.StepStarted(step, reading.pinned, c.question)
            candidates = self.model.read(c.question, passages)
            selected = choose(candidates, reading, 0.0, self.options.max_answers)[len(reading.pinned) :]
            seconds = time.perf_counter() - start
            if not selected:
                reason = "its disambiguated question gives no further answer"
                yield t.StepFinished(t.Step(step, reading.pinned, c.question, (), None, 0.0, seconds, reason), None)
                continue
            for event in answer_events(selected, candidates, 0, passages, seconds, step, reading.pinned, c.question):
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
                (returned,) = self.model.ask([(own_question, [p.passage for p in passages])])
                if not shares_words(a.text, returned):
                    yield t.AnswerRejected(a.text, f"its own question '{own_question}' does not return it")


def build(name: str, parts: SystemParts, options: Options, config: RefuelOptions) -> Refuel:
    settings = parts.settings
    fid, digest = load_fid(settings.seq2seq, settings.device)
    judge = None
    configured = not loading.language_model_needed(settings)
    if config.verification == "language-model" or (config.verification == "by generator" and configured):
        judge = loading.load_language_generator(settings)
    reader, _ = load_reader(settings.reader, settings.device)
    return Refuel(parts, options, config, FusedReader(Writer(fid, SequenceDecoding())), digest, reader, judge)
