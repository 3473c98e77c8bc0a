"""The validation stage on the answers of several people (AmbigQA, section 3: combine, separate, delete or correct answers, then
edit or exclude their questions).  Each function returns a new sheet, so undo is the previous sheet.

A group is one answer as the validator sees it.  It keeps its parts, one for each pair of each annotator, so that separating
undoes combining.  No alias is lost except by `delete` and by `correct`, which a person writes out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
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
class PairPart:
    """One pair of one annotator.  `by` is empty for a pair that the validator added."""

    by: str
    aliases: tuple[str, ...]
    questions: tuple[Variant, ...] = ()
    passage_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    parts: tuple[PairPart, ...]

    @property
    def aliases(self) -> tuple[str, ...]:
        return distinct(alias for part in self.parts for alias in part.aliases)

    @property
    def questions(self) -> tuple[Variant, ...]:
        """The distinct wordings; included if any part includes them."""
        wordings: dict[str, bool] = {}
        for part in self.parts:
            for variant in part.questions:
                wordings[variant.text] = wordings.get(variant.text, False) or variant.included
        return tuple(Variant(text, included) for text, included in wordings.items())

    @property
    def included(self) -> tuple[str, ...]:
        return tuple(v.text for v in self.questions if v.included)

    @property
    def annotators(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(part.by for part in self.parts if part.by))

    @property
    def passage_ids(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(i for part in self.parts for i in part.passage_ids))


@dataclass(frozen=True, slots=True)
class Sheet:
    """The answers that a validator works on.  `none_by`: the annotators who found no answer."""

    prompt: str
    groups: tuple[Group, ...] = ()
    none_by: tuple[str, ...] = ()


# ---------------------------------------------------------------- input and output


def union(prompt: str, annotations: Sequence[tuple[str, Annotation]]) -> Sheet:
    """All pairs of (annotator, annotation), those with a common alias combined from the start."""
    groups: list[Group] = []
    for annotator, annotation in annotations:
        for pair in annotation.pairs:
            aliases = distinct(pair.answers)
            question = " ".join(pair.question.split())
            variants = (Variant(question),) if question and annotation.type == "multiple" else ()
            part = PairPart(annotator, aliases, variants, pair.passage_ids)
            keys = answer_keys(aliases)
            matches = [i for i, g in enumerate(groups) if keys & answer_keys(g.aliases)]
            if not matches:
                groups.append(Group((part,)))
                continue
            first, others = matches[0], matches[1:]
            parts = (*groups[first].parts, *(p for i in others for p in groups[i].parts), part)
            groups[first] = Group(parts)
            groups = [g for i, g in enumerate(groups) if i not in others]
    return Sheet(prompt, tuple(groups), tuple(annotator for annotator, annotation in annotations if annotation.type == "none"))


def to_annotation(sheet: Sheet) -> Annotation:
    """The sheet in AmbigNQ's form. A group's first included question is its pair's question, because an AmbigNQ pair has
    one."""
    pairs = tuple(QAPair(g.included[0] if g.included else "", g.aliases, g.passage_ids) for g in sheet.groups)
    if not pairs:
        return Annotation("none")
    if len(pairs) == 1:
        return Annotation("single", (replace(pairs[0], question=""),))
    return Annotation("multiple", pairs)


# ---------------------------------------------------------------- answers


def _check(sheet: Sheet, index: int) -> Group:
    if not 0 <= index < len(sheet.groups):
        raise InputError(f"there is no answer {index + 1}; the sheet has {len(sheet.groups)}")
    return sheet.groups[index]


def _put(sheet: Sheet, index: int, *groups: Group) -> Sheet:
    return replace(sheet, groups=(*sheet.groups[:index], *groups, *sheet.groups[index + 1 :]))


def combine(sheet: Sheet, indexes: Collection[int]) -> Sheet:
    """Combines groups into one, at the position of the first.  Raises InputError for fewer than two."""
    first, *others = sorted(set(indexes)) or [0]
    if not others:
        raise InputError("choose two answers or more to combine")
    combined = Group(tuple(part for i in (first, *others) for part in _check(sheet, i).parts))
    groups = [combined if i == first else g for i, g in enumerate(sheet.groups) if i not in others]
    return replace(sheet, groups=tuple(groups))


def separate(sheet: Sheet, index: int) -> Sheet:
    """Splits a group into its parts, as the annotators wrote them.  Raises InputError for a group of one part."""
    group = _check(sheet, index)
    if len(group.parts) < 2:
        raise InputError(f"answer {index + 1} has only one part; there is nothing to separate")
    return _put(sheet, index, *(Group((part,)) for part in group.parts))


def delete(sheet: Sheet, indexes: Collection[int]) -> Sheet:
    """Deletes answers.  Raises InputError when none is chosen."""
    if not indexes:
        raise InputError("choose an answer to delete")
    for index in indexes:
        _check(sheet, index)
    return replace(sheet, groups=tuple(g for i, g in enumerate(sheet.groups) if i not in set(indexes)))


def correct(sheet: Sheet, index: int, part: int, aliases: Sequence[str]) -> Sheet:
    """Replaces the aliases of one part.  Raises InputError for an empty list; use `delete` for that."""
    group, names = _check(sheet, index), distinct(aliases)
    if not names:
        raise InputError(f"answer {index + 1} would be empty; write it, or delete the answer")
    if not 0 <= part < len(group.parts):
        raise InputError(f"answer {index + 1} has no part {part + 1}")
    parts = (*group.parts[:part], replace(group.parts[part], aliases=names), *group.parts[part + 1 :])
    return _put(sheet, index, Group(parts))


def add(sheet: Sheet, aliases: Sequence[str], question: str = "", passage_ids: Sequence[str] = ()) -> Sheet:
    """Adds an answer that nobody gave.  Raises InputError without an alias."""
    names, flat = distinct(aliases), " ".join(question.split())
    if not names:
        raise InputError("write the answer to add")
    part = PairPart("", names, (Variant(flat),) if flat else (), tuple(passage_ids))
    return replace(sheet, groups=(*sheet.groups, Group((part,))))


# ---------------------------------------------------------------- questions


def _replace_question(sheet: Sheet, index: int, text: str, variant: Variant) -> Sheet:
    """Replaces the wording `text` in all parts of an answer.  Raises InputError if the answer does not have it."""
    group = _check(sheet, index)
    if text not in [v.text for v in group.questions]:
        raise InputError(f"answer {index + 1} has no question '{text[:80]}'")
    parts = [replace(p, questions=tuple(variant if v.text == text else v for v in p.questions)) for p in group.parts]
    return _put(sheet, index, Group(tuple(parts)))


def exclude(sheet: Sheet, index: int, text: str) -> Sheet:
    """Excludes one wording.  Raises InputError for the last one of an answer."""
    if _check(sheet, index).included == (text,):
        raise InputError(f"answer {index + 1} would have no question; edit this one, or delete the answer")
    return _replace_question(sheet, index, text, Variant(text, included=False))


def include(sheet: Sheet, index: int, text: str) -> Sheet:
    return _replace_question(sheet, index, text, Variant(text))


def edit(sheet: Sheet, index: int, text: str, question: str) -> Sheet:
    """Replaces a wording and includes the new one.  Raises InputError for an empty wording."""
    flat = " ".join(question.split())
    if not flat:
        raise InputError("the question would be empty; exclude it instead")
    return _replace_question(sheet, index, text, Variant(flat))


def ask(sheet: Sheet, index: int, question: str) -> Sheet:
    """Adds a wording for an answer.  Raises InputError for an empty one."""
    group, flat = _check(sheet, index), " ".join(question.split())
    if not flat:
        raise InputError("write the question to add")
    if flat in [v.text for v in group.questions]:
        return include(sheet, index, flat)
    last = group.parts[-1]
    return _put(sheet, index, Group((*group.parts[:-1], replace(last, questions=(*last.questions, Variant(flat))))))
