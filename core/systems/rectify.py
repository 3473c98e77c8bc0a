"""Recall, then verify: surplus candidates passage by passage, each kept or dropped by a mixed probability of recaller and verifier.

Source: Shao and Huang 2022 (RECTIFY), section 3.  Recaller: the per-passage reader.  Verifier: core.models.ranking.evidence_verifier over the bundled answering
model, or over an encoder-decoder where AMBISCOPE_ANSWERER names one.  The verdict is the recaller's over all passages with weight `mix`
(0.9 by default, chosen on held-out questions) and the verifier's on the candidate's own evidence with the rest; in the paper the verifier decides.
Candidates are judged one by one, so that no answer depends on another.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

from core import types as t
from core.clarification.round_trip import ask_each_passage
from core.models.answering import load_answering
from core.models.ranking.evidence_verifier import recall, verify
from core.models.span.reader import PassageReader, load_reader
from core.systems.shared.additions import ADDITIONS, KEPT_FROM, additions_of
from core.systems.shared.base import Options, Parts, read_extra
from core.systems.shared.candidates import STOPPING, answer_events, check_count, check_share, read_with, selection
from core.systems.shared.passage_system import PassageSystem
from core.systems.shared.stopping import Place, digest_of
from core.text import normalize_answer, overlapping

# chosen by benchmarks.tuning.thresholds on the practice questions held out from training
THRESHOLD = 0.05
SURPLUS = 2  # candidates taken from each passage
EVIDENCE = 3  # passages a candidate is verified on
MIX = 0.9  # weight of the recalling reader in the verdict
MOST = 24  # candidates verified at most, the likeliest ones
DEFAULTS: dict[str, Any] = {
    "threshold": THRESHOLD,
    "surplus": float(SURPLUS),
    "evidence": float(EVIDENCE),
    "mix": MIX,
    "additions": ADDITIONS,
    **STOPPING,
}


class Rectify(PassageSystem):
    def __init__(
        self, parts: Parts, options: Options, reader: PassageReader, verifier: t.BatchAnsweringModel, digests: tuple[str, str]
    ) -> None:
        """`digests`: of the verifier's and of the reader's weights."""
        chosen = read_extra(options, "rectify", DEFAULTS)
        self.additions = additions_of("rectify", chosen["additions"], parts, (parts.settings.answerer, "answerer"))
        if self.additions.on:
            chosen["threshold"] = options.extra.get("threshold", KEPT_FROM)
        self.threshold, self.mix = check_share("threshold", chosen["threshold"]), check_share("mix", chosen["mix"])
        self.surplus = check_count("surplus", chosen["surplus"], 20)
        self.evidence = check_count("evidence", chosen["evidence"], 50)
        self.reader, self.verifier = reader, verifier
        checkpoint = (parts.settings.answerer, digests[0])
        decides = digest_of(*digests, self.surplus, self.evidence, self.mix)
        place = self.additions.place(Place("rectify", "answerer", decides))
        self.stopping = selection(chosen, parts.settings.answerer, place, self.threshold)
        used = {**chosen, **self.stopping.about(), "reader": parts.settings.reader, "reader_digest": digests[1]}
        used |= self.additions.about
        super().__init__("rectify", parts, options, ask_each_passage(read_with(reader)), checkpoint, used)

    def find(self, question: t.Question, passages: tuple[t.RetrievedPassage, ...]) -> Generator[t.Event, None, str]:
        yield t.StepStarted(1, (), "")
        begun = time.perf_counter()
        readouts = self.reader.read(question.text, [p.passage for p in passages])
        recalled = recall(passages, readouts, self.surplus, self.evidence)[:MOST]
        self.check_cancelled()
        verdicts = verify(self.verifier, question.text, recalled, self.mix)
        judged = sorted(
            (t.Candidate(v.recalled.candidate.text, v.probability, v.recalled.candidate.evidence) for v in verdicts),
            key=lambda c: -c.probability,
        )
        judged = self.additions.weighed(question.text, passages, judged, readouts)
        kept, shown = self.stopping.keep(judged, question, self.options.max_answers)
        seconds = time.perf_counter() - begun
        banned = {normalize_answer(b) for b in question.banned}
        stays = {k.text for k in kept}
        for c in judged:
            if c.text in stays or normalize_answer(c.text) in banned:
                continue
            part = next((k.text for k in kept if overlapping(c.text, k.text)), None)
            if part is not None:
                why = f"it is read as '{part}' already"
            elif c.probability < self.threshold:
                why = f"the verifier gives it {c.probability:.0%} on its own evidence, less than {self.threshold:.0%}"
            elif self.stopping.rule == "expected-f1":
                why = "with it the expected F1 is lower"
            else:
                why = f"{self.options.max_answers} answers are enough"
            yield t.AnswerRejected(c.text, why)
        yield from answer_events(kept, shown, len(question.pinned), passages, seconds)
        return f"{len(judged)} candidates verified"


def build(parts: Parts, options: Options) -> Rectify:
    """Raises InputError for an option that it does not have, CheckpointError."""
    read_extra(options, "rectify", DEFAULTS)  # before weights are loaded for nothing
    settings = parts.settings
    reader, reader_digest = load_reader(settings.reader, settings.device)
    verifier, digest = load_answering(settings.answerer, settings.device)
    return Rectify(parts, options, reader, verifier, (digest, reader_digest))
