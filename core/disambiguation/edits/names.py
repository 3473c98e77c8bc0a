"""Edits from a passage's title: the full, qualified name instead of the question's ambiguous one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from core.disambiguation.edits.shared import NOT_BEFORE_A_NAME, YEAR, append, can_append
from core.short_names import spelled_out
from core.text import content_words, find_spans, word_tokens

_QUALIFIED = re.compile(r"^(?P<base>.+?)\s*\((?P<qualifier>[^()]+)\)$")
_DETERMINER = re.compile(r"\b(the|a|an)\s+$", re.IGNORECASE)
# said before a name and joined with "of": "the second edition of Frankenstein", "the country of Georgia"
_OF = frozenset(
    "edition production version adaptation revival remake recording translation launch performance staging tour arrangement "
    "country city state town county province kingdom".split()
)
_VERSIONS = frozenset("edition production version adaptation revival remake recording translation staging arrangement".split())
_WORKS = frozenset(
    "film movie album song single series show serial sitcom musical opera play novel book story comic game episode painting "
    "ballet soundtrack miniseries documentary".split()
)
_PEOPLE = frozenset(
    "actor actress author aviator character composer explorer inspector painter player poet scientist singer writer".split()
)
_NUMBERED = re.compile(r"(season|series|volume|part|book|act|episode) \d+")
_EVENT = re.compile(
    r"^(?:(?:First|Second|Third|Fourth|Last)\s+)?(?:Battle|Siege|Treaty|Congress|Council|War|Fall)\s+(?:of|in)\b"
)
# a noun of the question, and what its instances are called in a title's qualifier or in the passage
_INSTANCES = {
    "movie": "film movie",
    "film": "film movie",
    "book": "book novel",
    "novel": "novel",
    "song": "song single",
    "album": "album",
    "show": "show series sitcom",
    "series": "series",
    "musical": "musical",
    "game": "game",
    "space station": "space station",
    "rover": "rover",
    "spacecraft": "spacecraft probe",
    "ship": "ship liner",
    "telescope": "telescope",
    "tower": "tower",
    "bridge": "bridge",
    "airship": "airship",
}


def split_title(title: str) -> tuple[str, str]:
    """("West Side Story", "1961 film") from "West Side Story (1961 film)"; without a qualifier, the second is empty."""
    match = _QUALIFIED.match(title)
    return (match["base"], match["qualifier"]) if match else (title, "")


def _is_kind(qualifier: str) -> bool:
    """True for a qualifier that names a kind of thing ("1961 film", "Leonard Cohen song") and can precede the name."""
    last = qualifier.split()[-1]
    return (
        last.isalpha()
        and last.islower()
        and not last.endswith("versions")
        and last not in ("disambiguation", "mythology", "generation", "century", "comics")
    )


def mention(question: str, name: str, adjectives: bool = False) -> tuple[int, int] | None:
    """The (start, end) of `name` in the question as a whole name.

    None if it is part of a longer name or follows an adjective.  `adjectives`: "first" and the like may precede it,
    because the edit comes after the name.
    """
    for begin, end in find_spans(question, name):
        before, after = question[:begin].split(), question[end:].split()
        previous = before[-1] if before else ""
        if (previous.lower() in NOT_BEFORE_A_NAME and not adjectives) or previous.endswith(("'s", "’s")):
            continue
        if len(before) > 1 and previous[:1].isupper():  # "Mount" before "Everest"
            continue
        if question[end : end + 1] in ("'", "’", "-", "–"):
            continue
        if after and question[end : end + 1] == " " and after[0][:1].isupper() and name.islower() is False:
            continue
        return begin, end
    return None


def _drop_the(before: str) -> tuple[str, str]:
    """("Who is ", "the ") from "Who is the "; the article is "" if there is none."""
    match = _DETERMINER.search(before)
    return (before[: match.start()], match.group()) if match else (before, "")


def _join(before: str, middle: str, after: str) -> str:
    """The parts in a row, with "an" before a vowel."""
    if re.search(r"\ba\s+$", before) and re.match(r"[aeioAEIO]", middle):
        before = re.sub(r"\ba(\s+)$", r"an\1", before)
    return f"{before}{middle}{after}"


def _qualified(question: str, base: str, qualifier: str, text: str) -> Iterator[tuple[str, str]]:
    """Edits for a question that names the title without its qualifier."""
    span = mention(question, base)
    if span is None and base.lower().startswith("the "):
        span = mention(question, base[4:])
    if span is None:
        return
    before, name, after = question[: span[0]], question[span[0] : span[1]], question[span[1] :]
    bare, article = _drop_the(before)
    last = qualifier.split()[-1]
    of_a_person = re.search(r"\b(?:the|an?) (\w+)\s+$", bare)
    if article.strip().lower() in ("a", "an") or (of_a_person and of_a_person[1] in _PEOPLE):
        return  # "a martini" is not one cocktail, "the aviator Barrantes" not her film
    if article and not base.lower().startswith("the ") and last in _WORKS:
        return  # "the Joker" is not the film Joker
    if article and base.lower().startswith("the "):
        name = base[:3].lower() + " " + name if not name.lower().startswith("the ") else name
        name = name[:1].upper() + name[1:]
    kind_before = re.search(rf"\b(?:the\s+)?{re.escape(last)}\s+$", before, re.IGNORECASE)
    if not kind_before and last in _WORKS and bare.split()[-1:] and bare.split()[-1] in _WORKS:
        return  # "the game Mortal Kombat" is not the film
    if _NUMBERED.fullmatch(qualifier):
        yield f"{bare}{qualifier} of {name}{after}", "name"
    elif _is_kind(qualifier):
        if kind_before:
            yield f"{before[: kind_before.start()]}the {qualifier} {name}{after}", "name"
        elif last in _WORKS | _VERSIONS and (_SIZE.match(question) or _PART.search(before)):  # the giant is tall, not the film
            yield f"{before}{name} in the {qualifier}{after}", "name"
        elif last in _OF and (kind := re.search(rf"\bthe\s+({'|'.join(_WORKS)})\s+$", before)):
            yield f"{before[: kind.start()]}the {qualifier} of {kind.group()}{name}{after}", "name"
        elif last in _OF:
            yield f"{bare}the {qualifier} of {article if article.strip() == 'the' else ''}{name}{after}", "name"
        else:
            yield f"{bare}the {qualifier} {name}{after}", "name"
    elif re.search(r"\b(mythology|comics|folklore|religion)$", qualifier, re.IGNORECASE):
        yield f"{before}{name} in {qualifier}{after}", "name"
    elif place := re.search(rf"\b(in|at|on)\s+(the\s+)?{re.escape(qualifier)}\b", text):
        yield f"{before}{name} {place.group()}{after}", "name"
    yield f"{before}{name} ({qualifier}){after}", "brackets"


def _as_written(head: str, name: str, tail: str, text: str) -> tuple[str, str]:
    """Title words in the text's capitalisation, because a title's first letter is always a capital."""
    small = head[:1].lower() + head[1:]
    if f"{small} {tail}" in text or (name.islower() and re.search(rf"\b{re.escape(small)}\b", text)):
        return small, name
    return head, tail if f"{head} {tail}" in text else name


def _between(question: str, base: str) -> Iterator[tuple[str, str]]:
    """Edits for a question that omits middle words of the title: "Leopold of Karvelia" for "Leopold I of Karvelia"."""
    tokens = [(m.start(), m.end()) for m in re.finditer(r"[\w’'.&-]+", base)]
    for gap in range(1, len(tokens) - 1):
        for begin in range(1, len(tokens) - gap):
            head, tail = base[: tokens[begin - 1][1]], base[tokens[begin + gap][0] :]
            if base[len(head) : tokens[begin + gap][0]].strip(" ,:").islower() or not content_words(head):
                continue
            if span := mention(question, f"{head} {tail}"):
                yield f"{question[: span[0]]}{base}{question[span[1] :]}", "name"
                return


_NOUN_NEXT = re.compile(r" (?!(?:is|are|was|were|on|in|at|of|by|to|for|from|with|and|or|the|a|an)\b)[a-z]+(?<!ed)\b")


def _fuller(question: str, base: str, text: str) -> Iterator[tuple[str, str]]:
    """Edits for a question that has only the beginning or the end of the title's name."""
    tokens = [(m.start(), m.end()) for m in re.finditer(r"[\w’'.&]+", base)]
    for begin, _ in tokens[1:]:  # the end: "1954 FIFA World Cup final" for "World Cup final"
        tail, head = base[begin:], base[:begin].strip()
        span = mention(question, tail) if content_words(tail.split()[0]) else None
        if span is None:
            continue
        head = re.sub(r"^(the|a|an)\s+", "", head, flags=re.IGNORECASE)
        small = [w for w in word_tokens(head) if w in ("of", "in", "on", "at", "from", "and", "for", "the", "to", "by", "with")]
        if not head or head[-1:] in "–-:,;" or (small and not _EVENT.match(base)):
            break
        if set(word_tokens(question[: span[0]])[-2:]) & (set(word_tokens(head)) - {"the"}):
            continue  # "the naval battle of Narvik" has the half of "First Battle of Narvik"
        before, article = _drop_the(question[: span[0]])
        name = question[span[0] : span[1]]
        common = name.islower() and tail[:1].isupper() and len(name.split()) == 1 and not question.islower()
        head, name = _as_written(head, name, tail, text)
        if common and head[:1].isupper():
            continue  # "on the right" is not Operation Keep Right
        if article:
            before += article
        elif _EVENT.match(base) and not re.search(
            r"\b(?:at|in|of|on|during|after|before|from|to|was|did|is)\s+$", before, re.IGNORECASE
        ):
            continue  # who besieged Vienna besieged no siege
        elif head[:1].isdigit() or _EVENT.match(base):
            before += "the "
        yield _join(before, f"{head} {name}", question[span[1] :]), "name"
        break
    for _, end in reversed(tokens[:-1]):  # the beginning: "Portland, Oregon" for "Portland"
        head, tail = base[:end], base[end:]
        thing = re.match(r" [A-Z]\w+\b", tail)
        if (
            thing
            and len(word_tokens(head)) > 1
            and (span := mention(question, head.lower()))
            and question[span[0] : span[1]].islower()
        ):
            yield f"{question[: span[1]]}{thing.group()}{question[span[1] :]}", "name"  # "the space shuttle Challenger"
            break
        if not re.match(
            r"(, |-\d|: | (?:in|of|at) (?:the )?[A-Z]| [a-z]+$| \d+$|(?: [A-Z][a-z]+){1,2}$)", tail
        ) or not content_words(head):
            continue
        name = re.sub(r"^the\s+", "", head, flags=re.IGNORECASE)
        span = mention(question, name, adjectives=True) if name else None
        if tail.startswith(":") and _SIZE.match(question):
            break
        if span is None or re.match(r"\s*,", question[span[1] :]):
            continue
        after = question[span[1] :]
        if len(tail) > 2 and tail[1:].islower() and _NOUN_NEXT.match(after):
            continue
        close = "," if tail.startswith(", ") and re.match(r" \w", after) else ""
        yield f"{question[: span[1]]}{tail}{close}{after}", "name"
        break


def _instances(question: str, base: str, qualifier: str, text: str) -> Iterator[tuple[str, str]]:
    """Edits for a question with a noun ("the movie") whose kind the title is an example of ("Suicide Squad")."""
    if find_spans(question, base) and not qualifier:
        return
    for noun, kinds in _INSTANCES.items():
        match = re.search(
            rf"\bthe (\w+ )?{noun}\b(?=[?]| \w+(?:ed|en)\b| (?:in|on|at|by|from|come|open|take|land|start|begin|end)\b)",
            question,
        )
        if not match or (match.group(1) or "").strip() in NOT_BEFORE_A_NAME:
            continue
        description = qualifier.lower() if qualifier else text.lower()
        if not any(re.search(rf"\b{kind}\b", description) for kind in re.findall(r"space station|\w+", kinds)):
            continue
        name = base
        if re.search(rf"\s{noun}$", base, re.IGNORECASE):
            return  # a fuller name, see above
        year = YEAR.search(qualifier) or _first_year(base, kinds, text)
        the = f"the {year.group()} " if year else "the "
        stop = match.end()
        yield f"{question[: match.start()]}{the}{match.group(1) or ''}{noun} {name}{question[stop:]}", "name"
        return


def _first_year(base: str, kinds: str, text: str) -> re.Match[str] | None:
    """The year in which a work came out, according to the text.

    Examples: "her 2022 film", "Released in July 2008, The Dark Knight", "Suicide Squad opened in 2016".
    """
    kind = "|".join(kinds.split())
    for pattern in (
        rf"\b{YEAR.pattern} (?:\w+ ){{0,2}}(?:{kind})\b",
        rf"\b(?:{kind}) of {YEAR.pattern}",
        rf"\b{_CAME_OUT} (?:\w+ ){{0,4}}?(?:\d{{1,2}}, )?{YEAR.pattern}[^.;]{{0,9}}\b{re.escape(base)}\b",
        rf"\b{re.escape(base)} (?:\w+ ){{0,2}}{_CAME_OUT} [^.;]{{0,40}}?{YEAR.pattern}",
    ):
        if (match := re.search(pattern, text, re.IGNORECASE)) is not None:
            return YEAR.search(match.group())
    return None


_CAME_OUT = r"(?:released|premiered|opened|published|came out|appeared|reached)"


def _dated(question: str, base: str, qualifier: str, text: str) -> Iterator[tuple[str, str]]:
    """The work that the question names, with kind and year of release: "the 1953 novel The Outsider"."""
    kinds = [w for w in word_tokens(qualifier) if w in _WORKS]
    span = mention(question, base)
    if span is None or not kinds or YEAR.search(qualifier) or YEAR.search(question):
        return
    bare, _ = _drop_the(question[: span[0]])
    if (year := _first_year(base, kinds[-1], text)) and not bare.rstrip().endswith(kinds[-1]):
        yield f"{bare}the {year.group()} {kinds[-1]} {question[span[0] :]}", "name"


def _called(question: str, text: str) -> Iterator[tuple[str, str]]:
    """Edits where the text says which work of that name it means: "the 2018 remake of A Star Is Born"."""
    pattern = rf"\b(?:[Tt]he|[Aa]n?|[Ii]ts|[Hh]is|[Hh]er|[Tt]heir|\w+['’]s) (?P<which>(?:[\w-]+ ){{0,2}}(?:{'|'.join(_WORKS | _VERSIONS)}))(?P<of> of)? (?=[A-Z])"
    for match in re.finditer(pattern, text):
        name = re.match(r"[A-Z][\w’'-]*(?: (?:[A-Z][\w’'-]*|of|the|a|and|in|is))*", text[match.end() :])
        if (
            name is None
            or not set(content_words(match["which"])) - _WORKS - _VERSIONS
            or re.search(r"\b(?:same|first|new)\b", match["which"])
        ):
            continue
        tokens = name.group().split()
        for end in range(len(tokens), 0, -1):
            whole = " ".join(tokens[:end])
            if (span := mention(question, whole)) and (whole[0].isupper() and content_words(whole)):
                bare, _ = _drop_the(question[: span[0]])
                if not re.search(rf"\b(?:{'|'.join(_WORKS)})\s+$", bare):
                    yield f"{bare}the {match['which']}{match['of'] or ''} {question[span[0] :]}", "name"
                break


_PART = re.compile(
    r"\b(?:play(?:s|ed)?|voice[sd]?|sang|sings|danced)\s+$", re.IGNORECASE
)  # "who played Evita": the part, not the work
_SIZE = re.compile(r"^how (tall|old|big|heavy|strong|fast)\b", re.IGNORECASE)
_WORK_TEXT = re.compile(r"\b(film|movie|series|game|musical|play|opera|novel|show|sitcom)\b")
_ACTED = re.compile(
    r"\b(play(s|ed)?|voices?|voiced|acts?|acted|portray(s|ed)?|actor|actress|appears?|appeared)\b", re.IGNORECASE
)


def title_edits(question: str, title: str, text: str = "") -> Iterator[tuple[str, str]]:
    """(edit, kind) pairs from a passage's title: the full, qualified name instead of the question's ambiguous one."""
    base, qualifier = split_title(title)
    if qualifier:
        yield from _qualified(question, base, qualifier, text)
    if (full := spelled_out(question, [base])) != question:
        yield full, "name"
    yield from _dated(question, base, qualifier, text)
    yield from _between(question, base)
    yield from _fuller(question, base, text)
    yield from _instances(question, base, qualifier, text)
    yield from _called(question, text)
    if find_spans(question, base) or not can_append(question):
        return
    if (
        not re.search(rf"\bthe (?:{'|'.join(_WORKS)})\b", question)
        and _WORK_TEXT.search(qualifier or text[:250])
        and (_ACTED.search(question) or _SIZE.match(question))
    ):
        yield append(question, f"in {base}"), "work"
