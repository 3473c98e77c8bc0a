"""What distinguishes each answer of a set, in a few words: "1937 film", "London, Ontario", "in Deploy with Docker"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from core.disambiguation.edits import Edit, own_heading
from core.disambiguation.evidence import AnswerPlace, sentence_bounds, sentences, split_title
from core.disambiguation.form import NOT_BEFORE_A_NAME
from core.disambiguation.scoring import proposals, ranked
from core.text import comparable, content_words, overlapping, shares_words, word_tokens
from core.types import Answer, Passage

MAX_CHARS = 60
MAX_CLAUSE_WORDS = 6
MAX_DESCRIPTION_WORDS = 8
MIN_PROBABILITY = 0.4  # of an edit whose label goes before that of the answer's clause
EXACT_PLACE, WIDER_AREA = "exact place", "wider area"
_PART = re.compile(r",(?!\d)|[;()]|\s(?:and|but|or)\b")
_VERB = re.compile(r"\b(?:is|are|was|were|can|may|must|will|would|has|have|had|means?|costs?|pays?|takes?)\b")
_APPOSITION = re.compile(r",\s+(?:an?|the|his|her|its)\s+(?P<what>[^,;.]+?)(?=\s(?:who|which|that)\b|[,;.]|$)")
_WITHIN = re.compile(r",\s+|,?\s+(?:in|near)\s+(?:the\s+)?")  # between a place and the area that it is in
_ARTICLES = frozenset(("a", "an", "the"))
_PREPOSITIONS = frozenset("at by during for from in of on to until with".split())
_VAGUE = frozenset("ahead later led more less same still then there".split())
_NO_ADJECTIVE = re.compile(r"(?:ed|ly|ing|s)$")
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
    telling_places = [p and _telling_place(question, a.text, p) for a, p in zip(answers, places)]
    others = [[p for m, p in enumerate(telling_places) if m != n and p is not None] for n in range(len(answers))]
    edits = [
        edits[n]
        if place is None or place == places[n]
        else sorted(
            ranked(question, a.text, place, others[n]), key=lambda e: 0 if e.offset is None else abs(e.offset - place.start)
        )
        for n, (a, place) in enumerate(zip(answers, telling_places))
    ]
    options = [_options(question, answers, telling_places, n, edits) for n in range(len(answers))]
    owners = Counter(key for candidates in options for key in {comparable(o) for o in candidates})
    return [next((o for o in candidates if owners[comparable(o)] == 1), "") for candidates in options]


def differing_parts(questions: Sequence[str]) -> list[str]:
    """What each question has where the others differ: without the words that all begin and end with; [] if that leaves nothing short.

    >>> differing_parts(["Who played Maria in the 1961 film West Side Story?", "Who played Maria in the musical West Side Story?"])
    ['1961 film', 'musical']
    """
    split = [q.rstrip(" ?").split() for q in questions]
    if len(split) < 2:
        return []
    shortest = min(map(len, split))
    begin = next((i for i in range(shortest) if len({comparable(words[i]) for words in split}) > 1), shortest)
    end = next(
        (i for i in range(shortest - begin) if len({comparable(words[-1 - i]) for words in split}) > 1), shortest - begin
    )
    parts = [re.sub(r"^(?:the|an?)\s+", "", " ".join(words[begin : len(words) - end])) for words in split]
    return parts if all(content_words(p) and len(p) <= MAX_CHARS for p in parts) else []


def _telling_place(question: str, answer: str, place: AnswerPlace) -> AnswerPlace:
    """In a passage about the answer, the sentence that has most words of the question ("he was chief executive"), if it has more than the answer's."""
    passage = place.passage
    if not overlapping(answer, split_title(passage.title)[0]):
        return place
    question_words = set(content_words(question)) - set(content_words(answer))
    bounds = sentence_bounds(passage.text, place.start)
    best_bounds = max(
        sentences(passage.text), key=lambda b: (len(question_words & set(word_tokens(passage.text[slice(*b)]))), b == bounds)
    )
    if best_bounds == bounds:
        return place
    words = re.finditer(r"\w+", passage.text[slice(*best_bounds)])
    return AnswerPlace(passage, best_bounds[0] + max(m.start() for m in words if m.group().lower() in question_words))


def _options(
    question: str, answers: Sequence[Answer], places: Sequence[AnswerPlace | None], n: int, edits_of: Sequence[Sequence[Edit]]
) -> list[str]:
    """The labels that the answer could have, the best first."""
    place, answer, edits = places[n], answers[n], edits_of[n]
    if place is None:
        return []
    others = [p for m, p in enumerate(places) if m != n and p is not None]
    begin, end = sentence_bounds(place.passage.text, place.start)
    beside = {
        m: p.start
        for m, p in enumerate(places)
        if m != n and p is not None and p.passage.id == place.passage.id and begin <= p.start < end
    }
    base, qualifier = split_title(place.passage.title)
    heading = own_heading(place, others)
    question_words = set(word_tokens(question))
    has_own_title = " > " not in base and all(base != split_title(o.passage.title)[0] for o in others)
    if not all(any(e.kind == "time" for e in edits_of[m]) for m in beside):  # one time in a sentence is that of all its answers
        edits = [e for e in edits if e.kind != "time"]
    clause, description = clause_label(question, answer.text, place), _description(place)
    options = [e.label for e in edits if e.kind in ("name", "brackets")]
    options += [qualifier if qualifier[:1].isdigit() or qualifier.islower() else ""]
    options += [f"in {heading}"] if heading else []
    options += [base] if has_own_title and question_words & set(content_words(base)) else []
    options += [_nested(question, answer.text, place, [(answers[m].text, start) for m, start in beside.items()])]
    options += [_modified(question, place, others), description if question_words & set(content_words(base)) else ""]
    options += [e.label for e in edits if e.probability >= MIN_PROBABILITY]
    options += [clause] if any(o.passage.title == place.passage.title for o in others) else []
    options += [e.label for e in edits]
    options += [description, base if has_own_title else "", clause if clause.split(" ")[0] in _PREPOSITIONS else ""]
    texts = [a.text for a in answers]
    halves = [e.label for e in edits if e.kind == "half"]
    return halves + [
        label
        for label in options
        if len(label) <= MAX_CHARS
        and set(content_words(label)) - question_words
        and not shares_words(re.sub(r"^(?:at|in|on) (?:the )?", "", label), texts)
    ]


def _nested(question: str, answer: str, place: AnswerPlace, beside: Sequence[tuple[str, int]]) -> str:
    """Of a place and the area that it is in ("at the Astrodome in Houston"), which of the two the answer is.

    `beside`: (text, start) of the other answers in the sentence.
    """
    if not re.search(r"\bwhere\b", question, re.IGNORECASE):
        return ""
    text, start, end = place.passage.text, place.start, place.start + len(answer)
    if any(end <= s and _WITHIN.fullmatch(text[end:s]) for _, s in beside):
        return EXACT_PLACE
    return WIDER_AREA if any(s + len(a) <= start and _WITHIN.fullmatch(text[s + len(a) : start]) for a, s in beside) else ""


def _modified(question: str, place: AnswerPlace, others: Sequence[AnswerPlace]) -> str:
    """A noun of the question with the adjective that only this answer's passage has before it: "handheld game console"."""
    words = [w for w in content_words(question) if len(w) > 2]
    if not words:
        return ""
    noun = "|".join(map(re.escape, words))
    pattern = rf"\b(?:the|an?|this)\s+(?:[\w-]+\s+)??(?P<label>(?P<adjective>[a-z]{{3,}})\s+(?i:{noun})(?:\s+(?i:{noun}))*)\b"
    for text in (place.sentence, place.passage.text):
        for match in re.finditer(pattern, text, re.IGNORECASE):
            word = match["adjective"]
            plain = (
                word.islower()
                and content_words(word)
                and word not in {*words, *NOT_BEFORE_A_NAME}
                and not _NO_ADJECTIVE.search(word)
            )
            theirs = rf"\b{word}\s+(?:{noun})\b"
            if plain and not any(re.search(theirs, f"{o.passage.title} {o.passage.text}", re.IGNORECASE) for o in others):
                return match["label"]
    return ""


def _description(place: AnswerPlace) -> str:
    """What the passage says that the thing of its title is: "A county town north of London, Cambridge grew"."""
    text, name = place.passage.text, re.escape(split_title(place.passage.title)[0])
    match = (
        re.match(rf"An? (?P<what>[^,;.]+), {name}\b", text)
        or re.search(
            rf"\b{name}(?: (?:is|was|were|are)|,) (?:an?|the) (?P<what>[^,;.]+?)(?=\s(?:who|which|that|and|but)\b|[,;.])", text
        )
        or re.search(rf"\b{name} (?:that|which) (?P<what>[a-z]+ed [^,;.]+)", text)
    )
    words = match["what"].split() if match else []
    return " ".join(words) if len(words) <= MAX_DESCRIPTION_WORDS else ""


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
    behind = sentence[stop:]
    after = _PART.split(behind[2:] if re.match(r", (?:during|with) ", behind) else behind)[0]
    apposition = _APPOSITION.match(sentence[stop:])
    subject = _VERB.split(before)[0]
    for phrase, min_words in (
        (after, 2),
        (subject if subject.strip() else before, 1),
        (apposition["what"] if apposition else "", 1),
    ):
        label = _trimmed(phrase, question, answer)
        if label and (len(label.split()) >= min_words or label.endswith("ed")):
            return label
    return ""


def _trimmed(phrase: str, question: str, answer: str) -> str:
    """Without words at its ends that say nothing new, but with a preposition before the first that does."""
    stems = {w[:4] for w in word_tokens(f"{question} {answer}")}
    words = phrase.split()
    new = [i for i, w in enumerate(words) if any(c[:4] not in stems for c in content_words(w))]
    if not new:
        return ""
    first, last = new[0], new[-1]
    while first and words[first - 1].lower() in _ARTICLES and first > 1 and words[first - 2].lower() in _PREPOSITIONS:
        first -= 1
    if first and words[first - 1].lower() in _PREPOSITIONS:
        first -= 1
        words[first] = words[first].lower()
    if last - first >= MAX_CLAUSE_WORDS:  # ends before a phrase that says more
        breaks = [
            i
            for i in range(first + 1, first + MAX_CLAUSE_WORDS + 1)
            if words[i].lower() in _PREPOSITIONS or (words[i].endswith("ing") and words[i - 1].lower() not in _ARTICLES)
        ]
        last = max((i for i in new if i < max(breaks, default=0)), default=last)
    if last + 1 < len(words) and len(words[last + 1]) == 1 and words[last + 1].isupper():
        last += 1  # "studio A"
    label = " ".join(words[first : last + 1]).strip(" :,")
    tokens = word_tokens(label)
    is_vague = (_REFERS_BACK | _VAGUE) & set(tokens) or label.isdigit()
    return "" if is_vague or len(tokens) > MAX_CLAUSE_WORDS or re.search(r"[.:]\s", label) else label
