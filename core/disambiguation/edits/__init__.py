"""Candidate edits of an ambiguous question, made by templates that keep it fluent, from the title and sentence of an
answer.

Task: AmbigQA's minimal edit (Min et al. 2020, section 2).  Annotators of AmbigNQ use each of these templates: one part
of a double question (`parts`), a fuller name such as "the 1961 film West Side Story" (`names`), a modifier, a place or
a time (`phrases`), a version (`versions`).  An edit never contains the answer.  `core.disambiguation.round_trip` decides
which edit is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from core.disambiguation.edits.events import said_of, said_of_it, two_held_it
from core.disambiguation.edits.names import split_title, title_edits
from core.disambiguation.edits.parts import parts
from core.disambiguation.edits.phrases import modifier_edits, phrase_edits, plain_edits, time_edits
from core.disambiguation.edits.shared import evidence_sentence, sentence_bounds, sentences
from core.disambiguation.edits.versions import version_edits
from core.text import contains_tokens, content_words, normalize_answer, word_tokens
from core.types import Passage

MAX_CANDIDATES = 12
MAX_TWOFOLD = 8  # combinations of two edits, tried after single ones
_EXTENDED = 4  # how many of the best edits get a second one
MAX_ADDED = 9  # words; longer edits are not minimal

# cost of a template in addition to its edit distance: how unlike a person's first choice it is
PENALTY = {
    "part": 0,
    "name": 0,
    "work": 1,
    "modifier": 1,
    "time": 3,
    "phrase": 4,
    "brackets": 2,
    "near": 5,
    "plain": 4,
    "twofold": 6,
}


class AnswerPlace(NamedTuple):
    """The place of an answer: a passage and a character offset in its text."""

    passage: Passage
    start: int


@dataclass(frozen=True)
class Edit:
    """An edited question, the number of changed words, and the penalty of its template."""

    question: str
    size: int  # tokens deleted plus tokens added, as AmbigQA's EDIT counts them
    own: int  # words of the edit that the other answers' evidence lacks
    kind: str = "phrase"  # a key of PENALTY

    @property
    def cost(self) -> int:
        """Changed words plus the template's penalty; lower is better."""
        return self.size + PENALTY[self.kind]


def edit_size(before: str, after: str) -> int:
    """The number of deleted and added tokens, compared as multisets.

    >>> edit_size("Who played Maria?", "Who played Maria in 1961?")
    2
    """
    rest = word_tokens(after)
    deleted = 0
    for token in word_tokens(before):
        if token in rest:
            rest.remove(token)
        else:
            deleted += 1
    return deleted + len(rest)


def _candidates(question: str, place: AnswerPlace, rivals: Sequence[int]) -> Iterator[tuple[str, str]]:
    """(edit, kind) pairs.

    `rivals`: offsets of the other answers in the same passage; phrases that are nearer to one of them belong to it.
    """
    title, text = place.passage.title, place.passage.text
    yield from title_edits(question, title, text)
    base, _ = split_title(title)
    own = sentence_bounds(text, place.start)
    for begin, end in sentences(text):
        inside = [r for r in rivals if begin <= r < end]
        here = (begin, end) == own
        if inside and not here:
            continue  # that sentence is about another answer
        sentence = text[begin:end]
        off_topic = not here and _shared(question, sentence) < 2
        where = "modifier" if here else "phrase"
        for kind, edits, says in (
            (where, modifier_edits(question, sentence), ""),
            (where, version_edits(question, base, sentence), ""),
            ("time" if here else "near", time_edits(question, sentence), "time"),
            ("phrase" if here else "near", phrase_edits(question, sentence), "place"),
            ("plain", plain_edits(question, sentence) if here else (), ""),
        ):
            for offset, edit in edits:
                mine = place.start - begin if here else None
                if says and (off_topic or not said_of_it(question, sentence, offset, mine, says == "time")):
                    continue
                if says == "time" and two_held_it(question, sentence, offset, edit):
                    continue
                if says and here:
                    yours = said_of(sentence, offset, place.start - begin, [r - begin for r in inside])
                else:
                    yours = all(abs(offset + begin - place.start) <= abs(offset + begin - r) for r in inside)
                if yours:
                    yield edit, kind


def _shared(question: str, sentence: str) -> int:
    """The number of the question's content words in the sentence, ignoring word endings."""
    have = {w[:5] for w in content_words(sentence)}
    return sum(w in have for w in {w[:5] for w in content_words(question)})


def propose_edits(question: str, answer: str, place: AnswerPlace, others: Sequence[AnswerPlace]) -> list[Edit]:
    """Candidate edits, the smallest and most natural first.

    Each contains words that the other answers' evidence lacks, and never the answer.  The best ones follow with a
    second edit of another kind, in case one edit is not enough.

    `others`: the places of the other answers; within the same passage, only their sentence counts.
    """
    single = _single_edits(question, answer, place, others)
    seen = {e.question.lower() for e in single}
    tokens = word_tokens(question)
    twofold: dict[str, Edit] = {}
    for first in single[:_EXTENDED]:
        if first.kind == "part":
            continue
        for second in _single_edits(first.question, answer, place, others)[:_EXTENDED]:
            text = second.question
            once = len(set(added := _added(tokens, word_tokens(text)))) == len(
                added
            )  # "the 1961 film ... in 1961" says it twice
            if once and second.kind != first.kind and text.lower() not in seen and len(added) <= MAX_ADDED:
                twofold.setdefault(text.lower(), Edit(text, edit_size(question, text), first.own + second.own, "twofold"))
    return single + sorted(twofold.values(), key=lambda e: (e.cost, -e.own))[:MAX_TWOFOLD]


def _added(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """The words that occur only in the second text."""
    known = set(before)
    return [w for w in after if w not in known]


def _single_edits(question: str, answer: str, place: AnswerPlace, others: Sequence[AnswerPlace]) -> list[Edit]:
    same = [o.start for o in others if o.passage.id == place.passage.id]
    theirs: set[str] = set()
    their_titles = {w for o in others for w in content_words(o.passage.title)}
    for o in others:
        text = evidence_sentence(o.passage, o.start)
        shared = sentence_bounds(place.passage.text, place.start)
        if o.passage.id == place.passage.id and shared[0] <= o.start < shared[1]:
            continue  # one sentence contains both: distance decides
        theirs |= set(content_words(f"{o.passage.title} {text}"))
    if any(o.passage.id == place.passage.id for o in others):
        their_titles |= theirs
    tokens = word_tokens(question)
    secret = content_words(normalize_answer(answer))
    seen: dict[str, Edit] = {}
    single = parts(question, answer)
    candidates: list[tuple[str, str]] = [(p, "part") for p in single]
    for q in single or [question]:
        candidates += _candidates(q, place, same)
    for text, kind in candidates:
        text = " ".join(text.split())
        text = text[:1].upper() + text[1:] if question[:1].isupper() else text
        have = word_tokens(text)
        added = _added(tokens, have)
        if kind != "part" and not content_words(" ".join(added)):
            continue
        if text == question or len(added) > MAX_ADDED or text.count("?") != 1 or not text.endswith("?"):
            continue
        if any(w in secret for w in added) or (
            contains_tokens(have, word_tokens(answer)) and not contains_tokens(tokens, word_tokens(answer))
        ):
            continue
        rare = [
            w for w in content_words(" ".join(added)) if w not in (their_titles if kind in ("name", "brackets") else theirs)
        ]
        own = len(rare) if kind != "part" else 1
        if not own:
            continue  # it is said of the other answers too
        edit = Edit(text, edit_size(question, text), own, kind)
        if text.lower() not in seen or edit.cost < seen[text.lower()].cost:
            seen[text.lower()] = edit
    return sorted(seen.values(), key=lambda e: (e.cost, -e.own))[:MAX_CANDIDATES]
