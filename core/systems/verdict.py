"""VerDICt: verified diversification with consolidation.  Relax the query, retrieve once, propose one interpretation or abstention per
passage, and keep one of those with the same meaning.

Source: Lee et al. 2025, section 4 and Algorithm 1.  The generator is a language model where one is configured, else the bundled readers
(core.systems.base.reader_generator).  Under a language model HDBSCAN decides what means the same, and outliers are filtered; with the bundled readers
equal answers decide (`same_answer`), and HDBSCAN decides nothing.  Whatever the generator, one retrieval and at most one interpreting call a passage.  What differs from the paper is
in core.disambiguation.consolidation's docstring.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Protocol, get_args, runtime_checkable

import numpy as np

from core import types as t
from core.disambiguation.consolidation import (
    Clustering,
    Consolidation,
    Embed,
    SameAnswer,
    Unclustered,
    Vectors,
    consolidate,
    text_of,
)
from core.errors import InputError
from core.models.language import loading, roles
from core.models.language.roles import Claim, Run
from core.systems.base.base import Options, Parts, as_read, read_extra
from core.systems.base.interpretations import Found, GroundedSystem
from core.systems.base.rescoring import ALL, KEPT_FROM, NONE, OF_DEFAULT, Additions, additions_of
from core.text import equal_for_display, listed

if TYPE_CHECKING:
    from core.models.span.reader import Readout

BY_GENERATOR = "by generator"
BY_READER = {"unclustered": "verified", "same_answer": "decides"}  # its answers are spans, verified while reading
# as in the paper: clusters alone decide, and what lies outside them is an outlier of a noisy passage (section 4.2)
BY_LANGUAGE_MODEL = {"unclustered": "drop", "same_answer": "ignored"}


@runtime_checkable
class ReadsFound(Protocol):
    """A generator whose readings can be rescored."""

    def interpret_found(
        self, query: str, found: Sequence[t.RetrievedPassage], run: Run, readouts: list[Readout] | None = None
    ) -> Iterator[tuple[int, t.Interpretation]]: ...


@runtime_checkable
class Distinguishes(Protocol):
    """A generator that rewrites the final interpretations to distinguish them, and tests each."""

    def distinguish(
        self, query: str, interpretations: Sequence[t.Interpretation], passages: Sequence[t.Passage], run: Run
    ) -> list[tuple[t.Interpretation, bool]]: ...


class Verdict(GroundedSystem):
    def __init__(
        self, parts: Parts, options: Options, generator: roles.Generator, how: Consolidation, additions: Additions | None = None
    ) -> None:
        """`additions`: rescore the interpretations instead of the generator."""
        self.generator, self.how, self.additions = generator, how, additions or Additions(parts)
        super().__init__("verdict", parts, options, generator, {"consolidation": asdict(how), **self.additions.about})
        self.rewords = options.clarify and isinstance(generator, Distinguishes)

    def find(self, question: t.Question, run: Run) -> Generator[t.Event, None, Found]:
        query = question.text
        if question.passages is None:  # Eq. 6; nothing is retrieved for a question with passages of its own
            query = self.generator.relax(question.text, run) or question.text
            yield from run.finish_role()
        yield t.QuestionRelaxed(query)
        retrieved = self.search(question, query, self.options.passages)  # Eq. 7
        yield retrieved
        run.check()
        passages = [p.passage for p in retrieved.passages]
        proposed: list[t.Interpretation] = []
        trouble: list[str] = []
        abstained = 0
        for one in self._weighed(as_read(question, retrieved.passages).text, retrieved.passages, run):  # Eq. 8
            yield from run.events()
            yield t.InterpretationProposed(one)
            run.check()
            if one.failed:
                trouble.append(one.failed)
            elif one.abstained or not one.answer:
                abstained += 1
            else:
                proposed.append(one)
        yield from run.finish_role()
        if not proposed:
            return Found((), retrieved.passages, _nothing(len(passages), trouble))
        # an endpoint replies in any order: the passages' order makes equal replies one result
        rank = {passage.id: i for i, passage in enumerate(passages)}
        order = sorted(range(len(proposed)), key=lambda i: rank.get(proposed[i].passage_id, len(rank)))
        proposed = yield from self._verified([proposed[i] for i in order], passages, run)
        result = consolidate(proposed, self._vectors(proposed), self.how)
        yield t.InterpretationsClustered(tuple(replace(p, index=order[p.index]) for p in result.placed))
        for i, why in result.dropped:
            if not any(equal_for_display(proposed[i].answer, proposed[k].answer) for k in result.kept):
                yield t.AnswerRejected(proposed[i].answer, why)
        final = [proposed[i] for i in result.kept][: self.options.max_answers]
        return Found(tuple(final), retrieved.passages, _why(final, len(proposed), abstained, trouble), len(trouble))

    def reword(
        self, question: t.Question, chosen: list[t.Interpretation], found: Found, run: Run
    ) -> Generator[t.Event, None, Sequence[t.Interpretation]]:
        """Questions that distinguish the interpretations, where the generator can write them."""
        assert isinstance(self.generator, Distinguishes)
        worded = self.generator.distinguish(question.text, chosen, [p.passage for p in found.passages], run)
        yield from run.finish_role()
        return [replace(one, verified=passed) for one, passed in worded]

    def _weighed(self, query: str, found: Sequence[t.RetrievedPassage], run: Run) -> Iterator[t.Interpretation]:
        """Yields interpretations as they come; with additions, all at the end, and those below KEPT_FROM abstain."""
        readouts: list[Readout] | None = [] if self.additions.on else None
        proposed = (one for _, one in self._interpret(query, found, run, readouts))
        if readouts is None:
            yield from proposed
            return
        all_of_them = list(proposed)
        said = [t.Candidate(i.answer, i.probability, i.evidence) for i in all_of_them if i.answer and i.evidence]
        best: dict[str, t.Candidate] = {}  # per passage: its interpretation, or a second reading at the same place
        for weighed in self.additions.weighed(query, found, sorted(said, key=lambda c: -c.probability), readouts, whole=True):
            if weighed.evidence is not None:
                best.setdefault(weighed.evidence.passage_id, weighed)
        for one in all_of_them:
            c = best.get(one.passage_id)
            if not one.answer:
                yield one
            elif c is None or c.probability < KEPT_FROM:
                sure = c.probability if c is not None else 0.0
                yield t.Interpretation(
                    one.passage_id, probability=sure, abstained=f"the reranker gives '{one.answer}' {sure:.0%}"
                )
            else:
                yield replace(one, answer=c.text, evidence=c.evidence, probability=c.probability, verified=True)

    def _interpret(
        self, query: str, found: Sequence[t.RetrievedPassage], run: Run, readouts: list[Readout] | None
    ) -> Iterator[tuple[int, t.Interpretation]]:
        if isinstance(self.generator, ReadsFound):
            return self.generator.interpret_found(query, found, run, readouts)
        return self.generator.interpret(query, [f.passage for f in found], run)

    def _verified(
        self, proposed: list[t.Interpretation], passages: Sequence[t.Passage], run: Run
    ) -> Generator[t.Event, None, list[t.Interpretation]]:
        """Verifies interpretations that would be unclustered, if required and not done by the generator."""
        if self.how.unclustered != "verified" or all(i.verified is not None for i in proposed):
            return proposed
        by_id = {p.id: p for p in passages}
        placed = consolidate(proposed, self._vectors(proposed), self.how).placed
        alone = [p.index for p in placed if p.cluster < 0 and proposed[p.index].verified is None]
        claims = [Claim(proposed[i].question, proposed[i].answer, (by_id[proposed[i].passage_id],)) for i in alone]
        decisions = dict(zip(alone, self.generator.verify(claims, run) if claims else ()))
        yield from run.finish_role()
        return [replace(one, verified=decisions.get(i, one.verified)) for i, one in enumerate(proposed)]

    def _vectors(self, interpretations: Sequence[t.Interpretation]) -> Vectors:
        """f of Algorithm 1, line 10: the retriever's encoder."""
        texts = [text_of(i, self.how.embed) for i in interpretations]
        if self.parts.embed is not None:
            return np.asarray(self.parts.embed(texts), np.float32)
        from core.models.encoders.sentence_encoder import load_encoder

        return load_encoder(self.parts.settings).encode(texts, "query")


def _nothing(passages: int, trouble: Sequence[str]) -> str:
    unread = f"; {listed(len(trouble), 'passage')} could not be read" if trouble else ""
    return f"no interpretation: none of the nearest {listed(passages, 'passage')} answers any meaning of the question{unread}"


def _why(final: Sequence[t.Interpretation], proposed: int, abstained: int, trouble: Sequence[str]) -> str:
    unread = f", {len(trouble)} could not be read" if trouble else ""
    source = f"from {listed(proposed, 'passage')} that answered; {abstained} abstained{unread}"
    if not final:
        return f"no interpretation: the interpretations of {listed(proposed, 'passage')} were unclustered and not verified; {abstained} abstained{unread}"
    if len(final) == 1:
        return f"one interpretation: the corpus has one meaning of the question ({source})"
    return f"{len(final)} interpretations {source}"


def build(parts: Parts, options: Options) -> Verdict:
    """Raises InputError for an unknown option, CheckpointError, and what loading a language model raises."""
    from core.systems.base.reader_generator import ReaderGenerator, load_reader_generator

    known = {
        "clustering": get_args(Clustering),
        "embed": get_args(Embed),
        "unclustered": (BY_GENERATOR, *get_args(Unclustered)),
        "same_answer": (BY_GENERATOR, *get_args(SameAnswer)),
        "additions": OF_DEFAULT,
    }
    chosen = read_extra(options, "verdict", known)
    wanted = chosen.pop("additions")
    if loading.language_model_needed(parts.settings):
        added = additions_of("verdict", wanted, parts, (parts.settings.reader, "reader"))
        generator: roles.Generator = load_reader_generator(parts.settings)
    else:
        if wanted not in (NONE, ALL):
            raise InputError("additions rescore the bundled readers, but a language model is configured; use additions=none")
        added = Additions(parts)
        generator = loading.load_language_generator(parts.settings)
    usual = BY_READER if isinstance(generator, ReaderGenerator) else BY_LANGUAGE_MODEL
    chosen |= {name: value for name, value in usual.items() if chosen[name] == BY_GENERATOR}
    return Verdict(parts, options, generator, Consolidation(**chosen), added)
