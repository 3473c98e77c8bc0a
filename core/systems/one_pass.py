"""One-pass reading: every passage is read for itself, once; each answer whose probability exceeds a threshold is kept.

Sources: AmbigQA's thresholded reader (Min et al. 2020, section 5) on DPR's reader (Karpukhin et al. 2020).  The baseline that iterative
prompting has to beat: the same reader's weights, no dependence between answers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from core import types as t
from core.evidence import occurrences
from core.models.passage_reader import PassageReader, load_reader
from core.systems.base import Options, Parts, check_question, effective_settings, read_extra, retrieve
from core.text import normalize_answer, overlapping

THRESHOLD = 0.5  # not tuned: benchmarks.quality looks for the best one on the questions that it reports


def chosen_threshold(options: Options) -> float:
    """Raises InputError for an option that one-pass does not have, or a threshold that is no number."""
    threshold: float = read_extra(options, "one-pass", {"threshold": THRESHOLD})["threshold"]
    return threshold


class OnePass:
    def __init__(self, parts: Parts, options: Options, reader: PassageReader, digest: str) -> None:
        self.parts, self.options, self.reader = parts, options, reader
        self.threshold = chosen_threshold(options)
        self.info = t.SystemInfo(
            "one-pass",
            effective_settings(parts, options, threshold=self.threshold),
            parts.corpus,
            parts.corpus_digest,
            parts.settings.reader,
            digest,
        )

    def run(self, question: t.Question) -> Iterator[t.Event]:
        started = time.perf_counter()
        question = check_question(question, self.parts.settings.max_question_chars)
        retrieved = retrieve(question, self.parts, self.options.top_k)
        yield retrieved
        yield t.StepStarted(1, (), "")
        begun = time.perf_counter()
        readouts = self.reader.read(question.text, [p.passage for p in retrieved.passages])
        merged: dict[str, t.Candidate] = {}
        for readout in readouts:
            for candidate in readout.candidates[:2]:
                key = normalize_answer(candidate.text)
                if key and (key not in merged or merged[key].probability < candidate.probability):
                    merged[key] = candidate
        candidates = sorted(merged.values(), key=lambda c: -c.probability)
        banned = {normalize_answer(b) for b in question.banned}
        kept: list[t.Candidate] = [t.Candidate(p, 1.0) for p in question.pinned]
        for c in candidates:
            if c.probability < self.threshold or len(kept) >= self.options.max_answers:
                break
            if normalize_answer(c.text) not in banned and not any(overlapping(c.text, k.text) for k in kept):
                kept.append(c)
        seconds = time.perf_counter() - begun
        for number, c in enumerate(kept, 1):
            evidence = (c.evidence,) if c.evidence else ()
            extra = tuple(e for e in occurrences(c.text, retrieved.passages) if e not in evidence)
            step = t.Step(
                number,
                tuple(k.text for k in kept[: number - 1]),
                "",
                tuple(candidates[:8]) if number == 1 else (c,),
                c,
                0.0,
                seconds if number == 1 else 0.0,
            )
            yield t.StepFinished(
                step, t.Answer(c.text, c.probability, evidence + extra, number, number <= len(question.pinned))
            )
        yield t.Finished(time.perf_counter() - started, f"one pass; every answer above {self.threshold:g}")


def build(parts: Parts, options: Options) -> OnePass:
    """Raises InputError for an option that it does not have, CheckpointError."""
    chosen_threshold(options)  # before weights are loaded for nothing
    reader, digest = load_reader(parts.settings.reader, parts.settings.device)
    return OnePass(parts, options, reader, digest)
