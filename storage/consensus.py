"""What several people's verdicts and answer sets come to.  Pure functions over plain records; the rules stand in RULE.

Answers are told apart by `core.text.normalize_answer`; where that leaves nothing ("The", "?!"), by their case-folded text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from core.text import normalize_answer
from core.types import Annotation, QAPair

RULE = (
    "Only submitted judgments and annotations count. An annotator's verdict on an answer is the latest over all predictions "
    "of the question; 'duplicate' is no vote; an answer of their own annotation counts as correct, and their validation "
    "replaces their generation. ambignq: one annotation per annotator, with the answers that they hold correct. fid, training: "
    "an answer is correct when more annotators hold it correct than wrong or unsupported, a negative when fewer do; a tie "
    "counts as not correct and is left out of both."
)


@dataclass(frozen=True, slots=True)
class Vote:
    """A submitted judgment."""

    annotator: str
    answer: str
    clarified: str  # empty: there was no disambiguated question
    verdict: str
    updated: datetime


@dataclass(frozen=True, slots=True)
class Statement:
    """A submitted annotation."""

    annotator: str
    stage: str
    annotation: Annotation


@dataclass(frozen=True, slots=True)
class Consensus:
    answers: tuple[tuple[str, ...], ...]  # alias lists
    negatives: tuple[str, ...]
    ties: int


def answer_key(answer: str) -> str:
    return normalize_answer(answer) or answer.casefold().strip()


def latest(votes: Iterable[Vote]) -> dict[tuple[str, str], Vote]:
    """(annotator, answer key) -> their latest vote, in the order of the first one; duplicates are no votes."""
    found: dict[tuple[str, str], Vote] = {}
    for vote in votes:
        if vote.verdict == "duplicate":
            continue
        key = (vote.annotator, answer_key(vote.answer))
        if key not in found or found[key].updated <= vote.updated:
            found[key] = vote
    return found


def own_statements(statements: Iterable[Statement]) -> dict[str, Annotation]:
    """Annotator -> the annotation that stands: validation before generation."""
    found: dict[str, Annotation] = {}
    for statement in sorted(statements, key=lambda s: s.stage == "validation"):  # stable: the later one replaces
        found[statement.annotator] = statement.annotation
    return found


def annotation_of(annotator: str, votes: Sequence[Vote], statements: Sequence[Statement], prompt: str) -> Annotation | None:
    """One annotator's answer set: their own pairs, then the answers that they judged correct.  None when nothing is left.

    A judged answer that is an alias of an earlier pair adds nothing new.  A pair without a disambiguated question gets
    the prompt question.
    """
    own = own_statements(s for s in statements if s.annotator == annotator).get(annotator)
    pairs = [QAPair(p.question.strip() or prompt, p.answers, p.passage_ids) for p in (own.pairs if own else ())]
    seen = {answer_key(alias) for pair in pairs for alias in pair.answers}
    surfaces: dict[str, list[str]] = {}
    questions: dict[str, str] = {}
    standing = latest(v for v in votes if v.annotator == annotator)
    for vote in votes:
        key = answer_key(vote.answer)
        held = standing.get((annotator, key))
        if vote.annotator != annotator or held is None or held.verdict != "correct" or key in seen:
            continue
        forms = surfaces.setdefault(key, [])
        if vote.answer not in forms:
            forms.append(vote.answer)
        questions[key] = questions.get(key) or vote.clarified.strip()
    pairs += [QAPair(questions[key] or prompt, tuple(forms)) for key, forms in surfaces.items()]
    if not pairs:
        return None
    return Annotation("single" if len(pairs) == 1 else "multiple", tuple(pairs))


def consensus(votes: Sequence[Vote], statements: Sequence[Statement]) -> Consensus:
    """The majority's answers as alias lists, the negatives, and the number of ties (see RULE)."""
    own = own_statements(statements)
    group_of: dict[str, int] = {}  # answer key -> group
    surfaces: list[list[str]] = []

    def join(texts: Sequence[str]) -> int:
        """One group for these aliases; groups that they connect become one."""
        keys = [answer_key(t) for t in texts]
        known = sorted({group_of[k] for k in keys if k in group_of})
        if known:
            target = known[0]
        else:
            target = len(surfaces)
            surfaces.append([])
        for other in known[1:]:
            surfaces[target] += surfaces[other]
            surfaces[other] = []
            for key in [k for k, g in group_of.items() if g == other]:
                group_of[key] = target
        for text, key in zip(texts, keys, strict=True):
            group_of[key] = target
            if text not in surfaces[target]:
                surfaces[target].append(text)
        return target

    for annotation in own.values():
        for pair in annotation.pairs:
            join(pair.answers)
    standing = latest(votes)
    for vote in standing.values():
        join([vote.answer])

    stance: dict[tuple[int, str], bool] = {}  # (group, annotator) -> correct
    for (annotator, key), vote in standing.items():
        place = (group_of[key], annotator)
        stance[place] = stance.get(place, False) or vote.verdict == "correct"
    for annotator, annotation in own.items():
        for pair in annotation.pairs:
            stance[(group_of[answer_key(pair.answers[0])], annotator)] = True

    answers: list[tuple[str, ...]] = []
    negatives: list[str] = []
    ties = 0
    for group, forms in enumerate(surfaces):
        said = [correct for (g, _), correct in stance.items() if g == group]
        if not forms or not said:
            continue
        balance = sum(1 if correct else -1 for correct in said)
        if balance > 0:
            answers.append(tuple(forms))
        elif balance < 0:
            negatives += forms
        else:
            ties += 1
    return Consensus(tuple(answers), tuple(negatives), ties)
