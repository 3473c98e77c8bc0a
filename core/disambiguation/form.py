"""The form of a rewritten question: whether it is one plain English question, whatever it means.

Rules that can be checked without the evidence; core.disambiguation.scoring judges the rest.
"""

from __future__ import annotations

import re

from core.disambiguation.parts import TWO_PARTS, TWO_WORDS
from core.text import content_words, question_key, word_tokens

# a word before a name that makes it another name: "the first World Cup"
NOT_BEFORE_A_NAME = frozenset("first second third last latest next new old original current best only very most".split())
ASKS = re.compile(
    r"^(?:(?:in|on|at|for|from|to|by|with) )?(?:who|whom|whose|what|which|when|where|why|how|is|are|was|were|do|does|did|can)\b",
    re.IGNORECASE,
)
ASKS_TIME = re.compile(
    r"^(?:when|(?:in |on )?(?:what|which) (?:year|date|day|month|decade|century)|how long ago|where and when|since when)\b",
    re.IGNORECASE,
)
_AT_END = re.compile(r"\b(?:in|on|at|to|for|from|with|by|of|about|and)\?*$", re.IGNORECASE)
_NOW = re.compile(r"\b(?:now|currently|today|current|latest|has|have|can|will)\b", re.IGNORECASE)
_PAST = {
    "is": "was", "are": "were", "does": "did", "do": "did", "plays": "played", "sings": "sang", "hosts": "hosted", "holds": "held",
    "runs": "ran", "owns": "owned", "leads": "led", "lives": "lived", "makes": "made", "comes": "came", "wears": "wore", "live": "lived",
    "goes": "went", "stands": "stood", "takes": "took", "uses": "used", "voices": "voiced", "coaches": "coached", "manages": "managed",
    "presents": "presented", "stars": "starred", "writes": "wrote",
}  # fmt: skip
_COMPARED = re.compile(r"\b(?:older|newer|younger|earlier|later|latest|newest|oldest|earliest)\b", re.IGNORECASE)
_PRESENT_OF_A_PAST = re.compile(
    r"^(?!.*\b(?:was|were|did|had)\b).*\b(?:is|are|does|do)\b.*\b(?:in|on) (?:\w+ (?:\d+, )?)?1\d{3}\?$", re.IGNORECASE
)
_STATE = re.compile(r"^(?:who|what) (?:is|was|are|were) (?:the|an?)\b", re.IGNORECASE)
ON_A_DAY = re.compile(r"\bon (?:\d{1,2} )?[A-Z][a-z]+ (?:\d{1,2}, )?\d{4}\?$")


def can_append(question: str) -> bool:
    """True if a phrase can be appended: the question does not end in a preposition and asks one thing."""
    body = question.rstrip().rstrip("?").rstrip()
    return not _AT_END.search(body) and not TWO_PARTS.match(body) and not TWO_WORDS.match(body) and "," not in body[-12:]


def in_past(question: str) -> str | None:
    """The question in the past tense: "Who is" becomes "Who was".  None if the result would not be English.

    >>> in_past("Who plays the Doctor in Doctor Who?")
    'Who played the Doctor in Doctor Who?'
    >>> in_past("How many stars are on the flag?")
    'How many stars were on the flag?'
    """
    if _NOW.search(question):
        return None
    if re.search(r"\b(did|was|were|had)\b", question, re.IGNORECASE):
        return question
    body = re.sub(r"^(\w+)['’]s\b", r"\1 is", question)
    # the verb follows the question word or its noun, and again "that" or "who"; "how many stars": what is counted is no verb
    verbs = re.finditer(rf"(?<=\s)({'|'.join(_PAST)})(?=\s)", body)
    first = next((m for m in verbs if not re.search(r"\bhow many\s+$", body[: m.start()], re.IGNORECASE)), None)
    if first is None:  # a past tense stays as it is, an unknown present one is left alone
        present = re.match(r"^(who|what|(?:which|what|how many) [\w ]+?)\s+(?!was\b)[a-z]+s\b", body, re.IGNORECASE)
        return None if present else question
    body = body[: first.start()] + _PAST[first.group()] + body[first.end() :]
    clause = re.compile(rf"\b(that|who|which)\s+({'|'.join(_PAST)})(?=\s)")
    return clause.sub(lambda m: f"{m.group(1)} {_PAST[m.group(2)]}", body)


def well_formed(prompt: str, question: str) -> bool:
    """False for a rewritten question that is no plain English question, by its words alone.

    Refused: no single question mark at the end; a word said twice, in any form; an article or "which" before another article; a sentence or command in the place of
    a noun; a work or an event in the place of a person; a comparison that the prompt does not make; a day for what lasts; two times.

    >>> well_formed("Which Python version can I use?", "Which the latest version of Python version can I use?")
    False
    """
    if question.count("?") != 1 or not question.endswith("?") or question_key(question) == question_key(prompt):
        return False
    tokens, old = word_tokens(question), word_tokens(prompt)
    plain = re.findall(r"\b[a-z]+\b", question)  # a name may be a work's and a part's: "the Joker in the 2019 movie Joker"
    if any(tokens.count(w) > max(1, old.count(w)) for w in content_words(" ".join(plain)) if plain.count(w) > 1):
        return False
    if re.search(r"\b(\w+) \1\b", question, re.IGNORECASE):
        return False
    stems = {w[:5] for w in old if len(w) > 4}
    if any(w[:5] in stems for w in set(tokens) - set(old) if len(w) > 4):  # "the 1978 Prizes" of a prize
        return False
    if re.search(
        r"\b(?:which|what|the|an?|this|my|your) (?:the|an?)\b|\b(?:an?|the) [A-Z][a-z]+ (?:your|an?|the) ",
        question,
        re.IGNORECASE,
    ):
        return False
    if re.search(r"\ba [aeio]\w|\ban [^aeiouAEIOUhH\W]", question) and not re.search(
        r"\ba [aeio]\w|\ban [^aeiouAEIOUhH\W]", prompt
    ):
        return False
    if _COMPARED.search(question) and not _COMPARED.search(prompt):
        return False
    if (_STATE.match(question) and ON_A_DAY.search(question)) or _PRESENT_OF_A_PAST.match(question):
        return False
    years = [len(re.findall(r"\b\d{4}\b", text)) for text in (prompt, question)]
    return years[1] <= max(1, years[0]) or bool(re.search(r"\b(?:from|between)\b", question))
