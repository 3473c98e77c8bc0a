"""Disambig-first: decide whether the question is ambiguous, write its possible meanings, then answer each.

Source: Min et al. 2020, section 5 ("Disambig-first"): a BERT classifier, a BART that writes disambiguated questions without any evidence, and a
single-answer model of NQ-open.  Here: core.models.ranking.ambiguity decides; the trained rewriter writes from the question alone, or the lexicon of
core.models.ranking.ambiguity does (`writer`); the per-passage reader gives the best answer over the passages that each disambiguated question retrieves.
In the paper it is significantly worse than the systems that read first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

from core import types as t
from core.errors import NothingRetrievedError
from core.models.ranking.ambiguity import AmbiguityModel, load_ambiguity
from core.models.seq2seq.rewriter import Seq2SeqRewriter, load_rewriter
from core.models.span.reader import PassageReader, load_reader
from core.systems.base.base import Options, Parts, read_extra, retrieve
from core.systems.base.candidates import answer_events, candidates_of, check_count, check_share
from core.systems.base.passage_system import PassageSystem
from core.text import answer_key, question_key, shares_words

DEFAULTS: dict[str, Any] = {
    "writer": ("rewriter", "lexicon"),
    "ambiguous_above": 0.5,  # least P(ambiguous) for writing questions
    "questions": 3.0,  # maximum number of disambiguated questions
}


Write = Callable[[str, int], list[str]]  # (question, most) -> disambiguated questions, the likeliest first


class DisambigFirst(PassageSystem):
    def __init__(
        self,
        parts: Parts,
        options: Options,
        model: AmbiguityModel,
        reader: PassageReader,
        digests: tuple[str, str],
        rewriter: tuple[Write, str] | None = None,
    ) -> None:
        """`digests`: of the ambiguity model's and the reader's weights; `rewriter`: the writer and its digest (None: the lexicon)."""
        chosen = read_extra(options, "disambig-first", DEFAULTS)
        self.above = check_share("ambiguous_above", chosen["ambiguous_above"])
        self.most = check_count("questions", chosen["questions"], 20)
        self.model, self.reader = model, reader
        self.write: Write = model.rewrite
        used = {**chosen, "ambiguity_digest": digests[0]}
        if rewriter is not None:
            self.write = rewriter[0]
            used |= {"rewriter": parts.settings.rewriter, "rewriter_digest": rewriter[1]}
        # no round trip: the disambiguated questions come before the answers
        super().__init__("disambig-first", parts, options, None, (parts.settings.reader, digests[1]), used)

    def find(self, question: t.Question, passages: tuple[t.RetrievedPassage, ...]) -> Generator[t.Event, None, str]:
        begun = time.perf_counter()
        given = self.model.probability(question.text)
        asked = self.write(question.text, self.most) if given >= self.above else []
        seen = {p.passage.id for p in passages}
        banned = {answer_key(b) for b in question.banned}
        answers: list[str] = list(question.pinned)
        yield from answer_events([t.Candidate(p, 1.0) for p in answers], (), len(answers), passages, 0.0)
        for text in asked or [question.text]:
            if len(answers) >= self.options.max_answers:
                break
            self.check_cancelled()
            number = len(answers) + 1
            read = passages
            if text != question.text and question.passages is None:
                try:
                    retrieved = retrieve(replace(question, text=text), self.parts, self.options.passages)
                except NothingRetrievedError:
                    continue
                new = tuple(p for p in retrieved.passages if p.passage.id not in seen)
                if new:
                    yield t.PassagesRetrieved(new, retrieved.seconds, text)
                    seen.update(p.passage.id for p in new)
                read = retrieved.passages
            yield t.StepStarted(number, tuple(answers), text if asked else "")
            candidates = candidates_of(self.reader.read(text, [p.passage for p in read]))
            best = next((c for c in candidates if answer_key(c.text) not in banned), None)
            if best is None:
                continue
            if shares_words(best.text, answers):  # meanings with the same answer give one answer
                begun = time.perf_counter()
                continue
            for event in answer_events([best], candidates, 0, read, time.perf_counter() - begun, number, answers):
                yield replace(event, step=replace(event.step, prompt=text if asked else ""))
            if self.options.clarify:
                yield t.QuestionClarified(self._clarification(best.text, text, question.text), 0.0)
            answers.append(best.text)
            begun = time.perf_counter()
        decided = f"P(ambiguous) is {given:.0%}"
        return f"{decided}: {len(asked)} meanings were asked" if asked else f"{decided}: the question was asked as it is"

    @staticmethod
    def _clarification(answer: str, asked: str, question: str) -> t.Clarification:
        if asked == question:
            return t.Clarification(answer, asked, True, 0, (answer,), "the question stays as it is")
        return t.Clarification(answer, asked, False, 1, (answer,), "written before reading; not verified")


def unread(rewriter: Seq2SeqRewriter) -> Write:
    """The rewriter given only the question; its output without copies of the question."""

    def write(question: str, most: int) -> list[str]:
        (found,) = rewriter.rewrite_many([(question, "", (), ())])
        return [q for q in found if question_key(q) != question_key(question)][:most]

    return write


def build(parts: Parts, options: Options) -> DisambigFirst:
    """Raises InputError for an unknown option, CheckpointError."""
    chosen, settings = read_extra(options, "disambig-first", DEFAULTS), parts.settings  # fail before weights are loaded
    model, digest = load_ambiguity("default", settings.device)
    reader, reader_digest = load_reader(settings.reader, settings.device)
    rewriter = None
    if chosen["writer"] == "rewriter":
        loaded, rewriter_digest = load_rewriter(settings.rewriter, settings.device)
        beams = max(2, int(chosen["questions"]) + 1)  # one may be a copy of the question
        rewriter = unread(Seq2SeqRewriter(loaded.answerer, beams)), rewriter_digest
    return DisambigFirst(parts, options, model, reader, (digest, reader_digest), rewriter)
