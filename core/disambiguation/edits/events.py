"""Which event a date or a place in a sentence belongs to: the verb it goes with, and whether the question asks about
it.

"Heath Ledger had died in January; the Academy honoured him in 2009": neither date is the film's.  "The bridge opened
after the President pressed a key in Washington": the bridge is not in Washington.  Small classes of words tell events
apart; a verb of no class counts in the answer's clause, or where the question has it too.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# the words of an event, by their beginnings; the longest one that fits decides
_CLASSES = {
    "award": "award honour honor nominat prize oscar academy medal laureate trophy",
    "life": "born birth die death dead buried murder assassinat educat grew childhood study studied train retir",
    "move": "brought came come arriv return travel visit emigrat settle left leave enter",
    "found": "found establish",
    "win": "win won beat defeat champion score lose lost victor triumph",
    "play": "play portray voice star sing sang sung perform appear acted acting cast narrat danc",
    "make": "direct writ wrot compos produc design buil creat invent paint sculpt develop made make discover translat illustrat adapt draw drew carv",
    "release": "releas premier publish open stag launch air broadcast debut issue print began begin start shown sale",
    "office": "host elect appoint succe crown reign rul chair captain coach manag lead led presid serv becom became took take hold held marr "
    "name head own employ hire replac join promot inaugurat",
    "record": "set broke record surpass overtak overtook measur rank grow rise rose rais stood stand count reach",
    "end": "end clos cancel demolish sank sink burn dissolv abolish cease finish resign stop disband fell fall destroy",
    "be": "is are was were been be has have had",
}
_CLASS_OF = {begin: name for name, begins in _CLASSES.items() for begin in begins.split()}
_LONGEST = sorted(_CLASS_OF, key=len, reverse=True)
_OTHER_EVENTS = frozenset(("award", "life", "move", "found"))  # their dates and places are nobody else's
# a question's class, and the further classes whose dates and places may be its own
_ALSO = {
    "play": {"release", "office"},
    "make": {"release", "found"},
    "found": {"release", "make"},
    "release": {"play", "reach"},
    "win": {"award", "record"},
    "award": {"win"},
    "office": {"be", "end"},
    "record": {"be", "end"},
    "be": {"office", "record", "end"},
}
_CUT = re.compile(
    r"(?P<main>[;:–—(),](?!\s+(?:\w+ed|brought|taken|made|built|held|led|sent|born|known|the|an?|son|daughter|once|then)\s)(?:\s+(?:and|but|or|then)\b)?"
    r"|\s(?:and|but)\s(?=\w+ed\b))|(?P<apart>,(?=\s))"
    r"|(?:^|(?<=\s))(?P<other>who|which|whose|where|that|whom|after|before|although|though|because|until|since|once)\s(?!(?:\w+\s+)?\d{4})"
    r"|(?:^|(?<=\s))(?P<while>when|while|whereas)\b",
    re.IGNORECASE,
)
_PARTICIPLE = re.compile(r"(?:\w+ed|Born|Brought|Taken|Made|Built|Held|Led|Sent|Known)\b(?=[^,]*,)")
_WORD = re.compile(r"[^\W\d_][\w’'-]*")
_BE = frozenset(_CLASSES["be"].split())
_STATE = re.compile(r"^(?:who|what|which\b.*?)(?:['’]s|\s+(?:is|was|are|were))\b", re.IGNORECASE)
# asked of the present: a past date holds only where the text tells of a change
_PRESENT = re.compile(
    r"^(?:(?:who|what|where|which\b.*?)(?:['’]s|\s+(?:is|are|does|do))|how \w+(?: \w+)? (?:is|are|does|do)|(?:who|which \w+)\s+(?!was|has)\w+s)\b",
    re.IGNORECASE,
)
# what something is or was, not what was done to it
_OF_A_THING = re.compile(r"^(?:[Ww]ho|[Ww]hat|[Ww]hich\b.*?)(?:['’]s|\s+(?:is|was|are|were))\s+(?:the|an?|[A-Z][\w’']*)\b")
_BARE_YEAR = re.compile(r" in \d{4}\?$")
_DATED = re.compile(r"\b\d{4}\b")
_EXCEPT = re.compile(r"\b(?:apart from|except|other than|unlike)\b[^,;]*$", re.IGNORECASE)
_LASTING = re.compile(r"(?:from|between|since|until)\b", re.IGNORECASE)
_SUPERLATIVE = re.compile(
    r"\b\w+est\b|\bmost\b|\brecord\b|^how (?:tall|high|long|deep|big|large|many|much|fast|old)\b", re.IGNORECASE
)
_PRIZE = re.compile(r"\b(?:awards?|prizes?|medals?|oscars?|cups?|trophy|laureate)\b", re.IGNORECASE)


class Clause(NamedTuple):
    """A clause of a sentence: its offsets and its kind."""

    start: int  # offset in the sentence
    end: int
    kind: str  # "main"; "while": at the same time; "other": at another time, or of another thing


class Verb(NamedTuple):
    """A verb: its offset, beginning and class."""

    start: int
    word: str
    kind: str  # a key of _CLASSES, "" for none


def clauses(sentence: str) -> list[Clause]:
    """The sentence's clauses, cut at conjunctions and relative pronouns.

    What follows a comma after a subordinate clause belongs to the main clause again.

    >>> [c.kind for c in clauses("It opened after he pressed a key in Washington, at noon.")]
    ['main', 'other', 'main']
    """
    cuts = [(0, "other" if _PARTICIPLE.match(sentence) else "main")]
    for match in _CUT.finditer(sentence):
        kind = "other" if match.lastgroup == "apart" else match.lastgroup or "main"
        if kind != "main" or cuts[-1][1] == "main" or len(sentence[cuts[-1][0] : match.start()].split()) > 2:
            cuts.append((match.start(), kind))
    ends = [*(start for start, _ in cuts[1:]), len(sentence)]
    return [Clause(start, end, kind) for (start, kind), end in zip(cuts, ends)]


def _class_of(word: str) -> str:
    low = word.lower()
    if low in _BE:
        return "be"
    begin = next((b for b in _LONGEST if low.startswith(b) and len(low) <= len(b) + 4 and b not in _BE), None)
    kind = _CLASS_OF[begin] if begin else ""
    return "" if kind in ("make", "play") and low.endswith(("or", "er", "ress")) else kind  # a director directs something else


def _verbs(text: str) -> list[Verb]:
    """Words that look like a verb or name an event; "was opened" is one verb."""
    verbs = []
    for match in _WORD.finditer(text):
        word = match.group()
        kind = _class_of(word) if word.islower() or not text[: match.start()].strip(" ,;:()") else ""
        if kind == "move" and text[match.end() :].startswith(" out"):
            kind = "release"
        if kind or (word.islower() and len(word) > 4 and word.endswith("ed") and word != "hundred"):
            verbs.append(Verb(match.start(), word.lower(), kind))
    return [v for n, v in enumerate(verbs) if v.kind != "be" or n + 1 == len(verbs) or verbs[n + 1].start - v.start > 18]


def _clause(sentence: str, offset: int) -> Clause:
    return next((c for c in reversed(clauses(sentence)) if c.start <= offset), Clause(0, len(sentence), "main"))


def verb_of(sentence: str, offset: int) -> Verb | None:
    """The verb of the phrase at `offset`: the last one before it in its clause, or before that in the main clause.

    If there is none, the first verb after it.
    """
    own = _clause(sentence, offset)
    behind = None
    for clause in (c for c in reversed(clauses(sentence)) if c.start <= offset and (c.kind == own.kind or c == own)):
        verbs = _verbs(sentence[clause.start : clause.end])
        before = [v for v in verbs if clause.start + v.start < offset]
        if before:
            return before[-1]
        behind = behind or (verbs[0] if verbs else None)
        if own.kind != "main":
            break
    return behind


def _asked(question: str) -> tuple[set[str], set[str]]:
    """(beginnings of the question's verbs, classes of the events that it asks about)."""
    verbs = _verbs(question)
    kinds = {v.kind for v in verbs if v.kind not in ("", "be")}
    for pattern, more in ((_STATE, {"office", "be"}), (_SUPERLATIVE, {"record"}), (_PRIZE, {"award", "win"})):
        kinds |= more if pattern.search(question) else set()
    return {v.word[:4] for v in verbs if v.kind != "be"}, kinds


def said_of_it(question: str, sentence: str, offset: int, answer: int | None, is_time: bool) -> bool:
    """True if the date (`is_time`) or place at `offset` belongs to the event that the question asks about.

    `answer`: offset of the answer in the sentence, None if another sentence contains it.  In a clause with the answer,
    any event that is not foreign counts; for a date, this also holds for a clause at the same time.  Elsewhere the verb
    has to be the question's, or of the same class.
    """
    if _EXCEPT.search(sentence[:offset]):
        return False
    stems, kinds = _asked(question)
    verb = verb_of(sentence, offset)
    if verb is not None and verb.word[:4] in stems:
        return True
    wanted = kinds | {also for k in kinds for also in _ALSO.get(k, ())}
    if verb is not None and verb.kind in _OTHER_EVENTS and verb.kind not in wanted:
        return False
    if answer is None:
        return is_time and verb is not None and verb.kind in kinds and bool(_LASTING.match(sentence, offset))
    mine, its = _clause(sentence, answer), _clause(sentence, offset)
    # "Ted Hughes, who had held it from 1984"
    behind = its.kind == "other" and len(sentence[answer : its.start].split()) in (1, 2, 3)
    together = mine == its or behind or ("other" not in (mine.kind, its.kind) and (is_time or mine.kind == its.kind))
    if _PRESENT.match(question) and is_time:
        return verb is not None and verb.kind in kinds | {"record"} and together
    if verb is not None and verb.kind in wanted:
        return True
    return mine == its or (together and (is_time or verb is None))


def two_held_it(question: str, sentence: str, offset: int, edit: str) -> bool:
    """True if the edit asks what something was in a year of which the text only says that something happened then.

    An office or a record that changed hands in a year was held by two in it.

    >>> text = "Ted Hughes succeeded him in 1984."
    >>> asked = "Who is the Poet Laureate?"
    >>> [two_held_it(asked, text, text.index("1984"), e) for e in ("Who was the Poet Laureate in 1984?", "Who was it from 1984 to 1998?")]
    [True, False]
    """
    if not (_OF_A_THING.match(question) and _BARE_YEAR.search(edit)):
        return False
    verb = verb_of(sentence, offset)
    return verb is None or verb.kind != "be"


def said_of(sentence: str, offset: int, mine: int, others: list[int]) -> bool:
    """True if the phrase at `offset` belongs to the answer at `mine`, not to one of the `others` in the same sentence.

    A phrase belongs to the answer in its clause.  If the clause has several or none, it belongs to the last answer
    before it, or, in a clause that begins with a date, to the first one after it.  An answer with a date in its own
    clause has no other date.

    >>> text = "Ada won in 2011, Eve in 2012 and Ida in 2013."
    >>> [said_of(text, text.index("2012"), text.index(name), [0, 17, 33]) for name in ("Ada", "Eve", "Ida")]
    [False, True, False]
    """
    clause, own = _clause(sentence, offset), _clause(sentence, mine)
    answers = [mine, *others]
    inside = [a for a in answers if clause.start <= a < clause.end]
    if mine not in inside and (inside or _DATED.search(sentence[own.start : own.end])):
        return False
    before, behind = [a for a in inside or answers if a <= offset], [a for a in inside or answers if a > offset]
    dated = _DATED.search(sentence[clause.start : clause.end])
    if not before or (inside and behind and dated and clause.start + dated.start() < min(inside)):
        return mine == min(behind)
    return mine == max(before)
