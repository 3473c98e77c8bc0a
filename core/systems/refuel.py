"""Round-trip prediction: answers, then disambiguated questions, which are fed back into retrieval and reading for more answers, then
verification.

Source: Gao et al. 2021 (Refuel), "Answering Ambiguous Questions through Generative Evidence Fusion and Round-Trip Prediction", section 3.3.  Theirs
generates with BART over fused passages; here Fusion-in-Decoder writes the answers of a round (`reads`: fused), or the answering model gives them in one
pass.  The questions come from core.disambiguation.round_trip.  An answer stays where a language model finds that its evidence supports it as the answer to its own
question (the paper's language model is trained for it), where its own question returns it (the paper's EM verification), or where reading its evidence
again gives it enough probability.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import Any

from core import types as t
from core.disambiguation.round_trip import Ask, ask_with, clarify
from core.errors import NothingRetrievedError
from core.models.answering import load_answering
from core.models.language import loading
from core.models.language.roles import Claim, LanguageGenerator, Run
from core.models.ranking.evidence_verifier import probability_of
from core.models.seq2seq.decoding import SequenceDecoding, Writer
from core.models.seq2seq.fid import load_fid, locate
from core.systems.base.base import Options, Parts, read_extra, retrieve
from core.systems.base.candidates import answer_events, check_count, check_share, choose
from core.systems.base.passage_system import PassageSystem
from core.text import question_key, shares_words

BY_GENERATOR = "by generator"  # the language model if configured, else exact match
MOST_EVIDENCE = 5  # passages for verifying a claim without evidence
DEFAULTS: dict[str, Any] = {
    # chosen by benchmarks.tuning.thresholds on the practice questions held out from training
    "threshold": 0.02,  # of the first reading, before verification
    "verify_above": 0.02,  # of verification by probability
    "reads": ("fused", "answerer"),
    "verification": (BY_GENERATOR, "language-model", "exact-match", "probability", "none"),
    "rounds": 2.0,  # maximum number of round trips
    "further": 5.0,  # passages retrieved for a disambiguated question
}


class FusedReader:
    """Fusion-in-Decoder as an AnsweringModel that proposes all answers at once and ignores previous ones."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer

    def propose(self, question: str, passages: Sequence[t.RetrievedPassage], previous: Sequence[str]) -> t.Proposal:
        return self.propose_many([(question, passages, previous)])[0]

    def propose_many(self, jobs: Sequence[tuple[str, Sequence[t.RetrievedPassage], Sequence[str]]]) -> list[t.Proposal]:
        written = self.writer.write_many([(question, passages) for question, passages, _ in jobs])
        return [
            t.Proposal(tuple(t.Candidate(c.text, c.probability, locate(c.text, passages)) for c in found), 0.0)
            for found, (_, passages, _) in zip(written, jobs)
        ]

    def ask(
        self,
        pairs: Sequence[tuple[str, Sequence[t.Passage]]],
        most: int | None = None,
        ends: Callable[[str], bool] | None = None,
    ) -> list[list[str]]:
        """Its answers to each question, in one pass (core.disambiguation.round_trip.Ask)."""
        found = [(q, [t.RetrievedPassage(p, rank, 0.0) for rank, p in enumerate(passages, 1)], ()) for q, passages in pairs]
        return [[c.text for c in proposal.candidates][:most] for proposal in self.propose_many(found)]


class Refuel(PassageSystem):
    def __init__(
        self,
        parts: Parts,
        options: Options,
        model: t.BatchAnsweringModel,
        digest: str,
        judge: LanguageGenerator | None = None,
    ) -> None:
        """`judge`: the language model for verification, if used."""
        chosen = read_extra(options, "refuel", DEFAULTS)
        if chosen["verification"] == BY_GENERATOR:
            chosen["verification"] = "language-model" if judge is not None else "exact-match"
        fused = chosen["reads"] == "fused"
        self.judge = judge
        if judge is not None:
            chosen["judge"] = dict(judge.about)
        # Fusion-in-Decoder writes an answer set: no threshold before verification
        self.threshold = 0.0 if fused else check_share("threshold", chosen["threshold"])
        self.verify_above = check_share("verify_above", chosen["verify_above"])
        self.rounds = check_count("rounds", chosen["rounds"], 10)
        self.further = check_count("further", chosen["further"], 100)
        self.verification, self.model = chosen["verification"], model
        self.asking: Ask = model.ask if isinstance(model, FusedReader) else ask_with(model)
        super().__init__(
            "refuel",
            parts,
            options,
            self.asking,
            (parts.settings.seq2seq if fused else parts.settings.answerer, digest),
            chosen,
        )

    def _read(self, question: str, passages: Sequence[t.RetrievedPassage]) -> tuple[t.Candidate, ...]:
        """One pass over all passages: every answer with its probability, ignoring [EOI]."""
        return self.model.propose_many([(question, passages, ())])[0].candidates

    def find(self, question: t.Question, passages: tuple[t.RetrievedPassage, ...]) -> Generator[t.Event, None, str]:
        seen = {p.passage.id: p for p in passages}
        yield t.StepStarted(1, (), "")
        begun = time.perf_counter()
        candidates = self._read(question.text, passages)
        kept = choose(candidates, question, self.threshold, self.options.max_answers)
        answers: list[t.Answer] = []
        for event in answer_events(kept, candidates, len(question.pinned), passages, time.perf_counter() - begun):
            yield event
            answers += [event.answer] if event.answer is not None else []
        step, done, settled = len(answers), 0, False
        told: dict[str, tuple[t.Clarification, float]] = {}  # with what it took, in seconds
        while done < self.rounds and answers:
            done += 1
            self.check_cancelled()
            fresh = {a.text for a in answers if a.text not in told}
            begun = time.perf_counter()
            for c in clarify(question.text, answers, [p.passage for p in seen.values()], self.asking):
                told[c.answer] = c, time.perf_counter() - begun
                begun = time.perf_counter()
                self.check_cancelled()
            asked = [c for c, _ in told.values() if c.answer in fresh]
            found, step = yield from self._round_trip(question, answers, asked, seen, step)
            answers += found
            settled = not found
            if settled:
                break
        left = yield from self._verify(question, answers, {a: c for a, (c, _) in told.items()}, list(seen.values()))
        if settled and self.options.clarify:  # reuse the questions of the round trip
            yield from (t.QuestionClarified(*told[a.text]) for a in left if a.text in told)
        dropped = len(answers) - len(left)
        return f"{done} round trip{'' if done == 1 else 's'}, {dropped} answer{'' if dropped == 1 else 's'} dropped by verification"

    def _round_trip(
        self,
        question: t.Question,
        answers: Sequence[t.Answer],
        told: Sequence[t.Clarification],
        seen: dict[str, t.RetrievedPassage],
        step: int,
    ) -> Generator[t.Event, None, tuple[list[t.Answer], int]]:
        """Searches and reads with each disambiguated question; new answers join the set.

        Returns the new answers and the number of the last step.
        """
        known = replace(question, pinned=tuple(a.text for a in answers))
        out: list[t.Answer] = []
        for c in told:
            if question_key(c.question) == question_key(question.text) or len(known.pinned) >= self.options.max_answers:
                continue
            self.check_cancelled()
            begun = time.perf_counter()
            passages = list(seen.values())
            if question.passages is None:
                try:
                    retrieved = retrieve(replace(question, text=c.question), self.parts, self.further)
                except NothingRetrievedError:
                    continue
                new = tuple(p for p in retrieved.passages if p.passage.id not in seen)
                if new:
                    yield t.PassagesRetrieved(new, retrieved.seconds, c.question)
                    seen.update({p.passage.id: p for p in new})
                passages = list(retrieved.passages)
            step += 1
            yield t.StepStarted(step, known.pinned, c.question)
            candidates = self._read(c.question, passages)
            kept = choose(candidates, known, self.threshold, self.options.max_answers)[len(known.pinned) :]
            took = time.perf_counter() - begun
            if not kept:
                none = t.Step(
                    step, known.pinned, c.question, (), None, 0.0, took, "its disambiguated question gives no further answer"
                )
                yield t.StepFinished(none, None)
                continue
            for event in answer_events(kept, candidates, 0, passages, took, step, known.pinned):
                step = event.step.number
                yield replace(event, step=replace(event.step, prompt=c.question))
                out += [event.answer] if event.answer is not None else []
            known = replace(known, pinned=(*known.pinned, *(k.text for k in kept)))
        return out, step

    def _verify(
        self,
        question: t.Question,
        answers: Sequence[t.Answer],
        told: dict[str, t.Clarification],
        passages: Sequence[t.RetrievedPassage],
    ) -> Generator[t.Event, None, list[t.Answer]]:
        """The verified answers; others are rejected.  A person's own answers are kept."""
        free = [a for a in answers if not a.pinned]
        if self.verification == "none" or not free:
            return list(answers)
        failed: set[str] = set()
        if self.verification == "probability":
            self.check_cancelled()
            evidence = [_supporting(a, passages) for a in free]
            jobs = [(question.text, found or list(passages), ()) for found in evidence]
            for a, proposal in zip(free, self.model.propose_many(jobs)):
                given = probability_of(a.text, proposal.candidates)
                if given < self.verify_above:
                    failed.add(a.text)
                    why = f"over its own evidence the model gives it {given:.0%}, less than {self.verify_above:.0%}"
                    yield t.AnswerRejected(a.text, why)
            return [a for a in answers if a.text not in failed]
        if self.verification == "language-model":
            yield from self._judged(question, free, told, passages, failed)
            return [a for a in answers if a.text not in failed]
        for a in free:
            self.check_cancelled()
            asked = _asked(a, told, question)
            returned = self.asking([(asked, [p.passage for p in passages])])[0]
            if not shares_words(a.text, returned):
                failed.add(a.text)
                yield t.AnswerRejected(a.text, f"its own question '{asked}' does not return it")
        return [a for a in answers if a.text not in failed]

    def _judged(
        self,
        question: t.Question,
        free: Sequence[t.Answer],
        told: dict[str, t.Clarification],
        passages: Sequence[t.RetrievedPassage],
        failed: set[str],
    ) -> Generator[t.Event, None, None]:
        """Adds answers that the language model finds unsupported to `failed`.  Raises LanguageModelError if every call fails."""
        assert self.judge is not None
        run = Run.of(self.parts.settings.lm_run_timeout, self.parts.cancelled)
        claims = []
        for a in free:
            own = tuple(p.passage for p in _supporting(a, passages))
            asked = _asked(a, told, question)
            claims.append(Claim(asked, a.text, own or tuple(p.passage for p in passages[:MOST_EVIDENCE])))
        decisions = self.judge.verify(claims, run)
        yield from run.events()
        run.demand(frozenset())
        for a, claim, decision in zip(free, claims, decisions):
            if decision is False:
                failed.add(a.text)
                yield t.AnswerRejected(
                    a.text, f"the language model finds no support for it as the answer to '{claim.question}'"
                )


def _supporting(answer: t.Answer, passages: Sequence[t.RetrievedPassage]) -> list[t.RetrievedPassage]:
    """The passages that an answer was read from."""
    return [p for p in passages if any(e.passage_id == p.passage.id for e in answer.evidence)]


def _asked(answer: t.Answer, told: dict[str, t.Clarification], question: t.Question) -> str:
    """The disambiguated question of an answer, or the question as asked where there is none."""
    return told[answer.text].question if answer.text in told else question.text


def build(parts: Parts, options: Options) -> Refuel:
    """Raises InputError for an unknown option, CheckpointError, and what loading a language model raises."""
    chosen, settings = read_extra(options, "refuel", DEFAULTS), parts.settings  # fail before weights are loaded
    model: t.BatchAnsweringModel
    if chosen["reads"] == "fused":
        fid, digest = load_fid(settings.seq2seq, settings.device)
        model = FusedReader(Writer(fid, SequenceDecoding()))
    else:
        model, digest = load_answering(settings.answerer, settings.device)
    judge = None
    configured = not loading.language_model_needed(settings)
    if chosen["verification"] == "language-model" or (chosen["verification"] == BY_GENERATOR and configured):
        judge = loading.load_language_generator(settings)
    return Refuel(parts, options, model, digest, judge)
