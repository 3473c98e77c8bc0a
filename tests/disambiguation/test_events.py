"""Whose a date or a place is: an award does not date a film, a key in Washington does not place a bridge."""

from __future__ import annotations

import pytest
from system_fakes import cases

from core.disambiguation.edits import AnswerPlace, propose_edits
from core.disambiguation.edits.events import clauses, said_of, said_of_it, two_held_it, verb_of
from core.types import Passage


def _said(question: str, sentence: str, phrase: str, answer: str | None, is_time: bool) -> bool:
    start = sentence.index(answer) if answer else None
    return said_of_it(question, sentence, sentence.index(phrase), start, is_time)


@pytest.mark.parametrize(
    ("question", "sentence", "phrase", "answer", "said"),
    cases(
        """
        Who played the Joker in the movie? | Its Joker was Heath Ledger, who had died in January; the Academy honoured him as best supporting actor in 2009. | 2009 | Heath Ledger | no
        Who won the Leith Medal? | The youngest laureate is Tam Oduya, honoured in 1987 at 29. | 1987 | Tam Oduya | yes
        Who played Maria? | Natalie Wood, born in 1938, played Maria in 1961. | 1938 | Natalie Wood | no
        Who played Maria? | Natalie Wood, born in 1938, played Maria in 1961. | 1961 | Natalie Wood | yes
        Who built the rocket? | Brought to America in 1945, Wernher von Braun led its makers. | 1945 | Wernher | no
        # in another sentence only what lasts, of what the question asks
        Who is the laureate? | From 2009 to 2019 she was Poet Laureate. | From 2009 | - | yes
        Who is the laureate? | Her first book was printed in 1999. | 1999 | - | no
        Who beat Nadal? | He won for the first time in 2005. | 2005 | - | no
        # a question in the present: a date of the past only where the text tells of a change
        What is the capital of Kesh? | Orla, founded in 1652, is where its parliament meets. | 1652 | Orla | no
        Who is the host? | Jack Paar became the host in 1957. | 1957 | Jack Paar | yes
        """
    ),
)
def test_a_date_belongs_to_the_thing_that_it_dates(
    question: str, sentence: str, phrase: str, answer: str | None, said: bool
) -> None:
    assert _said(question, sentence, phrase, answer, True) is said


@pytest.mark.parametrize(
    ("question", "sentence", "phrase", "answer", "said"),
    cases(
        """
        When did the Golden Gate Bridge open? | Cars first crossed on May 28, 1937, when it opened at noon after the President pressed a key in Washington. | Washington | May 28, 1937 | no
        When did it come out? | It came out in Japan on 23 June 1996. | Japan | 23 June 1996 | yes
        Who won the cup? | Eve Moor, who grew up in Leeds, won the cup. | Leeds | Eve Moor | no
        Who won the cup? | Hers was the third victory in Melbourne. | Melbourne | - | no
        """
    ),
)
def test_a_place_belongs_to_what_happened_there(
    question: str, sentence: str, phrase: str, answer: str | None, said: bool
) -> None:
    assert _said(question, sentence, phrase, answer, False) is said


def test_of_several_answers_each_has_its_own_date() -> None:
    text = "He holds the record with four: The Informer in 1935, The Grapes of Wrath in 1940 and The Quiet Man in 1952."
    films = [text.index(f) for f in ("The Informer", "The Grapes", "The Quiet")]
    for i, year in enumerate(("1935", "1940", "1952")):
        said = [said_of(text, text.index(year), film, [f for f in films if f != film]) for film in films]
        assert said == [n == i for n in range(3)]


def test_an_answer_with_a_date_of_its_own_has_no_other() -> None:
    text = "He was champion for the last time in 2022, and lost to Robin Soderling in 2009 and Novak Djokovic in 2015."
    first, second = text.index("Robin"), text.index("Novak")
    assert not said_of(text, text.index("2022"), first, [second])
    assert said_of(text, text.index("2009"), first, [second])


def test_the_verb_of_a_date_stands_in_its_clause() -> None:
    text = "It opened after he pressed a key in Washington, at noon."
    found = verb_of(text, text.index("Washington"))
    assert found is not None
    assert found.word == "pressed"
    assert [c.kind for c in clauses(text)] == ["main", "other", "main"]
    assert verb_of("In 1937.", 3) is None


LEDGER = Passage(
    "a",
    "The Dark Knight",
    "Released in July 2008, The Dark Knight was Nolan's second film. Its Joker was Heath Ledger, who had died; the Academy honoured him in 2009.",
)
NICHOLSON = Passage("b", "Batman (1989 film)", "Top billing went to Jack Nicholson as the Joker.")


def test_the_edit_names_the_film_and_the_year_in_which_it_came_out() -> None:
    at = AnswerPlace(LEDGER, LEDGER.text.index("Heath"))
    edits = [
        e.question
        for e in propose_edits("Who played the Joker in the movie?", "Heath Ledger", at, [AnswerPlace(NICHOLSON, 24)])
    ]
    assert edits[0] == "Who played the Joker in the 2008 movie The Dark Knight?"
    assert not any("2009" in e for e in edits)


def test_words_that_the_other_answers_title_has_too_name_nothing() -> None:
    passage = Passage("a", "River Oster", "The Oster is 684 kilometres long, with the Little Vey 731 kilometres.")
    first, second = (AnswerPlace(passage, passage.text.index(n)) for n in ("684", "731"))
    assert not any("River" in e.question for e in propose_edits("How long is the Oster?", "684 kilometres", first, [second]))


def test_a_year_of_change_does_not_tell_who_held_it() -> None:
    """Two people were Poet Laureate in 1984; what was done in a year was done then."""
    text = "Ted Hughes succeeded him in 1984."
    at = text.index("1984")
    assert two_held_it("Who is the Poet Laureate of the UK?", text, at, "Who was the Poet Laureate of the UK in 1984?")
    assert not two_held_it("Who is the Poet Laureate?", text, at, "Who was the Poet Laureate from 1984 to 1998?")
    assert not two_held_it("Who wrote The Hawk?", text, at, "Who wrote The Hawk in 1984?")
    assert not two_held_it("Who was the mayor?", "Ida was the mayor in 1983.", 21, "Who was the mayor in 1983?")
