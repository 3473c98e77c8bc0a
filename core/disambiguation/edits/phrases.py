"""Edits from the sentence: a modifier, a place or a time that it names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from core.disambiguation.edits.shared import MONTHS, NOT_BEFORE_A_NAME, YEAR, append, can_append
from core.text import contains_tokens, content_words, word_tokens

_SMALL = "and|but|by|on|in|at|with|from|for|as|when|where|who|which|that|to|was|were|is|are|had|has|before|after|until|while|because|did|would"
_NAME = r"[A-Z][\w’&-]*(?:'[a-z]{2,}[\w-]*)?"
_PHRASE = re.compile(
    rf"\b(?P<prep>in|at|on|for|as|against)\s+(?P<body>(?:the\s+)?{_NAME}(?:\s+(?:of\s+the\s+|of\s+|and\s+the\s+)?{_NAME}){{0,4}})"
    rf"(?=[,;:.)]?$|[,;:)]|\.\s|\s+(?:{_SMALL})\b)"
)
_STAGE = re.compile(r"^(Broadway|the West End|BBC\b.*|[A-Z]{2,5})$")
_TIME = re.compile(
    rf"\b(?:(?P<range>(?:[Ff]rom|[Bb]etween)\s+(?:(?:{MONTHS})\s+)?\d{{4}}\s+(?:to|until|and|through)\s+(?:(?:{MONTHS})\s+)?\d{{4}})"
    rf"|(?P<bound>(?:[Ss]ince|[Uu]ntil|[Bb]efore|[Aa]fter)\s+(?:(?:{MONTHS})\s+)?\d{{4}})"
    rf"|(?P<day>[Oo]n\s+(?:(?:{MONTHS})\s+\d{{1,2}},\s+\d{{4}}|\d{{1,2}}\s+(?:{MONTHS})\s+\d{{4}}))"
    rf"|(?P<month>[Ii]n\s+(?:(?:{MONTHS})\s+)\d{{4}})|(?P<decade>in\s+the\s+(?:early\s+|late\s+)?\d{{3}}0s)|(?P<year>\d{{4}}))\b(?![–-]\d)"
)
_ASKS_TIME = re.compile(
    r"^(when|(in |on )?(what|which) (year|date|day|month|decade|century)|how long ago|where and when|since when)\b",
    re.IGNORECASE,
)
_NOW = re.compile(r"\b(now|currently|today|current|latest|has|have)\b", re.IGNORECASE)
_PAST = {
    "is": "was", "are": "were", "does": "did", "do": "did", "plays": "played", "sings": "sang", "hosts": "hosted", "holds": "held",
    "runs": "ran", "owns": "owned", "leads": "led", "lives": "lived", "makes": "made", "won": "won", "comes": "came", "wears": "wore",
    "live": "lived", "goes": "went", "stands": "stood", "takes": "took", "uses": "used",
    "voices": "voiced", "coaches": "coached", "manages": "managed", "presents": "presented", "stars": "starred", "writes": "wrote",
}  # fmt: skip


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
    # the verb follows the question word or its noun, and again "that" or "who"
    pattern = re.compile(rf"(?:(?<=^)|(?<=\s))({'|'.join(_PAST)})(?=\s)")
    # "how many stars": what is counted is no verb
    first = next(
        (m for m in pattern.finditer(body) if not re.search(r"\bhow many\s+$", body[: m.start()], re.IGNORECASE)), None
    )
    if first is None:  # a past tense stays as it is, an unknown present one is left alone
        return (
            None
            if re.match(r"^(who|what|(?:which|what|how many) [\w ]+?)\s+(?!was\b)[a-z]+s\b", body, re.IGNORECASE)
            else question
        )
    body = body[: first.start()] + _PAST[first.group()] + body[first.end() :]
    clause = re.compile(rf"\b(that|who|which)\s+({'|'.join(_PAST)})(?=\s)")
    return clause.sub(lambda m: f"{m.group(1)} {_PAST[m.group(2)]}", body)


def time_edits(question: str, text: str) -> Iterator[tuple[int, str]]:
    """(offset in `text`, edit) pairs: the question with a time that the text names."""
    if _ASKS_TIME.match(question) or not can_append(question):
        return
    asked_year = YEAR.search(question)
    dated = bool(re.search(r"\d{4}", question))
    if asked_year and question[: asked_year.start()].endswith(" in "):
        for match in re.finditer(rf"\b(?:{MONTHS})\s+(?:\d{{1,2}},\s+)?{asked_year.group()}\b", text):
            month = match.group().split()[0]
            yield match.start(), f"{question[: asked_year.start()]}{month} {question[asked_year.start() :]}"
    if re.search(r"\bfirst\b", question):
        return  # the first of all times
    for match in _TIME.finditer(text):
        phrase = " ".join(match.group().split())
        phrase = phrase[0].lower() + phrase[1:]
        if _LIFE.search(text[: match.start()]):
            continue
        if not 1000 <= int(re.findall(r"\d{4}", phrase)[-1]) < 2100 or (dated and not phrase.startswith(("from", "until"))):
            continue
        if phrase.startswith("since"):
            if re.match(r"^who is\b", question, re.IGNORECASE):
                yield match.start(), append(re.sub(r"^(\w+) is\b", r"\1 has been", question), phrase)
            continue
        if (past := in_past(question)) is None:
            return
        if match["year"] is not None:
            before = text[max(0, match.start() - 2) : match.start()]
            if before[-1:] in "$£€" or before[-1:].isdigit() or text[match.end() : match.end() + 1].isalnum():
                continue
            phrase = f"in {phrase}"
        yield match.start(), append(past, phrase)
        if match["day"] or match["month"]:
            yield match.start(), append(past, f"in {re.findall(r'[0-9]{4}', phrase)[-1]}")


_UNFINISHED = frozenset(
    "New Old North South East West Great Saint St Mt First Second Third Royal National American British".split()
)
_LIFE = re.compile(r"\b(born|died|buried|raised|educated|grew up|studied|dies|birth|death)\b[^.;]{0,40}$", re.IGNORECASE)
_STATE = re.compile(r"^(who|what|which [\w ]+?)(['’]s| is| was| are| were)\b", re.IGNORECASE)


def phrase_edits(question: str, text: str) -> Iterator[tuple[int, str]]:
    """(offset in `text`, edit) pairs: the question with a place, a cause or a part that the text names."""
    if not can_append(question):
        return
    lowered = question.lower()
    for match in _PHRASE.finditer(text):
        prep, body = match["prep"], match["body"]
        if body.split()[-1] in _UNFINISHED or _LIFE.search(text[: match.start()]):
            continue
        if _STATE.match(question) and not (prep == "on" or body == "the West End" or prep == "as"):
            continue  # a place says little of what something is
        if re.search(r"\bmost\b", lowered):
            continue  # nor of what somebody has most of
        if (
            re.match(rf"({MONTHS})\b", body)
            or re.fullmatch(r"(the\s+)?[A-Z]", body)
            or body in ("I", "He", "She", "It", "They")
        ):
            continue
        if prep == "on" and not _STAGE.match(body):
            continue
        if prep == "for" and not re.search(r"\b(win|won|wins|get|got|receive\w*|award\w*|play\w*|nominated)\b", lowered):
            continue
        if prep == "against" and not re.search(r"\b(win|won|play\w*|score\w*|beat|lose|lost|fight|fought|goal)\b", lowered):
            continue
        if prep == "as" and not (
            body.startswith("the ") and re.search(r"\b(play\w*|actor|act\w*|voice\w*|who was|who is)\b", lowered)
        ):
            continue
        if (
            prep == "in"
            and re.match(r"^(where|in what|in which|which (city|country|town))\b", lowered)
            and not body.startswith("the ")
        ):
            continue  # no place for a question about the place
        yield match.start(), append(question, f"{prep} {body}")


_PLAIN = re.compile(
    rf"\b(?P<prep>for|during|without|to|while)\s+(?P<body>(?:(?:the|a)\s+)?[a-z-]+(?:\s+(?!(?:{_SMALL})\b)[a-z-]+)?"
    rf"|(?:the\s+)?{_NAME}(?:\s+{_NAME}){{0,3}})"
    rf"(?=[,;:)]|\.\s|\.?$|\s+(?:{_SMALL}|a|an|the|up|is|{MONTHS})\b)",
    re.IGNORECASE,
)
_PLAIN_NOT = re.compile(
    r"^(?:it|that|this|which|example|instance|all|most|more|many|some|his|her|its|their|them|him|good|ever|long)\b"
    r"|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twenty|thirty|forty|fifty|hundred|several|few|each)\b"
    r"|\b(?:seconds|minutes|hours|days|nights|weeks|months|seasons|years|decades|centuries|ages|generations|times|reasons|purposes)\b|ly$",
    re.IGNORECASE,
)
_AGAIN = re.compile(r"\b(first|second|third|fourth|fifth|last|next)\b")
_WAY = re.compile(r"\b(open|opened|extend|extended|run|lead|go|travel|fly|reach|move|moved|connect|sail|ride)\b")


def _is_a_class(body: str, before: str) -> bool:
    """True for a class that a rule or price applies to: plurals, or the start of a clause ("for pedestrians")."""
    bare = not body.startswith(("the ", "a ")) and not body.endswith(("ing", "ss"))
    return bare and (body.endswith("s") or before.rstrip()[-1:] in ("", ",", ";"))


def plain_edits(question: str, text: str) -> Iterator[tuple[int, str]]:
    """(offset in `text`, edit) pairs: for whom, to where, when or without what, in the text's own short phrases.

    Examples: "for wool", "to the airport".
    """
    if not can_append(question):
        return
    for match in _PLAIN.finditer(text):
        prep, body = match["prep"].lower(), match["body"]
        if _PLAIN_NOT.search(body) or (prep == "while" and not re.match(r"[a-z-]+ing\b", body)):
            continue
        named = not body.removeprefix("the ").islower()
        opened = (
            prep == "to" and body.endswith("s") and re.search(r"\bopened\s+$", text[: match.start()])
        )  # to vehicles, to visitors
        if prep == "to" and not opened and not (_WAY.search(question.lower()) and (named or body.startswith("the "))):
            continue
        if prep != "to" and named:
            continue  # names are the other templates'
        if prep == "for" and not (_AGAIN.search(body) or _is_a_class(body, text[: match.start()])):
            continue
        if content_words(body) and not contains_tokens(word_tokens(question), word_tokens(body)):
            yield match.start(), append(question, f"{prep} {body}")


_BEHIND = re.compile(
    rf"\s+(?P<phrase>(?:in|on|for|by|without|outside|of|at|from|over)\s+(?:the\s+|a\s+|an\s+)?(?:{_NAME}(?:\s+(?:of\s+)?{_NAME}){{0,3}}"
    rf"|[a-z-]+(?:\s+[a-z-]+)?(?=[,.;:)]))|(?:to|according to)\s+[A-Z]\w+)(?=[,.;:)]|\s+(?:{_SMALL})\b|$)"
)
_MODIFIER = re.compile(r"^[A-Za-z0-9][\w’-]*(?:\s+[A-Za-z0-9][\w’-]*)?$")


def modifier_edits(question: str, text: str) -> Iterator[tuple[int, str]]:
    """(offset in `text`, edit) pairs: words that the text has before or after a noun of the question.

    Example: "the first franchised McDonald's".
    """
    words = [(m.group(), m.start(), m.end()) for m in re.finditer(r"[\w’'-]+", question)]
    text_words = [(m.group(), m.start(), m.end()) for m in re.finditer(r"[\w’'-]+", text)]
    for i in range(len(words) - 1):
        left, right = words[i][0], words[i + 1][0]
        if not content_words(right) or right.lower() in NOT_BEFORE_A_NAME or not right[0].isalnum():
            continue
        for j, (word, begin, end) in enumerate(text_words):
            if word.lower() != left.lower() or (not content_words(left) and left.lower() != "the"):
                continue
            for gap in (1, 2):
                if j + gap + 1 >= len(text_words) or text_words[j + gap + 1][0].lower() != right.lower():
                    continue
                inner = text[end : text_words[j + gap + 1][1]].strip()
                ok = (
                    _MODIFIER.match(inner)
                    and not re.search(r"\b(?:into|over|under|through|about|after|before)\b", inner)
                    and inner not in NOT_BEFORE_A_NAME
                    and len(content_words(inner)) == len(word_tokens(inner))
                )
                # "the franchised McDonald's" is said of it, "McDonald's opened stores" is not
                ok = ok and (left.lower() == "the" or left.lower() in NOT_BEFORE_A_NAME or not inner.endswith(("ed", "ing")))
                following = [w.lower() for w, *_ in text_words[j + gap + 2 : j + gap + 3]]
                # the noun must end where the question's does: "the [New] York Giants" is no modifier
                after = words[i + 2][0] if i + 2 < len(words) else ""
                ends = not content_words(after) or (right[:1].isupper() and after.islower()) or i + 3 == len(words)
                continued = ends or following == [after.lower()]
                if ok and continued:
                    at = words[i][2]
                    yield begin, f"{question[:at]} {inner}{question[at:]}"
    for name in re.finditer(
        rf"(?<!\bthe )(?<!^){_NAME}(?:\s+{_NAME})+", question
    ):  # a name without "the": "the medieval London Bridge"
        for match in re.finditer(rf"\b[Tt]he\s+([a-z0-9][\w-]+)\s+{re.escape(name.group())}\b", text):
            previous = question[: name.start()].split()
            if previous and (previous[-1].lower() in NOT_BEFORE_A_NAME or previous[-1].endswith(("'s", "’s"))):
                break
            if content_words(match.group(1)) and not match.group(1)[0].isdigit() and match.group(1) not in NOT_BEFORE_A_NAME:
                yield match.start(), f"{question[: name.start()]}the {match.group(1)} {question[name.start() :]}"
    for i in range(len(words) - 1):  # two words of the question in a row, and what the text says behind them
        if not content_words(words[i][0]) or not content_words(words[i + 1][0]):
            continue
        after = question[words[i + 1][2] :]
        if after.split() and content_words(after.split()[0]) and not re.match(r"\s+\w+(ed|en)\b", after):
            continue
        for j in range(len(text_words) - 1):
            if [text_words[j][0].lower(), text_words[j + 1][0].lower()] != [words[i][0].lower(), words[i + 1][0].lower()]:
                continue
            behind = _BEHIND.match(text, text_words[j + 1][2])
            if behind and after.strip().startswith(behind["phrase"].split()[0]):
                continue  # the question has its own words there
            if behind and re.match(r"for (the )?[A-Z]", behind["phrase"]):
                continue  # for whom it was done, not which one it is
            if behind and not contains_tokens(word_tokens(question), word_tokens(behind["phrase"])):
                yield text_words[j][1], f"{question[: words[i + 1][2]]} {behind['phrase']}{after}"
