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
from core.models.span.reader import PassageReader, load_reader
from core.settings import Settings
from core.systems.base.options import ClarifierOptions

JUDGED_SPANS = 12  # of a passage, likeliest first: the others have next to no probability


def by_reader(reader: PassageReader) -> Clarifier:
    """The round trip, asked and judged by one reader."""
    return by_round_trip(ask_reader(reader), judge_with(reader))


def ask_reader(reader: PassageReader) -> AskAgain:
    """Asks a reader passage by passage: the best span of each, unless abstaining is likelier."""
    return ask_each_passage(
        lambda pairs: [
            (r.best.text, r.best.probability) if r.best else (None, r.abstain_probability) for r in reader.read_pairs(pairs, 1)
        ]
    )


def judge_with(reader: PassageReader) -> Judge:
    """A reader's log odds of each span, (passage, first character, end), as the answer to a question: of the probability that it gives to the spans
    that overlap it."""

    def judge(question: str, spans: Sequence[tuple[t.Passage, int, int]]) -> list[float]:
        readouts = reader.read_pairs([(question, passage) for passage, _, _ in spans], JUDGED_SPANS)
        return [
            log_odds(
                sum(c.probability for c in r.candidates if c.evidence and c.evidence.start < end and start < c.evidence.end)
            )
            for r, (_, start, end) in zip(readouts, spans)
        ]

    return judge


def make_clarifier(
    config: ClarifierOptions, settings: Settings, clarify: bool, make_model: Callable[[], t.BatchAnsweringModel] | None = None
) -> tuple[Clarifier | None, dict[str, Any]]:
    """(clarifier, its entry in SystemInfo).  `make_model`: the system's own answering model, or a loop over it, which is asked where `round_trip`
    is answerer (by default the bundled one).  `clarify`: whether questions are wanted; if not, the clarifier is None and nothing is loaded.

    Raises CheckpointError.
    """
    if not clarify or config.clarifier == "copy":
        return (by_copying if clarify else None), {}
    provenance: dict[str, Any] = {}
    ask: AskAgain | None = None
    judges = config.clarifier == "round-trip"
    asks = judges or config.verify == "round-trip"
    if judges or (asks and config.round_trip == "reader"):
        reader, digest = load_reader(settings.reader, settings.device)
        provenance = {"reader": settings.reader, "reader_digest": digest}
    if asks and config.round_trip == "reader":
        ask = ask_reader(reader)
    elif asks and make_model is not None:
        ask = ask_with(make_model)
    elif asks:
        from core.models.answering import load_answering

        answerer, digest = load_answering(settings.answerer, settings.device)
        ask = ask_with(lambda: answerer)
        provenance |= {"answerer": settings.answerer, "answerer_digest": digest}
    if judges:
        assert ask is not None
        return by_round_trip(ask, judge_with(reader)), provenance
    from core.models.seq2seq.rewriter import load_rewriter

    rewriter, digest = load_rewriter(settings.rewriter, settings.device)
    return by_rewriting(rewriter, ask), provenance | {"rewriter": settings.rewriter, "rewriter_digest": digest}
