"""Thresholded reading: every passage is read once, separately; every answer above a threshold is kept.

Sources: AmbigQA's thresholded DPR reader (Min et al. 2020, section 5: "valid spans with likelihood larger than a hyperparameter") on DPR's
reader (Karpukhin et al. 2020, section 6.1).  No answer depends on another.  `dpr-threshold` scores a span as DPR does and its threshold is tuned on held-out questions; `one-pass` is the same reading
without either: a span's own probability and an even threshold.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

from core import types as t
from core.disambiguation.round_trip import ask_each_passage
from core.models.span.reader import PassageReader, load_reader
from core.systems.base.base import Options, Parts, read_extra
from core.systems.base.candidates import (
    STOPPING,
    Scoring,
    answer_events,
    candidates_of,
    check_share,
    read_with,
    selection,
)
from core.systems.base.passage_system import PassageSystem
from core.systems.base.rescoring import ADDITIONS, KEPT_FROM, additions_of
from core.systems.base.stopping import Place

THRESHOLD = 0.5  # of one-pass: not tuned
SCORINGS: tuple[Scoring, Scoring] = ("passage", "dpr")
# of dpr-threshold, by scoring: benchmarks.tuning.thresholds chose them on the practice questions held out from training
TUNED: dict[str, float] = {"passage": 0.15, "dpr": 0.03}
DPR_SCORING: Scoring = "dpr"


def chosen_options(options: Options, name: str) -> tuple[Scoring, float, dict[str, Any]]:
    """(scoring, threshold, additions and when it stops).  Raises InputError for an unknown option and for a value out of range."""
    tuned = name == "dpr-threshold"
    scorings = (DPR_SCORING, *(s for s in SCORINGS if s != DPR_SCORING)) if tuned else SCORINGS
    known: dict[str, Any] = {"scoring": scorings, "threshold": THRESHOLD, "additions": ADDITIONS, **STOPPING}
    chosen = read_extra(options, name, known)
    scoring: Scoring = chosen["scoring"]
    usual = KEPT_FROM if chosen["additions"] != ADDITIONS[0] else TUNED[scoring] if tuned else THRESHOLD
    threshold = options.extra.get("threshold", usual)
    return scoring, check_share("threshold", threshold), {name: chosen[name] for name in ("additions", *STOPPING)}


class OnePass(PassageSystem):
    def __init__(
        self, parts: Parts, options: Options, reader: PassageReader, digest: str, name: str = "one-pass", asks: bool = False
    ) -> None:
        """`asks`: write disambiguated questions too (AmbigQA's "Thresholding + QD")."""
        self.reader = reader
        self.scoring, self.threshold, chosen = chosen_options(options, name)
        checkpoint = (parts.settings.reader, digest)
        self.additions = additions_of(name, chosen["additions"], parts, (parts.settings.reader, "reader"))
        # both systems read the same way: only the scoring differs
        place = self.additions.place(Place(f"reading {self.scoring}", "reader", digest), name)
        self.stopping = selection(chosen, parts.settings.reader, place, self.threshold)
        ask = ask_each_passage(read_with(reader)) if asks else None
        used = {"threshold": self.threshold, "scoring": self.scoring, **self.stopping.about(), **self.additions.about}
        super().__init__(name, parts, options, ask, checkpoint, used)

    def find(self, question: t.Question, passages: tuple[t.RetrievedPassage, ...]) -> Generator[t.Event, None, str]:
        yield t.StepStarted(1, (), "")
        begun = time.perf_counter()
        readouts = self.reader.read(question.text, [p.passage for p in passages])
        candidates = self.additions.weighed(question.text, passages, candidates_of(readouts, self.scoring), readouts)
        kept, shown = self.stopping.keep(candidates, question, self.options.max_answers)
        seconds = time.perf_counter() - begun
        yield from answer_events(kept, shown, len(question.pinned), passages, seconds)
        return f"one pass; {self.stopping.description()}"


def _build(parts: Parts, options: Options, name: str, asks: bool) -> OnePass:
    chosen_options(options, name)  # fail before weights are loaded
    reader, digest = load_reader(parts.settings.reader, parts.settings.device)
    return OnePass(parts, options, reader, digest, name, asks)


def build(parts: Parts, options: Options) -> OnePass:
    """Raises InputError for an unknown option, CheckpointError."""
    return _build(parts, options, "one-pass", asks=False)


def build_dpr(parts: Parts, options: Options) -> OnePass:
    """Raises InputError for an unknown option, CheckpointError."""
    return _build(parts, options, "dpr-threshold", asks=True)
