"""Checks a system's requirements, with one check for each value of `needs` in core.systems.  Looks for files and loads no
weights.

A new value needs a function that raises an AmbiscopeError saying what is missing and how to get it, and a line in CHECKS.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from core.registry import load
from core.settings import Settings


def _finds(function: str, setting: str, *more: str) -> Callable[[Settings], None]:
    """A check that calls a function of core.models.loading.finding with a setting's value.  A hub name passes: only loading it shows whether it works."""

    def check(settings: Settings) -> None:
        from core.models.loading import finding, hub

        name = getattr(settings, setting)
        if Path(name).exists() or not hub.is_name(name):
            getattr(finding, function)(name, *more)

    return check


CHECKS: dict[str, Callable[[Settings], None]] = {
    "checkpoint reader": _finds("find_checkpoint", "reader", "reader"),
    "checkpoint answerer": _finds("find_checkpoint", "answerer", "answerer"),
    "checkpoint ambiguity": lambda settings: load("core.models.ranking.ambiguity:find_ambiguity")(),
    "checkpoint writer": _finds("find_writer", "writer"),
    "answering model": _finds("find_answering", "answerer"),
    "encoder-decoder answerer-seq2seq": _finds("find_fid", "answerer"),  # bundled; AMBISCOPE_ANSWERER names another
    "encoder-decoder fid": _finds("find_fid", "seq2seq"),  # bundled; AMBISCOPE_SEQ2SEQ names another
    # does not contact the endpoint
    "a language model: AMBISCOPE_LM_URL, AMBISCOPE_LM_LOCAL, or an adapter named language among the checkpoints": (
        lambda settings: load("core.models.language.loading:require_language_model")(settings)
    ),
}


def check(need: str, settings: Settings) -> None:
    """Raises the AmbiscopeError that says what is missing.  An unknown need passes, because building the system reports what is
    missing."""
    if need in CHECKS:
        CHECKS[need](settings)
