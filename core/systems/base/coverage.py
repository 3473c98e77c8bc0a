"""Does the corpus cover what is asked?  Names, numbers, years and quoted titles in a question need support in an answer's document.

A reader that looks for the winner of the 2022 World Cup in a corpus with the World Cup of 1962 finds one.  The check is lexical and needs no model:
the document of an answer (the title, the passage that it was read from, the retrieved passages of the same title) has to mention what the question
names.  Spelling does not count: case, accents, possessives, plurals, adjectives of countries, initials ("UN"), numerals in digits, words, ordinals
and Roman numerals are the same.  A part of a name is enough where the document uses it alone ("Jobs" for "Steve Jobs"), unless that part is a
common noun: "Bridge" does not support "Brooklyn Bridge".  Names in a question without capitals are not recognised.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeVar

from core import types as t
from core.short_names import key_of, names_in, short_forms, written_in
from core.text import STOPWORDS, answer_key

NamedKind = Literal["name", "number", "year", "title"]
R = TypeVar("R")

# initials ("U.S.", "M*A*S*H"), numerals, words with their apostrophes
_WORD = re.compile(
    r"(?<![^\W_])[A-Z](?:[.*][A-Z])+(?![^\W_])|\d+(?:[.,]\d+)*(?:st|nd|rd|th|s)?(?![^\W_])|[^\W_]+(?:['’][^\W\d_]+)*"
)
_BRACKETS = re.compile(r"\([^)]{0,200}\)")
BETWEEN = 3  # further words that may be between those of a name
_QUOTED = re.compile(r"[\"“«]([^\"”»]{2,120})[\"”»]|(?<!\w)[‘']([^’']{2,120})[’'](?!\w)")
_POSSESSIVE = re.compile(r"['’]s?$")
# words that begin a question or a sentence, or are capitalised for another reason
_NO_NAMES = STOPWORDS | frozenset(
    "i you he she we they me my your his her our their name list tell give show find can could will would should may might must shall if "
    "after before during since until while between under over about into than then there here not no any some all each every both more "
    "most other also only first last mr mrs ms dr sir st saint".split()
)
_DAYS = frozenset(
    "january february march april may june july august september october november december "
    "monday tuesday wednesday thursday friday saturday sunday".split()
)
_SMALL = frozenset("of the for de la le du des del der di da von van y a an et el al".split())
_UNITS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty"
_ORDINALS = (
    "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth "
    "seventeenth eighteenth nineteenth twentieth"
)
_CARDINALS = frozenset(_UNITS.split())
_NUMERALS = {w: i for words in (_UNITS, _ORDINALS) for i, w in enumerate(words.split())}
_ROMAN = re.compile(r"(?=[IVX])(X{0,3})(IX|IV|V?I{0,3})")
_ROMAN_VALUE = {"I": 1, "V": 5, "X": 10}
# adjectives that share too few letters with their country
_ADJECTIVES = {
    adjective: country
    for country, adjectives in {
        "france": "french frenchman",
        "spain": "spanish",
        "england": "english englishman",
        "ireland": "irish irishman",
        "wales": "welsh welshman",
        "scotland": "scottish scots scot",
        "netherlands": "dutch holland",
        "switzerland": "swiss",
        "greece": "greek",
        "denmark": "danish danes dane",
        "poland": "polish poles pole",
        "turkey": "turkish turks turk",
        "sweden": "swedish swedes swede",
        "finland": "finnish finns finn",
        "iceland": "icelandic",
        "thailand": "thai",
        "britain": "british uk",
        "venice": "venetian",
        "madagascar": "malagasy",
        "portugal": "portuguese",
        "norway": "norwegian",
        "germany": "german germans",
        "america": "us usa american americans",
        "soviet": "ussr soviets",
    }.items()
    for adjective in adjectives.split()
}
_ENDING = re.compile(r"(?:ians?|ans?|ese|ish|ic|ia|s|y|n|a|e|o)$")
# "before 1992": the year need not be in the document
_BOUNDS = frozenset("before after since until till by between from over under above below than about around and or to".split())
# two questions, or two names of which one is enough
_PARTS = re.compile(r"\bor\b|\band (?:who|whom|whose|what|which|when|where|why|how|in|at|on|for|by)\b", re.IGNORECASE)
# what texts in English often leave out, and how they name it
_UNDERSTOOD = frozenset(("america", "britain", "england", "earth", "moon"))
_COUNTRIES = (
    (re.compile(r"\bUnited States(?: of America)?\b"), "US"),
    (re.compile(r"\b(?:United Kingdom|Great Britain)\b"), "UK"),
)
# titles before a name, as often left out
_HONORIFICS = frozenset(
    "captain king queen emperor empress president general admiral colonel sir dame lord lady doctor dr professor pope saint prince princess mr mrs "
    "senator chancellor judge".split()
)
_RANGE = re.compile(
    r"\b(1\d{3}|20\d{2})\b[^.;]{0,40}?(?:-|–|—|\bto\b|\buntil\b|\btill\b|\bthrough\b|\band\b)[^.;]{0,20}?\b(1\d{3}|20\d{2}|\d{2})\b"
)


@dataclass(frozen=True)
class NamedThing:
    """Something that a question takes for granted.  `parts`: keys of a name's words, between its small words; `value`: of a number or year."""

    kind: NamedKind
    text: str
    parts: tuple[tuple[str, ...], ...] = ()
    value: int = 0
    unit: Literal["", "decade", "century"] = ""

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(word for part in self.parts for word in part)


@lru_cache(maxsize=65_536)
def _folded(word: str) -> str:
    """Lower case, without accents, possessives and the marks between initials."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c)).casefold()
    return _POSSESSIVE.sub("", plain).replace("’", "'").replace(".", "").replace("*", "")


@lru_cache(maxsize=65_536)
def _stem(word: str) -> str:
    """What a folded word shares with its plural, and a country with its adjective.

    >>> _stem("germany") == _stem("german"), _stem("bridges") == _stem("bridge"), _stem("french") == _stem("france")
    (True, True, True)
    """
    word = _ADJECTIVES.get(word, word)
    for _ in range(3):
        shorter = _ENDING.sub("", word)
        if len(shorter) < 4 or shorter == word:
            break
        word = shorter
    return word


def _number(word: str) -> int | None:
    """The value of a numeral: digits, a word, an ordinal, a Roman numeral in capitals.

    >>> _number("1,200"), _number("2nd"), _number("second"), _number("VIII"), _number("I"), _number("3DS")
    (1200, 2, 2, 8, None, None)
    """
    word = _POSSESSIVE.sub("", word)
    digits = word.replace(",", "")
    if match := re.fullmatch(r"(\d+)(?:st|nd|rd|th|s)?", digits):
        return int(match[1])
    if (value := _NUMERALS.get(word.casefold())) is not None:
        return value
    if len(word) > 1 and _ROMAN.fullmatch(word):
        values = [_ROMAN_VALUE[c] for c in word]
        return sum(-v if v < max(values[i:]) else v for i, v in enumerate(values))
    return None


# nouns that many names share; a document that has them and not the rest of a name does not mention it
_GENERIC = frozenset(
    "academy act airport album army art association award bank battle bay bible bridge building canal cape castle cathedral championship church "
    "city club college company congress contest council county court cup day district east empire festival film final force fort forest game "
    "garden grand great group hall high hill history holy hospital hotel house institute international island king kingdom lake law league "
    "library line little lord man match medal men minister mission mount mountain museum music national network new night north novel "
    "observatory ocean office old olympic open opera order organization palace park party peace people play port president prime prince "
    "princess prix prize queen race radio railway records republic revolution river road rock rover royal saint school sea season series "
    "service show society song sonata song south spring square stadium state station story street strike summer symphony system team "
    "telescope temple test theatre theater time tour tower trade treaty tunnel union united university valley village war water west winter "
    "woman women world".split()
)


@dataclass(frozen=True)
class _Word:
    text: str
    key: str  # the stem, or "#" and the value of a numeral
    start: int
    end: int
    capital: bool

    @property
    def folded(self) -> str:
        return self.text.casefold()


@lru_cache(maxsize=4_096)
def _words(text: str) -> tuple[_Word, ...]:
    out = []
    for m in _WORD.finditer(text):
        word = m.group()
        value = _number(word)
        cardinal = word.islower() and word in _CARDINALS  # "in four movements" is no Symphony No. 4
        key = _stem(_folded(word)) if value is None or cardinal else f"#{value}"
        out.append(_Word(word, key, m.start(), m.end(), any(c.isupper() for c in word)))
    return tuple(out)


def claims(question: str) -> tuple[NamedThing, ...]:
    """What the question names: titles in quotes first, the rest in its order.

    >>> [(c.kind, c.text) for c in claims("Who won the 2022 World Cup?")]
    [('year', '2022'), ('name', 'World Cup')]
    """
    for country, short in _COUNTRIES:
        question = country.sub(short, question)
    things: list[NamedThing] = []
    for m in _QUOTED.finditer(question):
        text = m[1] or m[2]
        if title := tuple(w.key for w in _words(text) if w.folded not in _SMALL):
            things.append(NamedThing("title", text, (title,)))
    unquoted = _QUOTED.sub(lambda m: "," * len(m.group()), question)
    words = _words(unquoted)
    letters = [w for w in words if w.text.isalpha() and len(w.text) > 1]
    shouted = 2 * sum(w.text.isupper() for w in letters) > len(letters)
    name_words: list[_Word] = []
    for i, w in enumerate(words):
        previous = words[i - 1] if i else None
        if name_words and previous and (unquoted[previous.end : w.start].strip(" -–.") or _POSSESSIVE.search(previous.text)):
            things += _names_of(name_words, unquoted)
            name_words = []
        plain_word = _POSSESSIVE.sub("", w.text)
        if w.key[0] == "#" and (plain_word[0].isdigit() or plain_word.isupper()):
            value = int(w.key[1:])
            if name_words and value < 1000:  # Apollo 14, Henry VIII
                name_words.append(w)
            elif not (previous and previous.folded in _BOUNDS):
                things.append(_number_claim(plain_word, value, words[i + 1].folded if i + 1 < len(words) else ""))
            continue
        starts = i == 0 and not (len(words) > 1 and words[1].capital)  # any word that begins a question is capitalised
        if (
            not shouted and w.capital and not starts and (name_words or w.folded not in _NO_NAMES) and w.folded not in _DAYS
        ) or (name_words and w.folded in _SMALL and (w.folded != "the" or name_words[-1].folded in _SMALL)):
            name_words.append(w)
        else:
            things += _names_of(name_words, unquoted)
            name_words = []
    things += _names_of(name_words, unquoted)
    return tuple(dict.fromkeys(things))


def _names_of(name_words: Sequence[_Word], question: str) -> list[NamedThing]:
    while name_words and name_words[-1].folded in _SMALL:
        name_words = name_words[:-1]
    optional = _HONORIFIC_KEYS | _UNDERSTOOD_KEYS
    has_telling_word = any(w.folded not in _SMALL and w.key not in optional for w in name_words)
    parts: list[list[str]] = [[]]
    for w in name_words:
        if w.folded in _SMALL:
            parts.append([])
        elif not has_telling_word or w.key not in optional:
            parts[-1].append(w.key)
    words = [word for part in parts for word in part]
    if not words or (len(words) == 1 and (words[0] in _UNDERSTOOD_KEYS or len(words[0]) < 3)):
        return []
    return [NamedThing("name", question[name_words[0].start : name_words[-1].end], tuple(tuple(p) for p in parts if p))]


def _number_claim(text: str, value: int, following: str) -> NamedThing:
    if following.startswith("centur"):
        return NamedThing("year", f"{text} {following}", (), value, "century")
    if text.endswith("s") and value >= 1000:
        return NamedThing("year", text, (), value, "decade")
    return NamedThing("year" if 1000 <= value < 2100 and "," not in text else "number", text, (), value)


@dataclass(frozen=True)
class Document:
    """What the retrieved passages have of one title.  `subject`: keys of the names in the title, without what is in brackets."""

    text: str
    subject: frozenset[str]
    words: tuple[_Word, ...]
    keys: frozenset[str]
    numbers: frozenset[int]

    @classmethod
    def from_texts(cls, title: str, texts: Iterable[str]) -> Document:
        text = ". ".join((title, *texts))
        words = _words(text)
        numbers = {n for w in words if (n := _number(w.text)) is not None}
        for first, last in _RANGE.findall(text):
            end = int(last) if len(last) == 4 else int(first[: 4 - len(last)] + last)
            if int(first) <= end <= int(first) + 150:
                numbers |= set(range(int(first), end + 1))
        subject = frozenset(w.key for w in _words(_BRACKETS.sub("", title)) if w.capital or w.key[0] == "#")
        return cls(text, subject, words, frozenset(w.key for w in words), frozenset(numbers))

    def supports(self, claim: NamedThing, common: frozenset[str]) -> bool:
        """`common`: keys of words that are no names, because passages have them in lower case."""
        if claim.kind in ("number", "year"):
            if claim.unit == "century":
                return claim.value in self.numbers or any((n - 1) // 100 + 1 == claim.value for n in self.numbers)
            if claim.unit == "decade":
                return any(claim.value <= n < claim.value + 10 for n in self.numbers)
            return claim.value in self.numbers
        if self._has_all_nearby(claim.words) or self._abbreviates(claim):
            return True
        if claim.kind == "title":
            return False
        if len(claim.parts) > 1:  # "Lomas of Yorkshire": both, anywhere
            return all(self._has_all_nearby(p) or self._in_part(p, common) for p in claim.parts)
        return self._in_part(claim.words, common)

    def mentions(self, claim: NamedThing, common: frozenset[str]) -> bool:
        """Whether it supports what is named, or has any telling word of it."""
        return self.supports(claim, common) or not (self.keys - common - _GENERIC_KEYS).isdisjoint(claim.words)

    def _has_all_nearby(self, name: Sequence[str]) -> bool:
        """Whether all words of a name are close to each other, in any order ("Second World War"), or begin such a name ("Les Mis")."""
        keys, first = [w.key for w in self.words], set(name[:-1])
        if len(name) == 1 or not first <= self.keys:
            return self.keys.issuperset(name)
        if len(name[-1]) > 2 and any(
            tuple(keys[i - len(name) + 1 : i]) == tuple(name[:-1]) and key.startswith(name[-1]) for i, key in enumerate(keys)
        ):
            return True
        name_keys, size = set(name), len(name) + BETWEEN
        return name_keys <= self.keys and any(
            k in name_keys and name_keys <= set(keys[i : i + size]) for i, k in enumerate(keys)
        )

    def _abbreviates(self, claim: NamedThing) -> bool:
        if len(claim.words) == 1:
            key = key_of(claim.text)
            return 1 < len(key) <= 6 and any(key in short_forms(name) for name in names_in(self.text))
        return bool(short_forms(claim.text) & written_in(self.text))

    def _in_part(self, name: Sequence[str], common: frozenset[str]) -> bool:
        """The name's words apart from each other, a part of it that the document is about, or the first or last name alone."""
        if any(c.isdigit() for word in set(name) - self.keys for c in word):
            return False
        if len(name) > 1 and self.keys.issuperset(name) and name[-1] not in _GENERIC_KEYS:
            return True
        telling = {w for w in name if w in self.keys and w not in common and w not in _GENERIC_KEYS and w[0] != "#"}
        other = self.subject - _GENERIC_KEYS - set(name)  # the document is about something else
        if telling & self.subject and not other:
            return True
        # Brooklyn is no bridge, and what another Legoland has is not of this one
        surname_only = name[-1] in _GENERIC_KEYS or bool(telling & self.subject)
        alone = {name[-1]} if surname_only else {name[0], name[-1]}
        return any(word in telling and self._alone(word, name) for word in alone)

    def _alone(self, word: str, name: Sequence[str]) -> bool:
        """Whether a word of a name is somewhere without a capitalised word of another name before or after it."""
        for i, w in enumerate(self.words):
            if w.key == word and w.capital:
                neighbours = (*self.words[max(0, i - 1) : i], *self.words[i + 1 : i + 2])
                adjacent = (v for v in neighbours if self.text[min(v.end, w.end) : max(v.start, w.start)] == " ")
                if not any(v.capital and v.key not in name and v.folded not in _NO_NAMES for v in adjacent):
                    return True
        return False


_GENERIC_KEYS = frozenset(map(_stem, _GENERIC))
_UNDERSTOOD_KEYS = frozenset(map(_stem, _UNDERSTOOD))
_HONORIFIC_KEYS = frozenset(map(_stem, _HONORIFICS))


def common_words(passages: Iterable[t.Passage]) -> frozenset[str]:
    """Keys of the words that the passages have in lower case."""
    return frozenset(w.key for p in passages for w in _words(p.text) if not w.capital)


def _missing(question: str, things: Sequence[NamedThing], document: Document, common: frozenset[str]) -> tuple[NamedThing, ...]:
    unsupported = tuple(c for c in things if not document.supports(c, common))
    if any(c.kind != "name" or document.subject & set(c.words) for c in unsupported):
        return unsupported
    # a document about something that the question names need not repeat where, when or for whom
    is_its_subject = bool(document.subject) and document.subject <= {w.key for w in _words(question)}
    return () if is_its_subject or (len(unsupported) < len(things) and _PARTS.search(question)) else unsupported


def missing(question: str, sources: Iterable[str], passages: Sequence[t.Passage]) -> tuple[NamedThing, ...]:
    """What the question names and no document supports, of the document that supports most of it; () if one supports enough.

    `sources`: ids of the passages from which an answer was read; if none of them is among `passages`, all passages count as one document.
    """
    things = claims(question)
    if not things:
        return ()
    common = common_words(passages)
    source_ids = set(sources)
    titles = dict.fromkeys(p.title for p in passages if p.id in source_ids)
    documents = [Document.from_texts(title, [p.text for p in passages if p.title == title]) for title in titles]
    if not documents:
        documents = [_one_document(passages)]
    return min((_missing(question, things, d, common) for d in documents), key=len)


def unmentioned(question: str, passages: Sequence[t.Passage]) -> tuple[NamedThing, ...]:
    """The names in a question if the passages supplied with it mention none of them, and the years that they lack.

    A person who supplies a fragment ("Laid down in 1746") knows what it is about, so one mention in any of them is enough.
    """
    things, common, document = claims(question), common_words(passages), _one_document(passages)
    names = tuple(c for c in things if c.kind in ("name", "title"))
    years = tuple(c for c in things if c.kind == "year" and not document.supports(c, common))
    return years if any(document.mentions(c, common) for c in names) else (*names, *years)


def _one_document(passages: Sequence[t.Passage]) -> Document:
    return Document.from_texts("", [f"{p.title}. {p.text}" for p in passages])


class Coverage:
    """The check of one run: which answers are refused, and why the run ended when none remains."""

    def __init__(self, question: t.Question, passages: Iterable[t.RetrievedPassage], enabled: bool = True) -> None:
        """`question`: as it is read, with short names spelled out.  Passages supplied with it are checked less strictly (`unmentioned`)."""
        self.question, self.enabled = question, enabled
        self.passages = {p.passage.id: p.passage for p in passages}
        self.answers: set[str] = set()  # those that remain
        self.refused: dict[str, tuple[NamedThing, ...]] = {}

    def refusal(self, answer: str, sources: Iterable[str]) -> str:
        """Why an answer that was read from these passages (ids) is refused, or an empty text."""
        if missing_things := self._lacks(sources) if self.enabled else ():
            self.refused[answer] = missing_things
            return f"its document does not mention {_listed(missing_things)}"
        self.answers.add(answer)
        return ""

    def _lacks(self, sources: Iterable[str]) -> tuple[NamedThing, ...]:
        text, passages = self.question.text, list(self.passages.values())
        return missing(text, sources, passages) if self.question.passages is None else unmentioned(text, passages)

    def checked(self, events: Generator[t.Event, None, R]) -> Generator[t.Event, None, R]:
        """The events, with an AnswerRejected after each answer that is refused.  Answers that a person pinned, and those of interpretations
        that were `accepted`, are not checked."""
        while True:
            try:
                event = next(events)
            except StopIteration as end:
                result: R = end.value
                return result
            yield event
            match event:
                case t.PassagesRetrieved(passages=retrieved):
                    for p in retrieved:
                        self.passages.setdefault(p.passage.id, p.passage)
                case t.StepFinished(answer=t.Answer(pinned=True) as answer):
                    self.answers.add(answer.text)
                case t.StepFinished(answer=t.Answer() as answer) if answer.text not in self.answers:
                    if reason := self.refusal(answer.text, [e.passage_id for e in answer.evidence]):
                        yield t.AnswerRejected(answer.text, reason)
                case t.AnswerRejected(answer=text):
                    self.answers.discard(text)

    def accepted(self, interpretations: Iterable[t.Interpretation]) -> tuple[list[t.Interpretation], list[t.AnswerRejected]]:
        """The interpretations that are not refused, and the answers that only refused ones have."""
        accepted: list[t.Interpretation] = []
        refusals: dict[str, t.AnswerRejected] = {}
        for i in interpretations:
            if reason := self.refusal(i.answer, [i.passage_id]):
                refusals.setdefault(answer_key(i.answer), t.AnswerRejected(i.answer, reason))
            else:
                accepted.append(i)
        keys = {answer_key(i.answer) for i in accepted}
        return accepted, [event for key, event in refusals.items() if key not in keys]

    def final_reason(self, reason: str) -> str:
        """Why the run ended: `reason`, unless every answer was refused."""
        if self.answers or not self.refused:
            return reason
        missing_things = min(self.refused.values(), key=len)
        source = "the passages do" if self.question.passages is not None else "the corpus does"
        return f"{source} not cover the question: no document with an answer mentions {_listed(missing_things)}"


def _listed(things: Sequence[NamedThing]) -> str:
    return " and ".join(f"'{c.text}'" for c in things)
