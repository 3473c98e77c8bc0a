from __future__ import annotations

import pytest

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
    assert T.equal_for_display(a, b)
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
