"""Builds a system's clarifier from its options, loading only the models that it needs.

`clarifier`: round-trip, seq2seq or copy (core.disambiguation.clarifiers); `round_trip`: who is asked the edited question; `verify`: whether the candidates of
seq2seq pass the round trip first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.disambiguation.clarifiers import CLARIFIERS, VERIFIED, Clarifier, by_copying, by_rewriting, by_round_trip
from core.disambiguation.round_trip import Ask, ask_each_passage, ask_with
from core.models.span.reader import load_reader
from core.settings import Settings
from core.systems.base.candidates import read_with
from core.types import BatchAnsweringModel


def clarifier_options(round_trips: Sequence[str] = ("reader", "answerer")) -> dict[str, Any]:
    """The options that systems with disambiguated questions have, for read_extra: the first value is the default."""
    return {"clarifier": CLARIFIERS, "round_trip": tuple(round_trips), "verify": VERIFIED}


def make_clarifier(
    chosen: Mapping[str, Any], settings: Settings, wanted: bool = True, model: BatchAnsweringModel | None = None
) -> tuple[Clarifier | None, dict[str, Any]]:
    """(clarifier, its entry in SystemInfo).  `chosen`: values of `clarifier_options`; `model`: the system's own answering model, which
    is asked where `round_trip` is answerer (by default the bundled one).  None, with nothing loaded, where no questions are `wanted`.

    Raises CheckpointError.
    """
    kind = chosen["clarifier"]
    if kind == "copy" or not wanted:
        return (by_copying if wanted else None), {"clarifier": kind}
    used: dict[str, Any] = {"clarifier": kind}
    ask: Ask | None = None
    if kind == "round-trip" or chosen["verify"] == "round-trip":
        ask, more = asked(chosen["round_trip"], settings, model)
        used |= more
    if kind == "round-trip":
        assert ask is not None
        return by_round_trip(ask), used
    from core.models.seq2seq.rewriter import load_rewriter

    rewriter, digest = load_rewriter(settings.rewriter, settings.device)
    used |= {"verify": chosen["verify"], "rewriter": settings.rewriter, "rewriter_digest": digest}
    return by_rewriting(rewriter, ask), used


def asked(who: str, settings: Settings, model: BatchAnsweringModel | None = None) -> tuple[Ask, dict[str, Any]]:
    """(the model that answers edited questions, its entry in SystemInfo).  Raises CheckpointError."""
    if who == "reader":
        reader, digest = load_reader(settings.reader, settings.device)
        return ask_each_passage(read_with(reader)), {"round_trip": who, "reader": settings.reader, "reader_digest": digest}
    if model is not None:
        return ask_with(model), {"round_trip": who}
    from core.models.answering import load_answering

    answerer, digest = load_answering(settings.answerer, settings.device)
    return ask_with(answerer), {"round_trip": who, "answerer": settings.answerer, "answerer_digest": digest}
