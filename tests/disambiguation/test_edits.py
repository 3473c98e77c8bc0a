"""Candidate edits: what a person would write, from titles and sentences in the manner of an encyclopedia or a manual."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from system_fakes import cases

from core.disambiguation.edits import edit_size, propose_edits
from core.disambiguation.evidence import AnswerPlace, sentences
from core.disambiguation.form import in_past, well_formed
from core.disambiguation.parts import parts
from core.disambiguation.scoring import MIN_PROBABILITY, proposals, ranked
from core.text import contains_tokens, word_tokens
from core.types import Passage

OTHER = AnswerPlace(Passage("z", "Basalt", "Basalt is a rock."), 0)


def edits_of(question: str, title: str, text: str) -> list[str]:
    """The candidates for an answer at the end of the text."""
    place = AnswerPlace(Passage("a", title, text), len(text) - 1)
    return [e.question for e in propose_edits(question, "nobody", place, [OTHER])]


def places_of(passage: Passage, *answers: str) -> list[AnswerPlace]:
    return [AnswerPlace(passage, passage.text.index(answer)) for answer in answers]


@pytest.mark.parametrize(
    ("question", "title", "text", "edit"),
    cases(
        """
        # a qualifier that is a kind of thing, a place or a name
        Who directed A Star Is Born? | A Star Is Born (1954 film) | - | Who directed the 1954 film A Star Is Born?
        When was Frankenstein published? | Frankenstein (second edition) | - | When was the second edition of Frankenstein published?
        When did Twin Peaks end? | Twin Peaks (season 2) | - | When did season 2 of Twin Peaks end?
        What is the capital of Georgia? | Georgia (country) | - | What is the capital of the country of Georgia?
        When did London Bridge open? | London Bridge (Lake Havasu City) | It was rebuilt at Lake Havasu City. | When did London Bridge at Lake Havasu City open?
        Who founded The Beacon? | The Beacon (Wexmoor) | - | Who founded The Beacon (Wexmoor)?
        # a fuller name
        Who scored in the World Cup final? | 1954 FIFA World Cup final | - | Who scored in the 1954 FIFA World Cup final?
        How many people live in Portland? | Portland, Oregon | - | How many people live in Portland, Oregon?
        What is the half-life of uranium? | Uranium-235 | - | What is the half-life of uranium-235?
        When did Twin Peaks end? | Twin Peaks: The Return | - | When did Twin Peaks: The Return end?
        Who illustrated the Tales of the Pits? | More Tales of the Pits | - | Who illustrated More Tales of the Pits?
        # an instance of the question's noun, and the work that a part is in
        Who played the Joker in the movie? | Batman (1989 film) | - | Who played the Joker in the 1989 movie Batman?
        When was the space station launched? | Skylab | Skylab was a space station. | When was the space station Skylab launched?
        Who does the voice of Mario? | Super Mario Bros. Wonder | A game of 2023. | Who does the voice of Mario in Super Mario Bros. Wonder?
        # the title's year
        who defended thermopylae? | Battle of Thermopylae (191 BC) | - | who defended thermopylae in 191 BC?
        # a time
        Who sang it? | It was sung from 1962 to 1992. | - | Who sang it from 1962 to 1992?
        Who is the host? | A host | He has done it since 2014. | Who has been the host since 2014?
        # a place, an object
        When did the N64 come out? | N64 | It came out in Japan on 23 June. | When did the N64 come out in Japan?
        Who is the sun god? | Inti | Inti was the sun god of the Incas. | Who is the sun god of the Incas?
        # a section of a manual
        Which port does it use? | Server > Ports | ## Ports. It is 80. | According to “Server”, which port does it use?
        Which port does it use? | Listening to other machines (Several users) | It is 80. | According to “Listening to other machines”, which port does it use?
        """
    ),
)
def test_candidates(question: str, title: str, text: str | None, edit: str) -> None:
    assert edit in edits_of(question, title, text or title)


@pytest.mark.parametrize(
    ("question", "title", "text", "wrong"),
    cases(
        """
        Who played the Joker in the movie? | Joker (2019 film) | - | the 2019 film Joker in the movie  # the man, not the film
        Who climbed Mount Everest? | Everest (2015 film) | - | Mount the 2015 film
        What goes in a martini? | Martini (cocktail) | - | in a the
        When did the Golden Gate Bridge open? | Traffic on the Golden Gate Bridge | - | Traffic on the
        Where was the first World Cup final? | 1954 World Cup final | - | first 1954
        Who is Captain Marvel's friend? | Captain Marvel (film) | - | (film)'s
        When was Messiah first heard? | Messiah (Handel) | - | Messiah (Handel) first
        When did the Thor movie come out? | Thor (film) | - | film Thor movie
        When was the film shown? | Bloody Game | The bloody film was shown. | bloody
        Who holds the record in a season? | 2013 Denver Broncos season | - | a 2013
        When is check-out at Hotel Linde? | Hotel Linde: meeting rooms | - | : meeting
        What key is the Pathétique in? | Symphony No. 6 (Tchaikovsky) | The symphony No. 6 is in B minor. | According
        How long did it take to swim the channel? | Webb's channel | - | Webb
        How is it set? | Server > Options | ## Options | “Options”
        # newcomers' cases
        When did the Berlin Wall go up? | Fall of the Berlin Wall | It fell on November 9, 1989. | Fall of
        Who played Batman? | Batman Begins | Christian Bale played Batman in the film. | played Batman Begins
        How long until an app goes to sleep? | Initialize your app | It is 24 hours. | an Initialize
        Which Python version can I use? | Python version | The latest version is 3.12. | the latest
        # times and places of something else
        When did it open? | Door | It opened in 1962. | 1962
        Who won? | Prize | It cost $1962 and 19621 votes. | 196
        Who was the host? | Host | He was born in 1934. | 1934
        Who sang it? | Song | She was born in Glasgow. | Glasgow
        """
    ),
)
def test_what_is_not_proposed(question: str, title: str, text: str | None, wrong: str) -> None:
    assert not any(wrong in e for e in edits_of(question, title, text or title))


@pytest.mark.parametrize(
    ("prompt", "question", "expected"),
    cases(
        """
        Who sang Hallelujah? | Who sang the older recording of Hallelujah? | -  # nothing is said of age
        Who sang the older Hallelujah? | Who sang the older Hallelujah in 1984? | yes
        Which Python version can I use? | Which the latest version of Python version can I use? | -
        How long until an app goes to sleep? | How long until an Initialize your app goes to sleep? | -
        Who was the wife of Henry VIII? | Who was the wife of Henry VIII on May 30, 1536? | -  # the wedding day
        Who was the wife of Henry VIII? | Who was the wife of Henry VIII from 1536 to 1537? | yes
        When did it open? | When did it open? | -
        Who won the Halberg Prize? | Who won the Halberg Prize in 1978 Halberg Prizes? | -
        Who is the king? | Who is the king in 1936? | -
        Who played the Joker in the movie? | Who played the Joker in the 2019 movie Joker? | yes
        """
    ),
)
def test_the_form_check(prompt: str, question: str, expected: str | None) -> None:
    assert well_formed(prompt, question) is (expected is not None)


@pytest.mark.parametrize(
    ("question", "answer", "expected"),
    cases(
        """
        Who found penicillin and when? | Alexander Fleming | Who found penicillin?
        When and where did Napoleon die? | May 5, 1821 | When did Napoleon die?
        When and where did Napoleon die? | Saint Helena | Where did Napoleon die?
        Who wrote Watchmen and who was the artist? | Dave Gibbons | Who was the artist of Watchmen?
        What year did Toy Story come out and who was the director? | 1995 | What year did Toy Story come out?
        Who was the architect of the Eiffel Tower, and when was it opened? | 31 March 1889 | When was the Eiffel Tower opened?
        What is the parliament of Iceland called and how many members does it have? | 63 | How many members does the parliament of Iceland have?
        Who proposed the founding of Ikarus and in which city does it have its office? | Budapest | In which city does Ikarus have its office?
        Who proposed the founding of Ikarus and when? | May 1895 | When was the founding of Ikarus proposed?
        """
    ),
)
def test_double_questions(question: str, answer: str, expected: str) -> None:
    halves = parts(question, answer)
    assert expected in halves
    assert all(half.endswith("?") and half.count("?") == 1 for half in halves)


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
        Where do the Giants play? | Where did the Giants play?
        How long did the patient live? | How long did the patient live?
        Who has the most Oscars? | -
        Who zaps the crowd? | -  # an unknown verb in the present is left alone
        How many stars are on the flag of the United States? | How many stars were on the flag of the United States?
        """
    ),
)
def test_the_past(question: str, expected: str | None) -> None:
    assert in_past(question) == expected


def test_sentences_do_not_end_at_initials() -> None:
    text = "It was made by William A. Wellman. St. Paul saw it."
    assert [text[a:b] for a, b in sentences(text)] == ["It was made by William A. Wellman.", "St. Paul saw it."]


def test_the_name_of_the_work_comes_before_a_year() -> None:
    film = Passage("a", "West Side Story (1961 film)", "In the film of 1961 the part went to Natalie Wood.")
    musical = Passage("b", "West Side Story (musical)", "Carol Lawrence played Maria on Broadway in 1957.")
    (place,) = places_of(film, "Natalie")
    best, *others = ranked("Who played Maria in West Side Story?", "Natalie Wood", place, [AnswerPlace(musical, 0)])
    assert (best.question, best.label) == ("Who played Maria in the 1961 film West Side Story?", "1961 film")
    assert "Who played Maria in West Side Story in 1961?" in [e.question for e in others]


def test_a_detail_of_another_event_is_not_good_enough_without_a_verifier() -> None:
    passage = Passage("a", "Tim Cook", "Tim Cook, who had managed stocks at Compaq, ran the company from his office.")
    case = ("Who ran Apple?", "Tim Cook", AnswerPlace(passage, 0), [OTHER])
    assert [e.question for e in ranked(*case)] == ["Who ran Apple at Compaq?"]
    assert ranked(*case, MIN_PROBABILITY) == []


def test_words_of_another_answer_in_the_sentence_are_not_taken() -> None:
    text = "She won in 2009 for Wolf Hall, and then again in 2012 for Bring Up the Bodies, years later."
    passage, question = Passage("a", "Hilary Mantel", text), "What year did Hilary Mantel get the Booker Prize?"
    first, second = places_of(passage, "2009", "2012")
    assert f"{question[:-1]} for Wolf Hall?" in [e.question for e in propose_edits(question, "2009", first, [second])]
    assert not any("Wolf" in e.question for e in propose_edits(question, "2012", second, [first]))


def test_what_a_sentence_says_of_two_answers_distinguishes_neither_but_each_of_a_list_has_its_year() -> None:
    passage = Passage("a", "New York City Marathon", "Fred Lebow and Vince Chiappetta started the race in 1970.")
    founders = ["Fred Lebow", "Vince Chiappetta"]
    assert proposals("Who founded the marathon?", founders, places_of(passage, *founders)) == [[], []]
    passage = Passage("a", "The prize", "Ada won in 2011, Eve in 2012 and Ida in 2013.")
    edits = proposals("Who won?", ["Ada", "Eve", "Ida"], places_of(passage, "Ada", "Eve", "Ida"))
    assert [[e.question for e in one] for one in edits] == [[f"Who won in {year}?"] for year in (2011, 2012, 2013)]


def test_no_question_is_proposed_for_two_answers() -> None:
    """The Tacoma Narrows Bridge opened and fell in 1940."""
    opened = Passage("a", "Tacoma Narrows Bridge (1940)", "It opened on July 1.")
    fell = Passage("b", "Tacoma Narrows Bridge (1940)", "It fell on November 7.")
    places = [*places_of(opened, "July"), *places_of(fell, "November")]
    assert proposals("Which bridge is the Tacoma Narrows Bridge?", ["July 1", "November 7"], places) == [[], []]


def test_words_that_the_other_answers_title_has_too_name_nothing() -> None:
    passage = Passage("a", "River Oster", "The Oster is 684 kilometres long, with the Little Vey 731 kilometres.")
    first, second = places_of(passage, "684", "731")
    assert not any("River" in e.question for e in propose_edits("How long is the Oster?", "684 kilometres", first, [second]))


pieces = st.sampled_from(
    "Natalie Wood|played Maria|in 1961|on Broadway|for NBC|from 1960 to 1962|the film|in Japan.|The|(|)|?|as the Joker,|West Side Story|"
    "Who|first|on 4 July 1954|  |a|of|'s|U.S.|é|;".split("|")
)
sentence = st.lists(pieces, max_size=8).map(" ".join)
questions = st.sampled_from(
    "Who played Maria in West Side Story?|Who is the Joker|When and where did it open?|who wrote it and when?|"
    "What key is it in?|Who?|Is it?? true".split("|")
)


@settings(max_examples=150, derandomize=True, deadline=None)
@given(questions, sentence, sentence, sentence, st.sampled_from(["Natalie Wood", "1961", "NBC", "Maria", "the", "?"]))
def test_every_edit_is_a_clean_question(question: str, title: str, text: str, other: str, answer: str) -> None:
    place = AnswerPlace(Passage("a", title, text), max(0, text.find(answer)))
    others = [AnswerPlace(Passage("b", title, other), 0), AnswerPlace(place.passage, len(text) // 2)]
    for edit in propose_edits(question, answer, place, others):
        assert edit.question.index("?") == len(edit.question) - 1
        assert "  " not in edit.question
        assert edit.question != question
        assert edit.size == edit_size(question, edit.question) > 0
        if not contains_tokens(word_tokens(question), word_tokens(answer)):
            assert not contains_tokens(word_tokens(edit.question), word_tokens(answer))
