"""Recall, then verify: surplus candidates passage by passage, each kept or dropped by a verifier on its own evidence.

Source: Shao and Huang 2022 (RECTIFY), section 3.  Recaller: the per-passage reader.  Verifier: core.models.ranking.evidence_verifier, by the option
`verifier` the trained one (AMBISCOPE_VERIFIER), the answering model, or none: then the recaller's probability decides.  Candidates are judged one by
one, so that no answer depends on another.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import replace
from typing import Any

from core import types as t
from core.disambiguation.round_trip import ask_each_passage
from core.errors import CheckpointError
from core.models.answering import load_answering
from core.models.ranking.evidence_verifier import AnswererEvidence, Evidence, SpanEvidence, recall, verify
from core.models.ranking.verifier import load_verifier
from core.models.span.reader import PassageReader, load_reader
from core.settings import OFF
from core.systems.base.base import Options, Parts, read_extra
from core.systems.base.candidates import STOPPING, answer_events, check_count, check_share, read_with, selection
from core.systems.base.passage_system import PassageSystem
from core.systems.base.rescoring import ADDITIONS, KEPT_FROM, additions_of
from core.systems.base.stopping import Place, digest_of
from core.text import answer_key, overlapping

# chosen by benchmarks.tuning.thresholds on the practice questions held out from training
SURPLUS = 2  # candidates taken from each passage
EVIDENCE = 3  # passages a candidate is verified on
MOST = 24  # maximum number of candidates to verify, likeliest first
# verifier -> threshold, and weight of the recalling reader in the decision
DECIDES = {"trained": (0.1, 0.25), "answerer": (0.05, 0.9), "none": (0.03, 1.0)}
DEFAULTS: dict[str, Any] = {
    "verifier": tuple(DECIDES),
    "threshold": DECIDES["trained"][0],
    "surplus": float(SURPLUS),
    "evidence": float(EVIDENCE),
    "mix": DECIDES["trained"][1],
    "additions": ADDITIONS,
    **STOPPING,
}


def read_options(options: Options) -> dict[str, Any]:
    """The options, with the chosen verifier's default threshold and mix.  Raises InputError."""
    chosen = read_extra(options, "rectify", DEFAULTS)
    usual = dict(zip(("threshold", "mix"), DECIDES[chosen["verifier"]]))
    return chosen | {name: value for name, value in usual.items() if name not in options.extra}


class Rectify(PassageSystem):
    def __init__(
        self, parts: Parts, options: Options, reader: PassageReader, verifier: Evidence | None, digests: tuple[str, str]
    ) -> None:
        """`verifier`: None if the recaller decides alone; `digests`: of the verifier's weights (empty if there is none) and of the reader's."""
        chosen = read_options(options)
        self.additions = additions_of("rectify", chosen["additions"], parts, (parts.settings.answerer, "answerer"))
        if self.additions.on:
            chosen["threshold"] = options.extra.get("threshold", KEPT_FROM)
        self.threshold, self.mix = check_share("threshold", chosen["threshold"]), check_share("mix", chosen["mix"])
        self.surplus = check_count("surplus", chosen["surplus"], 20)
        self.evidence = check_count("evidence", chosen["evidence"], 50)
        self.reader, self.verifier = reader, verifier
        named = {"trained": parts.settings.verifier, "answerer": parts.settings.answerer, "none": ""}
        checkpoint = (named[chosen["verifier"]], digests[0])
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
        decisions = verify(self.verifier, question.text, recalled, self.mix)
        judged = sorted(
            (t.Candidate(v.recalled.candidate.text, v.probability, v.recalled.candidate.evidence) for v in decisions),
            key=lambda c: -c.probability,
        )
        judged = self.additions.weighed(question.text, passages, judged, readouts)
        kept, shown = self.stopping.keep(judged, question, self.options.max_answers)
        seconds = time.perf_counter() - begun
        banned = {answer_key(b) for b in question.banned}
        stays = {k.text for k in kept}
        for c in judged:
            if c.text in stays or answer_key(c.text) in banned:
                continue
            part = next((k.text for k in kept if overlapping(c.text, k.text)), None)
            if part is not None:
                why = f"it is already part of '{part}'"
            elif c.probability < self.threshold:
                who = "the verifier gives it" if self.verifier else "the reader gives it"
                why = f"{who} {c.probability:.0%} on its own evidence, less than {self.threshold:.0%}"
            elif self.stopping.rule == "expected-f1":
                why = "it would lower the expected F1"
            else:
                why = f"{self.options.max_answers} is the maximum number of answers"
            yield t.AnswerRejected(c.text, why)
        yield from answer_events(kept, shown, len(question.pinned), passages, seconds)
        return f"{len(judged)} candidates verified"


def build(parts: Parts, options: Options) -> Rectify:
    """By default, the answering model verifies if the trained verifier is off or not installed.

    Raises InputError for an unknown option, CheckpointError.
    """
    chosen, settings = read_options(options), parts.settings  # fail before weights are loaded
    reader, reader_digest = load_reader(settings.reader, settings.device)
    verifier: Evidence | None = None
    digest = ""
    if chosen["verifier"] == "trained":
        try:
            judge, digest = load_verifier(settings.verifier, settings.device)
            verifier = SpanEvidence(judge)
        except CheckpointError:  # off, or its base (400 MB) is not installed
            if "verifier" in options.extra or settings.verifier not in (OFF, "default"):
                raise
            options = replace(options, extra={**options.extra, "verifier": "answerer"})
            chosen = read_options(options)
    if chosen["verifier"] == "answerer":
        model, digest = load_answering(settings.answerer, settings.device)
        verifier = AnswererEvidence(model)
    return Rectify(parts, options, reader, verifier, (digest, reader_digest))
