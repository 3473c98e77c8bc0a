"""What distinguishes each answer of a set, in a few words: "1937 film", "London, Ontario", "in Deploy with Docker"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from core.disambiguation.edits import Edit, own_heading
from core.disambiguation.evidence import AnswerPlace, split_title
from core.disambiguation.scoring import proposals
from core.text import comparable, overlapping
from core.types import Answer, Passage

MAX_CHARS = 60


def labels(question: str, answers: Sequence[Answer], passages: Sequence[Passage]) -> list[str]:
    """For each answer what distinguishes it from the others, from its evidence; empty where nothing does.  No two are the same."""
    by_id = {p.id: p for p in passages}
    places = [place_of(a, by_id) for a in answers]
    return label_answers(answers, places, proposals(question, [a.text for a in answers], places))


def place_of(answer: Answer, passages: Mapping[str, Passage]) -> AnswerPlace | None:
    """Where the answer's first evidence is in the passages."""
    return next((AnswerPlace(passages[e.passage_id], e.start) for e in answer.evidence if e.passage_id in passages), None)


def label_answers(
    answers: Sequence[Answer], places: Sequence[AnswerPlace | None], edits: Sequence[Sequence[Edit]]
) -> list[str]:
    """`labels` of answers whose places and ranked edits (core.disambiguation.scoring) are known."""
    options = [_options(answers, places, n, edits[n]) for n in range(len(answers))]
    owners = Counter(key for found in options for key in {comparable(o) for o in found})
    return [next((o for o in found if owners[comparable(o)] == 1), "") for found in options]


def _options(answers: Sequence[Answer], places: Sequence[AnswerPlace | None], n: int, edits: Sequence[Edit]) -> list[str]:
    place, answer = places[n], answers[n]
    if place is None:
        return []
    others = [p for m, p in enumerate(places) if m != n and p is not None]
    base, qualifier = split_title(place.passage.title)
    heading = own_heading(place, others)
    found = [e.label for e in edits if e.kind in ("half", "name", "brackets")]
    found += [qualifier if qualifier[:1].isdigit() or qualifier.islower() else ""]
    found += [f"in {heading}"] if heading else []
    found += [e.label for e in edits]
    found += [base] if all(base != split_title(o.passage.title)[0] for o in others) and " > " not in base else []
    return [o for o in found if o and len(o) <= MAX_CHARS and not overlapping(o, answer.text)]
