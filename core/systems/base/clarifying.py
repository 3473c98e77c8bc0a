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
from core.errors import CheckpointError
from core.models.span.reader import PassageReader, load_reader
from core.settings import OFF, Settings
from core.systems.base.options import ClarifierOptions


def ask_reader(reader: PassageReader) -> AskAgain:
    """Asks the reader passage by passage: the best span of each, unless abstaining is likelier."""

    def read(pairs: Sequence[tuple[str, t.Passage]]) -> list[tuple[str | None, float]]:
        readouts = reader.read_pairs(pairs, candidates=1)
        return [(r.best.text, r.best.probability) if r.best else (None, r.abstain_probability) for r in readouts]

    return ask_each_passage(read)


def make_judge(settings: Settings) -> tuple[Judge | None, dict[str, Any]]:
    """(the verifier that confirms rewritten questions, its entry in SystemInfo): none where it is switched off or, by default, cannot run here.  Its
    weights are loaded when there is a question to confirm.

    Raises CheckpointError for a verifier that is requested by name.
    """
    from core.models.encoders.packaged import packaged_folder
    from core.models.loading.files import digest
    from core.models.loading.finding import find_verifier, read_config

    if settings.verifier == OFF:
        return None, {}
    try:
        folder = find_verifier(settings.verifier)
        packaged_folder(str(read_config(folder)["config"]["base"]))
    except CheckpointError:
        if settings.verifier != "default":
            raise
        return None, {}

    def judge(question: str, spans: Sequence[tuple[t.Passage, int, int]]) -> list[float]:
        from core.models.ranking.verifier import load_verifier

        return load_verifier(settings.verifier, settings.device)[0].judge(question, spans)

    return judge, {"confirming": settings.verifier, "confirming_digest": digest(folder)}


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
    if own.clarifier == "seq2seq" and own.verify == "none":
        pass
    elif own.round_trip == "reader":
        reader, digest = load_reader(settings.reader, settings.device)
        ask, used = ask_reader(reader), {"reader": settings.reader, "reader_digest": digest}
    elif model is not None:
        ask = ask_with(model)
    else:
        from core.models.answering import load_answering

        answerer, digest = load_answering(settings.answerer, settings.device)
        ask, used = ask_with(answerer), {"answerer": settings.answerer, "answerer_digest": digest}
    if own.clarifier == "round-trip":
        assert ask is not None
        judge, confirming = make_judge(settings)
        return by_round_trip(ask, judge), used | confirming
    from core.models.seq2seq.rewriter import load_rewriter

    rewriter, digest = load_rewriter(settings.rewriter, settings.device)
    return by_rewriting(rewriter, ask), used | {"rewriter": settings.rewriter, "rewriter_digest": digest}
