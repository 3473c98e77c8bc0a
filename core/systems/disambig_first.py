"""Disambig-first: decides whether the question is ambiguous, writes its possible meanings, then answers each.

Source: Min et al. 2020, section 5 ("Disambig-first"): a BERT classifier, a BART that writes disambiguated questions without any evidence, and a
single-answer model of NQ-open.  Here: core.models.ranking.ambiguity decides; the trained rewriter writes from the question alone; the per-passage reader
gives the best answer over the passages that each disambiguated question retrieves.  In the paper it is significantly worse than the systems that read first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence

from core import types as t
from core.models.ranking.ambiguity import AmbiguityModel, load_ambiguity
from core.models.seq2seq.rewriter import Seq2SeqRewriter, load_rewriter
from core.models.span.reader import PassageReader, load_reader
from core.systems.base.options import Options
from core.systems.base.selection import answer_events, candidates_of
from core.systems.base.system import System, SystemParts, SystemRun
from core.systems.options import DisambigFirstOptions
from core.text import answer_key, question_key, shares_words

WriteQuestions = Callable[[str, int], list[str]]  # (question, maximum) -> disambiguated questions, the likeliest first


class DisambigFirst(System):
    config: DisambigFirstOptions

    def __init__(
        self,
        parts: SystemParts,
        options: Options,
        config: DisambigFirstOptions,
        model: AmbiguityModel,
        reader: PassageReader,
        write: WriteQuestions,
        digests: tuple[str, str, str],
    ) -> None:
        """`digests` of the ambiguity model's, the reader's and the rewriter's weights."""
        self.model, self.reader, self.write = model, reader, write
        ambiguity, checkpoint, rewriter = digests
        provenance = {"ambiguity_digest": ambiguity, "rewriter": parts.settings.rewriter, "rewriter_digest": rewriter}
        # no clarifier: the disambiguated questions come before the answers
        super().__init__(
            "disambig-first", parts, options, (parts.settings.reader, checkpoint), config=config, provenance=provenance
        )

    def find(self, run: SystemRun) -> Generator[t.Event, None, str]:
        start, question, retrieved = time.perf_counter(), run.reading, run.passages
        ambiguous = self.model.probability(question.text)
        meanings = self.write(question.text, self.config.questions) if ambiguous >= self.config.ambiguous_above else []
        banned = {answer_key(b) for b in question.banned}
        answers: list[str] = list(question.pinned)
        yield from answer_events([t.Candidate(p, 1.0) for p in answers], (), len(answers), retrieved, 0.0)
        for text in meanings or [question.text]:
            if len(answers) >= self.options.max_answers:
                break
            run.check()
            number, prompt = len(answers) + 1, text if meanings else ""
            passages: Sequence[t.RetrievedPassage] = retrieved
            if text != question.text:
                passages = yield from self.search_further(run, text, self.options.passages)
                if not passages:
                    continue
            yield t.StepStarted(number, tuple(answers), prompt)
            candidates = candidates_of(self.reader.read(text, [p.passage for p in passages]))
            best = next((c for c in candidates if answer_key(c.text) not in banned), None)
            if best is not None and not shares_words(best.text, answers):  # meanings with the same answer give one answer
                seconds = time.perf_counter() - start
                yield from answer_events([best], candidates, 0, passages, seconds, number, answers, prompt)
                if self.options.clarify:
                    yield t.QuestionClarified(_clarification(best.text, text, question.text), 0.0)
                answers.append(best.text)
            start = time.perf_counter()
        outcome = f"{len(meanings)} meanings were asked" if meanings else "the question was asked as it is"
        return f"P(ambiguous) is {ambiguous:.0%}: {outcome}"


def _clarification(answer: str, meaning: str, question: str) -> t.Clarification:
    if meaning == question:
        return t.Clarification(answer, "", True, 0, (answer,), "the question stays as it is")
    return t.Clarification(answer, meaning, False, 1, (answer,), "written before reading; not verified")


def from_question_alone(rewriter: Seq2SeqRewriter) -> WriteQuestions:
    """Writes questions with the rewriter given only the question.  Copies of the question are dropped."""

    def write(question: str, maximum: int) -> list[str]:
        (rewritten,) = rewriter.rewrite_many([(question, "", (), ())])
        return [q for q in rewritten if question_key(q) != question_key(question)][:maximum]

    return write


def build(name: str, parts: SystemParts, options: Options, config: DisambigFirstOptions) -> DisambigFirst:
    settings = parts.settings
    model, digest = load_ambiguity("default", settings.device)
    reader, reader_digest = load_reader(settings.reader, settings.device)
    loaded, rewriter_digest = load_rewriter(settings.rewriter, settings.device)
    write = from_question_alone(Seq2SeqRewriter(loaded.answerer, config.questions + 1))  # one may be a copy of the question
    return DisambigFirst(parts, options, config, model, reader, write, (digest, reader_digest, rewriter_digest))
