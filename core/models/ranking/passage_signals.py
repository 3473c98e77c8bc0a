"""Signals that distinguish good readings of a passage from bad ones without a language model.

Verified diversification (Lee et al. 2025, section 4.1) keeps an interpretation only if retriever and generator both support it.  Without a
language model, this feedback consists of small signals: the similarity of passage and question, whether the title names what was
asked about, and the outputs of two readers with different training (the per-passage reader, which may abstain, and the answering model, which reads all
passages in one softmax).  A logistic regression weighs the signals of a passage (does it address a meaning of the question?), a conditional logit those
of its spans (which is the answer, if any?); the product is the probability of an interpretation.  The weights are stored
next to the reader's (core.models.ranking.signal_weights).
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from core.disambiguation.edits.names import split_title
from core.disambiguation.edits.parts import fits
from core.disambiguation.edits.shared import sentence_bounds
from core.models.ranking.units import NUMBER
from core.models.span.answerer import SpanAnswerer
from core.models.span.model import to_candidate, top_spans
from core.models.span.rows import Rows
from core.text import answer_words, content_words, overlapping, word_tokens
from core.types import Candidate, RetrievedPassage

LEAST = -12.0  # log probability of spans that a model did not return
UNKNOWN_DISTANCE = -0.15  # cosine difference if no retriever scored the passage: typical for a passage of its corpus
_STEM = 5  # letters of a word that are compared, to ignore endings
_HOW_MUCH = re.compile(r"\bhow (many|much|tall|long|old|deep|high|far|fast|big|large|heavy|wide|often)\b", re.IGNORECASE)
_SMALL = frozenset("of de van von der den la le du di da the and al ibn bin".split())  # inside names of people


@dataclass(frozen=True, slots=True)
class PassageView:
    """One passage as the two models see it.  `reader`: probabilities in this passage, the likeliest first; `answerer`: spans of this passage
    with log probabilities over all passages, the likeliest first.  Empty until a model has read it."""

    found: RetrievedPassage
    abstain: float = 1.0
    reader: tuple[Candidate, ...] = ()
    answerer: tuple[tuple[Candidate, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """A candidate answer of a passage with its signals, by name."""

    candidate: Candidate
    signals: Mapping[str, float]


@dataclass(frozen=True)
class Weighing:
    """A weight for each signal.  `nothing`: the logit of "none of these spans is right" beside those of the spans."""

    passage: Mapping[str, float]
    passage_bias: float
    reading: Mapping[str, float]
    nothing: float

    def relevance(self, signals: Mapping[str, float]) -> float:
        """P(the passage addresses some meaning of the question)."""
        return _sigmoid(self.passage_bias + sum(w * signals[name] for name, w in self.passage.items()))

    def right(self, found: Sequence[Reading]) -> list[float]:
        """For each span of a passage, P(it is the answer | the passage addresses a meaning): a softmax with `nothing`."""
        logits = [sum(w * r.signals[name] for name, w in self.reading.items()) for r in found]
        most = max([*logits, self.nothing])
        parts = [math.exp(z - most) for z in logits]
        total = sum(parts) + math.exp(self.nothing - most)
        return [part / total for part in parts]

    @property
    def digest(self) -> str:
        body = json.dumps([dict(self.passage), self.passage_bias, dict(self.reading), self.nothing], sort_keys=True)
        return hashlib.sha256(body.encode()).hexdigest()[:12]


def _sigmoid(z: float) -> float:
    return 1 / (1 + math.exp(-z)) if z >= 0 else math.exp(z) / (1 + math.exp(z))


def answerer_views(answerer: SpanAnswerer, question: str, found: Sequence[RetrievedPassage], limit: int) -> list[PassageView]:
    """The answering model's first step over all passages in one softmax: the `limit` best spans of each passage.  The reader's part is empty."""
    scored = answerer.score_many([(question, found, ())])[0]
    total = float(torch.logsumexp(torch.cat([scored.spans.reshape(-1), torch.tensor([scored.eoi])]), 0))
    rows, views = scored.rows, []
    for i, one in enumerate(found):
        own = [r for r, passage in enumerate(rows.passage) if passage == i]
        part = Rows([], [], [i] * len(own), [rows.offsets[r] for r in own], [], [])
        spans = top_spans(scored.spans[own], part, limit) if own else []
        views.append(PassageView(one, answerer=tuple((to_candidate(s, one.passage, 0.0), s.logit - total) for s in spans)))
    return views


def best_reading(
    weighing: Weighing, view: PassageView, passage: Mapping[str, float], question: str
) -> tuple[Reading | None, float]:
    """The likeliest reading of a passage and the probability of the interpretation; (None, 0) where neither model names a span."""
    found = readings(question, view)
    if not found:
        return None, 0.0
    best, right = max(zip(found, weighing.right(found)), key=lambda f: f[1])
    return best, right * weighing.relevance(passage)


class QuestionSignals:
    """The question's words relative to the retrieved passages, from which each passage's signals are computed."""

    def __init__(self, question: str, views: Sequence[PassageView]) -> None:
        self.question = question
        self.words = [w[:_STEM] for w in word_tokens(question)]
        self.content = {w[:_STEM] for w in content_words(question)}
        self.named = {w.lower()[:_STEM] for w in re.findall(r"(?<!^)\b[A-Z][\w-]*", question)} & self.content
        self.most = max((_covered(self.content, _both(v)) for v in views), default=0.0)
        self.best = max((logp for v in views for _, logp in v.answerer), default=LEAST)
        self.nearest = max((v.found.similarity for v in views if v.found.similarity is not None), default=None)

    def passage(self, rank: int, view: PassageView) -> dict[str, float]:
        """Signals of one passage, `rank` from 0."""
        title = view.found.passage.title
        base = [w[:_STEM] for w in word_tokens(split_title(title)[0]) if w not in ("the", "a", "an")]
        covered = _covered(self.content, _both(view))
        similarity = view.found.similarity
        far = UNKNOWN_DISTANCE if similarity is None or self.nearest is None else similarity - self.nearest
        said = view.answerer[0] if view.answerer else None
        read = view.reader[0] if view.reader else None
        return {
            "cosine_less_than_best": far,
            "rank": math.log1p(rank),
            "covered": covered,
            "covered_less_than_best": covered - self.most,
            "title_covers": _covered(self.content, title),
            "title_run": _run(base, self.words) / len(base) if base else 0.0,
            "title_whole": float(bool(base) and all(w in self.words for w in base)),
            "names": _covered(self.named, _both(view)) if self.named else 1.0,
            "abstain": _log(view.abstain),
            "reader": _log(read.probability) if read else LEAST,
            "answerer": max(LEAST, said[1]) if said else LEAST,
            "answerer_less_than_best": max(LEAST, said[1] - self.best) if said else LEAST,
        }


def readings(question: str, view: PassageView) -> list[Reading]:
    """The spans of both models, without duplicates, each with its signals."""
    read_first = answer_words(view.reader[0].text) if view.reader else ""
    said_first = answer_words(view.answerer[0][0].text) if view.answerer else ""
    most = view.answerer[0][1] if view.answerer else LEAST
    out = []
    for candidate in _merged(view):
        key = answer_words(candidate.text)
        said = max((p for c, p in view.answerer if answer_words(c.text) == key), default=LEAST)
        near = max((p for c, p in view.answerer if overlapping(c.text, candidate.text)), default=LEAST)
        worded = wording(question, candidate, view.found.passage.text)
        signals = {
            "reader": _log(sum(c.probability for c in view.reader if answer_words(c.text) == key)),
            "answerer": max(LEAST, said),
            "answerer_near": max(LEAST, near - most),
            "reader_first": float(key == read_first),
            "answerer_first": float(key == said_first),
            "both_first": float(key == read_first == said_first),
            "kind": kind(question, candidate.text),
            "length": min(8.0, len(candidate.text.split())),
            "sentence": worded.pop("sentence_covers"),
            **worded,
        }
        out.append(Reading(candidate, signals))
    return out


def wording(question: str, candidate: Candidate, text: str) -> dict[str, float]:
    """Signals of a span's wording in the passage `text`, and of its sentence's overlap with the question."""
    tokens = candidate.text.split()
    asked = {w[:_STEM] for w in content_words(question)}
    who = question.lower().lstrip().startswith("who")
    begin, end = sentence_bounds(text, candidate.evidence.start if candidate.evidence else 0)
    return {
        "long": float(len(tokens) > 5),
        "small_first": float(candidate.text[:1].islower()),
        "who_small": float(who and any(w[:1].islower() and w.lower() not in _SMALL for w in tokens)),
        "joined": float("," in candidate.text or " and " in candidate.text),
        "sentence_covers": _covered(asked, text[begin:end]),
    }


def _merged(view: PassageView) -> list[Candidate]:
    found: dict[str, Candidate] = {}
    for candidate in (*view.reader, *(c for c, _ in view.answerer)):
        key = answer_words(candidate.text)
        if key:
            found.setdefault(key, candidate)
    return list(found.values())


def _both(view: PassageView) -> str:
    return f"{view.found.passage.title} {view.found.passage.text}"


def _log(probability: float) -> float:
    return max(LEAST, math.log(probability)) if probability > 0 else LEAST


def _covered(asked: set[str], text: str) -> float:
    """The share of the asked words that are in the text; 0 without any."""
    have = {w[:_STEM] for w in word_tokens(text)}
    return sum(w in have for w in asked) / len(asked) if asked else 0.0


def _run(a: Sequence[str], b: Sequence[str]) -> int:
    """The length of the longest common run of words.

    >>> _run(["west", "side", "story"], ["who", "saw", "side", "story"])
    2
    """
    best, row = 0, [0] * (len(b) + 1)
    for x in a:
        row = [0] + [row[j] + 1 if x == y else 0 for j, y in enumerate(b)]
        best = max(best, *row)
    return best


def kind(question: str, answer: str) -> float:
    """1 if the answer is of the kind that the question asks for, 0 if it cannot be, 0.5 if the question does not say.

    >>> kind("When did the dam open?", "1971"), kind("Who built it?", "1971"), kind("How deep is it?", "the north shore")
    (1.0, 0.0, 0.0)
    """
    asking = question.lower().strip()
    if _HOW_MUCH.search(asking):
        return float(bool(NUMBER.search(answer)))
    if not fits(asking, answer):
        return 0.0
    if asking.startswith("who"):
        return float(any(w[:1].isupper() for w in answer.split()))
    return 1.0 if asking.startswith(("when", "what date", "which year", "what year")) else 0.5
