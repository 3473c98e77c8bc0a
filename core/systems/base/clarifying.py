"""Builds a system's clarifier from its options, loading only the models that it needs.

`clarifier`: round-trip, seq2seq or copy (core.disambiguation.clarifiers); `round_trip`: who is asked the edited question; `verify`: whether the candidates of
seq2seq pass the round trip first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from core import types as t
from core.disambiguation.clarifiers import Clarifier, by_copying, by_rewriting, by_round_trip
from core.disambiguation.round_trip import AskAgain, ask_each_passage, ask_with
from core.disambiguation.scoring import Judge
from core.models.ranking.calibration import log_odds
from core.models.span.reader import PassageReader, Readout, load_reader
from core.settings import Settings
from core.systems.base.options import ClarifierOptions

Read = Callable[[Sequence[tuple[str, t.Passage]]], list[Readout]]  # (question, passage) pairs
JUDGED_SPANS = 12  # of a passage, likeliest first: the others have next to no probability


def reads_once(reader: PassageReader) -> Read:
    """The reader, which remembers what it read last: a judge asks about passages that the round trip has just read."""
    latest: dict[tuple[str, t.Passage], Readout] = {}

    def read(pairs: Sequence[tuple[str, t.Passage]]) -> list[Readout]:
        nonlocal latest
        known = latest
        unread = [pair for pair in dict.fromkeys(pairs) if pair not in known]
        known = known | dict(zip(unread, reader.read_pairs(unread, JUDGED_SPANS)))
        latest = {pair: known[pair] for pair in pairs}
        return [known[pair] for pair in pairs]

    return read


def by_reader(reader: PassageReader) -> Clarifier:
    """The round trip, asked and judged by one reader."""
    read = reads_once(reader)
    return by_round_trip(ask_reader(read), judge_with(read))


def ask_reader(read: Read) -> AskAgain:
    """Asks a reader passage by passage: the best span of each, unless abstaining is likelier."""
    return ask_each_passage(
        lambda pairs: [(r.best.text, r.best.probability) if r.best else (None, r.abstain_probability) for r in read(pairs)]
    )


def judge_with(read: Read) -> Judge:
    """A reader's log odds of each span, (passage, first character, end), as the answer to a question: of the probability that it gives to the spans
    that overlap it."""

    def judge(question: str, spans: Sequence[tuple[t.Passage, int, int]]) -> list[float]:
        readouts = read([(question, passage) for passage, _, _ in spans])
        return [log_odds(_overlapping(readout, start, end)) for readout, (_, start, end) in zip(readouts, spans)]

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
        if own.clarifier == "round-trip":
            return by_reader(reader), used
        ask = ask_reader(reads_once(reader))
    elif model is not None:
        ask = ask_with(model)
    else:
        from core.models.answering import load_answering

        answerer, digest = load_answering(settings.answerer, settings.device)
        ask = ask_with(answerer)
        used |= {"answerer": settings.answerer, "answerer_digest": digest}
    if own.clarifier == "round-trip":
        assert ask is not None
        return by_round_trip(ask, judge_with(reads_once(reader))), used
    from core.models.seq2seq.rewriter import load_rewriter

    rewriter, digest = load_rewriter(settings.rewriter, settings.device)
    return by_rewriting(rewriter, ask), used | {"rewriter": settings.rewriter, "rewriter_digest": digest}
