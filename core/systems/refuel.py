"""Round-trip prediction: answers, then disambiguated questions, which are fed back into retrieval and reading for more answers, then
verification.

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
from core.models.seq2seq.fid import load_fid, locate
from core.models.span.reader import PassageReader, load_reader
from core.systems.base.clarifying import judge_with, reads_once
from core.systems.base.options import Options
from core.systems.base.selection import answer_events, choose
from core.systems.base.system import System, SystemParts, SystemRun
from core.systems.options import RefuelOptions
from core.text import shares_words

MAX_EVIDENCE = 5  # passages for verifying a claim without evidence


class FusedReader:
    """Fusion-in-Decoder, which gives all answers to a question at once."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer

    def read(self, question: str, passages: Sequence[t.RetrievedPassage]) -> list[t.Candidate]:
        """Every answer with its probability and its place in the passages."""
        (written,) = self.writer.write_many([(question, passages)])
        return [t.Candidate(c.text, c.probability, locate(c.text, passages)) for c in written]

    def ask(
        self,
        pairs: Sequence[tuple[str, Sequence[t.Passage]]],
        ends: Callable[[str], bool] | None = None,
    ) -> list[list[str]]:
        """Its answers to each question, in one pass (core.disambiguation.round_trip.AskAgain)."""
        jobs = [(q, [t.RetrievedPassage(p, rank, 0.0) for rank, p in enumerate(passages, 1)]) for q, passages in pairs]
        return [[c.text for c in written] for written in self.writer.write_many(jobs)]


class Refuel(System):
    def __init__(
        self,
        parts: SystemParts,
        options: Options,
        own: RefuelOptions,
        model: FusedReader,
        digest: str,
        reader: PassageReader,
        judge: PromptedGenerator | None = None,
    ) -> None:
        """`reader`: confirms disambiguated questions; `judge`: the language model for verification, if used."""
        if own.verification == "by generator":
            own = replace(own, verification="language-model" if judge is not None else "exact-match")
        self.own, self.model, self.judge = own, model, judge
        checkpoint = parts.settings.seq2seq, digest
        used = {"judge": dict(judge.about)} if judge is not None else {}
        self.confirm = judge_with(reads_once(reader))
        clarifier = by_round_trip(model.ask, self.confirm)
        super().__init__("refuel", parts, options, checkpoint, own=own, used=used, clarifier=clarifier)

    def find(self, run: SystemRun) -> Generator[t.Event, None, str]:
        question = run.reading
        yield t.StepStarted(1, (), "")
        begun = time.perf_counter()
        candidates = self.model.read(question.text, run.passages)
        kept = choose(candidates, question, 0.0, self.options.max_answers)  # an answer set: nothing is below a threshold
        answers: list[t.Answer] = []
        for event in answer_events(kept, candidates, len(question.pinned), run.passages, time.perf_counter() - begun):
            yield event
            answers += [event.answer] if event.answer is not None else []
        step, rounds, settled = len(answers), 0, False
        clarified: dict[
            str, tuple[t.Clarification, float]
        ] = {}  # the questions of the answers, with what they took, in seconds
        while rounds < self.own.rounds and answers and not settled:
            rounds += 1
            run.check()
            fresh = {a.text for a in answers if a.text not in clarified}
            begun = time.perf_counter()
            for c in clarify(question.text, answers, [p.passage for p in run.passages], self.model.ask, self.confirm):
                clarified[c.answer] = c, time.perf_counter() - begun
                begun = time.perf_counter()
                run.check()
            further, step = yield from self._round_trip(
                run, answers, [c for c, _ in clarified.values() if c.answer in fresh], step
            )
            answers += further
            settled = not further
        questions = {text: c.question for text, (c, _) in clarified.items() if c.question}
        failed: set[str] = set()
        for rejection in self._rejections(run, [a for a in answers if not a.pinned], questions):
            if isinstance(rejection, t.AnswerRejected):
                failed.add(rejection.answer)
            yield rejection
        if settled and self.options.clarify:  # reuse the questions of the round trip
            verified = (a.text for a in answers if a.text not in failed)
            yield from (t.QuestionClarified(*clarified[text]) for text in verified if text in clarified)
        dropped = len(failed)
        return f"{rounds} round trip{'' if rounds == 1 else 's'}, {dropped} answer{'' if dropped == 1 else 's'} dropped by verification"

    def _round_trip(
        self, run: SystemRun, answers: Sequence[t.Answer], clarified: Sequence[t.Clarification], step: int
    ) -> Generator[t.Event, None, tuple[list[t.Answer], int]]:
        """Searches and reads with each disambiguated question; new answers join the set.

        Returns the new answers and the number of the last step.
        """
        known = replace(run.reading, pinned=tuple(a.text for a in answers))
        out: list[t.Answer] = []
        for c in clarified:
            if not c.question or len(known.pinned) >= self.options.max_answers:
                continue
            run.check()
            begun = time.perf_counter()
            passages = yield from self.search_further(run, c.question, self.own.further)
            if not passages:
                continue
            step += 1
            yield t.StepStarted(step, known.pinned, c.question)
            candidates = self.model.read(c.question, passages)
            kept = choose(candidates, known, 0.0, self.options.max_answers)[len(known.pinned) :]
            seconds = time.perf_counter() - begun
            if not kept:
                why = "its disambiguated question gives no further answer"
                yield t.StepFinished(t.Step(step, known.pinned, c.question, (), None, 0.0, seconds, why), None)
                continue
            for event in answer_events(kept, candidates, 0, passages, seconds, step, known.pinned, c.question):
                step = event.step.number
                yield event
                out += [event.answer] if event.answer is not None else []
            known = replace(known, pinned=(*known.pinned, *(k.text for k in kept)))
        return out, step

    def _rejections(
        self, run: SystemRun, answers: Sequence[t.Answer], questions: dict[str, str]
    ) -> Generator[t.Event, None, None]:
        """An AnswerRejected for each answer that verification fails.  `questions`: disambiguated ones by answer.  Raises LanguageModelError if a
        language model verifies and every call fails."""
        if self.own.verification == "none" or not answers:
            return
        passages, question = run.passages, run.reading.text
        if self.own.verification == "language-model":
            assert self.judge is not None
            calls = Run.of(self.parts.settings.lm_run_timeout, self.parts.cancelled)
            evidence = [[p for p in passages if any(e.passage_id == p.passage.id for e in a.evidence)] for a in answers]
            claims = [
                Claim(questions.get(a.text, question), a.text, tuple(p.passage for p in own or passages[:MAX_EVIDENCE]))
                for a, own in zip(answers, evidence)
            ]
            decisions = self.judge.verify(claims, calls)
            yield from calls.events()
            calls.demand(frozenset())
            for claim, decision in zip(claims, decisions):
                if decision is False:
                    why = f"the language model finds no support for it as the answer to '{claim.question}'"
                    yield t.AnswerRejected(claim.answer, why)
        else:
            for a in answers:
                run.check()
                own_question = questions.get(a.text, question)
                (returned,) = self.model.ask([(own_question, [p.passage for p in passages])])
                if not shares_words(a.text, returned):
                    yield t.AnswerRejected(a.text, f"its own question '{own_question}' does not return it")


def build(name: str, parts: SystemParts, options: Options, own: RefuelOptions) -> Refuel:
    settings = parts.settings
    fid, digest = load_fid(settings.seq2seq, settings.device)
    judge = None
    configured = not loading.language_model_needed(settings)
    if own.verification == "language-model" or (own.verification == "by generator" and configured):
        judge = loading.load_language_generator(settings)
    reader, _ = load_reader(settings.reader, settings.device)
    return Refuel(parts, options, own, FusedReader(Writer(fid, SequenceDecoding())), digest, reader, judge)
