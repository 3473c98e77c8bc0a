"""Units of measurement in answers."""

from __future__ import annotations

from core.models.ranking.units import measured_in


def test_a_symbol_is_a_unit_behind_a_digit_only() -> None:
    assert measured_in("1,200 m") == measured_in("12km") == {"length"}
    assert measured_in("12 mm thick") == {"length"}
    assert not measured_in("act 2 of Henry V")
    assert measured_in("93 per cent") == measured_in("93%") == {"share"}
    assert not measured_in("1999")
