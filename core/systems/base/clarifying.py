"""Builds a system's clarifier from its options, and loads only the models that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from core import types as t
from core.disambiguation.clarifiers import Clarifier, by_copying, by_writing
from core.disambiguation.round_trip import Read
from core.errors import CheckpointError
from core.models.span.reader import PassageReader, Readout, load_reader
from core.settings import Settings
from core.systems.base.options import ClarifierOptions

SPANS_READ = 12  # of a passage, likeliest first: the others have next to no probability


def reading_with(reader: PassageReader) -> Read:
    """A reader for the round trip."""

    def read(pairs: Sequence[tuple[str, t.Passage]]) -> Sequence[Readout]:
        return reader.read_pairs(pairs, SPANS_READ)

    return read


def make_clarifier(
    config: ClarifierOptions, settings: Settings, clarify: bool, reader: PassageReader | None = None
) -> tuple[Clarifier | None, dict[str, Any]]:
    """(clarifier, its entry in SystemInfo).  `reader` checks the drafts by asking them (default: AMBISCOPE_READER's).

    `clarify`: whether questions are wanted; if not, the clarifier is None and nothing is loaded.  Where there is no writer (its base is not
    installed), answers keep the prompt question.  Raises CheckpointError for a missing reader.
    """
    if not clarify:
        return None, {}
    if config.clarifier == "writer":
        from core.models.language.writer import load_writer

        with suppress(CheckpointError):
            writer, digest = load_writer(settings.writer, settings.device)
            provenance = {"writer": settings.writer, "writer_digest": digest}
            if reader is None:
                reader, reader_digest = load_reader(settings.reader, settings.device)
                provenance |= {"reader": settings.reader, "reader_digest": reader_digest}
            return by_writing(writer.write, reading_with(reader)), provenance
    return by_copying, {}
