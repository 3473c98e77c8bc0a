"""What the corpus does not cover is not answered: names, numbers, years and titles of a question need support in an answer's document."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from system_fakes import parts, texts

from core import types as t
from core.systems import build
from core.systems.base.coverage import missing, unmentioned
from core.systems.base.interpretations import InterpretationSystem, Interpreted
from core.systems.base.options import Options
from core.systems.base.selection import answer_events
from core.systems.base.system import System, SystemRun, answer

CUP = t.Passage("cup", "1962 FIFA World Cup", "Brazil won the final in Santiago on 17 June 1962 by three goals to one.")
NIXON = t.Passage("nixon", "Marni Nixon", "She sang for Natalie Wood, who is Maria in West Side Story, the film of 1961.")
JOBS = t.Passage("jobs", "Apple (company)", "The board dismissed Jobs in May 1985. He came back with NeXT in 1997.")
SPAN = t.Passage("span", "Tacoma Narrows Bridge (1940)", "The bridge was opened in July and fell in November of that year.")
LINK = t.Passage("link", "Verrazzano-Narrows Bridge", "The span, opened in 1964, connects Staten Island with Brooklyn.")
GAME = t.Passage("game", "Nintendo 64 (European launch)", "It reached the shops in the second week of the spring of 1997.")
UNION = t.Passage(
    "union", "United Nations", "Beyoncé, Dvořák's heirs and twelve Germans in the Second World War, 1939 to 1945."
)
SYMPHONY = t.Passage("symphony", "Symphony No. 6 (Tchaikovsky)", "It was heard in 1893 in Saint Petersburg.")
ALL = (CUP, NIXON, JOBS, SPAN, LINK, GAME, UNION, SYMPHONY)


@pytest.mark.parametrize(
    ("question", "source"),
    [
        ("Who won the 1962 World Cup?", CUP),
        ("WHO WON THE FIFA WORLD CUP?", CUP),
        ("When did Brazilians win the World Cup's final?", CUP),
        ("Who played Maria in West Side Story?", NIXON),
        ("When did Steve Jobs leave Apple?", JOBS),
        ("When did the Tacoma Narrows Bridge fall?", SPAN),
        ("When did the Tacoma Narrows Suspension Bridge fall?", SPAN),
        ("When did the N64 come to Europe?", GAME),
        ("Who spoke at the UN?", UNION),
        ("What did Beyoncé Knowles say about Dvorak?", UNION),
        ("How many came from Germany in World War II?", UNION),
        ("What happened in World War 2 in the 1940s?", UNION),
        ("How many Germans came in 1942?", UNION),
        ("How many of the 12 Germans spoke?", UNION),
        ("Who led the United Nations before 1950?", UNION),
        ("When was the sixth symphony of Tchaikovsky heard in the 19th century?", SYMPHONY),
        ('When was "The Symphony No. 6" heard?', SYMPHONY),
    ],
)
def test_another_spelling_loses_no_answer(question: str, source: t.Passage) -> None:
    assert missing(question, [source.id], ALL) == ()


@pytest.mark.parametrize(
    ("question", "source", "lacks"),
    [
        ("Who won the 2022 World Cup?", CUP, "2022"),
        ("Who won the Rugby World Cup?", CUP, "Rugby World Cup"),
        ("who won the world cup of 2022?", CUP, "2022"),
        ("When was the Brooklyn Bridge opened?", LINK, "Brooklyn Bridge"),
        ("When was the Nintendo 3DS released?", GAME, "Nintendo 3DS"),
        ("When was Tchaikovsky's Symphony No. 4 heard?", SYMPHONY, "Symphony No. 4"),
        ('Who wrote "The Old Man and the Sea"?', NIXON, "The Old Man and the Sea"),
        ("Who founded IKEA?", JOBS, "IKEA"),
        ("Where did 40 Germans speak?", UNION, "40"),
    ],
)
def test_what_the_document_lacks_is_named(question: str, source: t.Passage, lacks: str) -> None:
    assert [c.text for c in missing(question, [source.id], ALL)] == [lacks]


MORE = t.Passage("more", CUP.title, "Amarildo took the place of Pelé.")


@pytest.mark.parametrize(
    ("question", "sources", "passages", "is_covered"),
    [
        ("What did Amarildo win?", ["cup"], [CUP, MORE], True),  # another passage of the title supports too
        ("What did Amarildo win?", ["cup"], [CUP, NIXON], False),
        ("Who played Maria in the 1962 World Cup?", [], ALL, True),  # without a source, all passages are compared
        ("Who played Tony in the 1966 World Cup?", [], ALL, False),
    ],
)
def test_which_passages_support(question: str, sources: list[str], passages: Sequence[t.Passage], is_covered: bool) -> None:
    assert (missing(question, sources, passages) == ()) == is_covered


PARTS = parts(ALL)


def evidence(passage: t.Passage, text: str) -> t.Evidence:
    start = passage.text.index(text)
    return t.Evidence(passage.id, start, start + len(text), text)


class Reads(System):
    def find(self, run: SystemRun) -> Generator[t.Event, None, str]:
        answers = [t.Candidate(text, 1.0) for text in run.question.pinned]
        answers.append(t.Candidate("Brazil", 0.9, evidence(CUP, "Brazil")))
        answers.append(t.Candidate("May 1985", 0.8, evidence(JOBS, "May 1985")))
        yield from answer_events(answers, answers, len(run.question.pinned), run.passages, 0.0)
        return "one pass"


class Interprets(InterpretationSystem):
    def interpret(self, run: SystemRun) -> Generator[t.Event, None, Interpreted]:
        proposed = (
            t.Interpretation("cup", "Who won it?", "Brazil", 0.9, evidence(CUP, "Brazil")),
            t.Interpretation("jobs", "When did he leave?", "May 1985", 0.8, evidence(JOBS, "May 1985")),
        )
        yield from map(t.InterpretationProposed, proposed)
        return Interpreted(proposed, "2 interpretations")


class NoGenerator:
    name, about = "none", dict[str, str]()


def run(kind: str, question: str, check_coverage: bool = True, **corrections: Any) -> tuple[t.Prediction, str]:
    """The prediction, and why it ended."""
    options, system = Options(check_coverage=check_coverage), None
    if kind == "loop":
        system = build("scripted", PARTS, replace(options, extra={"table": {question: ["Brazil", "May 1985"]}}))
    elif kind == "one pass":
        system = Reads("reads", PARTS, options)
    else:
        system = Interprets("interprets", PARTS, options, NoGenerator())
    prediction = answer(system, t.Question(question, **corrections))
    (end,) = [e.why for e in prediction.events if isinstance(e, t.Finished)]
    return prediction, end


each_kind = pytest.mark.parametrize("kind", ["loop", "one pass", "grounded"])


@each_kind
def test_every_kind_of_system_refuses_what_its_document_does_not_support(kind: str) -> None:
    prediction, _ = run(kind, "Who won the 1962 World Cup?")
    assert texts(prediction) == ["Brazil"]
    assert {c.answer for c in prediction.clarifications} <= {"Brazil"}
    (refusal,) = [e for e in prediction.events if isinstance(e, t.AnswerRejected)]
    assert (refusal.answer, "1962" in refusal.why) == ("May 1985", True)


@each_kind
def test_a_run_without_a_supported_answer_says_what_is_not_covered(kind: str) -> None:
    prediction, end = run(kind, "Who won the 2022 World Cup?")
    assert (prediction.answers, prediction.clarifications, prediction.interpretations) == ((), (), ())
    assert "2022" in end
    assert "World Cup" not in end, "that is covered"


@each_kind
def test_what_a_person_pinned_stays(kind: str) -> None:
    prediction, end = run(kind, "Who won the 2022 World Cup?", pinned=("Argentina",))
    assert texts(prediction) == ["Argentina"]
    assert "2022" not in end


@each_kind
def test_the_check_can_be_left_out(kind: str) -> None:
    prediction, _ = run(kind, "Who won the 2022 World Cup?", check_coverage=False)
    assert texts(prediction) == ["Brazil", "May 1985"]
    assert not any(isinstance(e, t.AnswerRejected) for e in prediction.events)


def test_a_questions_own_passages_are_one_document() -> None:
    prediction, _ = run("loop", "Who won the 1962 World Cup, and when did Jobs leave Apple?", passages=ALL)
    assert texts(prediction) == ["Brazil", "May 1985"]


@pytest.mark.parametrize(
    ("question", "lacks"),
    [
        ("When was the HMS Royal George laid down?", []),
        ("Where was George Smith of Woolwich born?", []),  # a part of the name is enough
        ("Where was Nixon born?", ["Nixon"]),
        ("What did the Royal George do in 1805?", ["1805"]),
        ("How many ships had 74 guns?", []),
        ("When was it laid down?", []),
    ],
)
def test_a_questions_own_fragments_need_not_name_everything(question: str, lacks: list[str]) -> None:
    fragments = [t.Passage("1", "", "Laid down at Woolwich in 1746."), t.Passage("2", "", "The Royal George sank.")]
    assert [c.text for c in unmentioned(question, fragments)] == lacks
