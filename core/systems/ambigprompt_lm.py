"""AmbigPrompt's loop with a language model as the answering model.

Source: Sun et al. 2023, section 3: one answer a step, prompted with the question, the passages and the answers so far, until none remains.  What
the paper trains, a language model is asked for: its reply is one further answer with its passage and a quotation, which must be there, or none.  It
gives no probabilities, so each answer has 1 and [EOI] ends the loop alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from core import types as t
from core.models.language.loading import load_language_generator
from core.models.language.prompted import PromptedGenerator
from core.models.language.roles import Run
from core.systems.base.clarifying import make_clarifier
from core.systems.base.loop import LoopEnd, LoopSystem
from core.systems.base.options import ClarifierOptions, Options
from core.systems.base.system import SystemParts


class _LanguageAnswerer:
    """A language model as the answering model of one run.  It counts its calls."""

    def __init__(self, generator: PromptedGenerator, calls: Run) -> None:
        self.generator, self.calls = generator, calls

    def propose(self, question: str, passages: Sequence[t.RetrievedPassage], previous: Sequence[str]) -> t.Proposal:
        """Raises LanguageModelError if no reply can be used."""
        answer = self.generator.next_answer(question, [p.passage for p in passages], previous, self.calls)
        if answer is None:
            return t.Proposal((), 1.0)
        text, evidence = answer
        return t.Proposal((t.Candidate(text, 1.0, evidence),), 0.0)


def language_loop(
    name: str, parts: SystemParts, options: Options, config: ClarifierOptions, generator: PromptedGenerator
) -> LoopSystem:
    """Raises CheckpointError if the clarifier's weights are missing."""
    clarifier, provenance = make_clarifier(config, parts.settings, options.clarify)
    system = LoopSystem(
        name,
        parts,
        options,
        lambda run: _LanguageAnswerer(generator, run.calls),
        (generator.name, ""),
        config=config,
        provenance={**provenance, "generator": dict(generator.about)},
        clarifier=clarifier,
        end=LoopEnd(repeats=True),
    )
    system.uses_this_machine = "endpoint" not in generator.about
    return system


def build(name: str, parts: SystemParts, options: Options, config: ClarifierOptions) -> LoopSystem:
    """Raises NoLanguageModelError, InputError, LanguageModelError, CheckpointError."""
    return language_loop(name, parts, options, config, load_language_generator(parts.settings))
