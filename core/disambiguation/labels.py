"""What distinguishes each answer of a set, in a few words: "1937 film", "London, Ontario", "in Deploy with Docker"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from core.disambiguation.edits import Edit, own_heading
from core.disambiguation.evidence import AnswerPlace, sentence_bounds, split_title
from core.disambiguation.scoring import proposals
from core.text import comparable, content_words, shares_words, word_tokens
from core.types import Answer, Passage

MAX_CHARS = 60
MAX_CLAUSE_WORDS = 6
MIN_PROBABILITY = 0.4  # of an edit whose label goes before that of the answer's clause
_PART = re.compile(r",(?!\d)|[;()]|\s(?:and|but|or)\b")
_VERB = re.compile(r"\b(?:is|are|was|were|can|may|must|will|would|has|have|had|means?|costs?|pays?|takes?)\b")
_APPOSITION = re.compile(r",\s+(?:an?|the|his|her|its)\s+(?P<what>[^,;.]+?)(?=\s(?:who|which|that)\b|[,;.]|$)")
_PREPOSITIONS = frozenset("at by during for from in of on to until with".split())
_VAGUE = frozenset("ahead later led same still then there".split())
_REFERS_BACK = frozenset("he her his i it its one she that their they this we which who".split())


def labels(question: str, answers: Sequence[Answer], passages: Sequence[Passage]) -> list[str]:
    """For each answer what distinguishes it from the others, from its evidence; empty where nothing does.  No two are the same."""
    by_id = {p.id: p for p in passages}
    places = [place_of(a, by_id) for a in answers]
    return label_answers(question, answers, places, proposals(question, [a.text for a in answers], places))


def place_of(answer: Answer, passages: Mapping[str, Passage]) -> AnswerPlace | None:
    """Where the answer's first evidence is in the passages."""
    return next((AnswerPlace(passages[e.passage_id], e.start) for e in answer.evidence if e.passage_id in passages), None)


def label_answers(
    question: str, answers: Sequence[Answer], places: Sequence[AnswerPlace | None], edits: Sequence[Sequence[Edit]]
) -> list[str]:
    """`labels` of answers whose places and ranked edits (core.disambiguation.scoring) are known."""
    options = [_options(question, answers, places, n, edits[n]) for n in range(len(answers))]
    owners = Counter(key for found in options for key in {comparable(o) for o in found})
    return [next((o for o in found if owners[comparable(o)] == 1), "") for found in options]


def _options(
    question: str, answers: Sequence[Answer], places: Sequence[AnswerPlace | None], n: int, edits: Sequence[Edit]
) -> list[str]:
    place, answer = places[n], answers[n]
    if place is None:
        return []
    others = [p for m, p in enumerate(places) if m != n and p is not None]
    base, qualifier = split_title(place.passage.title)
    heading = own_heading(place, others)
    found = [e.label for e in edits if e.kind in ("half", "name", "brackets")]
    found += [qualifier if qualifier[:1].isdigit() or qualifier.islower() else ""]
    found += [f"in {heading}"] if heading else []
    found += [e.label for e in edits if e.probability >= MIN_PROBABILITY]
    if any(o.passage.title == place.passage.title for o in others):
        found.append(clause_label(question, answer.text, place))
    found += [e.label for e in edits]
    found += [base] if all(base != split_title(o.passage.title)[0] for o in others) and " > " not in base else []
    return [o for o in found if o and len(o) <= MAX_CHARS and not shares_words(o, [a.text for a in answers])]


def clause_label(question: str, answer: str, place: AnswerPlace) -> str:
    """What the answer's part of its sentence says of it: the words behind it, the subject before it, or its apposition; empty where they say nothing new.

    >>> text = "Invoices are kept for 10 years, job applications for 6 months."
    >>> [clause_label("How long are they kept?", a, AnswerPlace(Passage("", "", text), text.index(a))) for a in ("10 years", "6 months")]
    ['Invoices', 'job applications']
    """
    begin, end = sentence_bounds(place.passage.text, place.start)
    sentence, start = place.passage.text[begin:end].rstrip(" ."), place.start - begin
    stop = start + len(answer)
    breaks = [0, *(m.end() for m in _PART.finditer(sentence[:start]))]
    before = sentence[breaks[-1] : start]
    after = _PART.split(sentence[stop:])[0]
    apposition = _APPOSITION.match(sentence[stop:])
    subject = _VERB.split(before)[0]
    for phrase, min_words in (
        (after, 2),
        (subject if subject.strip() else before, 1),
        (apposition["what"] if apposition else "", 1),
    ):
        label = _trimmed(phrase, question, answer)
        if label and len(label.split()) >= min_words:
            return label
    return ""


def _trimmed(phrase: str, question: str, answer: str) -> str:
    """Without words at its ends that say nothing new, but with a preposition before the first that does."""
    known = {w[:4] for w in word_tokens(f"{question} {answer}")}
    words = phrase.split()
    new = [i for i, w in enumerate(words) if any(c[:4] not in known for c in content_words(w))]
    if not new:
        return ""
    first, last = new[0], new[-1]
    while first and words[first - 1].lower() in ("the", "a", "an") and first > 1 and words[first - 2].lower() in _PREPOSITIONS:
        first -= 1
    if first and words[first - 1].lower() in _PREPOSITIONS:
        first -= 1
    if last + 1 < len(words) and len(words[last + 1]) == 1 and words[last + 1].isupper():
        last += 1  # "studio A"
    label = " ".join(words[first : last + 1]).strip(" :,")
    tokens = word_tokens(label)
    fits = (
        not re.search(r"[.:]\s", label)
        and len(tokens) <= MAX_CLAUSE_WORDS
        and not (_REFERS_BACK | _VAGUE) & set(tokens)
        and not label.isdigit()
    )
    return label if fits else ""
