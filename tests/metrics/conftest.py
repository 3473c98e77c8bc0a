"""Fixtures of the metrics' tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

SCORE_EXAMPLE = Path(__file__).resolve().parents[3] / "shared" / "data" / "score_example.json"


@pytest.fixture(scope="session")
def score_example() -> dict[str, Any]:
    """References, predictions and the official script's values; research data that stays outside the repository."""
    if not SCORE_EXAMPLE.is_file():
        pytest.skip("../shared/data/score_example.json is not here: the research data lies outside the repository")
    return dict(json.loads(SCORE_EXAMPLE.read_text(encoding="utf-8")))
