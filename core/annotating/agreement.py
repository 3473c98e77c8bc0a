"""When two people's annotations of one question agree: such an item needs no validation (AmbigQA, section 3).

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
    """True for two or more annotations that agree, each with every other one."""
    return _matched(annotations) is not None


def merged(annotations: Sequence[Annotation]) -> Annotation:
    """Merges annotations that agree: the first one's answers and questions, with the aliases and passages of all.

    Raises ValueError for annotations that do not agree.
    """
    rows = _matched(annotations)
    if rows is None:
        raise ValueError("these annotations do not agree")
    return replace(annotations[0], pairs=tuple(_joined(row) for row in rows))


def _joined(row: Sequence[QAPair]) -> QAPair:
    first = row[0]
    return QAPair(
        first.question,
        distinct(alias for pair in row for alias in pair.answers),
        tuple(dict.fromkeys(i for pair in row for i in pair.passage_ids)),
    )


def _matched(annotations: Sequence[Annotation]) -> list[tuple[QAPair, ...]] | None:
    """For each answer of the first annotation, the same answer in each of them; None if they do not agree."""
    if len(annotations) < 2 or len({a.type for a in annotations}) > 1:
        return None
    partners = {}
    for (i, one), (j, two) in combinations(enumerate(annotations), 2):
        found = _partners(one, two)
        if found is None:
            return None
        partners[i, j] = found
    first = partners[0, 1]
    for j, k in combinations(range(1, len(annotations)), 2):  # answers must also match between the other annotators
        if any(partners[j, k][partners[0, j][x]] != partners[0, k][x] for x in range(len(first))):
            return None
    return [
        (pair, *(annotations[j].pairs[partners[0, j][x]] for j in range(1, len(annotations))))
        for x, pair in enumerate(annotations[0].pairs)
    ]


def _partners(one: Annotation, two: Annotation) -> list[int] | None:
    """For each answer of `one`, its index in `two`; None unless all match one to one, with equal questions."""
    a, b = [answer_keys(p.answers) for p in one.pairs], [answer_keys(p.answers) for p in two.pairs]
    owners = Counter(key for keys in (*a, *b) for key in keys)
    near = [[j for j, keys in enumerate(b) if any(owners[key] == 2 for key in own & keys)] for own in a]
    if len(a) != len(b) or any(len(found) != 1 for found in near):
        return None
    found = [places[0] for places in near]
    if len(set(found)) != len(b):
        return None
    if one.type == "multiple" and any(
        question_key(p.question) != question_key(two.pairs[j].question) for p, j in zip(one.pairs, found)
    ):
        return None
    return found
