"""Candidate edits of an ambiguous question, from what an answer's evidence says and that of the other answers does not.

Task: AmbigQA's minimal edit (Min et al. 2020, section 2).  Five patterns, all of which its annotators use: one half of a double question
(core.disambiguation.parts), the full name for a short one ("the 1961 film West Side Story", "Portland, Oregon"), a time, and a place or an
object at the end.  Where documents and not names differ, "According to HEADING".  What is wrong by its form is dropped here
(core.disambiguation.form); core.disambiguation.scoring ranks the rest.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from core.disambiguation.evidence import MONTHS, YEAR, AnswerPlace, headings, sentence_bounds, split_title
from core.disambiguation.form import ASKS, ASKS_TIME, NOT_BEFORE_A_NAME, can_append, in_past, well_formed
from core.disambiguation.parts import parts
from core.short_names import spelled_out
from core.text import contains_tokens, content_words, find_spans, normalize_answer, word_tokens

MAX_ADDED = 9  # words; longer edits are not minimal
OF_TITLES = ("name", "instance", "brackets", "dated", "document")
KINDS = ("half", "name", "instance", "brackets", "dated", "time", "place", "document")

WORKS = frozenset(
    "film movie album song single series show serial sitcom musical opera play novel book story comic game episode painting "
    "ballet soundtrack miniseries documentary".split()
)
_A_WORK = rf"\bthe (?:\w+ )?(?:{'|'.join(sorted(WORKS))})s?\b"
_VERSIONS = frozenset("edition production version adaptation revival remake recording translation staging arrangement".split())
_WITH_OF = _VERSIONS | frozenset(
    "launch performance tour building tower country city state town county province kingdom".split()
)
# a noun of the question, and what its instances are called in a title's qualifier or in the passage
_INSTANCES = (
    {"movie": "film|movie", "film": "film|movie", "book": "book|novel", "song": "song|single", "show": "show|series|sitcom"}
    | {
        noun: noun
        for noun in ("novel album series musical game rover spacecraft ship telescope tower bridge airship metro".split())
    }
    | {"space station": "space station"}
)
_NAME = r"[A-Z][\w’&-]*(?:'[a-z]{2,}[\w-]*)?"
_SMALL = "and|but|by|on|in|at|with|from|for|as|when|where|who|which|that|to|was|were|is|are|had|has|before|after|until|while|because|did|would"
_PLACE = re.compile(
    rf"\b(?P<prep>in|at|on|for|as|against|under|of)\s+(?P<body>(?:the\s+)?{_NAME}(?:\s+(?:of\s+the\s+|of\s+|and\s+the\s+)?{_NAME}){{0,4}})"
    rf"(?=[,;:.)]?$|[,;:)]|\.\s|\s+(?:{_SMALL})\b)"
)
_TIME = re.compile(
    rf"\b(?:(?P<range>(?:[Ff]rom|[Bb]etween)\s+(?:(?:{MONTHS})\s+)?\d{{4}}\s+(?:to|until|and|through)\s+(?:(?:{MONTHS})\s+)?\d{{4}})"
    rf"|(?P<bound>(?:[Ss]ince|[Uu]ntil|[Bb]efore|[Aa]fter)\s+(?:(?:{MONTHS})\s+)?\d{{4}})"
    rf"|(?P<day>[Oo]n\s+(?:(?:{MONTHS})\s+\d{{1,2}},\s+\d{{4}}|\d{{1,2}}\s+(?:{MONTHS})\s+\d{{4}}))"
    rf"|(?P<month>[Ii]n\s+(?:(?:{MONTHS})\s+)\d{{4}})|(?P<decade>in\s+the\s+(?:early\s+|late\s+)?\d{{3}}0s)|(?P<year>(?<!\d[–-])\d{{4}}))\b(?![–-]\d)"
)
_ELSEWHERE = re.compile(
    r"\b(?:born|died|buried|raised|educated|grew up|studied|birth|death|except|unlike)\b[^.;]{0,40}$", re.IGNORECASE
)
_PLAYED = re.compile(
    r"\b(?:play(?:s|ed)?|voice[sd]?|sang|sings|portray(?:s|ed)?|does the voice of)\s+(?:the\s+)?$", re.IGNORECASE
)
_ROLE = re.compile(
    r"\b(?:play(?:s|ed)?|voice[sd]?|portray(?:s|ed)?|act(?:or|ress|s|ed)|appear(?:s|ed)?|character|girl|villain)\b",
    re.IGNORECASE,
)
_TITLE_YEAR = re.compile(rf"{YEAR.pattern}|\b\d{{2,3}} (?:BC|AD)\b")
_VAGUE = frozenset(
    "description example examples flags introduction notes options overview parameters reference settings syntax usage".split()
)
_PART_OF_A_LIST = re.compile(r"[,;:](?!\s+\d{4}\b)(?:\s+and\b)?|\sand\b")
_TAIL = re.compile(
    r"(?:, | of \d{4}$|-\d|: (?=[A-Z])| (?:in|of|at) (?:the )?[A-Z]| \d+$| [IVX]+$| [a-z]$|(?: [A-Z][\w’]+){1,2}$)"
)


@dataclass(frozen=True)
class Edit:
    """An edited question; `offset`: of the words that it takes from the passage's text, None for those of the title."""

    question: str
    kind: str  # one of KINDS
    size: int  # tokens deleted plus tokens added, as AmbigQA's EDIT counts them
    distinctive: int  # content words of the edit that the other answers' evidence lacks
    label: str  # what distinguishes the answer, in a few words: "1961 film", "in Japan"
    offset: int | None = None
    probability: float = 0.0  # core.disambiguation.scoring


def edit_size(before: str, after: str) -> int:
    """The number of deleted and added tokens, compared as multisets.

    >>> edit_size("Who played Maria?", "Who played Maria in 1961?")
    2
    """
    deleted, added = Counter(word_tokens(before)), Counter(word_tokens(after))
    return ((deleted - added) + (added - deleted)).total()


def propose_edits(question: str, answer: str, place: AnswerPlace, others: Sequence[AnswerPlace]) -> list[Edit]:
    """Candidate edits in no order.  Each is well formed, has words that the other answers' evidence lacks, and never the answer.

    `others`: the places of the other answers.
    """
    tokens = word_tokens(question)
    begin, end = sentence_bounds(place.passage.text, place.start)
    theirs = {w for o in others if not (o.passage.id == place.passage.id and begin <= o.start < end) for w in o.words}
    titles = {w for o in others for w in content_words(o.passage.title)}
    answer_words, answer_tokens = set(content_words(normalize_answer(answer))), word_tokens(answer)
    halves = parts(question, answer)
    edits: dict[str, Edit] = {half.lower(): Edit(half, "half", edit_size(question, half), 1, _asking(half)) for half in halves}
    for text, kind, offset, label in () if halves else _candidates(question, answer, place, others):
        text = " ".join(text.split())
        text = text[:1].upper() + text[1:] if question[:1].isupper() else text
        text_tokens = word_tokens(text)
        added = [w for w in text_tokens if w not in tokens]
        distinctive = [w for w in content_words(" ".join(added)) if w not in (titles if kind in OF_TITLES else theirs)]
        gives_answer_away = answer_words & set(added) or (
            contains_tokens(text_tokens, answer_tokens) and not contains_tokens(tokens, answer_tokens)
        )
        if distinctive and not gives_answer_away and len(added) <= MAX_ADDED and well_formed(question, text):
            edits.setdefault(text.lower(), Edit(text, kind, edit_size(question, text), len(distinctive), label, offset))
    return list(edits.values())


def _belongs(sentence: str, offset: int, answer: int, rivals: Sequence[int]) -> bool:
    """True if the words at `offset` are said of the answer and not of another one in its sentence: of the only one in their part of it, else of the
    last one before them, else of the first one after them.

    >>> text = "Ada won in 2011, Eve in 2012 and Ida in 2013."
    >>> [_belongs(text, text.index("2012"), text.index(name), [0, 17, 33]) for name in ("Ada", "Eve", "Ida")]
    [False, True, False]
    """
    answers = sorted({answer, *rivals})
    breaks = [0, *(m.end() for m in _PART_OF_A_LIST.finditer(sentence)), len(sentence)]
    begin, end = next((a, b) for a, b in pairwise(breaks) if a <= offset < b)
    inside = [a for a in answers if begin <= a < end]
    if len(inside) == 1:
        return inside == [answer]
    before = [a for a in inside or answers if a <= offset]
    return answer == (before[-1] if before else (inside or answers)[0])


def _shares_statement(sentence: str, answer: int, rival: int, text: str) -> bool:
    """True if the sentence says the same of the answer `text` and of another one, which begins at `rival`.

    >>> _shares_statement("Ada and Eve won in 2011.", 0, 8, "Ada"), _shares_statement("Ada won in 2011 and Eve in 2012.", 20, 0, "Eve")
    (True, False)
    """
    between = sentence[answer + len(text) : rival] if answer < rival else sentence[rival:answer]
    if re.search(r"\d|\b(?:in|at|on|for|as|against|under|of|before|after)\b", between):
        return False
    verbs = [w for w in re.findall(r"\b[a-z]+\b", between) if content_words(w)]
    return len(verbs) < 3 and re.search(r",|\b(?:and|or|with)\b", between) is not None


def _candidates(
    question: str, answer: str, place: AnswerPlace, others: Sequence[AnswerPlace]
) -> Iterator[tuple[str, str, int | None, str]]:
    """(edit, kind, offset of its words in the passage's text or None, label)."""
    passage = place.passage
    base, qualifier = split_title(passage.title)
    names = list(_names(question, passage.title, passage.text))
    for edit, kind in names:
        yield edit, kind, None, qualifier if kind in ("name", "brackets") and qualifier else base
    year = _TITLE_YEAR.search(passage.title)
    if year and not any(year.group() in edit for edit, _ in names) and _takes_a_time(question) and (past := in_past(question)):
        yield _append(past, f"in {year.group()}"), "dated", None, f"in {year.group()}"
    begin, end = sentence_bounds(passage.text, place.start)
    sentence, answer_start = passage.text[begin:end], place.start - begin
    inside = [o.start - begin for o in others if o.passage.id == passage.id and begin <= o.start < end]
    if not any(_shares_statement(sentence, answer_start, rival, answer) for rival in inside):
        for pattern, kind in ((_times, "time"), (_places, "place")):
            for offset, edit, phrase in pattern(question, sentence):
                if _belongs(sentence, offset, answer_start, inside):
                    yield edit, kind, begin + offset, phrase
    heading = own_heading(place, others)
    # an article has its name in its text, a section its heading above it
    article = " > " not in passage.title and find_spans(passage.text, base)
    if heading and not article and not find_spans(question, heading) and ASKS.match(question):
        yield f"According to “{heading}”, {_lower_first(question)}", "document", None, f"in {heading}"


def own_heading(place: AnswerPlace, others: Sequence[AnswerPlace]) -> str:
    """The outermost heading above the answer that is above none of the other answers; empty where there is none."""
    theirs = {h for o in others for h in headings(o.passage.title)}
    return next((h for h in headings(place.passage.title) if h not in theirs and h.lower() not in _VAGUE), "")


def _asking(half: str) -> str:
    """What a question asks for: "when", "in which city"."""
    words = re.match(
        r"(?:(?:in|at|on|from) )?(?:(?:which|what) (?!was|is|were|are|did|does)\w+|how (?:many|much|\w+)|\w+)",
        half,
        re.IGNORECASE,
    )
    return words.group().lower() if words else ""


def _lower_first(question: str) -> str:
    return question if question[1:2].isupper() else question[:1].lower() + question[1:]


# ---------------------------------------------------------------- names


def mention(question: str, name: str, after_adjectives: bool = False) -> tuple[int, int] | None:
    """The (start, end) of `name` in the question as a whole name; None if it is part of a longer name or, unless `after_adjectives`, "first" or the
    like precedes it."""
    for begin, end in find_spans(question, name):
        before, after = question[:begin].split(), question[end:].split()
        previous = before[-1] if before else ""
        adjective = previous.lower() in NOT_BEFORE_A_NAME and not after_adjectives
        longer = (len(before) > 1 and previous[:1].isupper()) or (
            after and question[end] == " " and after[0][:1].isupper() and not name.islower()
        )
        longer = longer or re.match(r",? (?:and|or) ", question[end:]) is not None  # one of two names
        if not (adjective or longer or previous.endswith(("'s", "’s")) or question[end : end + 1] in ("'", "’", "-", "–")):
            return begin, end
    return None


def _names(question: str, title: str, text: str) -> Iterator[tuple[str, str]]:
    """(edit, kind) pairs from a passage's title: the full, qualified name in place of the question's ambiguous one."""
    base, qualifier = split_title(title.split(" > ")[0])
    short = re.sub(r"^the\s+", "", base, flags=re.IGNORECASE)
    if span := mention(question, base) or mention(question, short):
        if qualifier:
            yield from _qualified(question, span, base, qualifier, text)
    else:
        yield from ((e, k) for e, k in _fuller(question, base, text) if not _names_a_work_as_a_part(question, e, text))
        if (full := spelled_out(question, [base])) != question:
            yield full, "name"
    yield from _instances(question, base, qualifier, text)


def _names_a_work_as_a_part(question: str, edit: str, text: str) -> bool:
    """True for "Who played Batman Begins?"."""
    difference = next((i for i, (a, b) in enumerate(zip(question, edit)) if a != b), len(question) - 1)
    played = re.search(r"\b(?:play(?:s|ed)?|voice[sd]?|portray(?:s|ed)?)\b", question[:difference], re.IGNORECASE)
    return played is not None and re.search(rf"\b(?:{'|'.join(WORKS)})\b", text[:250]) is not None


def _qualified(question: str, span: tuple[int, int], base: str, qualifier: str, text: str) -> Iterator[tuple[str, str]]:
    """Edits for a question that names the title without its qualifier."""
    before, name, after = question[: span[0]], question[span[0] : span[1]], question[span[1] :]
    last = qualifier.split()[-1]
    article = re.search(r"\b(the|a|an)\s+$", before, re.IGNORECASE)
    without_article = before[: article.start()] if article else before
    if article and (article[1].lower() != "the" or (not base.lower().startswith("the ") and last in WORKS)):
        return  # "a martini" is not one cocktail, "the Joker" not the film Joker
    if article and base.lower().startswith("the ") and not name.lower().startswith("the "):
        name = f"The {name}"
    noun, behind = re.search(r"\b(?:the\s+)?(\w+)\s+$", without_article), re.match(r"\s+(\w+)", after)
    if (noun and noun[1] in WORKS and noun[1] != last) or (behind and behind[1] in WORKS):
        return  # "the game Mortal Kombat" is not the film, and "the film Thor movie" says it twice
    kind = (
        last.isalpha()
        and last.islower()
        and not last.endswith("versions")
        and last not in ("disambiguation", "mythology", "cuisine", "generation", "century", "comics")
    )
    if re.fullmatch(r"(?:season|series|volume|part|book|act|episode) \d+", qualifier):
        yield f"{without_article}{qualifier} of {name}{after}", "name"
    elif kind and noun and noun[1] == last:
        yield f"{without_article[: noun.start()]}the {qualifier} {name}{after}", "name"
    elif kind and last in WORKS | _VERSIONS and _PLAYED.search(before):  # a part, not the work
        yield f"{before}{name} in the {qualifier}{after}", "name"
    elif kind and last in _WITH_OF:
        yield f"{without_article}the {qualifier} of {article[0] if article else ''}{name}{after}", "name"
    elif kind:
        yield f"{without_article}the {qualifier} {name}{after}", "name"
    elif not kind and (location := re.search(rf"\b(in|at|on)\s+(the\s+)?{re.escape(qualifier)}\b", text)):
        yield f"{before}{name} {location.group()}{after}", "name"
    elif after == "?" and len(qualifier.split()) < 3:
        yield f"{before}{name} ({qualifier}){after}", "brackets"


def _fuller(question: str, base: str, text: str) -> Iterator[tuple[str, str]]:
    """Edits for a question that has only the end ("World Cup final") or the beginning ("Portland") of the title's name."""
    words = [(m.start(), m.end()) for m in re.finditer(r"[\w’'.&]+", base)]
    for begin, _ in words[1:]:
        tail, head = base[begin:], re.sub(r"^(?:the|a|an)\s+", "", base[:begin].strip(), flags=re.IGNORECASE)
        span = mention(question, tail) if content_words(tail.split()[0]) else None
        if span is None or not head:
            continue
        if _qualified_already(question, span):
            return  # "the longest railway tunnel" is not "the longest railway Gotthard Base tunnel"
        if re.search(r"\bthe\s+$", question[: span[0]], re.IGNORECASE) and re.search(r"['’]s\b|:", head):
            return  # not "the Webb's channel swim"
        small = set(word_tokens(head)) & set("of in on at from and for the to by with your an a".split())
        before, name = question[: span[0]], question[span[0] : span[1]]
        if (
            head[-1:] in "–-:,;"
            or small
            or re.search(r"\ban?\s+$", before, re.IGNORECASE)
            or set(word_tokens(before)[-2:]) & (set(word_tokens(head)) - {"the"})
        ):
            return
        small_head = head[:1].lower() + head[1:]
        if name[:1].islower() and f"{small_head} {name}" in text.lower()[:1] + text[1:]:
            head = small_head
        elif name[:1].islower() and not question.islower():  # a common noun: the text has to call it so
            if f"{head} {tail}" in text and tail[:1].isupper() and " " in tail:
                name = tail
            elif not (head[:1].isdigit() or (tail[:1].islower() and f"{head} {tail}" in text)):
                return
        ordinal = head[:1].isdigit() or head.split()[0].lower() in NOT_BEFORE_A_NAME
        if head[:1].isdigit() and not re.search(r"\b(?:the|a|an)\s+$", before, re.IGNORECASE):
            before += "the "
        elif name[:1].isupper() and re.match(r" [a-z]+ [a-z]", question[span[1] :]) and before.endswith("the "):
            return  # not "the Dagny Frost sister"
        elif name[:1].isupper() and not ordinal and base in text and not re.search(rf"\b[Tt]he {re.escape(base)}", text):
            before = re.sub(r"\b[Tt]he\s+$", "", before)  # "More Tales of the Marl Pits" for "the Tales"
        yield f"{before}{head} {name}{question[span[1] :]}", "name"
        return
    for _, end in reversed(words[:-1]):
        head, tail = base[:end], base[end:]
        if not _TAIL.match(tail) or not content_words(head):
            continue
        span = mention(question, re.sub(r"^the\s+", "", head, flags=re.IGNORECASE), after_adjectives=True)
        if span is None or question[span[1] :].startswith(","):
            continue
        common = question[span[0]].islower() and re.match(r" [A-Z]", tail) is not None
        if common and (not question.islower() or _qualified_already(question, span)):
            continue  # "on the right" is not "Right Livelihood Award"
        behind = r" (?!of\b)[a-z]{3,}" if re.match(r" (?:in|of|at)\b", tail) else r" (?!of\b)[a-z]+s\b| sequel\b"
        if re.search(r"\bthe\s+$", question[: span[0]]) and re.match(behind, question[span[1] :]):
            continue  # not "the Grease 2 films", "the Gallard in Britain sauce"
        if re.search(r"\b(?:in|at|near|from)\s+$", question[: span[0]]) and re.match(r" [A-Z]", tail):
            continue  # not "in Wexmouth Athletic Association"
        close = "," if tail.startswith(", ") and re.match(r" \w", question[span[1] :]) else ""
        yield f"{question[: span[1]]}{tail}{close}{question[span[1] :]}", "name"
        return


def _qualified_already(question: str, span: tuple[int, int]) -> bool:
    """True for a common noun that has another word before it: "railway tunnel"."""
    before = re.search(r"\b([a-z]+)\s+$", question[: span[0]])
    return question[span[0]].islower() and before is not None and bool(content_words(before[1]))


def _instances(question: str, base: str, qualifier: str, text: str) -> Iterator[tuple[str, str]]:
    """Edits for a question about "the movie", of which the title names one; and about a part, with the work that it is in."""
    if find_spans(question, base) and not qualifier:
        return
    for noun, kinds in _INSTANCES.items():
        match = re.search(
            rf"\bthe (?:\w+ )?{noun}\b(?=[?]| \w+(?:ed|en)\b| (?:in|on|at|by|from|come|open|take|land|start|begin|end)\b)",
            question,
        )
        if (
            match
            and re.search(rf"\b(?:{kinds})\b", qualifier.lower() or text.lower())
            and not base.lower().endswith(f" {noun}")
        ):
            if match.group().split()[1] not in NOT_BEFORE_A_NAME:
                year = YEAR.search(qualifier) or re.search(rf"\b{YEAR.pattern}(?= (?:\w+ ){{0,2}}(?:{kinds})\b)", text)
                the = f"the {year.group()} " if year else "the "
                yield f"{question[: match.start()]}{the}{match.group()[4:]} {base}{question[match.end() :]}", "instance"
            return
    work = re.search(rf"\b(?:{'|'.join(WORKS)})\b", qualifier or text[:250])
    if work and _ROLE.search(question) and can_append(question) and not re.search(_A_WORK, question):
        yield _append(question, f"in {base}"), "instance"


# ---------------------------------------------------------------- words of the sentence


def _append(question: str, phrase: str) -> str:
    return f"{question.rstrip().rstrip('?').rstrip()} {phrase}?"


def _takes_a_time(question: str) -> bool:
    return can_append(question) and not ASKS_TIME.match(question) and not re.search(r"\b\d{4}\b", question)


def _times(question: str, sentence: str) -> Iterator[tuple[int, str, str]]:
    """(offset in the sentence, edit, phrase): the question with a time that the sentence names."""
    if not _takes_a_time(question) or re.search(r"\bfirst\b", question):
        return
    for match in _TIME.finditer(sentence):
        phrase = " ".join(match.group().split())
        phrase = phrase[0].lower() + phrase[1:]
        before, after = sentence[: match.start()], sentence[match.end() :]
        if _ELSEWHERE.search(before) or not 1000 <= int(re.findall(r"\d{4}", phrase)[-1]) < 2100:
            continue
        if phrase.startswith("since"):
            if re.match(r"who is\b", question, re.IGNORECASE):
                yield match.start(), _append(re.sub(r"^(\w+) is\b", r"\1 has been", question), phrase), phrase
            continue
        past = in_past(question)
        if past is None or (match["year"] and (before[-1:] in "$£€" or before[-1:].isdigit() or after[:1].isalnum())):
            continue
        if match["year"] or match["day"] or match["month"]:
            year = f"in {re.findall(r'[0-9]{4}', phrase)[-1]}"
            yield match.start(), _append(past, year), year
        if not match["year"]:
            yield match.start(), _append(past, phrase), phrase


def _places(question: str, sentence: str) -> Iterator[tuple[int, str, str]]:
    """(offset in the sentence, edit, phrase): the question with a place or an object that the sentence names."""
    if not can_append(question):
        return
    for match in _PLACE.finditer(sentence):
        prep, body = match["prep"], match["body"]
        if _ELSEWHERE.search(sentence[: match.start()]) or re.match(
            rf"(?:{MONTHS})\b|(?:the\s+)?[A-Z]$|(?:I|He|She|It|They)$", body
        ):
            continue
        if prep == "as" and not (body.startswith("the ") and _ROLE.search(question)):
            continue
        if prep == "of":  # only behind the word that the question ends with: "the sun god of the Incas"
            noun = re.search(r"(\w+)\s+$", sentence[: match.start()])
            if noun is None or not re.search(rf"\b{re.escape(noun[1])}\?*$", question.rstrip(), re.IGNORECASE):
                continue
        yield match.start(), _append(question, f"{prep} {body}"), f"{prep} {body}"
