"""Thresholded reading: reads every passage once, separately, and keeps every answer above a threshold.

Sources: AmbigQA's thresholded DPR reader (Min et al. 2020, section 5: "valid spans with likelihood larger than a hyperparameter") on DPR's
reader (Karpukhin et al. 2020, section 6.1).  No answer depends on another.  `dpr-threshold` scores a span as DPR does and its threshold is tuned on held-out questions; `one-pass` is the same reading
without either: a span's own probability and an even threshold.
"""

from __future__ import annotations

from core import types as t
from core.models.span.reader import PassageReader, load_reader
from core.systems.base.options import Options
from core.systems.base.reading import ReadingSystem
from core.systems.base.selection import CalibrationKey, candidates_of
from core.systems.base.system import SystemParts, SystemRun
from core.systems.options import OnePassOptions


class OnePass(ReadingSystem):
    config: OnePassOptions

    def __init__(
        self, name: str, parts: SystemParts, options: Options, config: OnePassOptions, reader: PassageReader, digest: str
    ) -> None:
        """`dpr-threshold` writes disambiguated questions too (AmbigQA's "Thresholding + QD")."""
        # both systems read the same way: only the scoring differs
        key = CalibrationKey(f"reading {config.scoring}", "reader", digest)
        super().__init__(name, parts, options, config, reader, digest, key, {}, clarifies=name == "dpr-threshold")

    def candidates(self, run: SystemRun) -> list[t.Candidate]:
        readouts = self.reader.read(run.reading.text, [p.passage for p in run.passages])
        return candidates_of(readouts, self.config.scoring)


def build(name: str, parts: SystemParts, options: Options, config: OnePassOptions) -> OnePass:
    return OnePass(name, parts, options, config, *load_reader(parts.settings.reader, parts.settings.device))
