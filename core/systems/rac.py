"""RAC, retrieval-augmented clarification: one long-context call over all passages, or a tree with pruning (Tree of
Clarifications).

Sources: Lee et al. 2025 (VerDICt), Eq. 13 and appendix D (the relaxed question retrieves, 20 passages); Kim et al. 2023, section 3: each valid
interpretation is clarified further with passages of its own, breadth first, and a node is pruned when self-verification, asked with the question as
it was put first, does not support its answer.  The valid nodes end in one long answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import replace

from core import types as t
from core.errors import NothingRetrievedError
from core.models.language.loading import load_language_generator
from core.models.language.prompted import PromptedGenerator
from core.models.language.roles import Claim
from core.systems.base.interpretations import InterpretationSystem, Interpreted, unique
from core.systems.base.options import Options
from core.systems.base.system import SystemParts, SystemRun
from core.systems.options import RacOptions, RacTreeOptions
from core.text import answer_key, listed, question_key


class RetrievalAugmentedClarification(InterpretationSystem):
    config: RacOptions
    generator: PromptedGenerator

    def retrieve(self, run: SystemRun) -> Generator[t.Event, None, Sequence[t.RetrievedPassage]]:
        query = run.question.text
        if self.config.relax == "yes" and run.question.passages is None:
            query = self.generator.relax(query, run.calls)
            yield from run.calls.finish_role()
            yield t.QuestionRelaxed(query)
        retrieved = self.search(run.question, query, self.options.passages)
        yield retrieved
        return retrieved.passages

    def interpret(self, run: SystemRun) -> Generator[t.Event, None, Interpreted]:
        passages = [p.passage for p in run.passages]
        clarified = self.generator.clarify_long(run.question.text, passages, run.calls, self.options.max_answers)  # Eq. 13
        yield from run.calls.finish_role()
        interpretations = unique(clarified or ())
        if isinstance(self.config, RacTreeOptions):
            return (yield from self._grow(run, interpretations, self.config.depth))
        for interpretation in interpretations:
            yield t.InterpretationProposed(interpretation)
        return Interpreted(tuple(interpretations), _note(len(interpretations), len(passages)))

    def _grow(self, run: SystemRun, roots: list[t.Interpretation], max_depth: int) -> Generator[t.Event, None, Interpreted]:
        """Breadth first: prune a node's interpretations, then clarify the valid ones further."""
        valid: list[t.Interpretation] = []
        seen_keys: set[tuple[str, str]] = set()
        waiting = deque([(roots, run.passages, 1)])
        nodes = pruned = 0
        while waiting and len(valid) < self.options.max_answers:
            children, passages, depth = waiting.popleft()
            new = [c for c in children if _key(c) not in seen_keys]
            seen_keys.update(map(_key, new))
            nodes, before = nodes + 1, len(valid)
            for child in (yield from self._pruned(run, new, passages)):
                yield t.InterpretationProposed(child)
                pruned += bool(child.abstained)
                if not child.abstained and len(valid) < self.options.max_answers:
                    valid.append(child)
            for child in valid[before:] if depth < max_depth else ():
                run.check()
                grown = yield from self._expanded(run, child)
                if grown is not None:
                    waiting.append((*grown, depth + 1))
        banned = set(map(answer_key, run.question.banned))
        if valid_answers := [i for i in valid if answer_key(i.answer) not in banned]:
            cited = [p.passage for p in run.passages if p.passage.id in {i.passage_id for i in valid_answers}]
            text = self.generator.long_answer(run.question.text, valid_answers, cited, run.calls)
            yield from run.calls.events()
            if text:
                yield t.LongAnswerWritten(text)
        note = f"{_note(len(valid), len(run.passages))}; {listed(nodes, 'node')} of the tree read, {pruned} pruned"
        return Interpreted(tuple(valid), note)

    def _expanded(
        self, run: SystemRun, node: t.Interpretation
    ) -> Generator[t.Event, None, tuple[list[t.Interpretation], tuple[t.RetrievedPassage, ...]] | None]:
        """(interpretations of a node from its own passages, those passages); None if no passage matches or the call failed."""
        try:
            retrieved = self.search(run.question, node.question, self.options.passages)
        except NothingRetrievedError:
            return None
        if run.question.passages is None:
            yield retrieved
        passages = [p.passage for p in retrieved.passages]
        children = self.generator.clarify_long(node.question, passages, run.calls, self.options.max_answers)
        yield from run.calls.events()
        return None if children is None else (unique(children), retrieved.passages)

    def _pruned(
        self, run: SystemRun, nodes: list[t.Interpretation], passages: tuple[t.RetrievedPassage, ...]
    ) -> Generator[t.Event, None, list[t.Interpretation]]:
        """The nodes after self-verification.  A pruned one becomes an abstention; one whose check failed stays unverified."""
        by_id = {p.passage.id: p.passage for p in passages}
        all_passages = tuple(by_id.values())
        claims = [
            Claim(run.question.text, n.answer, (by_id[n.passage_id],) if n.passage_id in by_id else all_passages) for n in nodes
        ]
        decisions = self.generator.verify(claims, run.calls)
        yield from run.calls.finish_role()
        pruned = "pruned: its passage does not support this as an answer to the question"
        return [replace(n, verified=v, abstained=pruned if v is False else "") for n, v in zip(nodes, decisions, strict=True)]


def _key(interpretation: t.Interpretation) -> tuple[str, str]:
    return question_key(interpretation.question), answer_key(interpretation.answer)


def _note(interpretations: int, passages: int) -> str:
    if not interpretations:
        return f"the corpus answers no meaning of the question; {listed(passages, 'passage')} read"
    if interpretations == 1:
        return f"one meaning found in {listed(passages, 'passage')}"
    return f"{interpretations} interpretations from {listed(passages, 'passage')}"


def build(name: str, parts: SystemParts, options: Options, config: RacOptions) -> RetrievalAugmentedClarification:
    return RetrievalAugmentedClarification(name, parts, options, load_language_generator(parts.settings), config)
