from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from reading_fakes import TableModel, TableReader

from core import types as t
from core.errors import CheckpointError, InputError
from core.models.ranking.evidence_verifier import AnswererEvidence, SpanEvidence, probability_of, recall, verify
from core.settings import Settings
from core.systems.base.base import Options, Parts, answer
from core.systems.rectify import Rectify, build
from core.trace import fold

PASSAGES = tuple(
    t.Passage(i, "Film", text)
    for i, text in (
        ("a", "Natalie Wood played Maria in the film."),
        ("b", "Carol Lawrence was Maria on stage; Natalie Wood came later."),
        ("c", "Robert Wise directed it."),
    )
)
SAID = {
    "a": [("Natalie Wood", 0.6), ("Maria", 0.2)],
    "b": [("Carol Lawrence", 0.5), ("Natalie Wood", 0.3)],
    "c": [("Robert Wise", 0.4)],
}
VERDICTS = {"Natalie Wood": 0.9, "Carol Lawrence": 0.8, "Robert Wise": 0.1, "Maria": 0.05}


def retrieved() -> list[t.RetrievedPassage]:
    return [t.RetrievedPassage(p, i, 1.0) for i, p in enumerate(PASSAGES, 1)]


def run(question: t.Question | None = None, cancelled: bool = False, **extra: object) -> tuple[t.Prediction, TableModel]:
    model = TableModel(VERDICTS)
    options = Options(clarify=False, extra={"mix": 0.0, "threshold": 0.3, "surplus": 2} | extra)
    parts = Parts(Settings(), None, cancelled=lambda: cancelled)
    system = Rectify(parts, options, TableReader(SAID), AnswererEvidence(model), ("d", "r"))  # type: ignore[arg-type]
    return answer(system, question or t.Question("Who played Maria?", passages=PASSAGES)), model


def test_evidence_of_a_candidate_is_gathered_from_all_passages() -> None:
    reader = TableReader(SAID)
    found = recall(retrieved(), reader.read("q", list(PASSAGES)), surplus=1, evidence=3)
    assert {r.candidate.text: [p.passage.id for p in r.passages] for r in found} == {
        "Natalie Wood": ["a", "b"],  # read in a, and standing unread in b
        "Carol Lawrence": ["b"],
        "Robert Wise": ["c"],
    }
    one = recall(retrieved(), reader.read("q", list(PASSAGES)), surplus=2, evidence=1)
    assert all(len(r.passages) == 1 for r in one)
    assert "Maria" in [r.candidate.text for r in one]
    best = next(r for r in one if r.candidate.text == "Natalie Wood")
    shares = [4 / (4 + 4 + 2 / 3)] * 2  # odds of answering: 0.8 to 0.2 twice, and 0.4 to 0.6
    assert best.candidate.probability == pytest.approx(shares[0] * 0.6 / 0.8 + shares[1] * 0.3 / 0.8)  # of both passages
    assert [p.passage.id for p in best.passages] == ["a"]  # where the reader was surest


def test_each_candidate_is_judged_on_its_own_evidence() -> None:
    prediction, model = run()
    assert [(a.text, a.probability) for a in prediction.answers] == [("Natalie Wood", 0.9), ("Carol Lawrence", 0.8)]
    assert [e.passage_id for e in prediction.answers[0].evidence] == ["a", "b"]
    assert ("Who played Maria?", ("b",), ()) in model.jobs
    assert all(previous == () for _, _, previous in model.jobs)  # no answer depends on another
    rejected = {e.answer: e.why for e in prediction.events if isinstance(e, t.AnswerRejected)}
    assert set(rejected) == {"Maria", "Robert Wise"}
    assert "10%" in rejected["Robert Wise"]
    assert fold(prediction.question, prediction.system, prediction.events) == prediction
    assert prediction.events[-1].why == "4 candidates verified"  # type: ignore[union-attr]


def test_the_verdict_mixes_both_models() -> None:
    found = recall(retrieved(), TableReader(SAID).read("q", list(PASSAGES)), 1, 3)
    recalled = next(r.candidate.probability for r in found if r.candidate.text == "Carol Lawrence")
    for mix in (0.0, 0.5, 1.0):
        verdicts = {
            v.recalled.candidate.text: v.probability for v in verify(AnswererEvidence(TableModel(VERDICTS)), "q", found, mix)
        }
        assert verdicts["Carol Lawrence"] == pytest.approx(math.exp((1 - mix) * math.log(0.8) + mix * math.log(recalled)))
    silent = verify(AnswererEvidence(TableModel({})), "q", found, 0.0)
    assert all(v.probability < 1e-5 for v in silent)  # what the verifier does not give is dropped by any threshold


class Places:
    """A verifier that knows right places by the passage."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def judge(self, question: str, spans: Sequence[tuple[t.Passage, int, int]]) -> list[float]:
        self.asked += [(p.id, p.text[a:b]) for p, a, b in spans]
        return [2.0 if (p.id, p.text[a:b]) == ("b", "Natalie Wood") else -2.0 for p, a, b in spans]


def test_the_trained_verifier_judges_each_place_and_the_best_counts() -> None:
    found = recall(retrieved(), TableReader(SAID).read("q", list(PASSAGES)), 1, 3)
    places = Places()
    verdicts = {v.recalled.candidate.text: v.probability for v in verify(SpanEvidence(places), "q", found, 0.0)}
    assert verdicts["Natalie Wood"] == pytest.approx(1 / (1 + math.exp(-2)))
    assert verdicts["Carol Lawrence"] == pytest.approx(1 / (1 + math.exp(2)))
    assert sorted(places.asked)[:2] == [("a", "Natalie Wood"), ("b", "Carol Lawrence")]
    alone = {v.recalled.candidate.text: v.probability for v in verify(None, "q", found, 0.0)}
    assert alone == {r.candidate.text: r.candidate.probability for r in found}  # without one the recaller decides


def test_who_verifies_where_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise CheckpointError("not installed")

    monkeypatch.setattr("core.systems.rectify.load_reader", lambda *_: (TableReader(SAID), "r"))
    monkeypatch.setattr("core.systems.rectify.load_answering", lambda *_: (TableModel(VERDICTS), "a"))
    monkeypatch.setattr("core.systems.rectify.load_verifier", lambda *_: (Places(), "v"))
    usual = build(Parts(Settings(), None), Options())
    assert (usual.info.settings["verifier"], usual.info.checkpoint_digest, usual.mix) == ("trained", "v", 0.25)
    none = build(Parts(Settings(), None), Options(extra={"verifier": "none"}))
    assert (none.info.settings["mix"], none.info.checkpoint_digest) == (1.0, "")
    monkeypatch.setattr("core.systems.rectify.load_verifier", missing)
    other = build(Parts(Settings(), None), Options())
    assert (other.info.settings["verifier"], other.info.checkpoint_digest, other.mix) == ("answerer", "a", 0.9)
    with pytest.raises(CheckpointError):
        build(Parts(Settings(), None), Options(extra={"verifier": "trained"}))


def test_a_longer_reading_of_the_same_answer_counts() -> None:
    given = (t.Candidate("director Robert Wise", 0.4), t.Candidate("Wise", 0.3), t.Candidate("Oslo", 0.2))
    assert probability_of("Robert Wise", given) == 0.4
    assert probability_of("Wise", given) == 0.3
    assert probability_of("Bergen", given) == 0.0


def test_pinned_banned_and_what_is_part_of_another_answer() -> None:
    question = t.Question("Who played Maria?", passages=PASSAGES, pinned=("Wood",), banned=("carol lawrence",))
    prediction, _ = run(question)
    assert [(a.text, a.pinned) for a in prediction.answers] == [("Wood", True)]
    assert {e.answer for e in prediction.events if isinstance(e, t.AnswerRejected)} == {"Natalie Wood", "Maria", "Robert Wise"}


def test_a_stopped_run_ends_clean() -> None:
    prediction, model = run(cancelled=True)
    assert prediction.answers == ()
    assert model.jobs == []
    assert prediction.events[-1].why == "stopped by a person"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "extra", [{"threshold": 2}, {"surplus": 0}, {"surplus": 1.5}, {"mix": -0.1}, {"evidence": "x"}, {"thresold": 0.1}]
)
def test_bad_options(extra: dict[str, object]) -> None:
    with pytest.raises(InputError, match=next(iter(extra))):
        run(**extra)
    if next(iter(extra)) == "thresold":
        with pytest.raises(InputError, match="Did you mean 'threshold'"):
            build(Parts(Settings(reader="nowhere"), None), Options(extra=extra))
