"""Recall, then verify: collects surplus candidates passage by passage, and a verifier keeps or drops each on its own evidence.

Source: Shao and Huang 2022 (RECTIFY), section 3.  Recaller: the per-passage reader.  Verifier: core.models.ranking.evidence_verifier over the answering
model.  Candidates are judged one by one, so that no answer depends on another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from core import types as t
from core.models.answering import load_answering
from core.models.ranking.evidence_verifier import AnswererEvidence, recall, verify
from core.models.span.reader import PassageReader, load_reader
from core.systems.base.options import Options
from core.systems.base.reading import ReadingSystem
from core.systems.base.selection import CalibrationKey, digest_of
from core.systems.base.system import SystemParts, SystemRun
from core.systems.options import RectifyOptions
from core.text import answer_key, overlapping

MAX_VERIFIED = 24  # candidates, likeliest first


class Rectify(ReadingSystem):
    config: RectifyOptions

    def __init__(
        self,
        parts: SystemParts,
        options: Options,
        config: RectifyOptions,
        reader: PassageReader,
        verifier: AnswererEvidence,
        digests: tuple[str, str],
    ) -> None:
        """`digests` of the verifier's and the reader's weights."""
        self.verifier = verifier
        key = CalibrationKey("rectify", "answerer", digest_of(*digests, config.surplus, config.evidence, config.mix))
        provenance = {"reader": parts.settings.reader, "reader_digest": digests[1]}
        super().__init__("rectify", parts, options, config, reader, digests[0], key, provenance)

    def candidates(self, run: SystemRun) -> list[t.Candidate]:
        readouts = self.reader.read(run.reading.text, [p.passage for p in run.passages])
        recalled = recall(run.passages, readouts, self.config.surplus, self.config.evidence)[:MAX_VERIFIED]
        run.check()
        judged = verify(self.verifier, run.reading.text, recalled, self.config.mix)
        return sorted(judged, key=lambda c: -c.probability)

    def rejections(
        self, run: SystemRun, candidates: Sequence[t.Candidate], selected: Sequence[t.Candidate]
    ) -> Iterator[t.AnswerRejected]:
        banned = {answer_key(b) for b in run.question.banned}
        answers = {k.text for k in selected}
        for c in candidates:
            if c.text in answers or answer_key(c.text) in banned:
                continue
            container = next((k.text for k in selected if overlapping(c.text, k.text)), None)
            if container is not None:
                reason = f"it is already part of '{container}'"
            elif c.probability < self.config.threshold:
                reason = f"the verifier gives it {c.probability:.0%} on its own evidence, less than {self.config.threshold:.0%}"
            else:
                reason = f"{self.options.max_answers} is the maximum number of answers"
            yield t.AnswerRejected(c.text, reason)

    def summary(self, run: SystemRun, candidates: Sequence[t.Candidate]) -> str:
        return f"{len(candidates)} candidates verified"


def build(name: str, parts: SystemParts, options: Options, config: RectifyOptions) -> Rectify:
    settings = parts.settings
    reader, reader_digest = load_reader(settings.reader, settings.device)
    model, digest = load_answering(settings.answerer, settings.device)
    return Rectify(parts, options, config, reader, AnswererEvidence(model), (digest, reader_digest))
