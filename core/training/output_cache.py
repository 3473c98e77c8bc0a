"""A disk cache of model outputs, so that many systems over the same questions read each passage only once.

It serves benchmarks and training on top of trained weights.  `cached_outputs(file)` adds a cache to the reader, the
answering model, the verifier and the encoder of this process.  Keys contain the weights and all inputs, so outputs of
other weights are never returned.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from core import types as t
from core.evaluation.judge_cache import Judgments
from core.models.encoders.sentence_encoder import BertEncoder, Kind, Vectors, weights_of
from core.models.ranking.verifier import SpanVerifier
from core.models.span.answerer import SpanAnswerer
from core.models.span.reader import PassageReader, Readout

MOST = 6  # candidates cached per passage: the most that any caller needs


def _said(c: t.Candidate) -> list[Any]:
    e = c.evidence
    return [c.text, c.probability, [e.passage_id, e.start, e.end, e.text] if e else None]


def _candidate(row: Sequence[Any]) -> t.Candidate:
    return t.Candidate(row[0], row[1], t.Evidence(*row[2]) if row[2] else None)


def _passages(found: Sequence[t.RetrievedPassage]) -> list[Any]:
    return [(f.passage.id, f.passage.title, f.passage.text, f.similarity) for f in found]


class _Cache:
    def __init__(self, file: Path) -> None:
        self.values = Judgments(file)

    def __call__(self, keys: Sequence[Any], compute: Callable[[list[int]], Sequence[Any]]) -> list[Any]:
        """The value of each key.  `compute` returns the values of the positions it is given, as plain JSON values."""
        names = [Judgments.key(torch.is_autocast_enabled("cpu"), key) for key in keys]
        known = self.values.get_many(names)
        if missing := [i for i, name in enumerate(names) if name not in known]:
            fresh = dict(zip((names[i] for i in missing), compute(missing)))
            self.values.put_many(fresh)
            known |= fresh
        return [known[name] for name in names]


@contextmanager
def cached_outputs(file: Path) -> Iterator[None]:
    """A context in which every model of this process uses the cache.  Raises StorageError if the file is unusable."""
    cache = _Cache(file)
    read_pairs, propose_many, judge = PassageReader.read_pairs, SpanAnswerer.propose_many, SpanVerifier.judge
    compute = BertEncoder._compute

    def cached_read(self: PassageReader, pairs: Sequence[tuple[str, t.Passage]], candidates: int = 5) -> list[Readout]:
        if candidates > MOST:
            return read_pairs(self, pairs, candidates)
        keys = [("read", weights_of(self.network), question, p.id, p.title, p.text) for question, p in pairs]

        def fresh(at: list[int]) -> list[Any]:
            found = read_pairs(self, [pairs[i] for i in at], MOST)
            return [[r.abstain_probability, [_said(c) for c in r.candidates]] for r in found]

        rows = cache(keys, fresh)
        return [Readout(p, tuple(map(_candidate, row[1][:candidates])), row[0]) for row, (_, p) in zip(rows, pairs)]

    def cached_propose(self: SpanAnswerer, jobs: Sequence[t.Job]) -> list[t.Proposal]:
        if self.reader is not None:
            return propose_many(self, jobs)
        own = weights_of(self.network), str(self.decoding)
        keys = [("propose", *own, question, _passages(found), list(previous)) for question, found, previous in jobs]

        def fresh(at: list[int]) -> list[Any]:
            return [[p.eoi_probability, [_said(c) for c in p.candidates]] for p in propose_many(self, [jobs[i] for i in at])]

        return [t.Proposal(tuple(map(_candidate, row[1])), row[0]) for row in cache(keys, fresh)]

    def cached_judge(self: SpanVerifier, question: str, spans: Sequence[tuple[t.Passage, int, int]]) -> list[float]:
        own = weights_of(self.network)
        keys = [("judge", own, question, p.id, p.title, p.text, start, end) for p, start, end in spans]
        return cache(keys, lambda at: judge(self, question, [spans[i] for i in at]))

    def cached_compute(self: BertEncoder, texts: Sequence[str], kind: Kind) -> Vectors:
        keys = [("encode", self.name, text) for text in texts]

        def fresh(at: list[int]) -> list[Any]:
            return [base64.b64encode(v.tobytes()).decode() for v in compute(self, [texts[i] for i in at], kind)]

        return np.stack([np.frombuffer(base64.b64decode(row), np.float32) for row in cache(keys, fresh)])

    with ExitStack() as changes:
        for owner, name, own in (
            (PassageReader, "read_pairs", cached_read),
            (SpanAnswerer, "propose_many", cached_propose),
            (SpanVerifier, "judge", cached_judge),
            (BertEncoder, "_compute", cached_compute),
        ):
            changes.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, own)
        yield
