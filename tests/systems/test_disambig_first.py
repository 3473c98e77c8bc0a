from __future__ import annotations

from typing import Any

import numpy as np
from reading_fakes import TableReader, TableRetriever, WordEncoder
from system_fakes import parts, texts

from core import types as t
from core.models.ranking.ambiguity import AmbiguityModel
from core.models.span.reader import Readout
from core.systems.base.options import Options
from core.systems.base.system import answer
from core.systems.disambig_first import DisambigFirst, from_question_alone
from core.systems.options import DisambigFirstOptions

PASSAGES = [
    t.Passage("a", "Film", "It opened in theaters in May 1961."),
    t.Passage("b", "Disc", "On dvd it came out in June 2003."),
    t.Passage("c", "Japan", "In japan it opened in May 1961 too."),
]


def write(question: str, maximum: int) -> list[str]:
    """The meanings of every "when", the likeliest first."""
    return [f"{question.rstrip('?')} {phrase}?" for phrase in ("on dvd", "in theaters", "in japan")][:maximum]


class LastWordReader(TableReader):
    """Answers differ by question: the passage that has the question's last word is read."""

    def read(self, question: str, passages: Any, candidates: int = 5) -> list[Readout]:
        last = question.rstrip("?").split()[-1]
        year = {"dvd": "June 2003"}.get(last, "May 1961")
        self.said = {p.id: [(year, 0.9 if last in p.text.lower() else 0.2)] for p in passages if year in p.text}
        return super().read(question, passages, candidates)


def run(
    question: t.Question | str, write: Any = write, max_answers: int = 8, **config: Any
) -> tuple[t.Prediction, TableRetriever]:
    model = AmbiguityModel(np.array([4.0, -4.0], np.float32), 0.0, WordEncoder())
    retriever = TableRetriever(PASSAGES)
    options, reader = Options(top_k=2, max_answers=max_answers), LastWordReader({})
    digests = ("m", "r", "w")
    system = DisambigFirst(parts(retriever=retriever), options, DisambigFirstOptions(**config), model, reader, write, digests)
    return answer(system, t.Question(question) if isinstance(question, str) else question), retriever


def test_each_meaning_is_retrieved_and_read_for_itself() -> None:
    prediction, retriever = run("When did it come out?")
    meanings = write("When did it come out?", 3)
    assert retriever.queries == ["When did it come out?", *meanings]
    assert texts(prediction) == ["June 2003", "May 1961"]  # two meanings with one answer are one
    assert [c.question for c in prediction.clarifications] == meanings[:2]
    assert not any(c.passed for c in prediction.clarifications)  # nobody asked them back
    assert [(s.number, s.prompt) for s in prediction.steps] == [(1, meanings[0]), (2, meanings[1])]
    kinds = [type(e) for e in prediction.events]  # all answers come before their questions
    assert kinds.index(t.QuestionClarified) > max(i for i, kind in enumerate(kinds) if kind is t.StepFinished)
    assert {e.passage_id for a in prediction.answers for e in a.evidence} <= {p.passage.id for p in prediction.passages}


def test_a_clear_question_gets_one_answer() -> None:
    prediction, retriever = run("When did it open?")
    assert (retriever.queries, texts(prediction)) == (["When did it open?"], ["May 1961"])
    assert prediction.clarifications[0].question == ""


def test_options_and_corrections_count() -> None:
    assert len(run("When did it come out?", questions=1)[0].answers) == 1
    assert len(run("When did it open?", ambiguous_above=0.0)[1].queries) == 4  # asked although it is clear
    assert texts(run("When did it come out?", max_answers=1)[0]) == ["June 2003"]
    prediction, _ = run(t.Question("When did it come out?", pinned=("1999",), banned=("June 2003",)))
    assert [(a.text, a.pinned) for a in prediction.answers] == [("1999", True), ("May 1961", False)]
    prediction, retriever = run(t.Question("When did it come out?", passages=tuple(PASSAGES)))
    assert (retriever.queries, len(prediction.answers)) == ([], 2)


class Rewriter:
    """Writes what a table has; a job of it has neither answers nor passages."""

    def rewrite_many(self, jobs: list[tuple[str, str, tuple[str, ...], tuple[t.Passage, ...]]]) -> list[list[str]]:
        assert all(job[1:] == ("", (), ()) for job in jobs)
        return [[q, "When did it come out on dvd?", "When did it come out in theaters?", "Why?"] for q, *_ in jobs]


def test_the_rewriter_writes_from_the_question_alone() -> None:
    write = from_question_alone(Rewriter())
    assert write("When did it come out?", 2) == ["When did it come out on dvd?", "When did it come out in theaters?"]
    prediction, _ = run("When did it come out?", write)
    assert texts(prediction) == ["June 2003", "May 1961"]
    assert prediction.system.settings["rewriter_digest"] == "w"
