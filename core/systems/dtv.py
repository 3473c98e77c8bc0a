"""DtV, diversify-then-verify: pseudo-interpretations without passages, one retrieval each, pruning, verification, generation.

Source: Lee et al. 2025 (VerDICt), section 3.2, Eq. 1-4 and appendices B and D, which describe DIVA (In et al. 2024).  As there: 5 passages for each
pseudo-interpretation, and of their union the best by similarity.  The union is ranked by the sum of the similarities over the searches that found
a passage (by reciprocal ranks where the retriever has none), so that no passage is embedded again; `--top-k` says how many are kept (paper: 5).
DIVA answers from memory if verification leaves nothing; here the run ends without answers.  `dtv-unverified` skips Eq. 3.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Sequence

from core import types as t
from core.errors import InputError, LanguageModelError, NothingRetrievedError
from core.models.language.roles import LanguageGenerator, Run
from core.systems.base.base import Options, Parts, read_extra
from core.systems.base.interpretations import Found, LanguageSystem, distinct
from core.text import listed

KNOWN = {"interpretations": 5.0, "passages_each": 5.0}
RANK_OFFSET = 60  # reciprocal rank fusion (Cormack et al. 2009)


def union(searches: Sequence[Sequence[t.RetrievedPassage]]) -> list[t.RetrievedPassage]:
    """Eq. 2's universe, the best first: by summed similarity, or by summed reciprocal rank where a search gave no similarity."""
    first: dict[str, t.RetrievedPassage] = {}
    weight: dict[str, float] = defaultdict(float)
    dense = all(p.similarity is not None for found in searches for p in found)
    for found in searches:
        for p in found:
            first.setdefault(p.passage.id, p)
            weight[p.passage.id] += (p.similarity or 0.0) if dense else 1 / (RANK_OFFSET + p.rank)
    return sorted(first.values(), key=lambda p: -weight[p.passage.id])


class DiversifyThenVerify(LanguageSystem):
    def __init__(
        self, name: str, parts: Parts, options: Options, generator: LanguageGenerator | None = None, verify: bool = True
    ) -> None:
        """Raises InputError for an unknown option or a number out of range."""
        chosen = read_extra(options, name, KNOWN)
        for option, most in (("interpretations", 20), ("passages_each", 100)):
            if not 1 <= chosen[option] <= most:
                raise InputError(f"the option {option} is {chosen[option]:g}; it must be 1 to {most}")
        self.verify = verify
        self.imagined, self.each = int(chosen["interpretations"]), int(chosen["passages_each"])
        used = {"interpretations": self.imagined, "passages_each": self.each, "verify": verify}
        super().__init__(name, parts, options, generator, used)

    def find(self, question: t.Question, run: Run) -> Generator[t.Event, None, Found]:
        questions = self.generator.pseudo_interpretations(question.text, self.imagined, run)  # Eq. 1
        yield from run.finish_role()
        if not questions:
            raise LanguageModelError("the language model failed at 'pseudo_interpretations': it wrote no question")
        yield t.QuestionsImagined(tuple(questions))
        passages = yield from self._universe(question, questions, run)  # Eq. 2
        read = passages
        if self.verify:
            read = yield from self._verified(questions, passages, run)  # Eq. 3
            if not read:
                why = f"verification kept none of {listed(len(passages), 'passage')}: the corpus answers none of the pseudo-interpretations"
                return Found((), tuple(passages), why)
        found = self.generator.clarify_long(question.text, [p.passage for p in read], run, self.options.max_answers)  # Eq. 4
        yield from run.finish_role()
        kept = distinct(found or ())
        for interpretation in kept:
            yield t.InterpretationProposed(interpretation)
        why = f"{listed(len(kept), 'interpretation')} from {listed(len(read), 'passage')}"
        return Found(
            tuple(kept),
            tuple(passages),
            why if kept else f"the passages answer no meaning of the question; {listed(len(read), 'passage')} read",
        )

    def _universe(
        self, question: t.Question, questions: Sequence[str], run: Run
    ) -> Generator[t.Event, None, list[t.RetrievedPassage]]:
        """One search for each question, then pruning; a question's own passages are taken as they are."""
        if question.passages is not None:
            own = self.search(question, question.text, 1)
            yield own
            return list(own.passages)
        searches = []
        nothing: NothingRetrievedError | None = None
        for imagined in questions:
            run.check()
            try:
                found = self.search(question, imagined, self.each)
            except NothingRetrievedError as error:  # nothing for this question; others may find passages
                nothing = error
                found = t.PassagesRetrieved((), 0.0, imagined)
            searches.append(found.passages)
            yield found
        passages = union(searches)
        if not passages and nothing is not None:
            raise nothing
        kept, dropped = passages[: self.options.passages], passages[self.options.passages :]
        if dropped:
            why = f"the {self.options.passages} nearest to the pseudo-interpretations"
            yield t.PassagesPruned(tuple(p.passage.id for p in kept), tuple(p.passage.id for p in dropped), why)
        return kept

    def _verified(
        self, questions: Sequence[str], passages: Sequence[t.RetrievedPassage], run: Run
    ) -> Generator[t.Event, None, list[t.RetrievedPassage]]:
        """The passages that answer at least one question; one long call for each question."""
        decisions = self.generator.supporting(questions, [p.passage for p in passages], run)
        ids = [p.passage.id for p in passages]
        for text, decision in zip(questions, decisions, strict=True):
            why = "" if decision is not None else "the language model failed"
            yield t.QuestionVerified(text, tuple(ids[i] for i in sorted(decision or ())), why)
        yield from run.finish_role()
        good = frozenset().union(*(v for v in decisions if v is not None))
        kept = [p for i, p in enumerate(passages) if i in good]
        dropped = tuple(p.passage.id for i, p in enumerate(passages) if i not in good)
        yield t.PassagesPruned(tuple(p.passage.id for p in kept), dropped, "those verified to answer a question")
        return kept


def build(parts: Parts, options: Options) -> DiversifyThenVerify:
    """Raises InputError for an unknown option, NoLanguageModelError, LanguageModelError, CheckpointError."""
    return DiversifyThenVerify("dtv", parts, options)


def build_unverified(parts: Parts, options: Options) -> DiversifyThenVerify:
    """Raises as `build`."""
    return DiversifyThenVerify("dtv-unverified", parts, options, verify=False)
