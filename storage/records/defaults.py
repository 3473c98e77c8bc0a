"""What a new project has unless its manager says otherwise."""

from __future__ import annotations

from collections.abc import Mapping

LEASE_MINUTES = 30.0  # for which an opened item is reserved
MIXED_SLOTS = 1_000_000  # of a gold item: one for each person, never all taken
THRESHOLDS: Mapping[str, float] = {
    "alias_words": 7,  # an alias of so many words gets a warning
    "min_seconds_no_pairs": 0,  # before a single or no answer may be submitted; AmbigQA: 60
    "must_read": 1,  # passages to open before submitting; 0 switches it off
}
