from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from reading_fakes import RuleModel

from core.disambiguation.labels import labels
from core.disambiguation.outcome import result_of
from core.disambiguation.round_trip import AskAgain, ask_each_passage, ask_with, clarify
from core.disambiguation.scoring import Judge
from core.types import Answer, Clarification, Evidence, Passage, Prediction, Question, SystemInfo

WOOD = Passage("a", "West Side Story (1961 film)", "Natalie Wood played Maria in Hollywood in 1961.")
LAWRENCE = Passage("b", "West Side Story (musical)", "Carol Lawrence played Maria on Broadway in 1957.")
NOISE = Passage("c", "Basalt", "Basalt is a rock.")
QUESTION = "Who played Maria in West Side Story?"


def answer(text: str, passage: Passage | None) -> Answer:
    if passage is None:
        return Answer(text, 0.5)
    start = passage.text.index(text)
    return Answer(text, 0.5, (Evidence("gone", 0, 1, "x"), Evidence(passage.id, start, start + len(text), text)))


ANSWERS = [answer("Natalie Wood", WOOD), answer("Carol Lawrence", LAWRENCE)]
PASSAGES = [WOOD, LAWRENCE, NOISE]


Rule = Callable[[str, Passage], str | None]


def reader(rule: Rule) -> AskAgain:
    return ask_each_passage(lambda pairs: [(rule(q, p), 0.9) for q, p in pairs])


def verifier(rule: Rule) -> Judge:
    """Sure of what the rule answers, and of nothing else."""
    return lambda q, spans: [4.0 if rule(q, p) == p.text[a:b] else -4.0 for p, a, b in spans]


def careful(question: str, passage: Passage) -> str | None:
    """Answers from the passage that the question's added words name."""
    if passage is WOOD and ("1961" in question or "Hollywood" in question):
        return "Natalie Wood"
    return "Carol Lawrence" if passage is LAWRENCE and ("musical" in question or "Broadway" in question) else None


JUDGE = verifier(careful)


def test_a_question_that_reader_and_verifier_confirm() -> None:
    first, second = clarify(QUESTION, ANSWERS, PASSAGES, reader(careful), JUDGE)
    shown = "Who played Maria in the 1961 film West Side Story?"
    assert first == Clarification("Natalie Wood", shown, True, 1, ("Natalie Wood",), "", "1961 film")
    assert (second.passed, second.question) == (True, "Who played Maria in the musical West Side Story?")


@pytest.mark.parametrize(
    ("ask", "judge"),
    [
        (lambda q, p: {"a": "Natalie Wood", "c": "Carol Lawrence"}.get(p.id), JUDGE),  # another answer too
        (lambda q, p: None, JUDGE),  # not this answer
        (careful, lambda q, spans: [3.0 if p is WOOD else 3.5 for p, *_ in spans]),  # it prefers another answer
    ],
)
def test_what_one_of_them_does_not_confirm_has_not_passed(ask: Rule, judge: Judge) -> None:
    (first, *_) = clarify(QUESTION, ANSWERS, PASSAGES, reader(ask), judge)
    assert (first.passed, bool(first.why)) == (False, True)
    assert first.question == "Who played Maria in the 1961 film West Side Story?"


def test_without_a_good_question_only_the_label_remains() -> None:
    plain = [Passage("a", "Cast", "Natalie Wood played Maria in Hollywood."), LAWRENCE]
    answers = [answer("Natalie Wood", plain[0]), answer("Carol Lawrence", LAWRENCE)]
    unsure = verifier(lambda q, p: None if q != QUESTION else "Natalie Wood")
    (first, *_) = clarify(QUESTION, answers, plain, reader(careful), unsure)
    assert (first.question, first.passed, first.label) == ("", False, "in Hollywood")
    assert first.why


def test_one_answer_leaves_the_question_and_without_evidence_there_is_none() -> None:
    (only,) = clarify(QUESTION, ANSWERS[:1], PASSAGES, reader(lambda q, p: "Natalie Wood" if p is WOOD else None), JUDGE)
    assert (only.question, only.passed, only.tried) == ("", True, 0)
    (only,) = clarify(QUESTION, ANSWERS[:1], PASSAGES, reader(lambda q, p: None), JUDGE)
    assert not only.passed
    assert list(clarify(QUESTION, [], PASSAGES, reader(careful), JUDGE)) == []
    first, second = clarify(QUESTION, [answer("Ann Reinking", None), ANSWERS[1]], PASSAGES, reader(careful), JUDGE)
    assert (first.question, first.passed, first.label) == ("", False, "")
    assert second.passed


def test_the_reader_is_asked_only_about_the_question_that_is_shown() -> None:
    log: list[tuple[str, str]] = []
    ask = reader(lambda q, p: log.append((q, p.id)) or careful(q, p))
    clarifications = list(clarify(QUESTION, ANSWERS, PASSAGES, ask, JUDGE))
    assert log == [(c.question, p.id) for c in clarifications for p in PASSAGES]


def test_an_answering_model_is_asked_until_eoi_or_another_answer() -> None:
    cast = ["Natalie Wood", "Carol Lawrence", "Rita Moreno"]
    ask = ask_with(lambda: RuleModel(lambda q: cast[:1] if "1961" in q else cast))
    assert ask([("Who in 1961?", PASSAGES), ("Who?", PASSAGES)]) == [cast[:1], cast]
    assert ask([]) == []
    first, second = clarify(QUESTION, ANSWERS, PASSAGES, ask, JUDGE)
    assert (first.passed, second.passed) == (True, False)
    model = RuleModel(lambda q: ["Natalie Wood", "Carol Lawrence", "Rita Moreno"])
    first, _ = clarify(QUESTION, ANSWERS, PASSAGES, ask_with(lambda: model), JUDGE)
    assert not first.passed
    assert max(len(known) for _, known in model.asked) == 1, "after Carol Lawrence it is decided"


def test_a_word_that_is_no_other_answer_may_come_first() -> None:
    model = RuleModel(lambda q: ["Hollywood", "Natalie Wood"] if "1961" in q else ["Carol Lawrence", "Natalie Wood"])
    first, second = clarify(QUESTION, ANSWERS, PASSAGES, ask_with(lambda: model), JUDGE)
    assert (first.passed, first.returned) == (True, ("Hollywood", "Natalie Wood"))
    assert not second.passed


@pytest.mark.parametrize(
    ("titles", "expected"),
    [
        (("West Side Story (1961 film)", "West Side Story (musical)"), ["1961 film", "musical"]),
        (("Server > Ports", "Client > Ports"), ["in Server", "in Client"]),
        (("Portland, Oregon", "Portland, Maine"), ["Portland, Oregon", "Portland, Maine"]),
        (("Same", "Same"), ["in 1961", "in 1957"]),
    ],
)
def test_labels_say_what_distinguishes(titles: tuple[str, str], expected: list[str]) -> None:
    film = Passage("film", titles[0], "Natalie Wood played Maria in 1961.")
    stage = Passage("stage", titles[1], "Carol Lawrence played Maria in 1957.")
    answers = [answer("Natalie Wood", film), answer("Carol Lawrence", stage)]
    assert labels("Who played Maria in Portland?", answers, [film, stage]) == expected


@pytest.mark.parametrize(
    ("text", "texts", "expected"),
    [
        ("Collection costs 4 euros for small objects and 10 euros for bicycles.", ("4 euros", "10 euros"), ["for small objects", "for bicycles"]),
        ("The desk in studio A is a Lawo, that in studio B a Sonifex.", ("Lawo", "Sonifex"), ["desk in studio A", "in studio B"]),
        ("Poseidon, the sea god, or Aegeus of Athens.", ("Poseidon", "Aegeus"), ["sea god", "of Athens"]),
        ("Ada and Eve won.", ("Ada", "Eve"), ["", ""]),
        ("Ada composed the hymn of the town in 1911, and Eve set it for choir.", ("Ada", "Eve"), ["composed the hymn of the town", ""]),
    ],
)  # fmt: skip
def test_labels_of_answers_of_one_passage_come_from_their_clauses(
    text: str, texts: tuple[str, ...], expected: list[str]
) -> None:
    passage = Passage("p", "Handbook", text)
    assert labels("Who won what?", [answer(a, passage) for a in texts], [passage]) == expected


@pytest.mark.parametrize(
    ("question", "rows", "expected"),
    [
        (
            "Where do the Lions play?",
            [("Leeds Lions", "The Lions have played at Elland Road since 1919.", "Elland Road"), ("York Lions", "Since 1932 York has its Lions at Bootham.", "Bootham")],
            ["Leeds Lions", "York Lions"],
        ),
        (
            "Who is the head of Norda?",
            [("Ann Ek", "Ann Ek joined Norda in 1985. She was head of Norda from May 1992 to June 1999.", "Ann Ek"), ("Bo Lund", "Bo Lund came in 1990. Head of Norda he was from June 1999 to July 2004.", "Bo Lund")],
            ["from May 1992 to June 1999", "from June 1999 to July 2004"],
        ),
        (
            "What is the best selling console?",
            [("Vista", "The Vista came out in 2000. It is the best-selling home console.", "Vista"), ("Lux", "The Lux came out in 2004. It is the best-selling handheld console.", "Lux")],
            ["home console", "handheld console"],
        ),
        (
            "What river is Ely on?",
            [("Ely", "A market town north of Bath, Ely lies on the Cam.", "Cam"), ("Ely, Ontario", "Ely, Ontario, lies on the Grand River.", "Grand River")],
            ["market town north of Bath", "Ely, Ontario"],
        ),
        (
            "Where did Ann beat Bo?",
            [("Match", "In 1973 Ann beat Bo at the Astrodome in Houston.", "Astrodome"), ("Match", "In 1973 Ann beat Bo at the Astrodome in Houston.", "Houston")],
            ["exact place", "wider area"],
        ),
    ],
    ids=["title that names an instance", "sentence that answers", "adjective of the noun", "description", "place and area"],
)  # fmt: skip
def test_labels_of_a_kind(question: str, rows: list[tuple[str, str, str]], expected: list[str]) -> None:
    passages = {(title, text): Passage(title, title, text) for title, text, _ in rows}
    answers = [answer(text, passages[title, passage]) for title, passage, text in rows]
    assert labels(question, answers, list(passages.values())) == expected


def test_without_labels_the_meanings_are_named_by_the_part_of_their_questions_that_differs() -> None:
    film, musical = (f"Who played Maria in the {kind} West Side Story?" for kind in ("1961 film", "musical"))
    clarifications = (Clarification("Natalie Wood", film, True), Clarification("Carol Lawrence", musical, True))
    answers = (*ANSWERS, Answer("Ann Ek", 0.2))  # which has no question of its own
    prediction = Prediction(Question(QUESTION), SystemInfo("verdict"), answers, clarifications, (), (), 0.0, ())
    for count, labels_shown in (2, ["1961 film", "musical"]), (3, ["1961 film", "musical", "Ann Ek"]):
        clarification = result_of(replace(prediction, answers=answers[:count])).clarification
        assert clarification is not None
        assert [o.label for o in clarification.options] == labels_shown
        assert [o.question for o in clarification.options][:2] == [film, musical]
