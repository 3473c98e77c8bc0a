from __future__ import annotations

import pytest

from core.short_names import names_in, short_forms, short_names_in, spelled_out


@pytest.mark.parametrize(
    ("name", "form"), [("Nintendo 64", "n64"), ("Franklin D. Roosevelt", "fdr"), ("Northern Insurance Society", "nis")]
)
def test_a_name_has_the_initials_of_its_words(name: str, form: str) -> None:
    assert form in short_forms(name)


def test_a_long_title_has_no_short_form() -> None:
    assert short_forms("A Very Long Title That Is Hardly Ever Cut Down") == set()


def test_names_are_seen_by_their_capitals() -> None:
    assert "Franklin D. Roosevelt" in list(names_in("President Franklin D. Roosevelt pressed a key."))
    assert list(names_in("It rained in may.")) == []


def test_short_names_of_a_question() -> None:
    matches = short_names_in("when did FDR play the n64 of Henry VIII on dvd and radio?", lambda word: word != "dvd")
    assert [m.group() for m in matches] == ["FDR", "n64", "dvd"]


@pytest.mark.parametrize(
    ("question", "texts", "expected"),
    [
        ("When did the N64 come out?", ["The N64, or Nintendo 64, went on sale."], "When did the N64 come out?"),
        ("Who made GoT?", ["Game of Thrones. A series."], "Who made Game of Thrones?"),
        ("Who made the WM 8?", ["Nothing here."], "Who made the WM 8?"),
        ("Who was Henry VIII?", ["Henry Valerius Ignatius Ivo Ito."], "Who was Henry VIII?"),
    ],
)
def test_a_question_is_read_with_the_names_of_its_passages(question: str, texts: list[str], expected: str) -> None:
    assert spelled_out(question, texts) == expected
