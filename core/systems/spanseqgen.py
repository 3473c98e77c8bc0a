"""SpanSeqGen: reranked passages, joined up to 1,024 tokens, from which a sequence-to-sequence model writes the distinct answers in sequence.

Source: Min et al. 2020, section 5.  The reranker there is a BERT cross-encoder; here it is the per-passage reader, which reads question and passage
together: of a pool, a passage ranks by the probability that it answers at all, and the best are read.  The bundled small model reads the joined passages in windows of 512 tokens
(its base has no more positions); t5-base and bart-large read them as one row.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

from core import types as t
from core.models.seq2seq.decoding import SequenceDecoding, Writer
from core.models.seq2seq.fid import load_fid
from core.models.span.reader import PassageReader, load_reader
from core.systems.base.base import Options, Parts, read_extra, retrieve
from core.systems.base.candidates import check_count
from core.systems.base.clarifying import clarifier_options, make_clarifier
from core.systems.base.generative import WrittenAnswers

TOKENS = 1024  # "up to 1024 tokens", section 5
RERANKERS = ("reader", "none")
POOL = 30.0  # passages that are reranked; 100 in the paper
Rerank = Callable[[str, Sequence[t.RetrievedPassage]], Sequence[t.RetrievedPassage]]


def rerank_with(reader: PassageReader) -> Rerank:
    """The passages by the probability that the reader does not abstain; equal ones keep their order."""

    def rerank(question: str, passages: Sequence[t.RetrievedPassage]) -> list[t.RetrievedPassage]:
        readouts = reader.read(question, [p.passage for p in passages], candidates=1)
        order = sorted(range(len(passages)), key=lambda i: readouts[i].abstain_probability)
        return [passages[i] for i in order]

    return rerank


class SpanSeqGen(WrittenAnswers):
    """`pool`: passages retrieved, of which the best by `ranked` are read, as many as the options say; a question's own are all read."""

    def __init__(self, *given: Any, pool: int, ranked: Rerank | None) -> None:
        super().__init__(*given)
        self.pool, self.ranked = pool, ranked

    def passages(self, question: t.Question) -> t.PassagesRetrieved:
        started, k = time.perf_counter(), self.options.passages
        found = retrieve(question, self.parts, max(self.pool, k) if self.ranked else k).passages
        if self.ranked:
            best = self.ranked(question.text, found)[: k if question.passages is None else None]
            found = tuple(replace(p, rank=rank) for rank, p in enumerate(best, 1))
        return t.PassagesRetrieved(tuple(found), time.perf_counter() - started, question.text)


def build(parts: Parts, options: Options) -> SpanSeqGen:
    """Raises InputError for an unknown option, CheckpointError."""
    chosen = read_extra(options, "spanseqgen", {"rerank": RERANKERS, "pool": POOL, **clarifier_options()})
    who, pool, settings = chosen.pop("rerank"), check_count("pool", chosen.pop("pool"), 500), parts.settings
    answerer, digest = load_fid(settings.seq2seq, settings.device)
    used = {"decoding": asdict(SequenceDecoding()), "rerank": who, "pool": pool, "tokens": TOKENS}
    rerank = None
    if who == "reader":
        reader, reader_digest = load_reader(settings.reader, settings.device)
        rerank = rerank_with(reader)
        used |= {"reader": settings.reader, "reader_digest": reader_digest}
    clarifier, more = make_clarifier(chosen, settings, options.clarify)
    writer = Writer(answerer, SequenceDecoding(), joined=TOKENS)
    given = ("spanseqgen", parts, options, writer, (settings.seq2seq, digest), {**used, **more}, clarifier)
    return SpanSeqGen(*given, pool=pool, ranked=rerank)
