"""RAC, retrieval-augmented clarification: one long-context call over all passages; also as a tree with pruning (Tree of Clarifications).

Sources: Lee et al. 2025 (VerDICt), Eq. 13 and appendix D (the relaxed question retrieves, 20 passages); Kim et al. 2023, section 3: each valid
interpretation is clarified further with passages of its own, breadth first, and a node is pruned when self-verification, asked with the question as
it was put first, does not support its answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from dataclasses import replace

from core import types as t
from core.errors import InputError, NothingRetrievedError
from core.models.language.roles import Claim, LanguageGenerator, Run
from core.systems.base.base import Options, Parts, read_extra
from core.systems.base.interpretations import Found, LanguageSystem, distinct
from core.text import answer_key, listed, question_key

RELAX = ("yes", "no")
DEPTH = 2.0  # expansions from the question to a leaf; Kim et al. stop at 3 or at 10 valid nodes
KNOWN = {"relax": RELAX}
TREE_OPTIONS = {**KNOWN, "depth": DEPTH}


class RetrievalAugmentedClarification(LanguageSystem):
    def __init__(
        self, name: str, parts: Parts, options: Options, generator: LanguageGenerator | None = None, tree: bool = False
    ) -> None:
        """Raises InputError for an unknown option or a depth out of range."""
        chosen = read_extra(options, name, TREE_OPTIONS if tree else KNOWN)
        depth = chosen.get("depth", 1.0)
        if not 1 <= depth <= 4:
            raise InputError(f"the option depth is {depth:g}; it must be 1 to 4")
        self.relax, self.depth, self.tree = chosen["relax"] == "yes", int(depth), tree
        used = {"relax": chosen["relax"], "tree": tree, **({"depth": self.depth} if tree else {})}
        super().__init__(name, parts, options, generator, used)

    def find(self, question: t.Question, run: Run) -> Generator[t.Event, None, Found]:
        query = question.text
        if self.relax and question.passages is None:
            query = self.generator.relax(question.text, run)
            yield from run.finish_role()
            yield t.QuestionRelaxed(query)
        retrieved = self.search(question, query, self.options.passages)
        yield retrieved
        found = self.generator.clarify_long(
            question.text, [p.passage for p in retrieved.passages], run, self.options.max_answers
        )  # Eq. 13
        yield from run.finish_role()
        kept = distinct(found or ())
        if self.tree:
            return (yield from self._grow(question, retrieved.passages, kept, run))
        for interpretation in kept:
            yield t.InterpretationProposed(interpretation)
        return Found(tuple(kept), retrieved.passages, _why(len(kept), len(retrieved.passages)))

    def _grow(
        self, question: t.Question, passages: tuple[t.RetrievedPassage, ...], roots: list[t.Interpretation], run: Run
    ) -> Generator[t.Event, None, Found]:
        """Breadth first: prune a node's interpretations, then clarify the valid ones further."""
        seen = {p.passage.id: p for p in passages}
        valid: list[t.Interpretation] = []
        known: set[tuple[str, str]] = set()
        waiting = deque([(roots, passages, 1)])
        nodes = pruned = 0
        while waiting and len(valid) < self.options.max_answers:
            children, read, depth = waiting.popleft()
            fresh = [c for c in children if _key(c) not in known]
            known.update(map(_key, fresh))
            nodes += 1
            kept: list[t.Interpretation] = []
            for child in (yield from self._pruned(question, fresh, read, run)):
                yield t.InterpretationProposed(child)
                if child.abstained:
                    pruned += 1
                elif len(valid) < self.options.max_answers:
                    valid.append(child)
                    kept.append(child)
            for child in kept if depth < self.depth else ():
                run.check()
                grown = yield from self._expanded(question, child, run)
                if grown is not None:
                    seen.update({p.passage.id: p for p in grown[1] if p.passage.id not in seen})
                    waiting.append((*grown, depth + 1))
        said = _why(len(valid), len(seen))
        return Found(tuple(valid), tuple(seen.values()), f"{said}; {listed(nodes, 'node')} of the tree read, {pruned} pruned")

    def _expanded(
        self, question: t.Question, node: t.Interpretation, run: Run
    ) -> Generator[t.Event, None, tuple[list[t.Interpretation], tuple[t.RetrievedPassage, ...]] | None]:
        """(interpretations of a node from its own passages, those passages); None if nothing was found or the call failed."""
        try:
            found = self.search(question, node.question, self.options.passages)
        except NothingRetrievedError:
            return None
        if question.passages is None:
            yield found
        children = self.generator.clarify_long(
            node.question, [p.passage for p in found.passages], run, self.options.max_answers
        )
        yield from run.events()
        return None if children is None else (distinct(children), found.passages)

    def _pruned(
        self, question: t.Question, nodes: list[t.Interpretation], read: tuple[t.RetrievedPassage, ...], run: Run
    ) -> Generator[t.Event, None, list[t.Interpretation]]:
        """The nodes after self-verification; a pruned one is an abstention.  A node whose check failed stays unverified."""
        by_id = {p.passage.id: p.passage for p in read}
        everything = tuple(by_id.values())
        claims = [
            Claim(question.text, n.answer, (by_id[n.passage_id],) if n.passage_id in by_id else everything) for n in nodes
        ]
        decisions = self.generator.verify(claims, run)
        yield from run.finish_role()
        pruned = "pruned: its passage does not support this as an answer to the question"
        return [replace(n, verified=v, abstained=pruned if v is False else "") for n, v in zip(nodes, decisions, strict=True)]


def _key(interpretation: t.Interpretation) -> tuple[str, str]:
    return question_key(interpretation.question), answer_key(interpretation.answer)


def _why(interpretations: int, passages: int) -> str:
    if not interpretations:
        return f"the corpus answers no meaning of the question; {listed(passages, 'passage')} read"
    if interpretations == 1:
        return f"one meaning found in {listed(passages, 'passage')}"
    return f"{interpretations} interpretations from {listed(passages, 'passage')}"


def build(parts: Parts, options: Options) -> RetrievalAugmentedClarification:
    """Raises InputError for an unknown option, NoLanguageModelError, LanguageModelError, CheckpointError."""
    return RetrievalAugmentedClarification("rac", parts, options)


def build_tree(parts: Parts, options: Options) -> RetrievalAugmentedClarification:
    """Raises as `build`."""
    return RetrievalAugmentedClarification("rac-tree", parts, options, tree=True)
