from __future__ import annotations

import pytest
from reading_fakes import TableModel, TableReader, TableRetriever

from core import types as t
from core.errors import InputError
from core.models.ranking.passage_scorers import AnswererScorer, ReaderScorer
from core.settings import Settings
from core.systems.base.base import Options, Parts, answer
from core.systems.jpr import Jpr
from core.trace import fold

PASSAGES = [
    t.Passage("a", "Film", "Natalie Wood played Maria."),
    t.Passage("b", "Film again", "Maria was Natalie Wood."),
    t.Passage("c", "Stage", "Carol Lawrence sang Maria."),
    t.Passage("d", "Rocks", "Basalt is dark."),
]
SAID = {"a": [("Natalie Wood", 0.9)], "b": [("Natalie Wood", 0.8)], "c": [("Carol Lawrence", 0.5)], "d": [("Basalt", 0.05)]}


def system(answerer: TableModel | None = None, top_k: int = 2, **extra: object) -> tuple[Jpr, TableReader, TableRetriever]:
    reader, retriever = TableReader(SAID), TableRetriever(PASSAGES)
    extra = ({"reranker": "answerer"} if answerer else {}) | {"length_penalty": 2.0, "diversity": 0.9} | extra
    options = Options(top_k=top_k, clarify=False, extra=extra)
    return Jpr(Parts(Settings(), retriever), options, reader, "d", answerer, "a"), reader, retriever  # type: ignore[arg-type]


@pytest.mark.parametrize("answerer", [False, True])
def test_the_second_passage_complements_the_first(answerer: bool) -> None:
    model = TableModel({"Natalie Wood": 0.9, "Carol Lawrence": 0.6}) if answerer else None
    jpr, reader, retriever = system(model, pool=4)
    prediction = answer(jpr, t.Question("Who was Maria?"))
    assert {p.passage.id for p in prediction.passages} in ({"a", "c"}, {"b", "c"})
    assert [p.rank for p in prediction.passages] == [1, 2]
    assert [a.text for a in prediction.answers] == ["Natalie Wood", "Carol Lawrence"]
    assert reader.asked == 4  # the pool was read once; the picked passages were not read again
    assert len(retriever.queries) == 1
    assert fold(prediction.question, prediction.system, prediction.events) == prediction


def test_without_diversity_it_is_a_plain_ranking() -> None:
    jpr, _, _ = system(pool=4, diversity=0.0)
    prediction = answer(jpr, t.Question("Who was Maria?"))
    assert {p.passage.id for p in prediction.passages} == {"a", "b"}
    assert [a.text for a in prediction.answers] == ["Natalie Wood"]


def test_own_passages_are_reranked_too() -> None:
    jpr, _, retriever = system()
    prediction = answer(jpr, t.Question("Who was Maria?", passages=tuple(PASSAGES)))
    assert len(prediction.passages) == 2
    assert retriever.queries == []


def test_the_reader_discounts_what_is_covered() -> None:
    readouts = TableReader(SAID).read("q", PASSAGES)
    scorer = ReaderScorer(readouts, [0.9, 0.9, 0.9, 0.9])
    assert scorer.worth(1, ()) == pytest.approx(0.8)
    assert scorer.worth(1, (0,)) == pytest.approx(0.8 * (1 - 0.9 * 0.9))
    assert scorer.worth(2, (0,)) == pytest.approx(0.5)
    (row,) = scorer.log_probabilities([(0,)])
    assert row[0] == float("-inf")
    assert max(range(4), key=row.__getitem__) == 2
    closer = ReaderScorer(readouts, [0.5, 0.9, None, 0.9], prior=8.0)
    assert closer.worth(0, ()) < closer.worth(1, ())
    assert closer.worth(2, ()) == pytest.approx(0.5)  # no cosine: no prior


def test_the_answering_model_is_told_what_the_picked_passages_say() -> None:
    model = TableModel({"Natalie Wood": 0.9, "Carol Lawrence": 0.6})
    pool = [t.RetrievedPassage(p, i, 1.0) for i, p in enumerate(PASSAGES, 1)]
    scorer = AnswererScorer(model, "Who was Maria?", pool)
    first, second = scorer.log_probabilities([()])[0], scorer.log_probabilities([(0,)])[0]
    assert max(range(4), key=first.__getitem__) in (0, 1)
    assert max(range(4), key=second.__getitem__) == 2
    assert ("Who was Maria?", ("b",), ("Natalie Wood",)) in model.jobs
    asked = len(model.jobs)
    assert scorer.log_probabilities([(0,)])[0] == second
    assert len(model.jobs) == asked  # nothing is asked twice


@pytest.mark.parametrize(
    "extra", [{"pool": 0}, {"pool": 1000}, {"diversity": 1.5}, {"reranker": "magic"}, {"length_penalty": "no"}]
)
def test_bad_options(extra: dict[str, object]) -> None:
    with pytest.raises(InputError, match=next(iter(extra))):
        system(**extra)  # type: ignore[arg-type]
