"""VerDICt, verified diversification with consolidation: relaxes the query, retrieves once, proposes one interpretation or
abstention per passage, and keeps one of those with the same meaning.

Source: Lee et al. 2025, section 4 and Algorithm 1.  The generator is a language model where one is configured, else the bundled readers
(core.systems.base.reader_generator); `generator=language-model` asks for the bundled language model where none is configured.  Under a language model HDBSCAN decides what means the same, and outliers are filtered; with the bundled readers
equal answers decide (`same_answer`), and HDBSCAN decides nothing.  Whatever the generator, one retrieval and at most one interpreting call a passage.  What differs from the paper is
in core.disambiguation.consolidation's docstring.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from core import types as t
from core.disambiguation.clarifiers import Clarifier
from core.disambiguation.consolidation import Consolidation, MeaningVectors, consolidate, text_of
from core.models.language import loading, roles
from core.models.language.roles import Claim
from core.systems.base.clarifying import make_clarifier
from core.systems.base.interpretations import InterpretationSystem, Interpreted
from core.systems.base.options import ClarifierOptions, Options
from core.systems.base.reader_generator import ReaderGenerator, load_reader_generator
from core.systems.base.system import SystemParts, SystemRun
from core.systems.options import VerdictOptions
from core.text import answer_key, listed

# what the option value "by generator" stands for: answers of the bundled readers are spans, verified while reading; in the paper, clusters alone
# decide, and what is outside them is an outlier of a noisy passage (section 4.2)
OF_READERS = {"unclustered": "verified", "same_answer": "decides"}
OF_LANGUAGE_MODELS = {"unclustered": "drop", "same_answer": "ignored"}


class Verdict(InterpretationSystem):
    def __init__(
        self,
        parts: SystemParts,
        options: Options,
        generator: roles.Generator,
        consolidation: Consolidation,
        config: VerdictOptions | None = None,
        rewriter: Clarifier | None = None,
        provenance: Mapping[str, Any] | None = None,
    ) -> None:
        """`rewriter` writes the questions of the final interpretations if the generator hasn't."""
        self.consolidation, self.rewriter = consolidation, rewriter
        super().__init__(
            "verdict", parts, options, generator, config, {"consolidation": asdict(consolidation), **(provenance or {})}
        )
        self.rewords = rewriter is not None

    def retrieve(self, run: SystemRun) -> Generator[t.Event, None, Sequence[t.RetrievedPassage]]:
        query = run.question.text
        if run.question.passages is None:  # Eq. 6; nothing is retrieved for a question with passages of its own
            query = self.generator.relax(query, run.calls) or query
            yield from run.calls.finish_role()
        yield t.QuestionRelaxed(query)
        retrieved = self.search(run.question, query, self.options.passages)  # Eq. 7
        yield retrieved
        run.check()
        return retrieved.passages

    def interpret(self, run: SystemRun) -> Generator[t.Event, None, Interpreted]:
        passages = [p.passage for p in run.passages]
        proposed: list[t.Interpretation] = []
        failed = abstained = 0
        for _, interpretation in self.generator.interpret(run.reading.text, passages, run.calls):  # Eq. 8
            yield from run.calls.events()
            yield t.InterpretationProposed(interpretation)
            run.check()
            if interpretation.failed:
                failed += 1
            elif interpretation.abstained or not interpretation.answer:
                abstained += 1
            else:
                proposed.append(interpretation)
        yield from run.calls.finish_role()
        if not proposed:
            unread = f"; {listed(failed, 'passage')} could not be read" if failed else ""
            nearest = f"none of the nearest {listed(len(passages), 'passage')} answers any meaning of the question"
            return Interpreted((), f"no interpretation: {nearest}{unread}")
        # an endpoint replies in any order: the passages' order makes equal replies one result
        rank = {passage.id: i for i, passage in enumerate(passages)}
        order = sorted(range(len(proposed)), key=lambda i: rank.get(proposed[i].passage_id, len(rank)))
        proposed = yield from self._verified([proposed[i] for i in order], run)
        result = consolidate(proposed, self._vectors(proposed), self.consolidation)
        yield t.InterpretationsClustered(tuple(replace(p, index=order[p.index]) for p in result.placed))
        final_keys = {answer_key(proposed[i].answer) for i in result.final}
        for i, reason in result.dropped:
            if answer_key(proposed[i].answer) not in final_keys:
                yield t.AnswerRejected(proposed[i].answer, reason)
        final = [proposed[i] for i in result.final][: self.options.max_answers]
        return Interpreted(tuple(final), _note(len(final), len(proposed), abstained, failed), failed)

    def reword(self, run: SystemRun, selected: list[t.Interpretation]) -> Generator[t.Event, None, list[t.Interpretation]]:
        """Writes questions that distinguish the interpretations.  A language model has already written its own."""
        assert self.rewriter is not None
        answers = [t.Answer(i.answer, i.probability, (i.evidence,) if i.evidence else ()) for i in selected]
        reworded = []
        for i, c in zip(selected, self.rewriter(run.question.text, answers, [p.passage for p in run.passages])):
            run.check()
            reworded.append(replace(i, question=c.question or i.question, verified=c.passed))
        yield from run.calls.finish_role()
        return reworded

    def _verified(self, proposed: list[t.Interpretation], run: SystemRun) -> Generator[t.Event, None, list[t.Interpretation]]:
        """Verifies the interpretations that would be unclustered, if that is required and the generator hasn't done it."""
        if self.consolidation.unclustered != "verified" or all(i.verified is not None for i in proposed):
            return proposed
        by_id = {p.passage.id: p.passage for p in run.passages}
        placed = consolidate(proposed, self._vectors(proposed), self.consolidation).placed
        alone = [p.index for p in placed if p.cluster < 0 and proposed[p.index].verified is None]
        claims = [Claim(proposed[i].question, proposed[i].answer, (by_id[proposed[i].passage_id],)) for i in alone]
        decisions = dict(zip(alone, self.generator.verify(claims, run.calls) if claims else ()))
        yield from run.calls.finish_role()
        return [
            replace(interpretation, verified=decisions.get(i, interpretation.verified))
            for i, interpretation in enumerate(proposed)
        ]

    def _vectors(self, interpretations: Sequence[t.Interpretation]) -> MeaningVectors:
        """f of Algorithm 1, line 10: the retriever's encoder."""
        texts = [text_of(i, self.consolidation.embed) for i in interpretations]
        if self.parts.embed is not None:
            return np.asarray(self.parts.embed(texts), np.float32)
        from core.models.encoders.sentence_encoder import load_encoder

        return load_encoder(self.parts.settings).encode(texts, "query")


def _note(final: int, proposed: int, silent: int, failed: int) -> str:
    unread = f", {failed} could not be read" if failed else ""
    silence = f"{silent} of {listed(proposed + silent + failed, 'passage')} gave no answer{unread}"
    if not final:
        return f"no interpretation: none of {proposed} was like another or verified; {silence}"
    if final == 1:
        return f"one interpretation: the corpus has one meaning of the question; {silence}"
    return f"{final} interpretations; {silence}"


def build(name: str, parts: SystemParts, options: Options, config: VerdictOptions) -> Verdict:
    settings = parts.settings
    rewriter: Clarifier | None = None
    provenance: dict[str, Any] = {}
    by_default = "readers" if loading.language_model_needed(settings) else "language-model"
    if (by_default if config.generator == "by settings" else config.generator) == "readers":
        generator: roles.Generator = (readers := load_reader_generator(settings))
        rewriter, provenance = make_clarifier(ClarifierOptions(), settings, options.clarify, readers.reader)
    else:
        generator = loading.load_language_generator(settings)
    defaults = OF_READERS if isinstance(generator, ReaderGenerator) else OF_LANGUAGE_MODELS
    choices: dict[str, Any] = {n: getattr(config, n) for n in ("clustering", "embed", "unclustered", "same_answer")}
    choices |= {name: value for name, value in defaults.items() if choices[name] == "by generator"}
    return Verdict(parts, options, generator, Consolidation(**choices), config, rewriter, provenance)
