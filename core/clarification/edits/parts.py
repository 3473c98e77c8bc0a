"""The single questions in a double question."""

from __future__ import annotations

import re

from core.clarification.edits.shared import BOTH, MONTHS, PART, YEAR

_DONE = {
    "wrote": "written", "made": "made", "found": "found", "built": "built", "sang": "sung", "won": "won", "shot": "shot", "stole": "stolen",
    "took": "taken", "gave": "given", "began": "begun", "drew": "drawn", "led": "led", "held": "held", "sent": "sent", "cut": "cut",
}  # fmt: skip
_DATE = re.compile(rf"\b({MONTHS})\b|{YEAR.pattern}|\b\d+(st|nd|rd|th) century\b|\b(BC|AD)\b")


def fits(asking: str, answer: str) -> bool:
    """False if the answer cannot answer a question that begins so: "when" needs a date, "who" and "where" exclude one."""
    asking = asking.lower()
    dated = bool(_DATE.search(answer))
    if asking.startswith(("when", "what year", "which year", "what date", "on what date", "in what year", "in which year")):
        return dated
    if asking.startswith(("how many", "how much", "how tall", "how long", "how old")):
        return bool(re.search(r"\d", answer)) or not answer[:1].isupper()
    return not (asking.startswith(("who", "where")) and dated)


def parts(question: str, answer: str) -> list[str]:
    """The single questions in a double one that the answer can answer; [] if the question asks one thing.

    >>> parts("Who found penicillin and when?", "September 1928")
    ['When was penicillin found?']
    """
    body = question.strip().rstrip("?").rstrip()
    both = BOTH.match(body)
    if both:
        split = [f"{both['a']} {both['rest']}", f"{both['b']} {both['rest']}"]
    elif match := PART.match(body):
        first, second = match["first"], match["second"]
        split = [first]
        agent = re.match(
            r"^(?:who|which \w+|what \w+)\s+(?P<verb>(?!did\b|does\b|was\b|is\b|were\b|are\b)\w+)\s+(?P<thing>.+)$",
            first,
            re.IGNORECASE,
        )
        thing = agent["thing"] if agent else ""
        if not thing:  # "what year did Toy Story come out"
            other = re.match(r"^.*?\b(?:did|does|was|is|were|are)\s+(?P<thing>(?:the\s+)?[A-Z]\S*(?:\s+[A-Z]\S*)*)", first)
            thing = other["thing"] if other else ""
        asked = re.match(r"^(?:which|what) (?P<thing>.+?) (?P<aux>was|were|is) (?P<rest>.+)$", first, re.IGNORECASE)
        alone = re.fullmatch(r"when|where|(?:at|in|on) (?:what|which) \w+", second, re.IGNORECASE)
        if alone and asked:
            split.append(f"{second} {asked['aux']} the {asked['thing']} {asked['rest']}")
        elif alone and agent:
            verb = agent["verb"].lower()
            done = _DONE.get(verb) or (verb if verb.endswith("ed") else "")
            split += [f"{second} was {thing} {done}"] if done else []
        elif re.search(r"\b(it|they|he|she)\b", second) and thing:
            split.append(re.sub(r"\b(it|they|he|she)\b", lambda _: thing, second, count=1))
        elif re.match(r"^who (was|is) the (\w+)$", second, re.IGNORECASE) and thing:
            split.append(f"{second} of {thing}")
        elif not alone and len(second.split()) > 2:
            split.append(second)
    else:
        return []
    return [f"{s[:1].upper()}{s[1:]}?" for s in split if fits(s, answer)]
