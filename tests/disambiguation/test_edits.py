"""Templates of disambiguated questions: what a person would write, from titles and sentences in the manner of an encyclopedia."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from system_fakes import cases

from core.disambiguation.edits import AnswerPlace, edit_size, propose_edits
from core.disambiguation.edits.names import title_edits
from core.disambiguation.edits.parts import parts
from core.disambiguation.edits.phrases import in_past, modifier_edits, phrase_edits, plain_edits, time_edits
from core.disambiguation.edits.shared import sentence_bounds, sentences
from core.disambiguation.edits.versions import version_edits
from core.text import contains_tokens, word_tokens
from core.types import Passage


@pytest.mark.parametrize(
    ("question", "title", "text", "edit"),
    cases(
        """
        # a qualifier that is a kind of thing
        Who directed A Star Is Born? | A Star Is Born (1954 film) | - | Who directed the 1954 film A Star Is Born?
        Where does The Office take place? | The Office (British TV series) | - | Where does the British TV series The Office take place?
        When was Frankenstein published? | Frankenstein (second edition) | - | When was the second edition of Frankenstein published?
        When did Twin Peaks end? | Twin Peaks (season 2) | - | When did season 2 of Twin Peaks end?
        What is the capital of Georgia? | Georgia (country) | - | What is the capital of the country of Georgia?
        When did the song Hallelujah come out? | Hallelujah (Leonard Cohen song) | - | When did the Leonard Cohen song Hallelujah come out?
        When did the song Hallelujah come out? | Hallelujah (Jeff Buckley recording) | - | When did the Jeff Buckley recording of the song Hallelujah come out?
        How tall is Godzilla? | Godzilla (1954 film) | - | How tall is Godzilla in the 1954 film?
        # a place, or a name in brackets
        When did London Bridge open? | London Bridge (Lake Havasu City) | It was rebuilt at Lake Havasu City. | When did London Bridge at Lake Havasu City open?
        When was Messiah first heard? | Messiah (Handel) | - | When was Messiah (Handel) first heard?
        # a fuller name
        Who scored in the World Cup final? | 1954 FIFA World Cup final | - | Who scored in the 1954 FIFA World Cup final?
        How many books does the Bible have? | Catholic Bible | - | How many books does the Catholic Bible have?
        How many people live in Portland? | Portland, Oregon | - | How many people live in Portland, Oregon?
        What is the half-life of uranium? | Uranium-235 | - | What is the half-life of uranium-235?
        Who led the army at Bull Run? | First Battle of Bull Run | - | Who led the army at the First Battle of Bull Run?
        When did Twin Peaks end? | Twin Peaks: The Return | - | When did Twin Peaks: The Return end?
        What day is Christmas? | Christmas in Russia | - | What day is Christmas in Russia?
        When was the space shuttle lost? | Space Shuttle Challenger disaster | - | When was the space shuttle Challenger lost?
        How many pieces are there in draughts? | International draughts | It is called international draughts. | How many pieces are there in international draughts?
        # an instance of the question's noun
        Who played the Joker in the movie? | Batman (1989 film) | - | Who played the Joker in the 1989 movie Batman?
        When was the space station launched? | Skylab | Skylab was a space station. | When was the space station Skylab launched?
        Who does the voice of Mario? | Super Mario Bros. Wonder | A game of 2023. | Who does the voice of Mario in Super Mario Bros. Wonder?
        """
    ),
)
def test_titles(question: str, title: str, text: str | None, edit: str) -> None:
    assert edit in [e for e, _ in title_edits(question, title, text or "")]


@pytest.mark.parametrize(
    ("question", "title", "wrong"),
    cases(
        """
        Who played the Joker in the movie? | Joker (2019 film) | the 2019 film Joker in the movie  # the man, not the film
        Who climbed Mount Everest? | Everest (2015 film) | Mount the 2015 film
        What goes in a martini? | Martini (cocktail) | in a the
        When did the Golden Gate Bridge open? | Traffic on the Golden Gate Bridge | Traffic on the
        Where was the first World Cup final? | 1954 World Cup final | first 1954
        Who is Captain Marvel's friend? | Captain Marvel (film) | (film)'s
        """
    ),
)
def test_titles_that_do_not_fit_are_left(question: str, title: str, wrong: str) -> None:
    assert not any(wrong in e for e, _ in title_edits(question, title))


@pytest.mark.parametrize(
    ("question", "answer", "expected"),
    cases(
        """
        Who found penicillin and when? | Alexander Fleming | Who found penicillin?
        Who found penicillin and when? | September 1928 | When was penicillin found?
        When and where did Napoleon die? | May 5, 1821 | When did Napoleon die?
        When and where did Napoleon die? | Saint Helena | Where did Napoleon die?
        Who wrote Watchmen and who was the artist? | Dave Gibbons | Who was the artist of Watchmen?
        Who composed Carmen and when was it first performed? | 3 March 1875 | When was Carmen first performed?
        What year did Toy Story come out and who was the director? | 1995 | What year did Toy Story come out?
        Who made ENIAC, and where? | Philadelphia | Where was ENIAC made?
        Who was the architect of the Eiffel Tower, and when was it opened? | 31 March 1889 | When was the Eiffel Tower opened?
        What is the parliament of Iceland called and how many members does it have? | 63 | How many members does the parliament of Iceland have?
        When was the airship Hindenburg lost and who was its captain? | Max Pruss | Who was the captain of the airship Hindenburg?
        Who proposed the founding of Ikarus and in which city does it have its office? | Budapest | In which city does Ikarus have its office?
        Who proposed the founding of Ikarus and when? | May 1895 | When was the founding of Ikarus proposed?
        """
    ),
)
def test_double_questions(question: str, answer: str, expected: str) -> None:
    found = parts(question, answer)
    assert expected in found
    assert all(p.endswith("?") and p.count("?") == 1 for p in found)


@pytest.mark.parametrize(
    ("question", "answer"),
    cases(
        """
        Who wrote Emma and where did she live? | Chawton  # she is whom the first half asks for
        Who painted The Hay Wain and where is the picture now? | London  # which picture?
        When did they marry and where does it stand? | Rome
        """
    ),
)
def test_a_half_that_lacks_what_it_is_about_is_no_question(question: str, answer: str) -> None:
    assert not any(p.lower().startswith("where") for p in parts(question, answer))


def test_a_single_question_has_no_parts() -> None:
    assert parts("Who wrote Romeo and Juliet?", "Shakespeare") == []
    assert parts("Who found penicillin and when?", "September 1928") == ["When was penicillin found?"]


@pytest.mark.parametrize(
    ("question", "expected"),
    cases(
        """
        Who is the CEO of Microsoft? | Who was the CEO of Microsoft?
        Who is the actor that plays the Doctor? | Who was the actor that played the Doctor?
        What's the longest bridge? | What was the longest bridge?
        Who hosts the Tonight Show? | Who hosted the Tonight Show?
        Where do the Giants play? | Where did the Giants play?
        Who ran Apple? | Who ran Apple?
        How long did the patient live? | How long did the patient live?
        Who has the most Oscars? | -
        Who is the current pope? | -
        Who zaps the crowd? | -  # an unknown verb in the present is left alone
        How many stars are on the flag of the United States? | How many stars were on the flag of the United States?
        """
    ),
)
def test_the_past(question: str, expected: str | None) -> None:
    assert in_past(question) == expected


@pytest.mark.parametrize(
    ("question", "sentence", "expected"),
    cases(
        """
        Who sang it? | It was sung from 1962 to 1992. | Who sang it from 1962 to 1992?
        Who is the host? | He began on October 1, 1962. | Who was the host on October 1, 1962? ; Who was the host in 1962?
        Who is the host? | He has done it since 2014. | Who has been the host since 2014?
        Who was the pope in 1978? | Elected on 16 October 1978. | Who was the pope in October 1978?
        When did it open? | It opened in 1962. | -
        Who won? | It cost $1962 and 19621 votes. | -
        Who was the host? | He was born in 1934. | -
        Who was the first host? | He began in 1954. | -
        """
    ),
)
def test_times(question: str, sentence: str, expected: str | None) -> None:
    assert (" ; ".join(e for _, e in time_edits(question, sentence)) or None) == expected


@pytest.mark.parametrize(
    ("question", "sentence", "expected"),
    cases(
        """
        When did the N64 come out? | It came out in Japan on 23 June. | When did the N64 come out in Japan?
        When did it open? | It opened on Broadway, and later elsewhere. | When did it open on Broadway?
        What year did she get the prize? | She won for Wolf Hall. | What year did she get the prize for Wolf Hall?
        When did it open? | It opened in American cinemas. | -  # the name goes on
        Who sang it? | She was born in Glasgow. | -
        What is the biggest river? | It flows in Sudan. | -
        What key is the piece in? | It was heard in Vienna. | -
        When did it open? | It opened in May. | -
        """
    ),
)
def test_places(question: str, sentence: str, expected: str | None) -> None:
    assert (" ; ".join(e for _, e in phrase_edits(question, sentence)) or None) == expected


@pytest.mark.parametrize(
    ("question", "sentence", "expected"),
    cases(
        """
        When did the first McDonald's open? | The first franchised McDonald's, in Phoenix. | When did the first franchised McDonald's open?
        When did London Bridge open? | The medieval London Bridge was opened. | When did the medieval London Bridge open?
        When did the Roman Empire fall? | The Western Roman Empire ended. | When did the Western Roman Empire fall?
        What is the most abundant element? | It is the most abundant element in the universe. | What is the most abundant element in the universe?
        """
    ),
)
def test_modifiers(question: str, sentence: str, expected: str) -> None:
    assert expected in [e for _, e in modifier_edits(question, sentence)]


@pytest.mark.parametrize(
    ("question", "sentence", "expected"),
    cases(
        """
        When was Catan released? | An English edition came out in 1996. | When was the English edition of Catan released?
        When was the Catan game released? | Its original German-language version appeared in 1993. | When was the original German-language version of the Catan game released?
        When was Catan dedicated? | The first church was dedicated in 360. | When was the first Catan dedicated?
        When was Catan built? | He designed the third and present Catan. | When was the third Catan built?
        """
    ),
)
def test_versions(question: str, sentence: str, expected: str) -> None:
    assert expected in [e for _, e in version_edits(question, "Catan", sentence)]


@pytest.mark.parametrize(
    ("question", "sentence"),
    cases(
        """
        Who designed Carcassonne? | An English edition came out in 1996.  # another thing
        When was the first edition of Catan printed? | An English edition came out in 1996.  # asked already
        When was Catan released? | It was the same edition of it.
        When was the second Catan built? | The second building burned.
        When was Catan built? | The second half of Catan followed.
        """
    ),
)
def test_versions_that_do_not_fit_are_left(question: str, sentence: str) -> None:
    assert list(version_edits(question, "Catan", sentence)) == []


@pytest.mark.parametrize(
    ("question", "sentence", "expected"),
    cases(
        """
        How fast does the washer spin? | It spins at up to 1,400, for wool at 600. | How fast does the washer spin for wool?
        What does the lamp show? | The lamp is red while charging, green later. | What does the lamp show while charging?
        When did the Carver Line open? | It opened to Lake Mill in 1936, and to the airport on 15 March 1991. | When did the Carver Line open to Lake Mill? ; When did the Carver Line open to the airport?
        Who wrote the song? | She gave it to Lake Mill, for that reason. | -  # nobody goes anywhere; "that" points elsewhere
        When did it open? | It opened to vehicles at noon. | When did it open to vehicles?
        When did Liu Yang fly? | He flew in 2022 for a second flight. | When did Liu Yang fly for a second flight?
        Who ran Apple? | He ran it for decades, for thirty years, for eight, for the occasion and for editing. | -
        When did it open? | It opened to go down in 1931. | -
        Where did he get it from? | He got it for nothing. | -  # nothing fits behind "from"
        """
    ),
)
def test_small_words(question: str, sentence: str, expected: str | None) -> None:
    assert (" ; ".join(e for _, e in plain_edits(question, sentence)) or None) == expected


def test_sentences_do_not_end_at_initials() -> None:
    text = "William A. Wellman directed. St. Louis was next! He left."
    assert [text[a:b] for a, b in sentences(text)] == ["William A. Wellman directed.", "St. Louis was next!", "He left."]
    assert text[slice(*sentence_bounds(text, text.index("next")))] == "St. Louis was next!"
    assert sentence_bounds("", 0) == (0, 0)


def test_the_size_of_an_edit_counts_tokens_as_multisets() -> None:
    assert edit_size("Who plays the the cat", "Who played the cat") == 3


WEST = Passage(
    "a", "West Side Story (1961 film)", "The musical came to the cinema. Natalie Wood played Maria in Hollywood in 1961."
)
BROADWAY = Passage("b", "West Side Story (musical)", "Carol Lawrence played Maria on Broadway in 1957.")


def test_the_smallest_natural_edit_comes_first() -> None:
    edits = propose_edits(
        "Who played Maria in West Side Story?", "Natalie Wood", AnswerPlace(WEST, 32), [AnswerPlace(BROADWAY, 0)]
    )
    assert edits[0].question == "Who played Maria in the 1961 film West Side Story?"
    assert edits[0].size == 3
    assert [e.cost for e in edits] == sorted(e.cost for e in edits)
    assert "Who played Maria in West Side Story in 1961?" in [e.question for e in edits]


def test_what_stands_nearer_to_another_answer_is_not_taken() -> None:
    passage = Passage(
        "a", "Hilary Mantel", "She won in 2009 for Wolf Hall, and then again in 2012 for Bring Up the Bodies, years later."
    )
    question = "What year did Hilary Mantel get the Booker Prize?"
    first, second = (AnswerPlace(passage, passage.text.index(year)) for year in ("2009", "2012"))
    assert propose_edits(question, "2009", first, [second])[0].question == f"{question[:-1]} for Wolf Hall?"
    assert all("Wolf" not in e.question for e in propose_edits(question, "2012", second, [first]))


def test_a_clause_says_whose_a_date_is_before_nearness_does() -> None:
    passage = Passage(
        "a", "Carrick Plate", "At 16 years, Bo-mi Han was the youngest winner, in 2012, while Rosalind Keir won in 1949."
    )
    han, keir = (AnswerPlace(passage, passage.text.index(name)) for name in ("Bo-mi Han", "Rosalind Keir"))
    question = "Who won the Carrick Plate?"
    assert f"{question[:-1]} in 2012?" in [e.question for e in propose_edits(question, "Bo-mi Han", han, [keir])]
    assert all("2012" not in e.question for e in propose_edits(question, "Rosalind Keir", keir, [han]))


def test_two_edits_together_stand_behind_those_of_one() -> None:
    edits = propose_edits(
        "Who played Maria in West Side Story?", "Natalie Wood", AnswerPlace(WEST, 32), [AnswerPlace(BROADWAY, 0)]
    )
    twofold = [e for e in edits if e.kind == "twofold"]
    assert "Who played Maria in the 1961 film West Side Story in Hollywood?" in [e.question for e in twofold]
    assert edits[-len(twofold) :] == twofold
    assert len({e.question.lower() for e in edits}) == len(edits)


pieces = st.sampled_from(
    "Natalie Wood|played Maria|in 1961|on Broadway|for NBC|from 1960 to 1962|the film|in Japan.|The|(|)|?|as the Joker,|West Side Story|"
    "Who|first|on 4 July 1954|  |a|of|'s|U.S.|é|;".split("|")
)
sentence = st.lists(pieces, max_size=8).map(" ".join)
questions = st.sampled_from(
    [
        "Who played Maria in West Side Story?",
        "Who is the Joker",
        "When and where did it open?",
        "who wrote it and when?",
        "What key is it in?",
        "Who?",
        "Is it?? true",
    ]
)


@settings(max_examples=150, derandomize=True, deadline=None)
@given(questions, sentence, sentence, sentence, st.sampled_from(["Natalie Wood", "1961", "NBC", "Maria", "the", "?"]))
def test_every_edit_is_a_clean_question(question: str, title: str, text: str, other: str, answer: str) -> None:
    place = AnswerPlace(Passage("a", title, text), max(0, text.find(answer)))
    for edit in propose_edits(
        question, answer, place, [AnswerPlace(Passage("b", title, other), 0), AnswerPlace(place.passage, len(text) // 2)]
    ):
        assert edit.question.endswith("?")
        assert edit.question.count("?") == 1
        assert "  " not in edit.question
        assert edit.question != question
        assert edit.size == edit_size(question, edit.question) > 0
        if not contains_tokens(word_tokens(question), word_tokens(answer)):
            assert not contains_tokens(word_tokens(edit.question), word_tokens(answer))
