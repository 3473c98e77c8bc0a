"""Features of a step's candidates, from the answering model, the per-passage reader, the retriever and the wording.

`QuestionFeatures` is created once per question, because the readouts and the passage signals of core.models.ranking.passage_signals do not change
between steps.  `QuestionFeatures.step` gives one row of features per candidate; their names are in FEATURES.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.disambiguation.evidence import evidence_sentence
from core.models.ranking.copies import Copies
from core.models.ranking.passage_signals import QuestionSignals, kind, wording
from core.models.ranking.second_reading import with_readings
from core.models.ranking.units import unit_alike
from core.models.span.reader import PassageReader, Readout
from core.text import answer_words, contains_tokens, content_words, find_spans, overlapping, shares_words, word_tokens
from core.types import Candidate, Evidence, Passage, Proposal, RetrievedPassage

SPANS = 6  # spans per passage from the reader
UNJUDGED = -12.0  # log odds of a candidate without evidence
LEAST = 1e-6  # lowest probability
Embed = Callable[[Sequence[str]], NDArray[np.float32]]  # texts -> unit vectors (n, d)
Read = Callable[[str, Sequence[RetrievedPassage]], Sequence[Readout]]  # question, passages -> a readout each
Judge = Callable[
    [str, Sequence[tuple[Passage, int, int]]], Sequence[float]
]  # question, spans (passage, first character, end) -> a logit each

OF_STEP = (
    "log_probability",  # of the answering model, among spans and [EOI]
    "over_eoi",  # log probability - log P([EOI])
    "below_best",  # log probability - that of the step's best candidate
    "similarity",  # cosine of question and passage
    "below_best_passage",  # that cosine - the best passage's
    "sentence",  # cosine of the question and the candidate's sentence with the passage's title
    "kind",  # whether the answer fits the question word
    "like_previous",  # whether it looks like the answers so far (0 at the first step)
    "unit_like_previous",  # whether its unit is theirs (core.models.ranking.units)
    "length",  # words, at most 8
    "in_title",
    "asked_again",  # share of its words that are in the question
    "support",  # other passages that contain it, at most 3
    "passage_taken",  # its passage contains a previous answer
    "first_step",
    "previous",  # number of previous answers, at most 6
)
OF_READER = (
    "reader",  # log probability of this text in its passage
    "reader_near",  # of a text in its passage that overlaps with it
    "reader_anywhere",  # of this text in any passage
    "reader_first",  # the reader's best span of its passage
    "reader_abstains",  # log probability that its passage does not answer
    "reader_abstains_less",  # that less the least of all passages
)
OF_PASSAGE = (
    "covered",
    "covered_less_than_best",
    "title_covers",
    "title_run",
    "title_whole",
    "names",
)  # passage_signals.QuestionSignals
OF_WORDING = ("long", "small_first", "who_small", "joined", "sentence_covers")  # passage_signals.wording
OF_PREVIOUS = (  # relative to the answers so far; 0 at the first step, and if no passage contains one of them
    "sentence_like_previous",  # cosine of the candidate's sentence and the nearest of theirs: further answers are in similar sentences
    "title_like_previous",  # share of words that the titles have in common, the best
    "reader_below_previous",  # log probability of the reader - the best of theirs
    "covered_below_previous",  # share of the question's words that the passage covers - the best of theirs
    "similarity_below_previous",
)
OF_COPIES = (  # core.models.ranking.copies; 0 where no near copy of its passage gives another answer
    "outvoted",  # documents by which such an answer has more, at most 3
    "contested",  # whether one has at least as many
)
OF_VERIFIER = (  # core.models.ranking.verifier; all 0 where none is available
    "verifier",  # its log odds that the span answers the question
    "verifier_log",  # its log probability
    "verifier_below_best",  # log odds - those of the step's best candidate
)
FEATURES = OF_STEP + OF_READER + OF_PASSAGE + OF_WORDING + OF_PREVIOUS + OF_COPIES + OF_VERIFIER


def shape(text: str) -> tuple[bool, bool, bool]:
    """(has a digit, has a four-digit year, starts a word with a capital): answers to one question mostly agree in these."""
    return bool(re.search(r"\d", text)), bool(re.search(r"\b[12]\d{3}\b", text)), bool(re.search(r"\b[A-Z]", text))


def _alike(answer: str, previous: Sequence[str]) -> float:
    """-1 to 1: share of the traits of `shape` in which the answer agrees with the previous answers; 0 if there are none."""
    if not previous:
        return 0.0
    own = shape(answer)
    agree = [x == y for other in previous for x, y in zip(own, shape(other))]
    return 2.0 * sum(agree) / len(agree) - 1.0


def _log(probability: float) -> float:
    return math.log(max(LEAST, probability))


@dataclass(frozen=True)
class AnswerSource:
    """A previous answer's passage, and the reader's log probability of the answer there."""

    passage_id: str
    reader: float


class QuestionFeatures:
    """The features of one question over its passages."""

    def __init__(
        self, question: str, passages: Sequence[RetrievedPassage], embed: Embed, read: Read, judge: Judge | None = None
    ) -> None:
        self.question, self.embed, self.judge = question, embed, judge
        self.passages = {p.passage.id: p for p in passages}
        self.readouts = {r.passage.id: r for r in read(question, passages)}
        self.least_abstaining = min((_log(r.abstain_probability) for r in self.readouts.values()), default=0.0)
        self.best_similarity = max((p.similarity for p in passages if p.similarity is not None), default=0.0)
        self.tokens = {p.passage.id: word_tokens(p.passage.text) for p in passages}
        self.copies = Copies(self.tokens)
        asked = QuestionSignals(question, [p.passage for p in passages])
        self.signals = {p.passage.id: asked.passage(p.passage) for p in passages}
        self.asked = set(content_words(question))
        self.titles = {key: frozenset(word_tokens(p.passage.title)) for key, p in self.passages.items()}
        self._vectors: dict[str, NDArray[np.float32]] = {}
        self._places: dict[str, list[str]] = {}
        self._holders: dict[str, AnswerSource | None] = {}
        self._verified: dict[Evidence, float] = {}
        self.verifying = 0.0  # seconds of the verifier so far

    def _near(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors (texts, d), cached over steps."""
        new = [t for t in dict.fromkeys(texts) if t not in self._vectors]
        if new:
            self._vectors |= zip(new, self.embed(new))
        return np.stack([self._vectors[t] for t in texts])

    def _holding(self, answer: str) -> list[str]:
        """Ids of the passages with these words."""
        if answer not in self._places:
            said = word_tokens(answer)
            self._places[answer] = [key for key, text in self.tokens.items() if contains_tokens(text, said)]
        return self._places[answer]

    def _held(self, answer: str) -> AnswerSource | None:
        """The source of a previous answer: of the passages that contain it, the one with the highest reader probability."""
        if answer not in self._holders:
            held = [AnswerSource(key, self._reader(answer, key)["reader"]) for key in self._holding(answer)]
            self._holders[answer] = max(held, key=lambda h: (h.reader, self._similarity(h.passage_id)), default=None)
        return self._holders[answer]

    def _similarity(self, passage_id: str) -> float:
        own = self.passages[passage_id].similarity if passage_id in self.passages else None
        return own if own is not None else self.best_similarity

    def _read(self, passage_id: str) -> tuple[float, tuple[Candidate, ...]]:
        readout = self.readouts.get(passage_id)
        return (readout.abstain_probability, readout.candidates) if readout else (1.0, ())

    def with_second_readings(self, previous: Sequence[str], proposal: Proposal) -> Proposal:
        """The proposal with the reader's second readings, which `step` also supports."""
        return with_readings(proposal, self.readouts.values(), previous)

    def step(self, previous: Sequence[str], proposal: Proposal) -> NDArray[np.float64]:
        """(candidates, len(FEATURES))"""
        candidates = proposal.candidates
        if not candidates:
            return np.zeros((0, len(FEATURES)))
        taken = {key for p in previous for key in self._holding(p)}
        before = {p: held for p in previous if (held := self._held(p)) is not None}
        vectors = self._near([self.question, *(self._sentence(c) for c in candidates), *map(self._sentence_of, before.items())])
        near = vectors[1:] @ vectors[0]
        alike = vectors[1 : len(candidates) + 1] @ vectors[len(candidates) + 1 :].T  # (candidates, answers so far)
        logs = [_log(c.probability) for c in candidates]
        eoi, best = _log(proposal.eoi_probability), max(logs)
        odds = self._odds(candidates)
        rows = []
        for i, candidate in enumerate(candidates):
            row = self._candidate(candidate, previous, taken)
            row |= {
                "log_probability": logs[i],
                "over_eoi": logs[i] - eoi,
                "below_best": logs[i] - best,
                "sentence": float(near[i]),
                "first_step": float(not previous),
                "previous": float(min(6, len(previous))),
                "verifier": odds[i],
                "verifier_log": -math.log1p(math.exp(-odds[i])) if self.judge else 0.0,
                "verifier_below_best": odds[i] - max(odds),
            }
            row |= self._beside(candidate, row, list(before.values()), alike[i])
            row |= self._against(candidate, [*previous, *(c.text for c in candidates)])
            rows.append([row[name] for name in FEATURES])
        return np.array(rows)

    def _odds(self, candidates: Sequence[Candidate]) -> list[float]:
        """The verifier's log odds of each candidate, cached over steps."""
        if self.judge is None:
            return [0.0] * len(candidates)
        places = [c.evidence for c in candidates if c.evidence is not None and c.evidence.passage_id in self.passages]
        if new := [p for p in dict.fromkeys(places) if p not in self._verified]:
            spans = [(self.passages[p.passage_id].passage, p.start, p.end) for p in new]
            started = time.perf_counter()
            self._verified |= zip(new, self.judge(self.question, spans))
            self.verifying += time.perf_counter() - started
        return [self._verified.get(c.evidence, UNJUDGED) if c.evidence else UNJUDGED for c in candidates]

    def _candidate(self, candidate: Candidate, previous: Sequence[str], taken: set[str]) -> dict[str, float]:
        own = self.passages.get(candidate.evidence.passage_id) if candidate.evidence else None
        similarity = self._similarity(own.passage.id if own is not None else "")
        said = word_tokens(candidate.text)
        content = content_words(candidate.text) or said
        holding = len(self._holding(candidate.text))
        signals = self.signals[own.passage.id] if own is not None else dict.fromkeys(OF_PASSAGE, 0.0)
        return {
            "similarity": similarity,
            "below_best_passage": similarity - self.best_similarity,
            "kind": kind(self.question, candidate.text),
            "like_previous": _alike(candidate.text, previous),
            "unit_like_previous": unit_alike(candidate.text, previous),
            "length": min(8.0, len(said)),
            "in_title": float(own is not None and contains_tokens(word_tokens(own.passage.title), said)),
            "asked_again": sum(w in self.asked for w in content) / max(1, len(content)),
            "support": float(min(3, max(0, holding - 1))),
            "passage_taken": float(own is not None and own.passage.id in taken),
            **self._reader(candidate.text, own.passage.id if own is not None else ""),
            **{name: signals[name] for name in OF_PASSAGE},
            **wording(self.question, candidate, own.passage.text if own is not None else ""),
        }

    def _beside(
        self, candidate: Candidate, row: Mapping[str, float], before: Sequence[AnswerSource], alike: NDArray[np.float32]
    ) -> dict[str, float]:
        if not before:
            return dict.fromkeys(OF_PREVIOUS, 0.0)
        own = self.titles.get(candidate.evidence.passage_id if candidate.evidence else "", frozenset())
        titles = [self.titles[h.passage_id] for h in before]
        return {
            "sentence_like_previous": float(alike.max()),
            "title_like_previous": max(len(own & t) / max(1, len(own | t)) for t in titles),
            "reader_below_previous": row["reader"] - max(h.reader for h in before),
            "covered_below_previous": row["covered"] - max(self.signals[h.passage_id]["covered"] for h in before),
            "similarity_below_previous": row["similarity"] - max(self._similarity(h.passage_id) for h in before),
        }

    def _against(self, candidate: Candidate, others: Sequence[str]) -> dict[str, float]:
        if candidate.evidence is None or not self.copies.of(candidate.evidence.passage_id):
            return dict.fromkeys(OF_COPIES, 0.0)
        rivals = [self._holding(other) for other in others if not shares_words(other, [candidate.text])]
        outvoted, contested = self.copies.against(candidate.evidence.passage_id, self._holding(candidate.text), rivals)
        return {"outvoted": float(outvoted), "contested": float(contested)}

    def _reader(self, text: str, passage_id: str) -> dict[str, float]:
        key = answer_words(text)
        abstains, spans = self._read(passage_id)
        everywhere = [c for r in self.readouts.values() for c in r.candidates if answer_words(c.text) == key]
        return {
            "reader": _log(sum(c.probability for c in spans if answer_words(c.text) == key)),
            "reader_near": _log(max((c.probability for c in spans if overlapping(c.text, text)), default=0.0)),
            "reader_anywhere": _log(max((c.probability for c in everywhere), default=0.0)),
            "reader_first": float(bool(spans) and answer_words(spans[0].text) == key),
            "reader_abstains": _log(abstains),
            "reader_abstains_less": _log(abstains) - self.least_abstaining,
        }

    def _sentence(self, candidate: Candidate) -> str:
        found = self.passages.get(candidate.evidence.passage_id) if candidate.evidence else None
        if found is None or candidate.evidence is None:
            return candidate.text
        return _titled(found.passage, candidate.evidence.start)

    def _sentence_of(self, item: tuple[str, AnswerSource]) -> str:
        answer, held = item
        passage = self.passages[held.passage_id].passage
        return _titled(passage, next((start for start, _ in find_spans(passage.text, answer)), 0))


def _titled(passage: Passage, start: int) -> str:
    sentence = evidence_sentence(passage, start)
    return f"{passage.title}. {sentence}" if passage.title else sentence


def read_with(reader: PassageReader) -> Read:
    """The reader's readouts of a question's passages, in one batch."""
    return lambda question, passages: reader.read(question, [p.passage for p in passages], SPANS)
