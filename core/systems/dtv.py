"""DtV, diversify-then-verify: pseudo-interpretations without passages, one retrieval each, pruning, verification, generation.

Source: Lee et al. 2025 (VerDICt), section 3.2, Eq. 1-4 and appendices B and D, which describe DIVA (In et al. 2024).  As there: 5 passages for each
pseudo-interpretation, and of their union the best by similarity.  The union is ranked by the sum of the similarities over the searches that found
a passage (by reciprocal ranks where the retriever has none), so that no passage is embedded again; `--top-k` says how many are kept (5, as in the paper).
DIVA answers from memory if verification leaves nothing; here the run ends without answers.  `dtv-unverified` skips Eq. 3.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Sequence

from core import types as t
from core.errors import LanguageModelError, NothingRetrievedError
from core.models.language.loading import load_language_generator
from core.models.language.prompted import PromptedGenerator
from core.systems.base.interpretations import InterpretationSystem, Interpreted, unique
from core.systems.base.options import Options
from core.systems.base.system import SystemParts, SystemRun
from core.systems.options import DtvOptions
from core.text import listed

RANK_OFFSET = 60  # reciprocal rank fusion (Cormack et al. 2009)


def union(searches: Sequence[Sequence[t.RetrievedPassage]]) -> list[t.RetrievedPassage]:
    """Eq. 2's universe, the best first: by summed similarity, or by summed reciprocal rank if a search gave no similarity."""
    first: dict[str, t.RetrievedPassage] = {}
    weight: dict[str, float] = defaultdict(float)
    dense = all(p.similarity is not None for passages in searches for p in passages)
    for passages in searches:
        for p in passages:
            first.setdefault(p.passage.id, p)
            weight[p.passage.id] += (p.similarity or 0.0) if dense else 1 / (RANK_OFFSET + p.rank)
    return sorted(first.values(), key=lambda p: -weight[p.passage.id])


class DiversifyThenVerify(InterpretationSystem):
    config: DtvOptions
    generator: PromptedGenerator

    def retrieve(self, run: SystemRun) -> Generator[t.Event, None, Sequence[t.RetrievedPassage]]:
        """One search for each imagined question, then pruning.  A question's own passages are used as they are."""
        questions = self.generator.pseudo_interpretations(run.question.text, self.config.interpretations, run.calls)  # Eq. 1
        yield from run.calls.finish_role()
        if not questions:
            raise LanguageModelError("the language model failed at 'pseudo_interpretations': it wrote no question")
        run.memo = tuple(questions)
        yield t.QuestionsImagined(run.memo)
        if run.question.passages is not None:
            retrieved = self.search(run.question, run.question.text, 1)
            yield retrieved
            return retrieved.passages
        searches = []
        nothing: NothingRetrievedError | None = None
        for imagined in questions:
            run.check()
            try:
                retrieved = self.search(run.question, imagined, self.config.passages_each)
            except NothingRetrievedError as error:  # nothing for this question; others may find passages
                nothing = error
                retrieved = t.PassagesRetrieved((), 0.0, imagined)
            searches.append(retrieved.passages)
            yield retrieved
        passages = union(searches)  # Eq. 2
        if not passages and nothing is not None:
            raise nothing
        k = self.options.passages
        if len(passages) > k:
            yield _pruned(passages[:k], passages[k:], f"the {k} nearest to the pseudo-interpretations")
        return passages[:k]

    def interpret(self, run: SystemRun) -> Generator[t.Event, None, Interpreted]:
        passages: Sequence[t.RetrievedPassage] = run.passages
        if self.info.name == "dtv":
            passages = yield from self._verified(run)  # Eq. 3
            if not passages:
                note = f"verification kept none of {listed(len(run.passages), 'passage')}: the corpus answers none of the pseudo-interpretations"
                return Interpreted((), note)
        texts, max_answers = [p.passage for p in passages], self.options.max_answers
        clarified = self.generator.clarify_long(run.question.text, texts, run.calls, max_answers)  # Eq. 4
        yield from run.calls.finish_role()
        interpretations = unique(clarified or ())
        for interpretation in interpretations:
            yield t.InterpretationProposed(interpretation)
        note = f"{listed(len(interpretations), 'interpretation')} from {listed(len(texts), 'passage')}"
        no_answer = f"the passages answer no meaning of the question; {listed(len(texts), 'passage')} read"
        return Interpreted(tuple(interpretations), note if interpretations else no_answer)

    def _verified(self, run: SystemRun) -> Generator[t.Event, None, list[t.RetrievedPassage]]:
        """The passages that answer at least one question; one long call for each question."""
        passages, questions = run.passages, run.memo
        decisions = self.generator.supporting(questions, [p.passage for p in passages], run.calls)
        for text, decision in zip(questions, decisions, strict=True):
            problem = "" if decision is not None else "the language model failed"
            yield t.QuestionVerified(text, tuple(passages[i].passage.id for i in sorted(decision or ())), problem)
        yield from run.calls.finish_role()
        good = frozenset().union(*(v for v in decisions if v is not None))
        verified = [p for i, p in enumerate(passages) if i in good]
        yield _pruned(verified, [p for i, p in enumerate(passages) if i not in good], "those verified to answer a question")
        return verified


def _pruned(selected: Sequence[t.RetrievedPassage], dropped: Sequence[t.RetrievedPassage], reason: str) -> t.PassagesPruned:
    return t.PassagesPruned(tuple(p.passage.id for p in selected), tuple(p.passage.id for p in dropped), reason)


def build(name: str, parts: SystemParts, options: Options, config: DtvOptions) -> DiversifyThenVerify:
    return DiversifyThenVerify(name, parts, options, load_language_generator(parts.settings), config)
