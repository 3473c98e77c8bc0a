"""Systems that read once: thresholded reading, joint passage ranking, recall and verify."""

from __future__ import annotations

import math

import pytest
from reading_fakes import TableModel, TableReader, TableRetriever
from system_fakes import parts, texts

from core import types as t
from core.models.ranking.evidence_verifier import AnswererEvidence, probability_of, recall, verify
from core.models.ranking.passage_scorers import ReaderScorer
from core.models.span.reader import relevances
from core.systems import build
from core.systems.base.options import Options
from core.systems.base.selection import candidates_of
from core.systems.base.system import answer
from core.systems.jpr import Jpr
from core.systems.one_pass import OnePass
from core.systems.options import JprOptions, OnePassOptions, RectifyOptions
from core.systems.rectify import Rectify

COLOURS = tuple(t.Passage(str(i), "T", text) for i, text in enumerate(["Red or blue.", "The red one.", "Green."]))
COLOUR_READER = {"0": [("Red", 0.6), ("blue", 0.3), ("or", 0.09)], "1": [("red", 0.8), ("one", 0.1)], "2": [("Green", 0.5)]}


@pytest.mark.parametrize(
    ("threshold", "expected"), [(0.5, ["red", "Green"]), (0.7, ["red"]), (0.9, []), (0.2, ["red", "Green", "blue"])]
)
def test_every_answer_above_the_threshold_is_kept(threshold: float, expected: list[str]) -> None:
    config = OnePassOptions(threshold=threshold)
    system = OnePass("one-pass", parts(), Options(), config, TableReader(COLOUR_READER), "d")
    prediction = answer(system, t.Question("Which colour?", passages=COLOURS))
    assert texts(prediction) == expected
    assert prediction.system.settings["extra"]["threshold"] == threshold
    if expected:  # an answer of two passages counts once, with its best probability
        assert (prediction.answers[0].probability, prediction.answers[0].evidence[0].passage_id) == (0.8, "1")


def test_dpr_scoring_lets_the_passages_compete() -> None:
    """P(passage) P(span | passage, not abstaining): what a doubtful passage says counts for little."""
    passages = [t.Passage(i, "T", "Red or blue.") for i in ("sure", "doubtful")]
    reader = TableReader({"sure": [("Red", 0.6), ("blue", 0.3)], "doubtful": [("or", 0.1)]})
    readouts = reader.read("q", passages)
    sure, doubtful = relevances(readouts)
    assert (sure + doubtful, sure / doubtful) == pytest.approx((1, (0.9 / 0.1) / (0.1 / 0.9)))
    scores = {c.text: c.probability for c in candidates_of(readouts, "dpr")}
    assert (scores["Red"], scores["or"]) == pytest.approx((sure * 0.6 / 0.9, doubtful))
    assert (relevances([]), relevances(readouts[:1])) == ([], [1.0])


STAGE = [
    t.Passage("a", "Film", "Natalie Wood played Maria."),
    t.Passage("b", "Film again", "Maria was Natalie Wood."),
    t.Passage("c", "Stage", "Carol Lawrence sang Maria."),
    t.Passage("d", "Rocks", "Basalt is dark."),
]
STAGE_READER = {
    "a": [("Natalie Wood", 0.9)],
    "b": [("Natalie Wood", 0.8)],
    "c": [("Carol Lawrence", 0.5)],
    "d": [("Basalt", 0.05)],
}
MARIA = "Who was Maria?"


def jpr(**config: float) -> tuple[Jpr, TableReader, TableRetriever]:
    reader, retriever = TableReader(STAGE_READER), TableRetriever(STAGE)
    options = JprOptions.read("jpr", {"reranker": "reader", "length_penalty": 2.0, **config})
    run = Options(top_k=2, clarify=False)
    return Jpr(parts(retriever=retriever), run, options, reader, "d"), reader, retriever


def test_the_second_passage_complements_the_first() -> None:
    system, reader, retriever = jpr(pool=4)
    prediction = answer(system, t.Question(MARIA))
    assert {p.passage.id for p in prediction.passages} in ({"a", "c"}, {"b", "c"})
    assert [p.rank for p in prediction.passages] == [1, 2]
    assert texts(prediction) == ["Natalie Wood", "Carol Lawrence"]
    assert reader.asked == 4  # the pool was read once; the picked passages were not read again
    assert len(answer(system, t.Question(MARIA, passages=tuple(STAGE))).passages) == 2
    assert len(retriever.queries) == 1  # own passages are not searched for


def test_without_diversity_it_is_a_plain_ranking() -> None:
    prediction = answer(jpr(pool=4, diversity=0.0)[0], t.Question(MARIA))
    assert {p.passage.id for p in prediction.passages} == {"a", "b"}
    assert texts(prediction) == ["Natalie Wood"]


def test_the_reader_discounts_what_is_covered() -> None:
    readouts = TableReader(STAGE_READER).read("q", STAGE)
    scorer = ReaderScorer(readouts, [0.9, 0.9, 0.9, 0.9])
    before, after = scorer.log_worth(()), scorer.log_worth((0,))
    assert [before[1], after[1], after[2]] == pytest.approx([math.log(w) for w in (0.8, 0.8 * (1 - 0.9 * 0.9), 0.5)])
    (row,) = scorer.log_probabilities([(0,)])
    assert row[0] == float("-inf")
    assert max(row) == row[2]
    far, near, unknown, _ = ReaderScorer(readouts, [0.5, 0.9, None, 0.9], prior=8.0).log_worth(())
    assert far < near
    assert unknown == pytest.approx(math.log(0.5))  # no cosine: no prior


CAST = (
    t.Passage("a", "Film", "Natalie Wood played Maria in the film."),
    t.Passage("b", "Film", "Carol Lawrence was Maria on stage; Natalie Wood came later."),
    t.Passage("c", "Film", "Robert Wise directed it."),
)
CAST_READER = {
    "a": [("Natalie Wood", 0.6), ("Maria", 0.2)],
    "b": [("Carol Lawrence", 0.5), ("Natalie Wood", 0.3)],
    "c": [("Robert Wise", 0.4)],
}
VERDICTS = {"Natalie Wood": 0.9, "Carol Lawrence": 0.8, "Robert Wise": 0.1, "Maria": 0.05}
RETRIEVED = [t.RetrievedPassage(p, i, 1.0) for i, p in enumerate(CAST, 1)]
READOUTS = TableReader(CAST_READER).read("q", list(CAST))


def rectified(**question: tuple[str, ...]) -> tuple[t.Prediction, TableModel]:
    model, config = TableModel(VERDICTS), RectifyOptions(mix=0.0, threshold=0.3)
    reader, run = TableReader(CAST_READER), Options(clarify=False)
    system = Rectify(parts(), run, config, reader, AnswererEvidence(model), ("d", "r"))
    return answer(system, t.Question("Who played Maria?", passages=CAST, **question)), model


def test_evidence_of_a_candidate_is_gathered_from_all_passages() -> None:
    assert {r.candidate.text: [p.passage.id for p in r.passages] for r in recall(RETRIEVED, READOUTS, 1, 3)} == {
        "Natalie Wood": ["a", "b"],  # read in a, and standing unread in b
        "Carol Lawrence": ["b"],
        "Robert Wise": ["c"],
    }
    recalled = recall(RETRIEVED, READOUTS, surplus=2, evidence=1)
    assert all(len(r.passages) == 1 for r in recalled)
    assert "Maria" in [r.candidate.text for r in recalled]
    best = next(r for r in recalled if r.candidate.text == "Natalie Wood")
    shares = [4 / (4 + 4 + 2 / 3)] * 2  # odds of answering: 0.8 to 0.2 twice, and 0.4 to 0.6
    assert best.candidate.probability == pytest.approx(shares[0] * 0.6 / 0.8 + shares[1] * 0.3 / 0.8)  # of both passages
    assert [p.passage.id for p in best.passages] == ["a"]  # where the reader was surest


def test_each_candidate_is_judged_on_its_own_evidence() -> None:
    prediction, model = rectified()
    assert [(a.text, a.probability) for a in prediction.answers] == [("Natalie Wood", 0.9), ("Carol Lawrence", 0.8)]
    assert [e.passage_id for e in prediction.answers[0].evidence] == ["a", "b"]
    assert ("Who played Maria?", ("b",), ()) in model.jobs
    assert all(previous == () for _, _, previous in model.jobs)  # no answer depends on another
    assert set(prediction.rejected) == {"Maria", "Robert Wise"}
    corrected, _ = rectified(pinned=("Wood",), banned=("carol lawrence",))
    assert texts(corrected) == ["Wood"]
    assert set(corrected.rejected) == {"Natalie Wood", "Maria", "Robert Wise"}


def test_the_verdict_mixes_both_models() -> None:
    candidates = recall(RETRIEVED, READOUTS, 1, 3)
    (carol,) = [r for r in candidates if r.candidate.text == "Carol Lawrence"]
    for mix in (0.0, 0.5, 1.0):
        (verdict,) = verify(AnswererEvidence(TableModel(VERDICTS)), "q", [carol], mix)
        mixed = (1 - mix) * math.log(0.8) + mix * math.log(carol.candidate.probability)
        assert verdict.probability == pytest.approx(math.exp(mixed))
    silent = verify(AnswererEvidence(TableModel({})), "q", candidates, 0.0)
    assert all(v.probability < 1e-5 for v in silent)  # what the verifier does not give is dropped by any threshold


def test_the_answering_model_verifies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.systems.rectify.load_reader", lambda *_: (TableReader(CAST_READER), "r"))
    monkeypatch.setattr("core.systems.rectify.load_answering", lambda *_: (TableModel(VERDICTS), "a"))
    assert build("rectify", parts(), Options()).info.checkpoint_digest == "a"


def test_a_longer_reading_of_the_same_answer_counts() -> None:
    candidates = (t.Candidate("director Robert Wise", 0.4), t.Candidate("Wise", 0.3), t.Candidate("Oslo", 0.2))
    assert [probability_of(name, candidates) for name in ("Robert Wise", "Wise", "Bergen")] == [0.4, 0.3, 0.0]
