"""Documents that disagree, made of single-answer reading examples: one says the answer, a copy says another of its kind.

As RAMDocs makes its misinformation (Wang et al. 2025): the answer in a passage is replaced by another of the same kind, and
both documents are read beside documents that answer nothing.  Both answers are then to be found.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from core.text import find_spans, has_answer, normalize_answer, shares_words
from core.training.data.examples import MultiExample, ReadingExample, crop
from core.training.data.mining import Miner

MAX_ANSWER_WORDS = 5
MAX_OCCURRENCES = 4  # of the answer in its passage
PASSAGE_WORDS = 100
_KINDS = (
    ("year", re.compile(r"(1\d|20)\d\d")),
    ("date", re.compile(r".*\b(January|February|March|April|May|June|July|August|September|October|November|December)\b.*")),
    ("number", re.compile(r"[\d.,]+%?")),
    ("quantity", re.compile(r"[\d.,]+ \w+")),
    ("name", re.compile(r"([A-Z][\w.'\u2019-]*)( (of|the|de|van|von|and|[A-Z][\w.'\u2019-]*))*")),
)
_ASKS = re.compile(
    r"\b(who|whom|whose|where|when|which|what|how)\b(?: (?:many|much|long|old|far|year|city|country|state|team|name))?", re.I
)


def answer_kind(question: str, answer: str) -> str | None:
    """What an answer is, by its form and by the question word; None for prose, which nothing replaces.

    >>> answer_kind("Who wrote it?", "Emily Brontë"), answer_kind("When was it sold?", "1901"), answer_kind("Why?", "it fell")
    ('name who', 'year when', None)
    """
    form = next((name for name, pattern in _KINDS if pattern.fullmatch(answer)), None)
    asks = _ASKS.search(question)
    return f"{form} {asks.group().lower()}" if form and asks else None


def replaced(text: str, answers: Sequence[str], other: str) -> str | None:
    """The text with every occurrence of an answer replaced; None if part of one remains or `other` is in the text already."""
    if has_answer(text, [other]):
        return None
    spans = sorted({span for answer in answers for span in find_spans(text, answer)}, key=lambda s: (s[0], -s[1]))
    out: list[str] = []
    end = 0
    for first, last in spans:
        if first >= end:
            out += [text[end:first], other]
            end = last
    changed = "".join([*out, text[end:]])
    return None if not spans or len(out) > 2 * MAX_OCCURRENCES or has_answer(changed, answers) else changed


def conflicting_examples(
    reading: Sequence[ReadingExample],
    miner: Miner,
    cache: Path | None,
    context: int,
    limit: int,
    seed: int,
    log: Callable[[str], None],
) -> list[MultiExample]:
    """At most `limit` questions over two or three documents that disagree and neighbours that lack the answers.

    `context`: passages per question.  `cache`: folder of the neighbours that were found.
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
    chosen = rng.sample(usable, min(limit, len(usable)))
    log(f"mining neighbours of {len(chosen)} questions whose documents disagree")
    found = miner.neighbours([e.question for e, _ in chosen], 12, cache)
    out = []
    for (e, kind), neighbours in zip(chosen, found):
        passages = [(e.title, crop(e.passage, e.answers, PASSAGE_WORDS, rng))]
        gold = [e.answers]
        wanted = 1 if rng.random() < 0.75 else 2
        for other in rng.sample(answers_of[kind], min(12, len(answers_of[kind]))):
            if len(gold) > wanted or any(shares_words(other, names) for names in gold) or not normalize_answer(other):
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
