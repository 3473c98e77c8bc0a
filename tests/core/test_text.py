from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import text as T
from core.types import Passage, RetrievedPassage


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("an Apple a day", "apple day"),
        ("U.S.", "us"),
        ("  ", ""),
        ("The", ""),
        ("a-ha", "aha"),
        ("Theatre", "theatre"),
        ("Beyoncé", "beyoncé"),
        ("1914\u20131918", "1914\u20131918"),  # as AmbigQA's script, which knows ASCII punctuation alone
    ],
)
def test_normalize_answer(text: str, expected: str) -> None:
    assert T.normalize_answer(text) == expected


def test_overlapping() -> None:
    assert T.overlapping("Natalie Wood", "Wood")
    assert T.overlapping("the Wood", "Natalie wood!")
    assert T.overlapping("in the", "born in the town")
    assert not T.overlapping("Vitamin A", "Vitamin B")
    assert not T.overlapping("Woodland", "Wood")
    assert not T.overlapping("", "Wood")
    assert not T.overlapping("New York City", "York Minster")


def test_chunks_keep_every_word() -> None:
    words = [str(i) for i in range(205)]
    chunks = list(T.chunk_words(" ".join(words)))
    assert [len(c.split()) for c in chunks] == [100, 100, 5]
    assert " ".join(chunks).split() == words
    assert list(T.chunk_words(" \n ")) == []


@pytest.mark.parametrize("text", ["中" * 4000, "a-" * 2000, "abcdefgh" * 100 + " " + "b" * 3000 + " c", ("x" * 40 + " ") * 120])
def test_chunks_are_bounded_in_characters_and_lose_none(text: str) -> None:
    chunks = list(T.chunk_words(text))
    assert max(map(len, chunks)) <= T.CHUNK_CHARS
    assert max(len(c.split()) for c in chunks) <= 100
    assert "".join("".join(chunks).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "answer", "spans"),
    [
        ("in Zu\u0308rich.", "Zürich", [(3, 10)]),
        ("in Zürich.", "Zu\u0308rich", [(3, 9)]),
        ("rice", "ice", []),
        ("anything", "?!", []),
        ("首都は東京です。東京は広い。", "東京", [(3, 5), (8, 10)]),
        ("GDPは５００兆円", "gdp", [(0, 3)]),
        ("กรุงเทพเป็นเมืองหลวง", "เมืองหลวง", [(11, 20)]),
        ("दिल्ली राजधानी है", "राजधानी", [(7, 14)]),
        ("か\u3099", "が", [(0, 2)]),
        ("กิน", "ก", []),  # not a part of a letter with its vowel sign
        ("東京", "京東", []),
    ],
)
def test_answers_are_found_with_accents_in_two_forms_and_in_scripts_without_spaces(
    text: str, answer: str, spans: list[tuple[int, int]]
) -> None:
    assert T.find_spans(text, answer) == spans
    assert T.has_answer(text, [answer]) == bool(spans)


def test_a_short_answer_counts_as_evidence_where_characters_are_words() -> None:
    passage = RetrievedPassage(Passage("p", "", "東京は3番目の首都です。"), 1, 1.0, 1.0)
    assert [e.text for e in T.occurrences("東京", [passage])] == ["東京"]
    assert T.occurrences("3", [passage]) == T.occurrences("京", [passage]) == ()


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("O\u2019Rourke", "O'Rourke"),
        ("1914\u20131918", "1914-1918"),
        ("1914\u22121918", "1914-1918"),
        ("caf\u00e9", "cafe\u0301"),
        ("\ufb01lm", "film"),
        ("\uff21\uff22", "ab"),
        ("\u201cIt\u201d", '"it"'),
        ("New\u00a0York", "new  york"),
        ("Kopen\u00adhagen\u200b", "Kopenhagen"),
        ("STRASSE", "stra\u00dfe"),
    ],
)
def test_an_answer_in_other_characters_is_the_same_where_it_is_shown(a: str, b: str) -> None:
    assert T.answer_key(a) == T.answer_key(b)
    assert T.question_key(f"Who is {a}?") == T.question_key(f" who  is {b} ?")
    assert T.overlapping(a, f"Mr {b}")


@pytest.mark.parametrize(
    ("a", "b"), [("C#", "C"), ("\u0e1b\u0e35", "\u0e1b\u0e39"), ("\u0915\u093f", "\u0915\u093e"), ("3.5", "35")]
)
def test_other_questions_stay_apart(a: str, b: str) -> None:
    assert T.question_key(f"What is {a}?") != T.question_key(f"What is {b}?")


@pytest.mark.parametrize(
    ("name", "other"), [("Ann", "ann"), ("Maria", "\u039caria"), ("O'Neil", "O\u2019Neil"), ("a b", "a  b")]
)
def test_names_that_look_alike(name: str, other: str) -> None:
    assert T.confusable_name(name, ["Zoe", other]) == other
    assert not T.confusable_name(name, [name, "Zoe", "Ma\u0308ria"])  # other accents are another name


DIFFERENT = [
    ("1.5 million", "15 million"),
    ("1,5 million", "15 million"),
    ("C++", "C"),
    ("C#", "C"),
    ("A+", "A"),
    ("O-", "O+"),
    ("O-", "O"),
    ("-40", "40"),
    ("\u221240 degrees", "40 degrees"),
    ("(-40)", "(40)"),
    ("3.11", "31.1"),
    ("Python 3.1", "Python 31"),
    ("1.2.3", "12.3"),
    ("10\u00b2", "102"),
    ("10^2", "102"),
    ("10\u207b\u00b2", "10\u00b2"),
    ("10\u2082", "102"),
    ("5 m\u00b2", "5 m\u00b3"),
    ("1\u00bd", "11/2"),
    ("\u00bd", "12"),
    ("1/2", "12"),
    ("3:1", "31"),
    ("2-1", "21"),
    ("1914\u20131918", "19141918"),
    ("9/11", "911"),
    ("5'10", "510"),
    ("40%", "40"),
    ("40\u2030", "40%"),
    ("$5", "5"),
    ("$5", "\u20ac5"),
    ("1e-5", "1e5"),
    ("<5", ">5"),
    ("\u00b15", "-5"),
    ("+/-5", "-5"),
    ("18+", "18"),
    ("5 m/s", "5 ms"),
    ("0.5", "5"),
    (".5", "5"),
    ("0,123", "123"),
    ("3.10", "3.1"),
    ("Ca\u00b2\u207a", "Ca2"),
    ("Vitamin A", "Vitamin"),
    ("Hepatitis A", "Hepatitis"),
    ("The The", "A"),
]
SAME = [
    ("10,000", "10000"),
    ("10\u2019000", "10000"),
    ("10\u202f000", "10,000"),
    ("1,234.50 km", "1234.50 km"),
    ("U.S.", "US"),
    ("the 1914\u20131918 war", "1914 - 1918 War"),
    ("(-40)", "\u221240"),
    ("+40", "40"),
    ("10\u00b2", "10^2"),
    ("5 \u33a1", "5 m\u00b2"),
    ("1\u00bd", "1 1/2"),
    ("1\u20442", "1/2"),
    ("40 %", "40%"),
    ("$ 5", "$5"),
    (".5", "0.5"),
    ("C\u266f", "C#"),
    ("H\u2082O", "H2O"),
    ("An Apple", "apple"),
    ("a-ha", "A-Ha!"),
    ("\u6771\u4eac\u3002", "\u6771\u4eac"),
]


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_signs_that_carry_meaning_keep_answers_apart(a: str, b: str) -> None:
    assert T.answer_key(a) != T.answer_key(b)
    assert T.question_key(f"Which is {a} ?") != T.question_key(f"Which is {b} ?")
    if a not in ("Vitamin A", "Hepatitis A"):  # which contain the other one
        assert not T.shares_words(a, [b])


@pytest.mark.parametrize(("a", "b"), SAME)
def test_the_way_of_writing_makes_no_other_answer(a: str, b: str) -> None:
    assert T.answer_key(a) == T.answer_key(b)
    assert T.overlapping(a, b)


@pytest.mark.parametrize(("a", "b"), [("1.5", "15"), ("C++", "C"), ("-40", "40"), ("3.11", "31.1"), ("10,000", "10000")])
def test_scoring_stays_that_of_the_script(a: str, b: str) -> None:
    assert T.normalize_answer(a) == T.normalize_answer(b)


def test_the_examples_of_the_document_are_what_the_comparisons_say() -> None:
    document = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")
    table = re.findall(r"(?m)^\| (.+?) and (.+?)(?: \(.+\))? \| (equal|different) \| (equal|different)", document)
    assert len(table) == 12
    for a, b, scoring, comparing in table:
        assert (T.normalize_answer(a) == T.normalize_answer(b)) is (scoring == "equal"), (a, b)
        assert (T.answer_key(a) == T.answer_key(b)) is (comparing == "equal"), (a, b)


ANY_TEXT = st.text() | st.text(
    "aeCx013579.,:;/-+#%^'()[]<>=~*_$\u20ac \u00b2\u00b3\u207b\u2082\u00bd\u2013\u2212\u2019\u00a0\u6771", max_size=12
)


@given(ANY_TEXT)
def test_keys_are_idempotent(text: str) -> None:
    assert T.answer_key(T.answer_key(text)) == T.answer_key(text)
    assert T.question_key(T.question_key(text)) == T.question_key(text)


RAISED = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")
DIGITS = st.integers(0, 99_999)


@st.composite
def numerals(draw: st.DrawFn) -> tuple[object, str]:
    """A value and a way to write it.  Scales, ratios and amounts of money are values of other kinds."""
    sign = draw(st.sampled_from(["", "-", "\u2212"]))
    whole = draw(DIGITS)
    digits = draw(
        st.sampled_from([str(whole), f"{whole:,}", f"{whole:,}".replace(",", "\u202f"), f"{whole:,}".replace(",", "\u2019")])
    )
    value, text = Fraction(whole), digits
    match draw(st.sampled_from(["whole", "decimal", "exponent", "fraction", "scientific"])):
        case "decimal":
            decimals = draw(st.text("0123456789", min_size=1, max_size=4))
            value, text = Fraction(Decimal(f"{whole}.{decimals}")), f"{digits}.{decimals}"
        case "exponent":
            power = draw(st.integers(-9, 12))
            raised = draw(st.sampled_from([str(power).translate(RAISED), f"^{power}"]))
            value, text = Fraction(10) ** power, f"10{raised}"
        case "fraction":
            mark, part = draw(
                st.sampled_from([("\u00bd", Fraction(1, 2)), ("\u00be", Fraction(3, 4)), (" 1/3", Fraction(1, 3))])
            )
            value, text = whole + part, f"{digits}{mark}"
        case "scientific":
            power = draw(st.integers(-9, 9))
            value, text = whole * Fraction(10) ** power, f"{whole}e{power}"
    value = -value if sign else value
    kind = draw(st.sampled_from(["", "%", "$", "\u20ac", " million"]))
    text = f"{sign}{kind}{text}" if kind in ("$", "\u20ac") else f"{sign}{text}{kind}"
    return (value, kind), draw(st.sampled_from(["{}", "({})", "{}.", "\u201c{}\u201d", " {},"])).format(text)


@given(numerals(), numerals())
def test_numerals_of_different_values_share_no_key(a: tuple[object, str], b: tuple[object, str]) -> None:
    if T.answer_key(a[1]) == T.answer_key(b[1]):
        assert a[0] == b[0]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("1.5 million", "15 million people"),
        ("5 million", "1.5 million people"),
        ("15 million", "1.5 million people"),
        ("40", "at -40 degrees"),
        ("40", "at \u221240 degrees"),
        ("-40", "at 40 degrees"),
        ("C", "written in C++ today"),
        ("C", "written in C# today"),
        ("C++", "written in C today"),
        ("11", "version 3.11 of it"),
        ("3.11", "version 3, 11 of it"),
        ("10", "10\u00b2 km"),
        ("102", "10\u00b2 km"),
        ("31", "by 3:1"),
        ("000", "10,000 tiles"),
        ("$5", "it has 5 keys"),
        ("40%", "40 keys"),
    ],
)
def test_an_answer_is_not_found_in_another_numeral_or_name(answer: str, text: str) -> None:
    assert T.find_spans(text, answer) == []
    assert not T.mentions(text, [answer])


@pytest.mark.parametrize(
    ("answer", "text", "found"),
    [
        ("1.5 million", "some 1.5 million.", "1.5 million"),
        ("10000", "fired 10,000 tiles", "10,000"),
        ("-40", "at \u221240 degrees", "\u221240"),
        ("40", "at 40% of", "40"),
        ("40 %", "at 40% of", "40%"),
        ("5 million", "for $5 million", "5 million"),
        ("C++", "in C++.", "C++"),
        ("1918", "1914\u20131918", "1918"),
        ("1914-1918", "of 1914 \u2013 1918", "1914 \u2013 1918"),
        ("10^2 km", "some 10\u00b2 km", "10\u00b2 km"),
        ("v1.2.3", "in v1.2.3.", "v1.2.3"),
    ],
)
def test_an_answer_is_found_however_it_is_written(answer: str, text: str, found: str) -> None:
    assert [text[start:end] for start, end in T.find_spans(text, answer)] == [found]
