"""The consensus of several people's labels and answer sets, in pure functions over plain records.  RULE states the rules.

Answers are distinguished by `core.text.answer_key`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from core.annotating.labels import DISPUTED
from core.metrics.agreement.answer_sets import set_f1, set_of
from core.text import answer_key, question_key, shares_words
from core.types import Annotation, QAPair
from storage.exchange.final_answers import FinalSet

CONSENSUS_RULE = (
    "Only submitted work counts: no drafts, no gold items, nothing that was returned, reopened or late. final: one annotation for each finished "
    "item of a project: the validated one; else the one that all annotators, or most of them, agree on, with everybody's aliases; else the only "
    "one. An answer set out of a file is final. Items that are unfinished, sent back, waiting for validation or in disagreement are left out and counted. "
    "all: every contribution with its stage, person and version, and whether it counts. Labels of systems' answers never change what "
    "somebody wrote. fid, training: with final, the answers of a question are those of its final answer sets, and labels make "
    "negatives only; of a question to which nobody wrote answers, labels decide, and with all, everybody's labels and answer sets: "
    "an answer is correct when more annotators hold it correct than wrong or unsupported, a negative "
    "when fewer do; a tie counts as not correct and is left out of both. A person's label of an answer is the latest over all predictions "
    "of the question; an answer of their own annotation, or one that they added as missing, counts as correct, and their validation "
    "replaces their generation; where a question was validated, the validations stand for all annotations of it. "
    "An answer that somebody calls outdated or says that it contradicts "
    "another document counts as not correct, but is no negative: a passage says it. A suggestion that was rejected, and an answer that "
    "validation took out, count as wrong, but are no negatives where their words are part of a correct answer's or the reverse. "
    "'duplicate' is no vote, and of which answer is not noted: it is taken for a further form of the one answer that the same "
    "annotator holds correct and whose words contain its words or are part of them; where none or several are so, or they gave "
    "the same words another label, nothing follows. That answer is one of the correct ones, all who said so "
    "mean the same one, and they are more than those who call the form wrong or unsupported, or correct beside it. A question "
    "without a correct answer is in training only: with no_answer where most annotations say that there is none; else with its "
    "negatives alone, and answers_known false, where most annotators hold nothing correct. supporting: for the correct answers, the "
    "passages that annotations cite for them, and the first evidence passage (the one that the system chose) of answers that were judged "
    "correct. For an answer without any, those that hold it in two words or more; for one of a single word, or of numbers alone, the passage "
    "that holds it where no other does. Where a one-word answer occurs in the passages, but in none of the supporting ones, supporting is "
    "left out: it would say that the answer is not there. weighted: in fid and training, a word for or against an answer counts as much as "
    "the error rates of its author say (Dawid and Skene 1979): log P(word | the answer is correct) / P(word | it is not); of a person with few "
    "shared answers, as of everybody together."
)
# of "correct" and of "not correct", by person; "" for people without weights of their own
Weights = Mapping[str, tuple[float, float]]
EQUAL: Weights = {"": (1.0, -1.0)}


@dataclass(frozen=True, slots=True)
class Vote:
    """A submitted judgment."""

    annotator: str
    answer: str
    clarified: str  # empty: there was no disambiguated question
    label: str
    updated: datetime
    aliases: tuple[str, ...] = ()  # further ones, of an answer that was missing
    soft: bool = False  # a rejected suggestion: there may be other reasons than that it is wrong
    passage_ids: tuple[str, ...] = ()  # its evidence


@dataclass(frozen=True, slots=True)
class Statement:
    """A submitted annotation."""

    annotator: str
    stage: str
    annotation: Annotation


@dataclass(slots=True)
class ContributedQuestion:
    """A question with everybody's votes and annotations, and its final answer sets.  `id`: its row.  `is_written`: somebody
    writes answers to it, so that labels alone settle nothing."""

    id: int
    public_id: str
    text: str
    votes: list[Vote] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    finals: list[FinalSet] = field(default_factory=list)
    is_written: bool = False


@dataclass(frozen=True, slots=True)
class Consensus:
    answers: tuple[tuple[str, ...], ...]  # alias lists
    negatives: tuple[str, ...]
    ties: int


def latest(votes: Iterable[Vote]) -> dict[tuple[str, str], Vote]:
    """(annotator, answer key) -> their latest vote, in the order of the first one.  Duplicates aren't votes."""
    latest_votes: dict[tuple[str, str], Vote] = {}
    for vote in votes:
        if vote.label == "duplicate":
            continue
        key = (vote.annotator, answer_key(vote.answer))
        if key not in latest_votes or latest_votes[key].updated <= vote.updated:
            latest_votes[key] = vote
    return latest_votes


def duplicates(votes: Iterable[Vote], latest_votes: Mapping[tuple[str, str], Vote]) -> Iterator[Vote]:
    """The "duplicate" votes of people who gave the answer no other label.

    `latest_votes`: of `latest`.  A rejected suggestion is no other label: that it is a duplicate may be why it was rejected.
    """
    for vote in votes:
        latest_vote = latest_votes.get((vote.annotator, answer_key(vote.answer)))
        if vote.label == "duplicate" and (latest_vote is None or latest_vote.soft):
            yield vote


def form_of(text: str, answers: Mapping[int, Sequence[str]]) -> int | None:
    """The answer (number -> aliases) that a duplicate repeats: the only one whose words contain its words or are part of
    them."""
    matches = [number for number, aliases in answers.items() if shares_words(text, aliases)]
    return matches[0] if len(matches) == 1 else None


def annotations_by_person(statements: Iterable[Statement]) -> dict[str, Annotation]:
    """Annotator -> their annotation.  Their validation replaces their generation."""
    return {s.annotator: s.annotation for s in sorted(statements, key=lambda s: s.stage == "validation")}


def held_answers(annotator: str, votes: Sequence[Vote], statements: Sequence[Statement]) -> list[tuple[str, ...]]:
    """The answers that one annotator considers correct, as alias lists: those that they wrote, or for a person who wrote no
    answer set those that they labelled correct, with their duplicates as aliases (see RULE)."""
    annotation = annotations_by_person(s for s in statements if s.annotator == annotator).get(annotator)
    if annotation is not None:
        return [pair.answers for pair in annotation.pairs]
    surfaces: dict[str, list[str]] = {}
    votes = [v for v in votes if v.annotator == annotator]
    latest_votes = latest(votes)
    for vote in votes:
        key = answer_key(vote.answer)
        latest_vote = latest_votes.get((annotator, key))
        if latest_vote is not None and latest_vote.label == "correct":
            forms = surfaces.setdefault(key, [])
            forms += [form for form in (vote.answer, *vote.aliases) if form not in forms]
    form_lists = list(surfaces.values())
    answers = {number: tuple(forms) for number, forms in enumerate(form_lists)}
    used_keys = {answer_key(alias) for forms in form_lists for alias in forms}
    for vote in duplicates(votes, latest_votes):
        target = form_of(vote.answer, answers) if answer_key(vote.answer) not in used_keys else None
        if target is not None and vote.answer not in form_lists[target]:
            form_lists[target].append(vote.answer)
    return [tuple(forms) for forms in form_lists]


def labelled_annotation(question: ContributedQuestion) -> Annotation | None:
    """The answer set that labels alone amount to, with the disambiguated questions of the answers that people consider correct.
    None if no answer is correct, or if one of several has no question of its own."""
    answers = consensus(question.votes, []).answers
    questions: dict[str, str] = {}
    for vote in question.votes:
        if vote.label == "correct" and question_key(vote.clarified) not in ("", question_key(question.text)):
            questions.setdefault(answer_key(vote.answer), vote.clarified)
    pairs = [QAPair(next((questions[k] for k in map(answer_key, forms) if k in questions), ""), forms) for forms in answers]
    if len(pairs) == 1:
        return Annotation("single", tuple(pairs))
    return Annotation("multiple", tuple(pairs)) if pairs and all(pair.question for pair in pairs) else None


def final_statements(statements: Sequence[Statement]) -> Sequence[Statement]:
    """The validations if there are any, else all statements."""
    return [s for s in statements if s.stage == "validation"] or statements


def agreement_of(votes: Sequence[Vote], statements: Sequence[Statement]) -> float | None:
    """The mean F1 between the answer sets of each two annotators (before validation); None with fewer than two of them.

    An annotator who holds nothing correct has the empty set.
    """
    before = [s for s in statements if s.stage != "validation"] or statements
    names = sorted({v.annotator for v in votes} | {s.annotator for s in before})
    sets = [set_of(held_answers(name, votes, before)) for name in names]
    values = [set_f1(a, b) for i, a in enumerate(sets) for b in sets[:i]]
    return sum(values) / len(values) if values else None


class _Groups:
    """Answers grouped by the aliases that people gave them."""

    def __init__(self) -> None:
        self.group_of: dict[str, int] = {}  # by answer key
        self.surfaces: list[list[str]] = []

    def join(self, texts: Sequence[str]) -> None:
        """Puts these aliases into one group.  Groups that they connect become one."""
        keys = [answer_key(t) for t in texts]
        target, *others = sorted({self.group_of[k] for k in keys if k in self.group_of}) or [len(self.surfaces)]
        if target == len(self.surfaces):
            self.surfaces.append([])
        for other in others:
            self.surfaces[target] += self.surfaces[other]
            self.surfaces[other] = []
            for key in [k for k, g in self.group_of.items() if g == other]:
                self.group_of[key] = target
        for text, key in zip(texts, keys, strict=True):
            self.group_of[key] = target
            if text not in self.surfaces[target]:
                self.surfaces[target].append(text)

    def move(self, text: str, target: int) -> None:
        """Makes this text, and the answer that consists of it alone if there is one, a form of the answer `target`."""
        key = answer_key(text)
        source = self.group_of.get(key)
        forms = [text]
        if source is not None:
            forms = list(dict.fromkeys([*self.surfaces[source], text]))
            self.surfaces[source] = []
        self.group_of[key] = target
        self.surfaces[target] += [form for form in forms if form not in self.surfaces[target]]


def holdings(question: ContributedQuestion) -> Iterator[tuple[int, str, bool]]:
    """(answer, person, whether they consider it correct) for every person with a vote on it.  A person who wrote an answer set,
    before or during validation, considers no other answer correct."""
    statements = [replace(s, stage="generation") for s in sorted(question.statements, key=lambda s: s.stage == "validation")]
    groups, stance, _ = _stances(question.votes, statements)
    for annotator in annotations_by_person(statements):
        for group in set(groups.group_of.values()):
            stance.setdefault((group, annotator), False)
    yield from ((group, annotator, correct) for (group, annotator), correct in stance.items())


def _stances(votes: Sequence[Vote], statements: Sequence[Statement]) -> tuple[_Groups, dict[tuple[int, str], bool], set[int]]:
    """The answers; (answer, annotator) -> correct; and the answers that somebody labelled wrong."""
    final = final_statements(statements)
    annotations = annotations_by_person(final)
    groups = _Groups()
    for annotation in annotations.values():
        for pair in annotation.pairs:
            groups.join(pair.answers)
    dropped = [pair.answers for s in statements if s not in final for pair in s.annotation.pairs]
    for aliases in dropped:
        groups.join(aliases)
    latest_votes = latest(votes)
    for vote in latest_votes.values():
        groups.join([vote.answer, *vote.aliases])
    for vote in votes:  # a person who holds an answer correct may have given its forms in several votes, in any order
        latest_vote = latest_votes.get((vote.annotator, answer_key(vote.answer)))
        if latest_vote is not None and latest_vote.label == "correct":
            groups.join([vote.answer, *vote.aliases])

    stance: dict[tuple[int, str], bool] = {}  # (group, annotator) -> correct
    firm: set[int] = set()
    for (annotator, key), vote in latest_votes.items():
        group = groups.group_of[key]
        stance[group, annotator] = stance.get((group, annotator), False) or vote.label == "correct"
        if vote.label != "correct" and not vote.soft:
            firm.add(group)
    for annotator in annotations:
        for aliases in dropped:
            stance.setdefault((groups.group_of[answer_key(aliases[0])], annotator), False)
    for annotator, annotation in annotations.items():
        for pair in annotation.pairs:
            stance[(groups.group_of[answer_key(pair.answers[0])], annotator)] = True
    return groups, stance, firm


def consensus(
    votes: Sequence[Vote], statements: Sequence[Statement], weights: Weights = EQUAL, finals: Sequence[Annotation] = ()
) -> Consensus:
    """The answers as alias lists, the negatives, and the number of ties (see RULE).  The majority decides the answers, or the
    final answer sets if the question has any."""
    pairs = [pair for annotation in finals for pair in annotation.pairs]
    if finals:
        # as a validation by a person of no name: what somebody wrote and is not in it was taken out
        statements = [s for s in statements if s.stage == "generation"]
        statements.append(Statement("", "validation", Annotation("multiple", tuple(pairs))))
    groups, stance, firm = _stances(votes, statements)
    settled = {groups.group_of[answer_key(pair.answers[0])] for pair in pairs}
    balance: dict[int, float] = {}
    for (group, annotator), correct in stance.items():
        yes, no = weights.get(annotator, weights[""])
        balance[group] = balance.get(group, 0.0) + (yes if correct else no)
    ties = sum(value == 0 for group, value in balance.items() if groups.surfaces[group] and group not in settled)
    if finals:
        balance = {group: math.inf if group in settled else min(value, 0.0) for group, value in balance.items()}
    latest_votes = latest(votes)
    _add_duplicates(groups, duplicates(votes, latest_votes), stance, balance)
    voted = [(g, forms) for g, forms in enumerate(groups.surfaces) if forms and g in balance]
    answers = [tuple(forms) for g, forms in voted if balance[g] > 0]
    disputed = {groups.group_of[answer_key(v.answer)] for v in latest_votes.values() if v.label in DISPUTED}
    correct_forms = [form for forms in answers for form in forms]
    negatives = [
        form
        for g, forms in voted
        if balance[g] < 0 and g not in disputed
        for form in forms
        if g in firm or not shares_words(form, correct_forms)
    ]
    if finals:
        own_forms = {form for pair in pairs for form in pair.answers}
        answers = [tuple(form for form in forms if form in own_forms) for forms in answers]
    return Consensus(tuple(answers), tuple(negatives), ties)


def _add_duplicates(
    groups: _Groups,
    duplicate_votes: Iterable[Vote],
    stance: Mapping[tuple[int, str], bool],
    balance: Mapping[int, float],
) -> None:
    """Adds duplicates as forms of the answers that they repeat.  This comes after the vote, because a guess from words must not
    decide which answer is correct."""
    before = dict(enumerate(map(tuple, groups.surfaces)))
    correct_groups: dict[str, dict[int, Sequence[str]]] = {}  # annotator -> the answers that they hold correct
    for (group, annotator), correct in stance.items():
        if correct:
            correct_groups.setdefault(annotator, {})[group] = before[group]
    targets: dict[str, dict[str, int]] = {}  # answer key -> annotator -> the answer that it is a form of
    texts: dict[str, str] = {}
    for vote in duplicate_votes:
        key = answer_key(vote.answer)
        target = form_of(vote.answer, correct_groups.get(vote.annotator, {}))
        if target is not None:
            targets.setdefault(key, {})[vote.annotator] = target
            texts.setdefault(key, vote.answer)
    for key, target_of in targets.items():
        text, source = texts[key], groups.group_of.get(key)
        (target, *others) = dict.fromkeys(target_of.values())
        has_aliases = source is not None and any(answer_key(form) != key for form in groups.surfaces[source])
        if others or source == target or balance[target] <= 0 or not groups.surfaces[target] or has_aliases:
            continue
        against = sum(
            group == source and annotator not in target_of and (not correct or stance.get((target, annotator), False))
            for (group, annotator), correct in stance.items()
        )
        if len(target_of) > against:
            groups.move(text, target)
