"""AmbigPrompt's loop with a language model as the answering model.

Source: Sun et al. 2023, section 3: one answer a step, prompted with the question, the passages and the answers so far, until none remains.  What
the paper trains, a language model is asked for: its reply is one further answer with its passage and a quotation, which must be there, or none.  It
gives no probabilities, so each answer has 1 and [EOI] ends the loop alone.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from core import types as t
from core.models.language.loading import load_language_generator
from core.models.language.prompted import PromptedGenerator
from core.systems.base.clarifying import make_clarifier
from core.systems.base.loop import LoopEnd, LoopSystem
from core.systems.base.options import ClarifierOptions, Options
from core.systems.base.system import SystemParts, SystemRun


class _NoModel:
    """In place of an answering model without a language model's calls."""

    def propose(self, question: str, passages: Sequence[t.RetrievedPassage], previous: Sequence[str]) -> t.Proposal:
        raise NotImplementedError("a language model is asked by the system, which counts its calls")


class LanguageLoop(LoopSystem):
    def __init__(
        self, name: str, parts: SystemParts, options: Options, own: ClarifierOptions, generator: PromptedGenerator
    ) -> None:
        """Raises CheckpointError if the clarifier's weights are missing."""
        clarifier, used = make_clarifier(own, parts.settings, options.clarify)
        self.generator = generator
        self.uses_this_machine = "endpoint" not in generator.about
        super().__init__(
            name,
            parts,
            options,
            _NoModel(),
            (generator.name, ""),
            own=own,
            used={**used, "generator": dict(generator.about)},
            clarifier=clarifier,
            end=LoopEnd(repeats=True),
        )

    def propose(self, run: SystemRun, model: t.AnsweringModel, prompted: Sequence[str]) -> Generator[t.Event, None, t.Proposal]:
        """Raises LanguageModelError if no reply can be used."""
        further = self.generator.next_answer(run.reading.text, [p.passage for p in run.passages], prompted, run.calls)
        yield from run.calls.events()
        if further is None:
            return t.Proposal((), 1.0)
        text, evidence = further
        return t.Proposal((t.Candidate(text, 1.0, evidence),), 0.0)


def build(name: str, parts: SystemParts, options: Options, own: ClarifierOptions) -> LanguageLoop:
    """Raises NoLanguageModelError, InputError, LanguageModelError, CheckpointError."""
    return LanguageLoop(name, parts, options, own, load_language_generator(parts.settings))
