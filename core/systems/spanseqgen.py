"""SpanSeqGen: reranked passages, joined up to 1,024 tokens, from which a sequence-to-sequence model writes the distinct answers in sequence.

Source: Min et al. 2020, section 5.  The reranker there is a BERT cross-encoder; here it is the per-passage reader, which reads question and passage
together: a passage ranks by the probability that it answers at all.  The bundled small model reads the joined passages in windows of 512 tokens
(its base has no more positions); t5-base and bart-large read them as one row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from core import types as t
from core.models.seq2seq.decoding import Writer, Writing
from core.models.seq2seq.fid import load_fid
from core.models.span.reader import PassageReader, load_reader
from core.systems.shared.base import Options, Parts, read_extra
from core.systems.shared.clarifying import clarifier_options, make_clarifier
from core.systems.shared.generative import Rerank, WrittenAnswers

TOKENS = 1024  # "up to 1024 tokens", section 5
RERANKERS = ("reader", "none")


def rerank_with(reader: PassageReader) -> Rerank:
    """The passages by the probability that the reader does not abstain; equal ones keep their order."""

    def rerank(question: str, passages: Sequence[t.RetrievedPassage]) -> list[t.RetrievedPassage]:
        readouts = reader.read(question, [p.passage for p in passages], candidates=1)
        order = sorted(range(len(passages)), key=lambda i: readouts[i].abstain_probability)
        return [passages[i] for i in order]

    return rerank


def build(parts: Parts, options: Options) -> WrittenAnswers:
    """Raises InputError for an option that it does not have, CheckpointError."""
    chosen = read_extra(options, "spanseqgen", {"rerank": RERANKERS, **clarifier_options()})
    who, settings = chosen.pop("rerank"), parts.settings
    answerer, digest = load_fid(settings.seq2seq, settings.device)
    used = {"decoding": asdict(Writing()), "rerank": who, "tokens": TOKENS}
    rerank = None
    if who == "reader":
        reader, reader_digest = load_reader(settings.reader, settings.device)
        rerank = rerank_with(reader)
        used |= {"reader": settings.reader, "reader_digest": reader_digest}
    clarifier, more = make_clarifier(chosen, settings, options.clarify)
    writer = Writer(answerer, Writing(), joined=TOKENS)
    return WrittenAnswers("spanseqgen", parts, options, writer, (settings.seq2seq, digest), {**used, **more}, clarifier, rerank)
