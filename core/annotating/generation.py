"""The form of the generation stage: one immutable value that determines the annotation and the decision on each suggestion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from core.annotating.aliases import join_aliases, parse_aliases
from core.errors import InputError
from core.types import Annotation, QAPair

AnswerKind = Literal["", "none", "single", "multiple"]
SuggestionAction = Literal["accepted", "edited", "rejected"]
MAX_PAIRS = 100


@dataclass(frozen=True, slots=True)
class PairField:
    """One pair's fields as typed.  `key` identifies it within the form."""

    key: int
    question: str = ""
    answers: str = ""
    passage_ids: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        return not (self.question.strip() or self.answers.strip())


@dataclass(frozen=True, slots=True)
class OfferedSuggestion:
    """A system's suggestion as shown."""

    prediction_id: str
    position: int
    answer: str
    question: str = ""
    passage_ids: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.prediction_id}.{self.position}"


@dataclass(frozen=True, slots=True)
class GenerationForm:
    """`pairs` has at least one.  `taken`: suggestion -> key of the pair it became, or None for a rejected one."""

    kind: AnswerKind = ""
    pairs: tuple[PairField, ...] = (PairField(0),)
    taken: tuple[tuple[str, int | None], ...] = ()
    note: str = ""
    next: int = 1

    def counted_pairs(self) -> tuple[PairField, ...]:
        """The pairs that count: all of them for several answers, the first for a single answer, none for no answer."""
        return {"multiple": self.pairs, "single": self.pairs[:1]}.get(self.kind, ())

    def annotation(self) -> Annotation:
        """The annotation that the form stands for.  Raises InputError while no kind is chosen."""
        if not self.kind:
            raise InputError("choose first: no answer, a single answer, or several answers")
        several = self.kind == "multiple"
        pairs = (
            QAPair(" ".join(p.question.split()) if several else "", parse_aliases(p.answers), p.passage_ids)
            for p in self.counted_pairs()
        )
        return Annotation(self.kind, tuple(pairs))


# ---------------------------------------------------------------- changes


def choose(form: GenerationForm, kind: AnswerKind) -> GenerationForm:
    """Changes the kind without losing pairs.  They come back with 'several', which starts with two."""
    form = replace(form, kind=kind)
    return add_pair(form) if kind == "multiple" and len(form.pairs) < 2 else form


def add_pair(form: GenerationForm) -> GenerationForm:
    """Raises InputError at 100 pairs."""
    if len(form.pairs) >= MAX_PAIRS:
        raise InputError(f"there are {MAX_PAIRS} pairs already; combine some")
    return replace(form, pairs=(*form.pairs, PairField(form.next)), next=form.next + 1)


def delete_pair(form: GenerationForm, key: int) -> GenerationForm:
    """Deletes a pair, or empties it if it is the last one.  A suggestion that it came from counts as rejected."""
    pairs = tuple(p for p in form.pairs if p.key != key)
    taken = tuple((offer, None if pair_key == key else pair_key) for offer, pair_key in form.taken)
    form = replace(form, pairs=pairs, taken=taken)
    return form if pairs else replace(form, pairs=(PairField(form.next),), next=form.next + 1)


def _change_pair(form: GenerationForm, key: int, change: Callable[[PairField], PairField]) -> GenerationForm:
    return replace(form, pairs=tuple(change(p) if p.key == key else p for p in form.pairs))


def fill(form: GenerationForm, key: int, *, question: str | None = None, answers: str | None = None) -> GenerationForm:
    """Sets the text of one field.  A deleted pair stays deleted."""

    def change(pair: PairField) -> PairField:
        if question is not None:
            pair = replace(pair, question=question)
        return pair if answers is None else replace(pair, answers=answers)

    return _change_pair(form, key, change)


def cite(form: GenerationForm, key: int, passage_id: str) -> GenerationForm:
    """Adds a passage to a pair's evidence, or removes it again."""

    def change(pair: PairField) -> PairField:
        is_cited = passage_id in pair.passage_ids
        ids = tuple(i for i in pair.passage_ids if i != passage_id) if is_cited else (*pair.passage_ids, passage_id)
        return replace(pair, passage_ids=ids)

    return _change_pair(form, key, change)


def accept(form: GenerationForm, offer: OfferedSuggestion) -> GenerationForm:
    """Puts a suggestion into the first empty pair, or a new one.  The first one makes a single answer, a second one several."""
    form = withdraw(form, offer)
    filled = [p for p in form.counted_pairs() if not p.empty]
    kind: AnswerKind = "multiple" if filled or form.kind == "multiple" else "single"
    if kind == "single" and not form.pairs[0].empty:  # pairs hidden by 'no answer' go below
        form = replace(form, pairs=(PairField(form.next), *form.pairs), next=form.next + 1)
    empty = next((p for p in form.pairs if p.empty), None)
    if empty is None:
        form = add_pair(form)
        empty = form.pairs[-1]
    full = PairField(empty.key, offer.question, offer.answer, offer.passage_ids)
    form = _change_pair(form, empty.key, lambda _: full)
    return replace(form, kind=kind, taken=(*form.taken, (offer.key, empty.key)))


def reject(form: GenerationForm, offer: OfferedSuggestion) -> GenerationForm:
    form = withdraw(form, offer)
    return replace(form, taken=(*form.taken, (offer.key, None)))


def withdraw(form: GenerationForm, offer: OfferedSuggestion) -> GenerationForm:
    """Withdraws a decision; the pair made from the suggestion is deleted."""
    pair_key = dict(form.taken).get(offer.key)
    if pair_key is not None:
        form = delete_pair(form, pair_key)
    return replace(form, taken=tuple((k, v) for k, v in form.taken if k != offer.key))


def decision_on(form: GenerationForm, offer: OfferedSuggestion) -> SuggestionAction | None:
    """The decision on a suggestion, None if undecided.  A pair that doesn't count is a rejection."""
    pair_keys = dict(form.taken)
    if offer.key not in pair_keys:
        return None
    pair = next((p for p in form.counted_pairs() if p.key == pair_keys[offer.key]), None)
    if pair is None:
        return "rejected"
    is_unchanged = parse_aliases(pair.answers) == parse_aliases(offer.answer)
    if form.kind == "multiple":
        is_unchanged = is_unchanged and " ".join(pair.question.split()) == " ".join(offer.question.split())
    return "accepted" if is_unchanged else "edited"


def from_annotation(annotation: Annotation) -> GenerationForm:
    """The form of an annotation, for drafts from another program, with `|` between aliases."""
    pairs = tuple(PairField(i, p.question, join_aliases(p.answers), p.passage_ids) for i, p in enumerate(annotation.pairs))
    return GenerationForm(annotation.type, pairs or (PairField(0),), next=max(1, len(pairs)))
