"""Judges of interpretations: they decide what a passage supports, for the grounded metrics (core.metrics.grounding).

Source: Lee et al. 2025, section 4.3 and appendix A.  The judge is a role: a language model by prompt (the paper's), the bundled reader's
verification, or the references' own annotations of which passage supports which answer.  The last uses no model, so nothing judges itself; it
knows only the meanings in the references.  Model judgments are cached by content (core.evaluation.judge_cache), so that each claim is judged once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from core import types as t
from core.errors import InputError
from core.evaluation.judge_cache import Judgments
from core.evaluation.judges import JUDGES
from core.metrics.answers import is_match
from core.metrics.judged import Grounding, JudgedInterpretation
from core.metrics.questions import bleu, normal_question, variants
from core.models.language.prompted import PromptedGenerator
from core.models.language.roles import Claim, Generator, Run
from core.settings import Settings
from core.text import mentions, question_key, word_tokens

SAME_QUESTION = 0.6  # BLEU-2 above which two questions are the same (Eq. 16), without a model
MAX_PASSAGES = 20  # per question, for claims without a passage
MAX_JUDGING_SECONDS = 600.0  # for one question's judgments


class Judge(Protocol):
    """`about`: the judge with its prompt versions and weights, as plain JSON values, for the report.

    What the judge could not decide is None in the Grounding, whose `error` says why.
    """

    @property
    def name(self) -> str: ...

    @property
    def about(self) -> Mapping[str, Any]: ...

    def judge(self, reference: t.ReferenceQuestion, prediction: t.Prediction) -> Grounding | None:
        """The judgments, or None if the references have no answers."""
        ...


def interpretations_of(prediction: t.Prediction) -> list[t.Interpretation]:
    """A grounded system's interpretations.  For any other system, its answers, each with its disambiguated question and first
    passage."""
    if prediction.interpretations or any(isinstance(e, t.InterpretationsChosen) for e in prediction.events):
        return list(prediction.interpretations)
    out = []
    for answer in prediction.answers:
        evidence = answer.evidence[0] if answer.evidence else None
        passage_id, question = evidence.passage_id if evidence else "", prediction.question_of(answer.text)
        out.append(t.Interpretation(passage_id, question, answer.text, answer.probability, evidence))
    return out


def pairs_of(reference: t.ReferenceQuestion) -> tuple[t.QAPair, ...]:
    """The pairs of the annotation with the most meanings, the first if tied; () if none has an answer."""
    return max((a.pairs for a in reference.annotations if a.type != "none"), key=len, default=())


def distinct_questions(questions: Sequence[str]) -> list[int]:
    """The indexes of the questions, without those that have the same words as an earlier one.

    >>> distinct_questions(["Who won in 2010?", "In 2010, who won?", "Who won?"])
    [0, 2]
    """
    first: dict[tuple[str, ...], int] = {}
    for i, question in enumerate(questions):
        first.setdefault(tuple(sorted(question_key(question).split())), i)
    return list(first.values())


class ReferenceJudge:
    """Judges by the references' annotations of supporting passages.  Questions are compared by BLEU-2 (Eq. 16)."""

    name = "references"

    def __init__(self) -> None:
        self.about: Mapping[str, Any] = {
            "judge": self.name,
            "answers": "equal to an alias after normalisation",
            "questions": f"BLEU-2 above {SAME_QUESTION} and the same numbers, or the pair's answer and passage",
        }

    def judge(self, reference: t.ReferenceQuestion, prediction: t.Prediction) -> Grounding | None:
        pairs = pairs_of(reference)
        if not pairs or not any(p.passage_ids for p in pairs):
            return None
        interpretations = interpretations_of(prediction)
        judged: list[JudgedInterpretation] = []
        recalled, matched = set[int](), set[int]()  # of the references' pairs
        for i in interpretations:
            gives = {k for k, p in enumerate(pairs) if is_match(p.answers, i.answer)}
            holds = {k for k, p in enumerate(pairs) if i.passage_id and i.passage_id in p.passage_ids}
            asks = {k for k, p in enumerate(pairs) if same_question(i.question, p.question)}
            supports = gives & holds
            recalled |= supports
            matched |= supports | asks
            judged.append(
                JudgedInterpretation(
                    i.question,
                    i.answer,
                    i.passage_id,
                    supported=bool(supports),
                    matched=bool(supports or asks),
                    relevant=bool(holds or gives or asks),
                    answerable=bool(holds),
                    right=bool(gives),
                )
            )
        return Grounding(
            tuple(judged),
            tuple(k in matched for k in range(len(pairs))),
            tuple(k in recalled for k, p in enumerate(pairs) if p.passage_ids),
            len(distinct_questions([i.question for i in interpretations])),
        )


def same_question(question: str, reference: str) -> bool:
    """Eq. 16 with BLEU-2 over the reference's variants.  The numbers must be equal too, because "in 1961" and "in 2021" share
    all other words.

    >>> same_question("Who won it in 1990?", "Who won in 1990?"), same_question("Who won in 2010?", "Who won in 1990?")
    (True, False)
    """
    normal = normal_question(question)
    return any(bleu(normal, [v], 2) > SAME_QUESTION and _numbers(normal) == _numbers(v) for v in variants(reference))


def _numbers(text: str) -> set[str]:
    return {w for w in word_tokens(text) if any(c.isdigit() for c in w)}


@dataclass
class ModelJudge:
    """Judges with a generator: its `verify` decides what a passage supports (Eq. 20).  A language model also decides which questions match
    (Eq. 17) and which are near duplicates; otherwise their words are compared."""

    name: str
    generator: Generator
    cache: Judgments

    @property
    def about(self) -> Mapping[str, Any]:
        return {"judge": self.name, **dict(self.generator.about)}

    def judge(self, reference: t.ReferenceQuestion, prediction: t.Prediction) -> Grounding | None:
        pairs = pairs_of(reference)
        if not pairs:
            return None
        run = Run.of(MAX_JUDGING_SECONDS)
        interpretations = interpretations_of(prediction)
        questions = [i.question for i in interpretations]
        passages = [p.passage for p in prediction.passages] or list(reference.passages or ())
        by_id = {p.id: p for p in passages}
        cited = [by_id[i.passage_id] for i in interpretations if i.passage_id in by_id]
        supported = self._verify(
            [
                Claim(i.question, i.answer, (by_id[i.passage_id],) if i.passage_id in by_id else tuple(passages[:MAX_PASSAGES]))
                for i in interpretations
            ],
            run,
        )
        asks = self._matches(questions, [p.question for p in pairs], reference.question, run)
        covers = self._matches([p.question for p in pairs], questions, reference.question, run)
        gives = [any(is_match(p.answers, i.answer) for p in pairs) for i in interpretations]
        # Eq. 22: the reference meanings that the retrieved passages (proxy of the corpus) support, and our own supported ones beside them
        holds = [self._supports_any(p, passages, run) for p in pairs]
        covered = [self._supports_any(p, cited, run) if cited and h else False for p, h in zip(pairs, holds)]
        recalled = [c if h else None for c, h in zip(covered, holds) if h is not False]
        recalled += [True if s and a is False else None for s, a in zip(supported, asks) if s is not False and not a]
        judged = [
            JudgedInterpretation(
                i.question,
                i.answer,
                i.passage_id,
                supported=s,
                matched=a,
                relevant=None if a is None else a or g,
                answerable=s,
                right=None if s is None else s or g,
            )
            for i, s, a, g in zip(interpretations, supported, asks, gives)
        ]
        distinct = self._distinct(reference.question, questions, run)
        failed = [c for c in run.calls if c.error]
        error = ""
        # without "deduplicate", questions are compared by their words
        if None in (*supported, *asks, *covers, *recalled):
            error = next((f"{c.role}: {c.error}" for c in failed if c.role != "deduplicate"), "no decision")
        return Grounding(tuple(judged), tuple(covers), tuple(recalled), distinct, len(run.calls), len(failed), error)

    def _key(self, kind: str, *content: Any) -> str:
        return self.cache.key(dict(self.about), kind, *content)

    def _verify(self, claims: Sequence[Claim], run: Run) -> list[bool | None]:
        keys = [self._key("supports", c.question, c.answer, [[p.title, p.text] for p in c.passages]) for c in claims]
        decisions = {k: v for k in keys if isinstance(v := self.cache.get(k), bool)}
        if decisions:
            run.remembered.add("verify")
        todo = [i for i, k in enumerate(keys) if k not in decisions and claims[i].passages]
        for i, decision in zip(todo, self.generator.verify([claims[i] for i in todo], run) if todo else ()):
            if decision is not None:
                decisions[keys[i]] = decision
                self.cache.put(keys[i], decision)
        return [decisions.get(k) if c.passages else False for k, c in zip(keys, claims)]

    def _supports_any(self, pair: t.QAPair, passages: Sequence[t.Passage], run: Run) -> bool | None:
        """Whether any of the passages supports the meaning.  Only passages that contain an answer are checked."""
        candidates = [p for p in passages[:MAX_PASSAGES] if mentions(p.text, pair.answers)]
        decisions = self._verify([Claim(pair.question, pair.answers[0], (p,)) for p in candidates], run)
        return True if any(decisions) else None if None in decisions else False

    def _matches(self, references: Sequence[str], questions: Sequence[str], prompt: str, run: Run) -> list[bool | None]:
        """Whether one of the `questions` asks the same as each of the `references`."""
        if not references or not questions:
            return [False] * len(references)
        if not isinstance(self.generator, PromptedGenerator):
            return [any(same_question(a, b) for b in questions) for a in references]
        key = self._key("match", prompt, list(references), list(questions))
        decisions = self.cache.get(key)
        if isinstance(decisions, list):
            run.remembered.add("match")
        else:
            decisions = self.generator.match(prompt, questions=questions, references=references, run=run)
            if decisions is not None:
                self.cache.put(key, decisions)
        return [None] * len(references) if decisions is None else [bool(d) for d in decisions]

    def _distinct(self, prompt: str, questions: Sequence[str], run: Run) -> int:
        """The number of questions without near duplicates."""
        if not isinstance(self.generator, PromptedGenerator) or len(questions) < 2:
            return len(distinct_questions(questions))
        key = self._key("deduplicate", prompt, list(questions))
        count = self.cache.get(key)
        if not isinstance(count, int):
            distinct = self.generator.deduplicate(prompt, questions, run)
            if distinct is None:
                return len(distinct_questions(questions))
            count = len(distinct)
            self.cache.put(key, count)
        return int(count)


def load_judge(name: str, settings: Settings) -> Judge:
    """The judge of that name.  Raises InputError for an unknown name or if no language model is configured, CheckpointError."""
    if name == "references":
        return ReferenceJudge()
    if name not in JUDGES:
        raise InputError(f"there is no judge '{name}'; use {', '.join(JUDGES)}")
    from core.models.language import loading

    if name == "reader":
        from core.systems.base.reader_generator import load_reader_generator

        generator: Generator = load_reader_generator(settings)
    else:
        if missing := loading.language_model_needed(settings):  # the bundled one was not trained to judge
            raise loading.NoLanguageModelError(missing)
        generator = loading.load_language_generator(settings)
    return ModelJudge(name, generator, Judgments(settings.home / "judgments.sqlite"))


def annotated(questions: Sequence[t.ReferenceQuestion]) -> bool:
    """Whether the references name supporting passages, so that they can serve as the judge."""
    return any(p.passage_ids for q in questions for p in pairs_of(q))
