"""Comparison of two people's answer sets for one question: matching answers, F1, MASI distance, similarity of the questions.

Source of MASI: Passonneau 2006, "Measuring Agreement on Set-Valued Items (MASI) for Semantic and Pragmatic Annotation".  It is defined on
sets of labels; here an element is an answer with its aliases, and two answers are the same if they share an alias after normalisation.
The size of the intersection is that of a largest one-to-one matching, so that one person's two answers are not merged because another wrote
them as aliases.  With one alias each this is MASI itself (tests compare with nltk).  Everything here is symmetric in the two people.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

from core.metrics.questions import edit_f1, normal_question, variants
from core.text import answer_keys, comparable
from core.types import Annotation, QAPair

Aliases = frozenset[str]  # normalised
AnswerSet = tuple[Aliases, ...]  # sorted, so that equal sets are equal values


def set_of(answers: Iterable[Iterable[str]]) -> AnswerSet:
    """An answer set as a value that doesn't depend on the order of answers and aliases."""
    return tuple(sorted((answer_keys(a) for a in answers), key=sorted))


def answer_set(annotation: Annotation) -> AnswerSet:
    """The answer set of AmbigNQ's union type; `none` is the empty set."""
    return set_of(pair.answers for pair in annotation.pairs) if annotation.type != "none" else ()


def matched(a: Sequence[Aliases], b: Sequence[Aliases]) -> list[tuple[int, int]]:
    """A largest one-to-one matching of answers that share an alias (Kuhn's augmenting paths).

    >>> xy, x, z = answer_keys("xy"), answer_keys("x"), answer_keys("z")
    >>> matched([xy, x], [x, z])  # x and y are one answer here, two there: only one of them is matched
    [(0, 0)]
    """
    near = [[j for j, other in enumerate(b) if not aliases.isdisjoint(other)] for aliases in a]
    partner: dict[int, int] = {}  # of b -> of a

    def place(i: int, visited: set[int]) -> bool:
        for j in near[i]:
            if j not in visited:
                visited.add(j)
                if j not in partner or place(partner[j], visited):
                    partner[j] = i
                    return True
        return False

    for i in range(len(a)):
        place(i, set())
    return sorted((i, j) for j, i in partner.items())


def set_f1(a: AnswerSet, b: AnswerSet) -> float:
    """2 x matched / (|a| + |b|); two empty sets ("no answer" twice) agree.  In 0..1.

    >>> set_f1(set_of([["Paris"], ["Rome"]]), set_of([["paris", "City of Light"]]))
    0.6666666666666666
    >>> set_f1((), ()), set_f1((), set_of(["x"]))
    (1.0, 0.0)
    """
    return 2 * len(matched(a, b)) / (len(a) + len(b)) if a or b else 1.0


def masi_distance(a: AnswerSet, b: AnswerSet) -> float:
    """1 - Jaccard x monotonicity (1 for equal sets, 2/3 for a subset, 1/3 for an overlap).  In 0..1; two empty sets: 0.

    >>> round(masi_distance(set_of("ab"), set_of("abcd")), 4)  # 1 - 2/4 x 2/3
    0.6667
    """
    if a == b:
        return 0.0
    shared = len(matched(a, b))
    if not shared:
        return 0.0 if not a and not b else 1.0
    smaller, larger = sorted((len(a), len(b)))
    monotone = 1.0 if shared == larger else 2 / 3 if shared == smaller else 1 / 3
    return 1.0 - shared / (len(a) + len(b) - shared) * monotone


def question_likeness(prompt: str, a: Sequence[QAPair], b: Sequence[QAPair]) -> float | None:
    """The mean EDIT-F1 (Min et al. 2020) between the questions of shared answers, with the best of the `|` variants on both
    sides.

    None if no answer is shared, or none of the shared ones has questions on both sides.

    >>> mine = [QAPair("who won in 2010", ("Ann",)), QAPair("who won in 2011", ("Bob",))]
    >>> question_likeness("who won", mine, [QAPair("who won in 2010", ("ann",)), QAPair("who won last year", ("bob",))])
    0.5
    """
    start, values = normal_question(comparable(prompt)), []
    for i, j in matched([answer_keys(p.answers) for p in a], [answer_keys(p.answers) for p in b]):
        mine, theirs = variants(comparable(a[i].question)), variants(comparable(b[j].question))
        if mine and theirs:
            values.append(max(edit_f1(question, theirs, start) for question in mine))
    return sum(values) / len(values) if values else None


def disagreement(sets: Sequence[AnswerSet]) -> float | None:
    """1 - the mean `set_f1` over all pairs of sets, in 0..1; None for fewer than two sets.

    >>> round(disagreement([set_of([["Paris"]]), set_of([["paris"], ["Rome"]])]), 4)  # F1 is 2/3
    0.3333
    """
    values = [set_f1(a, b) for a, b in combinations(sets, 2)]
    return 1 - sum(values) / len(values) if values else None
