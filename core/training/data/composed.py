"""Questions with several answers, composed of single-answer reading examples.

Documents that disagree, as RAMDocs makes its misinformation (Wang et al. 2025): the answer in a passage is replaced by
another of the same kind, and both documents are read beside documents that answer nothing.  Namesakes: passages about
different things of which the same is asked, after all of them are given one name.  All answers are then to be found.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Sequence

from core.disambiguation.conflicts import answer_form
from core.text import PASSAGE_WORDS, answer_words, find_spans, mentions, shares_words
from core.training.data.examples import MultiExample, ReadingExample, crop
from core.training.data.mining import Miner

MAX_ANSWER_WORDS = 5
MAX_NAMESAKES = 6
MAX_OCCURRENCES = 4  # of the answer in its passage
_HOLE = "\u25a1"
_IN_BRACKETS = re.compile(r" \(.{1,200}\)$")
_ASKS = re.compile(
    r"\b(?:who|whom|whose|where|when|how(?: \w+)?|(?:what|which) (?!is|was|are|were|did|do|does|has)\w+)\b", re.I
)


def answer_kind(question: str, answer: str) -> str | None:
    """The kind of an answer, by its form and by the question word; None for prose, which has no replacement.

    >>> answer_kind("Who wrote it?", "Emily Brontë"), answer_kind("When was it sold?", "1901"), answer_kind("Why?", "it fell")
    ('name who', 'year when', None)
    """
    form = answer_form(answer)
    asks = _ASKS.search(question)
    return f"{form} {asks.group().lower()}" if form and asks else None


def replaced(text: str, answers: Sequence[str], other: str) -> str | None:
    """The text with every occurrence of an answer replaced; None if part of an occurrence remains or `other` is already in the
    text."""
    if mentions(text, [other]):
        return None
    spans = sorted({span for answer in answers for span in find_spans(text, answer)}, key=lambda s: (s[0], -s[1]))
    out: list[str] = []
    end = 0
    for first, last in spans:
        if first >= end:
            out += [text[end:first], other]
            end = last
    changed = "".join([*out, text[end:]])
    return None if not spans or len(out) > 2 * MAX_OCCURRENCES or mentions(changed, answers) else changed


def conflicting_examples(
    reading: Sequence[ReadingExample], miner: Miner, context: int, limit: int, seed: int
) -> list[MultiExample]:
    """At most `limit` questions, each over two or three documents that disagree and neighbours that lack the answers.

    `context`: passages per question.
    """
    rng = random.Random(f"{seed}-conflicts")
    answers_of: dict[str, list[str]] = defaultdict(list)
    usable = []
    for e in reading:
        answer = min(e.answers, key=len)
        if len(answer.split()) <= MAX_ANSWER_WORDS and (kind := answer_kind(e.question, answer)):
            answers_of[kind].append(answer)
            if e.title and e.source != "qamr" and len(e.question.split()) >= 5 and len(e.passage.split()) >= 30:
                usable.append((e, kind))
    sampled = rng.sample(usable, min(limit, len(usable)))
    out = []
    for (e, kind), neighbours in zip(sampled, miner.neighbours([e.question for e, _ in sampled], 12)):
        passages = [(e.title, crop(e.passage, e.answers, PASSAGE_WORDS, rng))]
        gold = [e.answers]
        n_conflicting = 1 if rng.random() < 0.75 else 2
        for other in rng.sample(answers_of[kind], min(12, len(answers_of[kind]))):
            if len(gold) > n_conflicting or any(shares_words(other, names) for names in gold) or not answer_words(other):
                continue
            if (text := replaced(e.passage, e.answers, other)) is not None:
                passages.append((e.title, crop(text, (other,), PASSAGE_WORDS, rng)))
                gold.append((other,))
        if len(gold) == 1:
            continue
        names = [a for answers in gold for a in answers]
        others = miner.without(neighbours, names, [e.passage], max(1, context - len(gold)))
        out.append(MultiExample(e.question, (*passages, *others), tuple(gold), "conflict"))
    return out


def _name_and_pattern(e: ReadingExample) -> tuple[str, str] | None:
    """(the name of the example's subject, the question without that name); None if the question doesn't name it."""
    name = _IN_BRACKETS.sub("", e.title)
    pattern = re.compile(rf"\b{re.escape(name)}\b", re.I)
    if len(name) < 4 or not pattern.search(e.question) or not pattern.search(e.passage):
        return None
    return name, " ".join(pattern.sub(_HOLE, e.question).lower().split()).rstrip("?. ")


def namesake_examples(
    reading: Sequence[ReadingExample], miner: Miner, context: int, limit: int, seed: int
) -> list[MultiExample]:
    """At most `limit` questions whose name has two to six meanings, with a passage about each meaning and neighbours without an
    answer."""
    rng = random.Random(f"{seed}-namesakes")
    by_question: dict[str, dict[str, ReadingExample]] = defaultdict(dict)
    for e in reading:
        if len(min(e.answers, key=len).split()) <= 2 * MAX_ANSWER_WORDS and (parts := _name_and_pattern(e)):
            name, pattern = parts
            by_question[pattern].setdefault(name, e)
    groups = [list(group.items()) for group in by_question.values() if len(group) > 1]
    sets = [rng.sample(group, min(rng.randint(2, MAX_NAMESAKES), len(group))) for group in groups for _ in group]
    sets = rng.sample(sets, min(limit, len(sets)))
    out = []
    for members, neighbours in zip(sets, miner.neighbours([members[0][1].question for members in sets], 12)):
        name, first = members[0]
        passages, gold = [], list[tuple[str, ...]]()
        for other_name, e in members:
            text = re.sub(rf"\b{re.escape(other_name)}\b", name.replace("\\", r"\\"), e.passage, flags=re.I)
            answers = tuple(a for a in e.answers if mentions(text, [a]) and not shares_words(a, [name]))
            if not answers or any(shares_words(a, names) for a in answers for names in gold):
                continue
            passages.append((name, crop(text, answers, PASSAGE_WORDS, rng)))
            gold.append(answers)
        if len(gold) > 1:
            names = [a for answers in gold for a in answers]
            others = miner.without(neighbours, names, [e.passage for _, e in members], max(1, context - len(gold)))
            out.append(MultiExample(first.question, (*passages, *others), tuple(gold), "namesakes"))
    return out
