"""The single questions in a double question."""

from __future__ import annotations

import re

from core.disambiguation.evidence import MONTHS, YEAR

# a double question: "Who found penicillin and when?", "When and where did Napoleon die?"
TWO_PARTS = re.compile(
    r"^(?P<first>.+?),?\s+and\s+(?P<second>(?:when|where|who|what|which|how|why|(?:at|in|on) (?:what|which))\b.*)$",
    re.IGNORECASE,
)
TWO_WORDS = re.compile(r"^(?P<a>when|where|who|how|why)\s+and\s+(?P<b>when|where|who|how|why)\s+(?P<rest>.+)$", re.IGNORECASE)

_PARTICIPLES = {
    "wrote": "written", "made": "made", "found": "found", "built": "built", "sang": "sung", "won": "won", "shot": "shot", "stole": "stolen",
    "took": "taken", "gave": "given", "began": "begun", "drew": "drawn", "led": "led", "held": "held", "sent": "sent", "cut": "cut",
}  # fmt: skip
# how the first half names its subject, which the second half calls "it": "what year did Toy Story come out", "who was the architect of the Eiffel Tower",
# "what is the parliament of Iceland called", "when was the airship Hindenburg lost"
_ASKED_OF = (
    re.compile(r"^.*?\b(?:did|does|was|is|were|are)\s+(?P<thing>(?:the\s+)?[A-Z]\S*(?:\s+[A-Z]\S*)*)"),
    re.compile(r"^who (?:was|is|were|are) the [a-z]+ of (?P<thing>.+)$", re.IGNORECASE),
    re.compile(r"^what (?:was|is) (?P<thing>the .+) called$", re.IGNORECASE),
    re.compile(
        r"^(?:when|where|how|(?:in|on|at) (?:what|which) \w+) (?:was|were) (?P<thing>the .+[A-Z]\S*) [a-z]+$", re.IGNORECASE
    ),
)
_HAPPENED = re.compile(
    r"^the (?:founding|foundation|birth|death|invention|discovery|building) of ", re.IGNORECASE
)  # it is not what "it" is
_PRONOUN = re.compile(r"\b(?:it|they|he|she)\b")
_POSSESSIVE = re.compile(r"\b(?:its|their|his|her) (?P<what>[a-z]+)\b")
_ASKS_A_THING = re.compile(
    r"(?:(?:in|on|at|from) )?(?:which|what) (?!year|day|date|month|century|decade|season|time|is|was|are|were|did|does)\w+"
)
_DATE = re.compile(rf"\b({MONTHS})\b|{YEAR.pattern}|\b\d+(st|nd|rd|th) century\b|\b(BC|AD)\b")


def fits(asking: str, answer: str) -> bool:
    """False if the answer cannot answer a question that begins so: "when" needs a date; "who", "where" and "which city" exclude one."""
    asking = asking.lower()
    dated = bool(_DATE.search(answer))
    if asking.startswith(("when", "what year", "which year", "what date", "on what date", "in what year", "in which year")):
        return dated
    if asking.startswith(("how many", "how much", "how tall", "how long", "how old")):
        return bool(re.search(r"\d", answer)) or not answer[:1].isupper()
    return not (dated and (asking.startswith(("who", "where")) or _ASKS_A_THING.match(asking)))


def parts(question: str, answer: str) -> list[str]:
    """The single questions in a double one that the answer can answer; [] if the question asks one thing.

    >>> parts("Who found penicillin and when?", "September 1928")
    ['When was penicillin found?']
    """
    body = question.strip().rstrip("?").rstrip()
    double = TWO_WORDS.match(body)
    if double:
        split = [f"{double['a']} {double['rest']}", f"{double['b']} {double['rest']}"]
    elif match := TWO_PARTS.match(body):
        first, second = match["first"], match["second"]
        split = [first]
        agent = re.match(
            r"^(?:who|(?:which|what) (?!is\b|was\b|are\b|were\b)\w+)\s+(?P<verb>(?!did\b|does\b|was\b|is\b|were\b|are\b)\w+)\s+(?P<thing>.+)$",
            first,
            re.IGNORECASE,
        )
        thing = agent["thing"] if agent else ""
        for pattern in _ASKED_OF:
            if not thing and (subject := pattern.match(first)):
                thing = subject["thing"]
        question_of_thing = re.match(r"^(?:which|what) (?P<thing>.+?) (?P<aux>was|were|is) (?P<rest>.+)$", first, re.IGNORECASE)
        alone = re.fullmatch(r"when|where|(?:at|in|on) (?:what|which) \w+", second, re.IGNORECASE)
        if alone and question_of_thing:
            split.append(f"{second} {question_of_thing['aux']} the {question_of_thing['thing']} {question_of_thing['rest']}")
        elif alone and agent:
            verb = agent["verb"].lower()
            participle = _PARTICIPLES.get(verb) or (verb if verb.endswith("ed") else "")
            split += [f"{second} was {thing} {participle}"] if participle else []
        elif pronoun := _PRONOUN.search(second) or _POSSESSIVE.search(second):
            if thing and not (
                agent and pronoun[0].split()[0] in ("he", "she", "his", "her")
            ):  # who did it, which is the answer
                name = _HAPPENED.sub("", thing)
                split.append(
                    pronoun.re.sub(
                        lambda reference: f"the {reference['what']} of {name}" if pronoun.re is _POSSESSIVE else name,
                        second,
                        count=1,
                    )
                )
        elif re.match(r"^who (was|is) the (\w+)$", second, re.IGNORECASE) and thing:
            split.append(f"{second} of {thing}")
        elif not alone and re.search(r"\s[A-Z\d]", second):  # it names what it asks about
            split.append(second)
    else:
        return []
    return [f"{s[:1].upper()}{s[1:]}?" for s in split if fits(s, answer)]
