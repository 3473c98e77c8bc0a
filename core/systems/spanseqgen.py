"""SpanSeqGen: joins reranked passages up to 1,024 tokens, from which a sequence-to-sequence model writes the distinct answers
in sequence.

Source: Min et al. 2020, section 5.  The reranker there is a BERT cross-encoder; here it is the per-passage reader, which reads question and passage
together: of a pool, a passage ranks by the probability that it answers at all, and the best are read.  The bundled small model reads the joined passages in windows of 512 tokens
(its base has no more positions); t5-base and bart-large read them as one row.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from dataclasses import asdict, replace

from core import types as t
from core.models.seq2seq.decoding import AnswerSetWriter, SequenceDecoding
from core.models.seq2seq.fid import load_fid
from core.models.span.reader import PassageReader, load_reader
from core.systems.base.clarifying import make_clarifier
from core.systems.base.options import Options
from core.systems.base.system import SystemParts, SystemRun
from core.systems.base.writing import WritingSystem
from core.systems.options import SpanSeqGenOptions

MAX_JOINED_TOKENS = 1024  # "up to 1024 tokens", section 5


class SpanSeqGen(WritingSystem):
    """Reads the best passages of a pool by the reader's ranking, as many as the options say.  A question's own passages are all
    read."""

    config: SpanSeqGenOptions
    reader: PassageReader

    def retrieve(self, run: SystemRun) -> Generator[t.Event, None, Sequence[t.RetrievedPassage]]:
        start, k, question = time.perf_counter(), self.options.passages, run.question
        pool = self.search(question, question.text, max(self.config.pool, k)).passages
        readouts = self.reader.read(question.text, [p.passage for p in pool], candidates=1)
        order = sorted(range(len(pool)), key=lambda i: readouts[i].abstain_probability)  # equal ones keep theirs
        best = [pool[i] for i in order][: k if question.passages is None else None]
        passages = tuple(replace(p, rank=rank) for rank, p in enumerate(best, 1))
        yield t.PassagesRetrieved(passages, time.perf_counter() - start, question.text)
        return passages


def build(name: str, parts: SystemParts, options: Options, config: SpanSeqGenOptions) -> SpanSeqGen:
    settings = parts.settings
    answerer, digest = load_fid(settings.seq2seq, settings.device)
    reader, reader_digest = load_reader(settings.reader, settings.device)
    clarifier, provenance = make_clarifier(config, settings, options.clarify)
    provenance |= {"decoding": asdict(SequenceDecoding()), "tokens": MAX_JOINED_TOKENS}
    provenance |= {"reader": settings.reader, "reader_digest": reader_digest}
    writer, checkpoint = (
        AnswerSetWriter(answerer, SequenceDecoding(), joined_tokens=MAX_JOINED_TOKENS),
        (settings.seq2seq, digest),
    )
    system = SpanSeqGen(name, parts, options, writer, checkpoint, config=config, provenance=provenance, clarifier=clarifier)
    system.reader = reader
    return system
