"""The validation stage on the answers of several people (AmbigQA, section 3: combine, separate, delete or correct answers, then
edit or exclude their questions).  Each function returns a new sheet, so undo is the previous sheet.

A group is one answer as the validator sees it.  It keeps its parts, one for each pair of each annotator, so that separating
undoes combining.  No alias is lost except by `delete` and by `correct`, which a person writes out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from core.annotating.aliases import distinct
from core.errors import InputError
from core.text import answer_keys
from core.types import Annotation, QAPair


@dataclass(frozen=True, slots=True)
class Variant:
    """One wording of a group's question.  `included` False: excluded by the validator."""

    text: str
    included: bool = True


@dataclass(frozen=True, slots=True)
class Part:
    """One pair of one annotator; `by` is empty for what the validator added."""

    by: str
    aliases: tuple[str, ...]
    questions: tuple[Variant, ...] = ()
    passage_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    parts: tuple[Part, ...]

    @property
    def aliases(self) -> tuple[str, ...]:
        return distinct(alias for part in self.parts for alias in part.aliases)

    @property
    def questions(self) -> tuple[Variant, ...]:
        """The distinct wordings; included if any part includes them."""
        found: dict[str, bool] = {}
        for part in self.parts:
            for variant in part.questions:
                found[variant.text] = found.get(variant.text, False) or variant.included
        return tuple(Variant(text, included) for text, included in found.items())

    @property
    def included(self) -> tuple[str, ...]:
        return tuple(v.text for v in self.questions if v.included)

    @property
    def by(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(part.by for part in self.parts if part.by))

    @property
    def passage_ids(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(i for part in self.parts for i in part.passage_ids))


@dataclass(frozen=True, slots=True)
class Sheet:
    """What a validator works on.  `none_by`: who said that there is no answer."""

    prompt: str
    groups: tuple[Group, ...] = ()
    none_by: tuple[str, ...] = ()


# ---------------------------------------------------------------- input and output


def union(prompt: str, annotations: Sequence[tuple[str, Annotation]]) -> Sheet:
    """All pairs of (annotator, annotation), those with a common alias combined from the start."""
    groups: list[Group] = []
    for by, annotation in annotations:
        for pair in annotation.pairs:
            aliases = distinct(pair.answers)
            question = " ".join(pair.question.split())
            variants = (Variant(question),) if question and annotation.type == "multiple" else ()
            part = Part(by, aliases, variants, pair.passage_ids)
            keys = answer_keys(aliases)
            same = [i for i, g in enumerate(groups) if keys & answer_keys(g.aliases)]
            if not same:
                groups.append(Group((part,)))
                continue
            first, rest = same[0], same[1:]
            joined = (*groups[first].parts, *(p for i in rest for p in groups[i].parts), part)
            groups[first] = Group(joined)
            groups = [g for i, g in enumerate(groups) if i not in rest]
    return Sheet(prompt, tuple(groups), tuple(by for by, annotation in annotations if annotation.type == "none"))


def to_annotation(sheet: Sheet) -> Annotation:
    """In AmbigNQ's form.  A group's first included question is its pair's question: an AmbigNQ pair has one."""
    pairs = tuple(QAPair(g.included[0] if g.included else "", g.aliases, g.passage_ids) for g in sheet.groups)
    if not pairs:
        return Annotation("none")
    if len(pairs) == 1:
        return Annotation("single", (replace(pairs[0], question=""),))
    return Annotation("multiple", pairs)


# ---------------------------------------------------------------- answers


def _check(sheet: Sheet, at: int) -> Group:
    if not 0 <= at < len(sheet.groups):
        raise InputError(f"there is no answer {at + 1}; the sheet has {len(sheet.groups)}")
    return sheet.groups[at]


def _put(sheet: Sheet, at: int, *groups: Group) -> Sheet:
    return replace(sheet, groups=(*sheet.groups[:at], *groups, *sheet.groups[at + 1 :]))


def combine(sheet: Sheet, chosen: Collection[int]) -> Sheet:
    """One group of two or more, at the place of the first.  Raises InputError for fewer."""
    places = sorted(set(chosen))
    if len(places) < 2:
        raise InputError("choose two answers or more to combine")
    parts = tuple(part for at in places for part in _check(sheet, at).parts)
    kept = [Group(parts) if i == places[0] else g for i, g in enumerate(sheet.groups) if i == places[0] or i not in places]
    return replace(sheet, groups=tuple(kept))


def separate(sheet: Sheet, at: int) -> Sheet:
    """A group for each of its parts, as the annotators wrote them.  Raises InputError for one part."""
    group = _check(sheet, at)
    if len(group.parts) < 2:
        raise InputError(f"answer {at + 1} has only one part; there is nothing to separate")
    return _put(sheet, at, *(Group((part,)) for part in group.parts))


def delete(sheet: Sheet, chosen: Collection[int]) -> Sheet:
    """Raises InputError when nothing is chosen."""
    if not chosen:
        raise InputError("choose an answer to delete")
    for at in chosen:
        _check(sheet, at)
    return replace(sheet, groups=tuple(g for i, g in enumerate(sheet.groups) if i not in set(chosen)))


def correct(sheet: Sheet, at: int, part: int, aliases: Sequence[str]) -> Sheet:
    """Replaces the aliases of one part.  Raises InputError for none: use `delete`."""
    group, wanted = _check(sheet, at), distinct(aliases)
    if not wanted:
        raise InputError(f"answer {at + 1} would be empty; write it, or delete the answer")
    if not 0 <= part < len(group.parts):
        raise InputError(f"answer {at + 1} has no part {part + 1}")
    parts = (*group.parts[:part], replace(group.parts[part], aliases=wanted), *group.parts[part + 1 :])
    return _put(sheet, at, Group(parts))


def add(sheet: Sheet, aliases: Sequence[str], question: str = "", passage_ids: Sequence[str] = ()) -> Sheet:
    """Adds an answer that nobody gave.  Raises InputError without an alias."""
    wanted, flat = distinct(aliases), " ".join(question.split())
    if not wanted:
        raise InputError("write the answer to add")
    part = Part("", wanted, (Variant(flat),) if flat else (), tuple(passage_ids))
    return replace(sheet, groups=(*sheet.groups, Group((part,))))


# ---------------------------------------------------------------- questions


def _questions(group: Group, change: Callable[[Variant], Variant]) -> Group:
    return Group(tuple(replace(p, questions=tuple(change(v) for v in p.questions)) for p in group.parts))


def _known(group: Group, at: int, text: str) -> None:
    if text not in [v.text for v in group.questions]:
        raise InputError(f"answer {at + 1} has no question '{text[:80]}'")


def exclude(sheet: Sheet, at: int, text: str) -> Sheet:
    """Excludes one wording.  Raises InputError for the last one of an answer."""
    group = _check(sheet, at)
    _known(group, at, text)
    if group.included == (text,):
        raise InputError(f"answer {at + 1} would have no question; edit this one, or delete the answer")
    return _put(sheet, at, _questions(group, lambda v: replace(v, included=False) if v.text == text else v))


def include(sheet: Sheet, at: int, text: str) -> Sheet:
    group = _check(sheet, at)
    _known(group, at, text)
    return _put(sheet, at, _questions(group, lambda v: replace(v, included=True) if v.text == text else v))


def edit(sheet: Sheet, at: int, text: str, wanted: str) -> Sheet:
    """Replaces a wording; the new one is included.  Raises InputError for an empty one."""
    group, flat = _check(sheet, at), " ".join(wanted.split())
    _known(group, at, text)
    if not flat:
        raise InputError("the question would be empty; exclude it instead")
    return _put(sheet, at, _questions(group, lambda v: Variant(flat) if v.text == text else v))


def ask(sheet: Sheet, at: int, question: str) -> Sheet:
    """Adds a wording for an answer.  Raises InputError for an empty one."""
    group, flat = _check(sheet, at), " ".join(question.split())
    if not flat:
        raise InputError("write the question to add")
    if flat in [v.text for v in group.questions]:
        return include(sheet, at, flat)
    last = group.parts[-1]
    return _put(sheet, at, Group((*group.parts[:-1], replace(last, questions=(*last.questions, Variant(flat))))))
