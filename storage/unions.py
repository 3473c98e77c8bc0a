"""The validator's first step (AmbigQA, validation stage): several people's answers as one list, which is then combined,
separated and cut.  Pure functions; no alias is lost but by `delete`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from core.text import normalize_answer, words
from core.types import Annotation, QAPair
from storage.consensus import answer_key
from storage.records_annotation import UnionAnswer


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(t for t in texts if t.strip()))


def _joined(parts: Sequence[UnionAnswer]) -> UnionAnswer:
    return UnionAnswer(
        _distinct(a for p in parts for a in p.aliases),
        _distinct(q for p in parts for q in p.questions),
        tuple(dict.fromkeys(i for p in parts for i in p.passage_ids)),
        tuple(dict.fromkeys(n for p in parts for n in p.annotators)),
    )


def union(named: Iterable[tuple[str, Annotation]]) -> tuple[UnionAnswer, ...]:
    """(annotator, annotation) pairs as one list of answers, in the order in which they were first given.

    Pairs of different people that share an alias (normalised) become one; two pairs of one person stay apart, because that
    person set them apart.
    """
    groups: list[list[UnionAnswer]] = []
    keys: list[set[str]] = []
    for annotator, annotation in named:
        taken: set[int] = set()
        for pair in annotation.pairs:
            mine = {answer_key(alias) for alias in pair.answers}
            question = (pair.question,) if annotation.type == "multiple" else ()
            answer = UnionAnswer(_distinct(pair.answers), _distinct(question), pair.passage_ids, (annotator,))
            place = next((i for i, known in enumerate(keys) if i not in taken and mine & known), None)
            if place is None:
                groups.append([answer])
                keys.append(mine)
                place = len(groups) - 1
            else:
                groups[place].append(answer)
                keys[place] |= mine
            taken.add(place)
    return tuple(_joined(group) for group in groups)


def _form(annotation: Annotation) -> tuple[str, frozenset[tuple[tuple[str, ...], frozenset[str]]]]:
    multiple = annotation.type == "multiple"
    return annotation.type, frozenset(
        (tuple(words(p.question)) if multiple else (), frozenset(normalize_answer(a) or answer_key(a) for a in p.answers))
        for p in annotation.pairs
    )


def identical(annotations: Sequence[Annotation]) -> bool:
    """Two or more, of one type, with equal answer sets and questions after normalisation (order aside)."""
    return len(annotations) >= 2 and len({_form(a) for a in annotations}) == 1


def merged(annotations: Sequence[Annotation]) -> Annotation:
    """Identical annotations as one: the first's, with the passages of all."""
    first = annotations[0]
    pairs = []
    for pair in first.pairs:
        key = {answer_key(a) for a in pair.answers}
        same = [p for a in annotations for p in a.pairs if {answer_key(x) for x in p.answers} == key]
        pairs.append(QAPair(pair.question, pair.answers, tuple(dict.fromkeys(i for p in same for i in p.passage_ids))))
    return Annotation(first.type, tuple(pairs))


def disagreement(sets: Sequence[Sequence[Iterable[str]]]) -> float | None:
    """1 - the mean F1 of answers over all pairs of sets, in 0..1; None for fewer than two sets.

    A set is a list of answers, an answer its aliases; two answers are equal if they share one after normalisation.  Two empty sets
    agree.

    >>> disagreement([[["Paris"]], [["paris"], ["Rome"]]])  # F1 is 2/3
    0.33333333333333337
    """
    keyed = [[{answer_key(alias) for alias in answer} for answer in answers] for answers in sets]
    scores = []
    for i, first in enumerate(keyed):
        for second in keyed[i + 1 :]:
            free = list(second)
            hits = 0
            for answer in first:
                found = next((other for other in free if other & answer), None)
                if found is not None:
                    free.remove(found)
                    hits += 1
            scores.append(2 * hits / (len(first) + len(second)) if first or second else 1.0)
    return 1 - sum(scores) / len(scores) if scores else None
