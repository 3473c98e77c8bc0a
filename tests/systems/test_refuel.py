from __future__ import annotations

from collections.abc import Sequence

import pytest
from reading_fakes import TableModel, TableRetriever

from core import types as t
from core.errors import InputError
from core.models.language.roles import Claim, Run
from core.settings import Settings
from core.systems.base.base import Options, Parts, answer
from core.systems.refuel import FusedReader, Refuel
from core.trace import fold

FILM = t.Passage("film", "West Side Story (1961 film)", "Natalie Wood played Maria in the 1961 film West Side Story.")
STAGE = t.Passage("stage", "West Side Story (musical)", "Carol Lawrence played Maria in the 1957 musical West Side Story.")
LATE = t.Passage("late", "West Side Story", "The 1957 cast of the musical had Reri Grist too, in the 1957 musical.")
QUESTION = "Who played Maria in West Side Story?"
SAID = {"Natalie Wood": 0.5, "Carol Lawrence": 0.4, "Reri Grist": 0.02}


class Model(TableModel):
    """A disambiguated question gets its own answers: the film's one, or the two of the musical."""

    def propose_many(self, jobs: Sequence[t.Job]) -> list[t.Proposal]:
        for question, _, _ in jobs:
            if "musical" in question or "1957" in question:
                self.questions = {**self.questions, question: {"Carol Lawrence": 0.5, "Reri Grist": 0.4}}
            elif "film" in question or "1961" in question:
                self.questions = {**self.questions, question: {"Natalie Wood": 0.9}}
        return super().propose_many(jobs)


def run(
    question: t.Question | None = None, top_k: int = 2, cancel_after: int = 10**6, clarify: bool = True, **extra: object
) -> tuple[t.Prediction, TableRetriever]:
    retriever = TableRetriever([FILM, STAGE, LATE])
    calls = iter(range(10**7))
    parts = Parts(Settings(), retriever, cancelled=lambda: next(calls) >= cancel_after)
    own = {"reads": "answerer", "verification": "probability", "threshold": 0.1, "verify_above": 0.1, "further": 3}
    options = Options(top_k=top_k, clarify=clarify, extra=own | extra)
    return answer(Refuel(parts, options, Model(SAID), "d"), question or t.Question(QUESTION)), retriever


def test_the_round_trip_finds_what_the_first_reading_missed() -> None:
    prediction, retriever = run(verification="none")
    assert [a.text for a in prediction.answers] == ["Natalie Wood", "Carol Lawrence", "Reri Grist"]
    assert retriever.queries[0] == QUESTION
    assert len(retriever.queries) >= 3
    assert any("1957" in q or "musical" in q for q in retriever.queries[1:])
    assert [p.passage.id for p in prediction.passages] == [
        "film",
        "stage",
        "late",
    ]  # the third came by a disambiguated question
    third = next(s for s in prediction.steps if s.choice and s.choice.text == "Reri Grist")
    assert third.previous == ("Natalie Wood", "Carol Lawrence")
    assert "musical" in third.prompt or "1957" in third.prompt
    assert [s.number for s in prediction.steps] == list(range(1, len(prediction.steps) + 1))
    assert {c.answer for c in prediction.clarifications} == {a.text for a in prediction.answers}
    assert fold(prediction.question, prediction.system, prediction.events) == prediction


def test_verification_by_probability_drops_what_its_own_evidence_does_not_bear() -> None:
    prediction, _ = run(verification="probability")
    assert [a.text for a in prediction.answers] == ["Natalie Wood", "Carol Lawrence"]
    (rejected,) = [e for e in prediction.events if isinstance(e, t.AnswerRejected)]
    assert rejected.answer == "Reri Grist"
    assert "2%" in rejected.why
    assert "1 answer dropped" in prediction.events[-1].why  # type: ignore[union-attr]


def test_verification_by_exact_match_asks_the_disambiguated_question() -> None:
    prediction, _ = run(verification="exact-match")
    assert [a.text for a in prediction.answers][:2] == ["Natalie Wood", "Carol Lawrence"]


def test_one_round_and_own_passages() -> None:
    prediction, retriever = run(t.Question(QUESTION, passages=(FILM, STAGE)), rounds=1, verification="none")
    assert retriever.queries == []
    assert [a.text for a in prediction.answers] == ["Natalie Wood", "Carol Lawrence"]
    assert {c.question for c in prediction.clarifications} != {QUESTION}


def test_no_answer_ends_at_once() -> None:
    prediction, retriever = run(threshold=1.0)
    assert prediction.answers == ()
    assert len(retriever.queries) == 1
    assert "0 round trips" in prediction.events[-1].why  # type: ignore[union-attr]


def test_pinned_answers_stay_whatever_verification_says() -> None:
    prediction, _ = run(t.Question(QUESTION, pinned=("Rita Moreno",), banned=("Natalie Wood",)), verification="exact-match")
    texts = [a.text for a in prediction.answers]
    assert texts[0] == "Rita Moreno"
    assert "Natalie Wood" not in texts


def test_the_maximum() -> None:
    options = {"verification": "none", "reads": "answerer"}
    retriever = TableRetriever([FILM, STAGE, LATE])
    system = Refuel(
        Parts(Settings(), retriever), Options(top_k=2, max_answers=2, extra={"threshold": 0.1} | options), Model(SAID), "d"
    )
    assert len(answer(system, t.Question(QUESTION)).answers) == 2


def test_a_stopped_run_keeps_what_it_found() -> None:
    prediction, _ = run(cancel_after=1)
    assert [a.text for a in prediction.answers] == ["Natalie Wood", "Carol Lawrence"]
    assert prediction.events[-1].why == "stopped by a person"  # type: ignore[union-attr]


@pytest.mark.parametrize("extra", [{"rounds": 0}, {"verification": "luck"}, {"verify_above": 3}, {"further": 0.5}])
def test_bad_options(extra: dict[str, object]) -> None:
    with pytest.raises(InputError, match=next(iter(extra))):
        run(**extra)  # type: ignore[arg-type]


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
    parts = Parts(Settings(), TableRetriever([FILM, STAGE, LATE]))
    options = Options(top_k=2, extra={"reads": "answerer", "threshold": 0.1, "further": 3})
    system = Refuel(parts, options, Model(SAID), "d", judge)  # type: ignore[arg-type]
    assert system.info.settings["verification"] == "language-model"
    found = answer(system, t.Question(QUESTION))
    assert "Carol Lawrence" not in [a.text for a in found.answers]
    assert "Natalie Wood" in [a.text for a in found.answers]
    assert "Reri Grist" in [a.text for a in found.answers]  # a failed call drops nothing
    claim = next(c for c in judge.claims if c.answer == "Natalie Wood")
    assert [p.id for p in claim.passages] == ["film"]
    assert any(isinstance(e, t.ModelCalled) for e in found.events)


class WrittenSequence:
    """A Writer that writes the answers whose words a passage holds; to a question about the film or the musical, of that alone."""

    def write_many(self, jobs: Sequence[tuple[str, Sequence[t.RetrievedPassage]]]) -> list[list[t.Candidate]]:
        out = []
        for question, passages in jobs:
            asked = "film" if "film" in question or "1961" in question else "musical" if "musical" in question else ""
            texts = [p.passage.text for p in passages if asked in p.passage.text]
            out.append([t.Candidate(name, 0.001) for name in SAID if any(name in text for text in texts)])
        return out


def test_the_fused_reader_writes_the_answers_of_every_round() -> None:
    retriever = TableRetriever([FILM, STAGE, LATE])
    options = Options(top_k=2, extra={"further": 3})
    system = Refuel(Parts(Settings(), retriever), options, FusedReader(WrittenSequence()), "d")  # type: ignore[arg-type]
    assert (system.info.settings["reads"], system.info.settings["verification"]) == ("fused", "exact-match")
    found = answer(system, t.Question(QUESTION))
    # improbable as they are, what is written stands; the third answer comes by a disambiguated question
    assert [a.text for a in found.answers] == ["Natalie Wood", "Carol Lawrence", "Reri Grist"]
    assert found.answers[0].evidence[0].passage_id == "film"
