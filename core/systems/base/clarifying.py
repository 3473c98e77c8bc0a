"""Builds a system's clarifier from its options, loading only the models that it needs.

`clarifier`: round-trip, seq2seq or copy (core.disambiguation.clarifiers); `round_trip`: who is asked the edited question; `verify`: whether the candidates of
seq2seq pass the round trip first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core import types as t
from core.disambiguation.clarifiers import Clarifier, by_copying, by_rewriting, by_round_trip
from core.disambiguation.round_trip import AskAgain, ask_each_passage, ask_with
from core.disambiguation.scoring import Judge
from core.models.ranking.calibration import log_odds
from core.models.span.reader import PassageReader, Readout, load_reader
from core.settings import Settings
from core.systems.base.options import ClarifierOptions

JUDGED_SPANS = 12  # of a passage, likeliest first: the others have next to no probability


def ask_reader(reader: PassageReader) -> AskAgain:
    """Asks the reader passage by passage: the best span of each, unless abstaining is likelier."""

    def read(pairs: Sequence[tuple[str, t.Passage]]) -> list[tuple[str | None, float]]:
        readouts = reader.read_pairs(pairs, candidates=1)
        return [(r.best.text, r.best.probability) if r.best else (None, r.abstain_probability) for r in readouts]

    return ask_each_passage(read)


def judge_with(reader: PassageReader) -> Judge:
    """The reader's log odds of each span, (passage, first character, end), as the answer to a question: of the probability that it gives to the spans
    that overlap it."""

    def judge(question: str, spans: Sequence[tuple[t.Passage, int, int]]) -> list[float]:
        passages = list({passage.id: passage for passage, _, _ in spans}.values())  # one with several spans is read once
        readouts = {r.passage.id: r for r in reader.read(question, passages, JUDGED_SPANS)}
        return [log_odds(_overlapping(readouts[passage.id], start, end)) for passage, start, end in spans]

    return judge


def _overlapping(readout: Readout, start: int, end: int) -> float:
    return sum(c.probability for c in readout.candidates if c.evidence and c.evidence.start < end and start < c.evidence.end)


def make_clarifier(
    own: ClarifierOptions, settings: Settings, wanted: bool, model: t.BatchAnsweringModel | None = None
) -> tuple[Clarifier | None, dict[str, Any]]:
    """(clarifier, its entry in SystemInfo).  `model`: the system's own answering model, which is asked where `round_trip` is answerer (by default
    the bundled one).  None, with nothing loaded, where no questions are `wanted`.

    Raises CheckpointError.
    """
    if not wanted or own.clarifier == "copy":
        return (by_copying if wanted else None), {}
    used: dict[str, Any] = {}
    ask: AskAgain | None = None
    asks = own.clarifier == "round-trip" or own.verify == "round-trip"
    if own.clarifier == "round-trip" or (asks and own.round_trip == "reader"):
        reader, digest = load_reader(settings.reader, settings.device)
        used = {"reader": settings.reader, "reader_digest": digest}
    if not asks:
        pass
    elif own.round_trip == "reader":
        ask = ask_reader(reader)
    elif model is not None:
        ask = ask_with(model)
    else:
        from core.models.answering import load_answering

        answerer, digest = load_answering(settings.answerer, settings.device)
        ask = ask_with(answerer)
        used |= {"answerer": settings.answerer, "answerer_digest": digest}
    if own.clarifier == "round-trip":
        assert ask is not None
        return by_round_trip(ask, judge_with(reader)), used
    from core.models.seq2seq.rewriter import load_rewriter

    rewriter, digest = load_rewriter(settings.rewriter, settings.device)
    return by_rewriting(rewriter, ask), used | {"rewriter": settings.rewriter, "rewriter_digest": digest}
