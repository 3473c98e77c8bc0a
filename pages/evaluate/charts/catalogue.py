"""All charts in the order of the menu.  A further family is one file here and its name in this list."""

from __future__ import annotations

from pages.evaluate.charts import errors, grounding, quality, reliability, retrieval, variants
from pages.evaluate.charts.base import Record

CHARTS: tuple[Record, ...] = (
    *quality.CHARTS,
    *variants.CHARTS,
    *retrieval.CHARTS,
    *grounding.CHARTS,
    *reliability.CHARTS,
    *errors.CHARTS,
)
MENU = tuple(dict.fromkeys(record.menu for record in CHARTS))
