"""Finds documents that disagree: different answers to the same meaning of a question, as opposed to answers to different
meanings.

Task: WikiContradict (Hou et al. 2024) and RAMDocs (Wang et al. 2025): one entity, one property, two values.  The rules were chosen on practice questions;
`python -m benchmarks.quality.conflicts` measures them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from core.disambiguation.drafts import place_of
from core.disambiguation.evidence import MONTHS, YEAR, AnswerPlace, split_title
from core.text import comparable, content_words, mentions, overlapping, word_tokens
from core.types import Answer, Passage

MIN_SPECIFIC_WORDS = 6  # content words of a question that can have one meaning where no title says what a passage is about
MIN_COVERAGE = 0.6  # of those words in each of two passages under unrelated titles
MAX_PROSE_WORDS = 3  # longer phrases in lower case cannot be compared
MAX_DATES = 2
FORMS = (
    ("year", re.compile(r"(1\d|20)\d\d")),
    ("date", re.compile(rf"(?s:.*\b({MONTHS})\b.*)")),
    ("percentage", re.compile(r"[\d.,]+%")),
    ("number", re.compile(r"[\d.,]+")),
    ("quantity", re.compile(r"[\d.,]+ \w+")),
    ("name", re.compile(r"([A-Z][\w.'\u2019-]*)( (of|the|de|van|von|and|[A-Z][\w.'\u2019-]*))*")),
)
_TYPES = {"year": "time", "date": "time", "name": "name", "": "prose"}  # every other form is a number
_ASKS_FOR_SEVERAL = re.compile(
    r"^(?:name|list|give)\b|^what are\b|^who (?:are|were) (?:the )?\w+s\b|^(?:which|what) (?:two|three|four|five)\b"
    r"|^(?:\w+ )?(?:which|what) (?!is\b|was\b|does\b|has\b|its\b|his\b)(?:\w+ )?\w*[^\Ws]s (?:are|were|did|do|have)\b",
    re.IGNORECASE,
)
_DATE = re.compile(rf"\b(?:\d{{1,2}} (?:{MONTHS}) |(?:{MONTHS}) (?:\d{{1,2}}, )?)?{YEAR.pattern}")


@dataclass(frozen=True, slots=True)
class PassageClaim:
    """One passage's answer.  `dates`: those in its title and in the sentence with the answer, except the answer itself."""

    answer: str
    passage_id: str
    title: str
    sentence: str
    dates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two or more answers to one meaning, each with the passages that give it."""

    claims: tuple[PassageClaim, ...]

    @property
    def answers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(c.answer for c in self.claims))


def answer_form(answer: str) -> str:
    """An answer's form: year, date, percentage, number, quantity or name; empty for prose.

    >>> [answer_form(a) for a in ("1901", "May 1901", "40%", "31 metres", "Emily Brontë", "it fell")]
    ['year', 'date', 'percentage', 'quantity', 'name', '']
    """
    return next((name for name, pattern in FORMS if pattern.fullmatch(answer)), "")


def conflicts(question: str, answers: Sequence[Answer], passages: Sequence[Passage]) -> tuple[Conflict, ...]:
    """The conflicts among a question's answers, in the order of the answers.

    Two answers disagree if the question asks for one value, both are of one type (a time, a number, a name, a short phrase) and neither contains the
    other, if they are read from two passages neither of which has another answer (a passage with both distinguishes them), and if nothing says that these are about
    different things (`_same_thing`) or different times: years in both sentences, of which none is the same.
    """
    if _ASKS_FOR_SEVERAL.match(question):
        return ()
    by_id = {p.id: p for p in passages}
    groups: list[list[tuple[Answer, AnswerPlace]]] = []
    for answer in answers:
        place = place_of(answer, by_id)
        others = [a.text for a in answers if not overlapping(a.text, answer.text)]
        if place is None or mentions(place.passage.text, others):
            continue
        matches = (g for g in groups if all(_disagree(question, a.text, p, answer.text, place) for a, p in g))
        if (group := next(matches, None)) is None:
            groups.append(group := [])
        group.append((answer, place))
    return tuple(Conflict(tuple(c for a, _ in g for c in _claims(a, by_id))) for g in groups if len(g) > 1)


def _disagree(question: str, a: str, first: AnswerPlace, b: str, second: AnswerPlace) -> bool:
    if first.passage.id == second.passage.id or overlapping(a, b) or not (kind := _type(a)) or kind != _type(b):
        return False
    if any(p.passage.title and overlapping(text, split_title(p.passage.title)[0]) for text, p in ((a, first), (b, second))):
        return False  # a document about the answer itself
    years = [set(YEAR.findall(p.sentence)) - set(YEAR.findall(f"{question} {a} {b}")) for p in (first, second)]
    return (not all(years) or bool(years[0] & years[1])) and _same_thing(question, first.passage, second.passage)


def _type(answer: str) -> str:
    """The type of an answer; empty if it can't be compared."""
    kind = _TYPES.get(answer_form(answer), "number")
    if kind == "prose" and any(c.isdigit() for c in answer):
        return "number"
    return "" if kind == "prose" and len(word_tokens(answer)) > MAX_PROSE_WORDS else kind


def _same_thing(question: str, a: Passage, b: Passage) -> bool:
    """Whether two passages are about the thing that the question names, as far as their titles tell.

    They are if they have one title; if one has the name in the question as its title and the other, under another title, mentions it; and if the question
    is specific (a year, or six content words) and both have no title, or titles without a common word and most of the question's words.
    """
    if a.title and comparable(a.title) == comparable(b.title):
        return True
    words = content_words(question)
    specific = len(words) >= MIN_SPECIFIC_WORDS or bool(YEAR.search(question))
    if not a.title and not b.title:
        return specific
    for x, y in ((a, b), (b, a)):
        base, qualifier = split_title(x.title)
        is_named = mentions(question, [base]) and set(content_words(qualifier)) <= set(words)
        if is_named and not set(content_words(base)) & set(content_words(y.title)) and mentions(y.text, [base]):
            return True
    unrelated = not set(content_words(a.title)) & set(content_words(b.title))
    return specific and unrelated and min(_coverage(words, a), _coverage(words, b)) >= MIN_COVERAGE


def _coverage(words: Sequence[str], passage: Passage) -> float:
    """The share of the words in the passage, by their first five letters."""
    stems = {w[:5] for w in words}
    return len(stems & {w[:5] for w in content_words(f"{passage.title} {passage.text}")}) / len(stems)


def _claims(answer: Answer, passages: dict[str, Passage]) -> list[PassageClaim]:
    """One claim for each passage that the answer was read from."""
    places: dict[str, AnswerPlace] = {}
    for e in answer.evidence:
        if e.passage_id in passages:
            places.setdefault(e.passage_id, AnswerPlace(passages[e.passage_id], e.start))
    claims = []
    for place in places.values():
        date_mentions = [m.group() for text in (place.passage.title, place.sentence) for m in _DATE.finditer(text)]
        dates = tuple(dict.fromkeys(d for d in date_mentions if not overlapping(d, answer.text)))[:MAX_DATES]
        claims.append(PassageClaim(answer.text, place.passage.id, place.passage.title, place.sentence, dates))
    return claims
