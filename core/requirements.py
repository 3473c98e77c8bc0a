"""Whether a system's requirements are met: one check for each value of `needs` in core.systems.  Looks for files; loads no weights.

A new value needs a function that raises an AmbiscopeError saying what is missing and how to get it, and a line in CHECKS.
"""

from __future__ import annotations

from collections.abc import Callable

from core.settings import Settings


def _reader(settings: Settings) -> None:
    from core.models.finding import find_checkpoint

    find_checkpoint(settings.reader, "reader")


def _answerer(settings: Settings) -> None:
    from core.models.finding import find_checkpoint

    find_checkpoint(settings.answerer, "answerer")


def _answering(settings: Settings) -> None:
    from core.models.finding import find_answering

    find_answering(settings.answerer)


def _ambiguity(settings: Settings) -> None:
    from core.models.ambiguity import find_ambiguity

    find_ambiguity()


def _weights(settings: Settings) -> None:
    from core.models.finding import find_fid

    find_fid(settings.answerer)  # a hub name passes: only loading it shows whether it works


def _seq2seq(settings: Settings) -> None:
    from core.models.finding import find_fid

    find_fid(settings.seq2seq)


def _language_model(settings: Settings) -> None:
    from core.models.language.loading import require_language_model

    require_language_model(settings)  # does not contact the endpoint


CHECKS: dict[str, Callable[[Settings], None]] = {
    "checkpoint reader": _reader,
    "checkpoint answerer": _answerer,
    "checkpoint ambiguity": _ambiguity,
    "answering model": _answering,
    "encoder-decoder answerer-seq2seq": _weights,  # bundled; AMBISCOPE_ANSWERER names another
    "encoder-decoder fid": _seq2seq,  # bundled; AMBISCOPE_SEQ2SEQ names another
    "a language model: AMBISCOPE_LM_URL or AMBISCOPE_LM_LOCAL": _language_model,
}


def check(need: str, settings: Settings) -> None:
    """Raises the AmbiscopeError that says what is missing.  An unknown need passes: building the system reports what is missing."""
    if need in CHECKS:
        CHECKS[need](settings)
