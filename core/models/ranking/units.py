"""Numbers and units in answers: a height is given in metres or feet, so "89 km/h" is not a further answer after "26 metres"."""

from __future__ import annotations

import re
from collections.abc import Sequence

NUMBER = re.compile(
    r"\d|\b(one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(thir|four|fif|six|seven|eigh|nine)teen|"
    r"(twen|thir|for|fif|six|seven|eigh|nine)ty|hundred|thousand|million|billion|once|twice|half|dozen)\b",
    re.IGNORECASE,
)
WORDS = {
    "length": "metre metres meter meters kilometre kilometres kilometer kilometers centimetre centimetres centimeter centimeters millimetre millimetres "
    "millimeter millimeters mile miles foot feet inch inches yard yards",
    "time": "seconds minute minutes hour hours day days night nights week weeks month months year years decade decades century centuries",
    "mass": "kilogram kilograms gram grams tonne tonnes ton tons ounce ounces",
    "money": "euro euros dollar dollars pound pounds cents franc francs crowns yen",
    "share": "percent percentage",
    "speed": "km/h mph knots",
    "power": "watt watts kilowatt kilowatts megawatts",
    "voltage": "volt volts",
    "temperature": "degree degrees",
}
SYMBOLS = {  # only after a digit: V is also a Roman numeral
    **dict.fromkeys(("m", "km", "cm", "mm", "ft", "mi"), "length"),
    **dict.fromkeys(("s", "min", "h"), "time"),
    **dict.fromkeys(("g", "kg", "t", "lb", "oz"), "mass"),
    **dict.fromkeys(("w", "kw", "mw"), "power"),
    **dict.fromkeys(("v", "kv"), "voltage"),
    **dict.fromkeys(("°c", "°f"), "temperature"),
}
SIGNS = {"%": "share", "$": "money", "€": "money", "£": "money", "¥": "money"}
_KIND = {word: kind for kind, words in WORDS.items() for word in words.split()}
_WORD = re.compile(r"[a-z]+(?:/[a-z])?")
_SYMBOL = re.compile(r"(?<=\d) ?(°?[a-z]{1,3})(?![a-z/])")


def measured_in(text: str) -> frozenset[str]:
    """The kinds of the units of a text that has a number, in digits or in words; empty if it names none.

    >>> sorted(measured_in("26 metres")), sorted(measured_in("12 km/h")), sorted(measured_in("$5")), sorted(measured_in("4 V"))
    (['length'], ['speed'], ['money'], ['voltage'])
    >>> measured_in("Henry V"), measured_in("Labour Day"), sorted(measured_in("three days"))
    (frozenset(), frozenset(), ['time'])
    """
    low = text.lower().replace("per cent", "percent")
    if not NUMBER.search(low):
        return frozenset()
    kinds = [_KIND.get(word) for word in _WORD.findall(low)] + [SYMBOLS.get(found) for found in _SYMBOL.findall(low)]
    return frozenset(kind for kind in (*kinds, *(SIGNS.get(sign) for sign in low)) if kind)


def unit_alike(answer: str, previous: Sequence[str]) -> float:
    """-1 to 1: the share of previous answers with the same kinds of unit, minus the share without; 0 if none has a unit.

    >>> unit_alike("89 km/h", ["26 metres", "47 metres"]), unit_alike("89 m", ["26 metres"]), unit_alike("Ada", ["Bob"])
    (-1.0, 1.0, 0.0)
    """
    own, before = measured_in(answer), [measured_in(p) for p in previous]
    if not previous or not (own or any(before)):
        return 0.0
    return sum(1.0 if own == other else -1.0 for other in before) / len(before)
