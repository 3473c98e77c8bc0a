"""Round-trip prediction: what the disambiguated questions find, and how answers are verified."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reading_fakes import TableReader, TableRetriever
from system_fakes import parts, stopped_after, texts

from core import types as t
from core.disambiguation.drafts import AnswerExcerpt, QuestionDraft
from core.models.language.roles import Claim, Run
from core.systems.base.options import Options
from core.systems.base.system import answer
from core.systems.options import RefuelOptions
from core.systems.refuel import Refuel

FILM = t.Passage("film", "West Side Story (1961 film)", "Natalie Wood played Maria in the 1961 film West Side Story.")
STAGE = t.Passage("stage", "West Side Story (musical)", "Carol Lawrence played Maria in the 1957 musical West Side Story.")
LATE = t.Passage("late", "West Side Story", "The 1957 cast of the musical had Reri Grist too, in the 1957 musical.")
ASKED = "Who played Maria in West Side Story?"
NAMES = ("Natalie Wood", "Carol Lawrence", "Reri Grist")
OWN = {
    "Natalie Wood": "Who played Maria in the 1961 film West Side Story?",
    "Carol Lawrence": "Who played Maria in the 1957 musical West Side Story?",
}


def write(question: str, answers: Sequence[AnswerExcerpt]) -> list[list[QuestionDraft]]:
    return [[QuestionDraft(OWN[a.answer], -0.1)] if a.answer in OWN else [] for a in answers]


class Forgetful(TableReader):
    """Gives the third answer when it is first read, and not when it is asked for again."""

    has_given_it = False

    def read(self, question: str, passages: Sequence[t.Passage], candidates: int = 5) -> list[Any]:
        if self.has_given_it:
            self.said = {**self.said, "late": ()}
        readouts = super().read(question, passages, candidates)
        self.has_given_it |= any(r.best and r.best.text == NAMES[2] for r in readouts)
        return readouts


def system(
    reader: type[TableReader] = TableReader, judge: Any = None, max_answers: int = 8, **config: Any
) -> tuple[Refuel, TableRetriever]:
    retriever = TableRetriever([FILM, STAGE, LATE])
    options = RefuelOptions.read("refuel", {"verification": "exact-match", "further": 3} | config)
    table: Mapping[str, Any] = {i: [(name, 0.9)] for i, name in zip(("film", "stage", "late"), NAMES, strict=True)}
    run = Options(top_k=2, max_answers=max_answers)
    read: Any = reader(table)
    return Refuel(parts(retriever=retriever), run, options, read, write, ("d", "w"), judge), retriever


def run(question: t.Question | None = None, **config: Any) -> tuple[t.Prediction, TableRetriever]:
    refuel, retriever = system(**config)
    return answer(refuel, question or t.Question(ASKED)), retriever


def test_the_round_trip_finds_what_the_first_reading_missed() -> None:
    prediction, retriever = run(verification="none")
    assert texts(prediction) == ["Natalie Wood", "Carol Lawrence", "Reri Grist"]
    assert prediction.answers[0].evidence[0].passage_id == "film"
    assert retriever.queries[0] == ASKED
    assert any("1957" in q or "musical" in q for q in retriever.queries[1:])
    assert [p.passage.id for p in prediction.passages] == ["film", "stage", "late"]  # the third by a disambiguated question
    third = next(s for s in prediction.steps if s.choice and s.choice.text == "Reri Grist")
    assert third.prompt in retriever.queries[1:]
    assert texts(run(verification="none", max_answers=2)[0]) == ["Natalie Wood", "Carol Lawrence"]


def test_verification_by_exact_match() -> None:
    refuel, _ = system(Forgetful, verification="by generator")
    assert refuel.info.settings["extra"]["verification"] == "exact-match"  # without a language model
    prediction = answer(refuel, t.Question(ASKED))
    assert texts(prediction) == ["Natalie Wood", "Carol Lawrence"]
    assert list(prediction.rejected) == ["Reri Grist"]
    exact, _ = run(t.Question(ASKED, pinned=("Rita Moreno",), banned=("Natalie Wood",)))
    assert texts(exact)[0] == "Rita Moreno"  # a person's answer is not verified
    assert "Natalie Wood" not in texts(exact)


def test_one_round_and_own_passages() -> None:
    prediction, retriever = run(t.Question(ASKED, passages=(FILM, STAGE)), rounds=1, verification="none")
    assert retriever.queries == []
    assert texts(prediction) == ["Natalie Wood", "Carol Lawrence"]
    assert {c.question for c in prediction.clarifications} != {ASKED}
    nothing, retriever = run(t.Question(ASKED), threshold=0.95)
    assert (nothing.answers, len(retriever.queries)) == ((), 1)  # no answer, no round trip


def test_a_stopped_run_keeps_its_answers() -> None:
    events = stopped_after(system()[0], t.Question(ASKED), t.StepFinished, 2)
    assert [e.answer.text for e in events if isinstance(e, t.StepFinished) and e.answer] == ["Natalie Wood", "Carol Lawrence"]


class Judge:
    """A language model that supports what the table says."""

    def __init__(self, supported: dict[str, bool | None]) -> None:
        self.about, self.supported = {"generator": "table"}, supported
        self.claims: list[Claim] = []

    def verify(self, claims: Sequence[Claim], run: Run) -> list[bool | None]:
        self.claims += claims
        for _ in claims:
            run.count(t.ModelCalled("verify", 1, 1, 1, 0.0))
        return [self.supported.get(c.answer) for c in claims]


def test_a_language_model_verifies_each_answer_on_its_own_evidence() -> None:
    judge = Judge({"Natalie Wood": True, "Carol Lawrence": False})
    refuel, _ = system(judge=judge, verification="by generator")
    assert refuel.info.settings["extra"]["verification"] == "language-model"
    prediction = answer(refuel, t.Question(ASKED))
    assert texts(prediction) == ["Natalie Wood", "Reri Grist"]  # a failed call drops nothing
    claim = next(c for c in judge.claims if c.answer == "Natalie Wood")
    assert [p.id for p in claim.passages] == ["film"]
    assert any(isinstance(e, t.ModelCalled) for e in prediction.events)
