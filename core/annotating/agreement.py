"""Decides whether two people's annotations of one question agree.  An item whose annotations agree needs no validation
(AmbigQA, section 3).

They agree when they are of the same kind, when their answers match one to one, and when the disambiguated questions of matched answers are
equal after normalisation.  Two answers match when a normalised alias of one is an alias of the other and of no third answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from core.annotating.aliases import distinct
from core.text import answer_keys, question_key
from core.types import Annotation, QAPair


def agree(annotations: Sequence[Annotation]) -> bool:
    """Whether two or more annotations agree, each with every other one."""
    return _aligned_pairs(annotations) is not None


def merged(annotations: Sequence[Annotation]) -> Annotation:
    """Merges annotations that agree: the first one's answers and questions, with everybody's aliases and passages.

    Raises ValueError for annotations that do not agree.
    """
    rows = _aligned_pairs(annotations)
    if rows is None:
        raise ValueError("these annotations do not agree")
    pairs = []
    for row in rows:
        answers = distinct(alias for pair in row for alias in pair.answers)
        pairs.append(QAPair(row[0].question, answers, tuple(dict.fromkeys(i for pair in row for i in pair.passage_ids))))
    return replace(annotations[0], pairs=tuple(pairs))


def settled(annotations: Sequence[Annotation]) -> tuple[Annotation, tuple[int, ...]] | None:
    """The annotation that several people's annotations amount to without validation, and the numbers of the people it came
    from.  It is the only annotation, or the one that all or more than half of them agree on, with everybody's aliases.  None if
    no majority agrees.
    """
    if len(annotations) == 1:
        return annotations[0], (0,)
    largest: list[int] = []
    for start in range(len(annotations)):
        group = [start]
        for number in range(start + 1, len(annotations)):
            if agree([annotations[i] for i in (*group, number)]):
                group.append(number)
        largest = max(largest, group, key=len)
    if 2 * len(largest) <= len(annotations):
        return None
    return merged([annotations[i] for i in largest]), tuple(largest)


def _aligned_pairs(annotations: Sequence[Annotation]) -> list[tuple[QAPair, ...]] | None:
    """The same answer in each annotation, for each answer of the first; None if they don't agree."""
    if len(annotations) < 2 or len({a.type for a in annotations}) > 1:
        return None
    partners = {}
    for (i, a), (j, b) in combinations(enumerate(annotations), 2):
        if (indexes := _partners(a, b)) is None:
            return None
        partners[i, j] = indexes
    for j, k in combinations(range(1, len(annotations)), 2):  # answers must also match between the other annotators
        if [partners[j, k][x] for x in partners[0, j]] != partners[0, k]:
            return None
    return [
        (pair, *(annotations[j].pairs[partners[0, j][x]] for j in range(1, len(annotations))))
        for x, pair in enumerate(annotations[0].pairs)
    ]


def _partners(first: Annotation, second: Annotation) -> list[int] | None:
    """The index in `second` of each answer of `first`; None unless all match one to one with equal questions."""
    ours, theirs = ([answer_keys(p.answers) for p in annotation.pairs] for annotation in (first, second))
    owners = Counter(key for keys in (*ours, *theirs) for key in keys)
    candidates = [[j for j, b in enumerate(theirs) if any(owners[key] == 2 for key in a & b)] for a in ours]
    partners = [indexes[0] for indexes in candidates if len(indexes) == 1]
    if not len(set(partners)) == len(ours) == len(theirs):
        return None
    if first.type == "multiple" and any(
        question_key(p.question) != question_key(second.pairs[j].question) for p, j in zip(first.pairs, partners)
    ):
        return None
    return partners
