from __future__ import annotations

import numpy as np
import pytest
from reading_fakes import TableReader, TableRetriever

from core import types as t
from core.errors import InputError
from core.models.ranking.ambiguity import ANY, AmbiguityModel, Lexicon
from core.settings import Settings
from core.systems.base.base import Options, Parts, answer
from core.systems.disambig_first import DisambigFirst, unread
from core.trace import fold

PASSAGES = [
    t.Passage("a", "Film", "It opened in theaters in May 1961."),
    t.Passage("b", "Disc", "On dvd it came out in June 2003."),
    t.Passage("c", "Japan", "In japan it opened in May 1961 too."),
]
LEXICON = Lexicon({"when": {"come out": [("on dvd", 0.4), ("in theaters", 0.3)], ANY: [("in japan", 0.1)]}})


class Encoder:
    """Two dimensions: a question with "come" is ambiguous."""

    name, dimension = "table", 2

    def encode(self, texts: list[str], kind: str = "passage") -> object:
        return np.array([[1.0, 0.0] if "come" in text else [0.0, 1.0] for text in texts], np.float32)


class Reader(TableReader):
    """Answers differ by question: the passage that has the question's last word is read."""

    def read(self, question: str, passages: list[t.Passage], candidates: int = 5) -> list[object]:  # type: ignore[override]
        last = question.rstrip("?").split()[-1]
        year = {"dvd": "June 2003", "theaters": "May 1961", "japan": "May 1961"}.get(last, "May 1961")
        self.said = {p.id: [(year, 0.9 if last in p.text.lower() else 0.2)] for p in passages if year in p.text}
        return super().read(question, passages, candidates)  # type: ignore[return-value]


def run(question: t.Question | str, max_answers: int = 8, **extra: object) -> tuple[t.Prediction, TableRetriever]:
    model = AmbiguityModel(np.array([4.0, -4.0], np.float32), 0.0, LEXICON, Encoder())  # type: ignore[arg-type]
    retriever = TableRetriever(PASSAGES)
    options = Options(top_k=2, max_answers=max_answers, extra=extra)
    system = DisambigFirst(Parts(Settings(), retriever), options, model, Reader({}), ("m", "r"))  # type: ignore[arg-type]
    return answer(system, t.Question(question) if isinstance(question, str) else question), retriever


def test_each_meaning_is_retrieved_and_read_for_itself() -> None:
    prediction, retriever = run("When did it come out?")
    assert retriever.queries == [
        "When did it come out?",
        "When did it come out on dvd?",
        "When did it come out in theaters?",
        "When did it come out in japan?",
    ]
    assert [a.text for a in prediction.answers] == ["June 2003", "May 1961"]  # two meanings with one answer are one
    assert [c.question for c in prediction.clarifications] == [
        "When did it come out on dvd?",
        "When did it come out in theaters?",
    ]
    assert [s.number for s in prediction.steps] == [1, 2]
    assert not any(c.passed for c in prediction.clarifications)  # nobody asked them back
    assert "98%: 3 meanings" in prediction.events[-1].why  # type: ignore[union-attr]
    assert fold(prediction.question, prediction.system, prediction.events) == prediction
    assert {e.passage_id for a in prediction.answers for e in a.evidence} <= {p.passage.id for p in prediction.passages}


def test_all_answers_come_before_their_questions() -> None:
    kinds = [type(e) for e in run("When did it come out?")[0].events]
    last = max(i for i, kind in enumerate(kinds) if kind is t.StepFinished)
    assert kinds.index(t.QuestionClarified) > last
    assert kinds.count(t.QuestionClarified) == 2


def test_a_clear_question_gets_one_answer() -> None:
    prediction, retriever = run("When did it open?")
    assert retriever.queries == ["When did it open?"]
    assert [a.text for a in prediction.answers] == ["May 1961"]
    assert prediction.clarifications[0].question == "When did it open?"
    assert "asked as it is" in prediction.events[-1].why  # type: ignore[union-attr]


def test_options_and_corrections() -> None:
    assert len(run("When did it come out?", questions=1)[0].answers) == 1
    assert len(run("When did it open?", ambiguous_above=0.0)[1].queries) == 2  # the phrases of every "when"
    assert [a.text for a in run("When did it come out?", max_answers=1)[0].answers] == ["June 2003"]
    prediction, _ = run(t.Question("When did it come out?", pinned=("1999",), banned=("June 2003",)))
    assert [(a.text, a.pinned) for a in prediction.answers] == [("1999", True), ("May 1961", False)]
    own, retriever = run(t.Question("When did it come out?", passages=tuple(PASSAGES)))
    assert retriever.queries == []
    assert len(own.answers) == 2


@pytest.mark.parametrize("extra", [{"questions": 0}, {"ambiguous_above": -1}, {"limit": 3}])
def test_bad_options(extra: dict[str, object]) -> None:
    with pytest.raises(InputError, match=next(iter(extra))):
        run("When did it open?", **extra)  # type: ignore[arg-type]


class Rewriter:
    """Writes what a table has; a job of it has neither answers nor passages."""

    def rewrite_many(self, jobs: list[tuple[str, str, tuple[str, ...], tuple[t.Passage, ...]]]) -> list[list[str]]:
        assert all(job[1:] == ("", (), ()) for job in jobs)
        return [[q, "When did it come out on dvd?", "When did it come out in theaters?", "Why?"] for q, *_ in jobs]


def test_the_rewriter_writes_from_the_question_alone() -> None:
    write = unread(Rewriter())  # type: ignore[arg-type]
    assert write("When did it come out?", 2) == ["When did it come out on dvd?", "When did it come out in theaters?"]
    model = AmbiguityModel(np.array([4.0, -4.0], np.float32), 0.0, LEXICON, Encoder())  # type: ignore[arg-type]
    parts = Parts(Settings(), TableRetriever(PASSAGES))
    system = DisambigFirst(parts, Options(top_k=2), model, Reader({}), ("m", "r"), (write, "w"))  # type: ignore[arg-type]
    found = answer(system, t.Question("When did it come out?"))
    assert [a.text for a in found.answers] == ["June 2003", "May 1961"]
    assert found.system.settings["rewriter_digest"] == "w"
