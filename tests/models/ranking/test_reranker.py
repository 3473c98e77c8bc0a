"""The reranker: features of candidates, one softmax with [EOI], its file, and the fit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from core.errors import CheckpointError, InputError
from core.models.ranking.features import FEATURES, OF_VERIFIER, UNJUDGED, QuestionFeatures
from core.models.ranking.reranker import RerankedAnswerer, Weights, file_of, read_weights, rerank, write_weights
from core.models.span.reader import Readout
from core.training.data.examples import MultiExample
from core.training.judgments import recorded
from core.training.logit import Labelled
from core.training.reranker import LoopRuns, fit_reranker, fit_weights
from core.types import Candidate, Evidence, Passage, Proposal, RetrievedPassage


def embed(texts: Sequence[str]) -> NDArray[np.float32]:
    """Letters counted: equal texts are near, no model needed."""
    out = np.array([[1 + text.lower().count(c) for c in "abcdefghijklmnopqrstuvwxyz"] for text in texts], dtype=np.float32)
    return out / np.linalg.norm(out, axis=1, keepdims=True)


def weights(bias: float = 0.0, **given_: float) -> Weights:
    return Weights(
        {n: given_.get(n, 0.0) for n in FEATURES}, dict.fromkeys(FEATURES, 0.0), dict.fromkeys(FEATURES, 1.0), bias, "a test"
    )


PASSAGES = [
    RetrievedPassage(Passage("a", "Tour", "Matteo Brisk won it in 1999. It has 12 stages."), 1, 0.9, 0.9),
    RetrievedPassage(Passage("b", "Race", "Joren Vanhaak won the second one."), 2, 0.5, 0.5),
]


def candidate(text: str, probability: float, passage: int = 0) -> Candidate:
    own = PASSAGES[passage].passage
    start = own.text.index(text)
    return Candidate(text, probability, Evidence(own.id, start, start + len(text), text))


STEP = Proposal((candidate("1999", 0.5), candidate("Matteo Brisk", 0.3), candidate("Joren Vanhaak", 0.1, 1)), 0.1)


def read(question: str, passages: Sequence[RetrievedPassage]) -> list[Readout]:
    """A reader that is sure of the first passage's name, and abstains from every other passage."""
    return [
        Readout(p.passage, (candidate("Matteo Brisk", 0.8), candidate("1999", 0.1)), 0.1)
        if p.passage.id == "a"
        else Readout(p.passage, (), 1.0)
        for p in passages
    ]


def column(name: str, previous: Sequence[str] = ()) -> list[float]:
    seen = QuestionFeatures("Who won the tour?", PASSAGES, embed, read)
    return list(seen.step(previous, STEP)[:, FEATURES.index(name)])


def test_features_of_a_step() -> None:
    assert column("below_best") == pytest.approx([0.0, np.log(0.3 / 0.5), np.log(0.1 / 0.5)])
    assert column("similarity") == [0.9, 0.9, 0.5]
    assert column("below_best_passage") == pytest.approx([0.0, 0.0, -0.4])
    assert column("kind") == [0.0, 1.0, 1.0]
    assert column("first_step") == [1.0, 1.0, 1.0]
    assert column("like_previous") == [0.0, 0.0, 0.0]
    assert column("passage_taken", ["Matteo Brisk"]) == [1.0, 1.0, 0.0]
    year, _, name = column("like_previous", ["Matteo Brisk"])
    assert name == 1.0
    assert year < 0


def test_what_the_reader_says() -> None:
    assert column("reader") == pytest.approx([np.log(0.1), np.log(0.8), np.log(1e-6)])
    assert column("reader_first") == [0.0, 1.0, 0.0]
    assert column("reader_abstains") == pytest.approx([np.log(0.1), np.log(0.1), 0.0])
    assert column("reader_abstains_less") == pytest.approx([0.0, 0.0, -np.log(0.1)])
    assert column("title_whole") == [1.0, 1.0, 0.0]  # Tour


def test_a_candidate_beside_the_answers_so_far() -> None:
    assert column("sentence_like_previous") == [0.0, 0.0, 0.0]
    year, _, name = column("sentence_like_previous", ["Matteo Brisk"])
    assert year == pytest.approx(1.0)  # the same sentence
    assert 0.0 < name < 1.0
    assert column("title_like_previous", ["Matteo Brisk"]) == [1.0, 1.0, 0.0]
    assert column("reader_below_previous", ["Matteo Brisk"]) == pytest.approx([np.log(0.1 / 0.8), 0.0, np.log(1e-6 / 0.8)])
    assert column("similarity_below_previous", ["Matteo Brisk"]) == pytest.approx([0.0, 0.0, -0.4])
    assert column("covered_below_previous", ["Matteo Brisk"])[2] < 0
    assert column("title_like_previous", ["an answer that stands nowhere"]) == [0.0, 0.0, 0.0]


def test_what_the_verifier_says_and_that_nothing_is_judged_twice() -> None:
    asked: list[str] = []

    def judge(question: str, spans: Sequence[tuple[Passage, int, int]]) -> list[float]:
        texts = [passage.text[start:end] for passage, start, end in spans]
        asked.extend(texts)
        return [2.0 if text == "Matteo Brisk" else -1.0 for text in texts]

    seen = QuestionFeatures("Who won the tour?", PASSAGES, embed, read, judge)
    found = seen.step([], STEP)[:, [FEATURES.index(n) for n in ("verifier", "verifier_log", "verifier_below_best")]]
    assert found[:, 0].tolist() == [-1.0, 2.0, -1.0]
    assert found[:, 1] == pytest.approx([-np.log1p(np.exp(-v)) for v in (-1.0, 2.0, -1.0)])
    assert found[:, 2].tolist() == [-3.0, 0.0, -3.0]
    seen.step(["Matteo Brisk"], STEP)
    assert asked == ["1999", "Matteo Brisk", "Joren Vanhaak"]
    assert column("verifier") == column("verifier_log") == column("verifier_below_best") == [0.0, 0.0, 0.0]  # none at hand
    bare = seen.step([], Proposal((Candidate("Paris", 0.4),), 0.6))
    assert bare[0, FEATURES.index("verifier")] == UNJUDGED


def test_numbers_are_measured_against_the_units_of_the_answers_so_far() -> None:
    heights = Proposal((Candidate("26 metres", 0.4), Candidate("89 km/h", 0.3), Candidate("1999", 0.1)), 0.2)
    found = QuestionFeatures("How high is it?", PASSAGES, embed, read).step(["47 metres"], heights)
    assert found[:, FEATURES.index("unit_like_previous")].tolist() == [1.0, -1.0, -1.0]
    assert column("unit_like_previous", ["Matteo Brisk"]) == [0.0, 0.0, 0.0]


def test_the_first_step_adds_weights_of_its_own() -> None:
    both = replace(weights(bias=1.0, kind=2.0), first=dict.fromkeys(FEATURES, 0.0) | {"kind": 3.0})
    rows = np.zeros((2, len(FEATURES)))
    rows[:, FEATURES.index("kind")] = 1.0
    rows[0, FEATURES.index("first_step")] = 1.0
    assert both.scores(rows).tolist() == [6.0, 3.0]
    assert replace(weights(), first=dict.fromkeys(FEATURES, 0.0) | {"verifier": 1.0}).asks_verifier
    with pytest.raises(CheckpointError, match="fit it again"):
        replace(both, first={"kind": 1.0})


@pytest.mark.parametrize("part", ["weights", "first"])
def test_weights_that_are_no_mapping_are_damage(tmp_path: Path, part: str) -> None:
    path = write_weights(tmp_path, weights())
    path.write_text(json.dumps(json.loads(path.read_text()) | {part: list(FEATURES)}))
    with pytest.raises(CheckpointError, match="damaged"):
        read_weights(tmp_path)


def test_features_can_be_left_out_of_a_fit() -> None:
    examples = [MultiExample(f"Who won the tour {i}?", (), (("Matteo Brisk",), ("Joren Vanhaak",)), "made") for i in range(12)]
    runs = LoopRuns(Fixed(), examples, [PASSAGES] * 12, embed, read, lambda _: None)
    fitted, _ = fit_reranker(runs, without=OF_VERIFIER)
    assert set(fitted.weights) == set(FEATURES) - set(OF_VERIFIER)
    assert not fitted.asks_verifier
    assert weights(verifier=0.5).asks_verifier
    assert fitted.scores(np.zeros((2, len(FEATURES)))).shape == (2,)


def test_features_without_evidence_or_similarity() -> None:
    bare = Proposal((Candidate("Paris", 0.4),), 0.6)
    found = QuestionFeatures("Where?", [RetrievedPassage(PASSAGES[0].passage, 1, 0.0)], embed, read).step([], bare)
    assert found.shape == (1, len(FEATURES))
    assert np.isfinite(found).all()
    assert QuestionFeatures("Where?", PASSAGES, embed, read).step([], Proposal((), 1.0)).shape == (0, len(FEATURES))


@given(st.lists(st.floats(-30, 30).map(lambda x: round(x, 6)), min_size=1, max_size=8))
def test_reranking_is_one_softmax_with_eoi(scores: list[float]) -> None:
    proposal = Proposal(tuple(Candidate(f"c{i}", 0.1) for i in range(len(scores))), 0.2)
    found = rerank(proposal, np.array(scores))
    assert sum(c.probability for c in found.candidates) + found.eoi_probability == pytest.approx(1.0)
    assert [c.probability for c in found.candidates] == sorted((c.probability for c in found.candidates), reverse=True)
    # a candidate beats [EOI] exactly where its score is above 0
    assert (found.candidates[0].probability > found.eoi_probability) == (max(scores) > 0)


def test_no_candidate_leaves_only_eoi() -> None:
    assert rerank(Proposal((), 0.3), np.zeros(0)) == Proposal((), 1.0)


class Fixed:
    """An answering model that knows three candidates and drops what was given."""

    def propose(self, question: str, passages: Sequence[RetrievedPassage], previous: Sequence[str]) -> Proposal:
        return Proposal(tuple(c for c in STEP.candidates if c.text not in previous), STEP.eoi_probability)

    def propose_many(self, jobs: Sequence[tuple[str, Sequence[RetrievedPassage], Sequence[str]]]) -> list[Proposal]:
        return [self.propose(*job) for job in jobs]


def test_the_kind_of_answer_can_overrule_the_model() -> None:
    model = RerankedAnswerer(Fixed(), weights(bias=-2.0, kind=4.0), embed, read)
    first = model.propose("Who won the tour?", PASSAGES, [])
    assert {c.text for c in first.candidates[:2]} == {"Matteo Brisk", "Joren Vanhaak"}
    last = model.propose("Who won the tour?", PASSAGES, ["Matteo Brisk", "Joren Vanhaak"])
    assert last.eoi_probability > last.candidates[0].probability


def test_what_the_model_and_the_verifier_say_stays_beside_what_became_of_it() -> None:
    own = {c.text: c.probability for c in STEP.candidates}
    alone = RerankedAnswerer(Fixed(), weights(bias=-2.0, kind=4.0), embed, read).propose("Who won the tour?", PASSAGES, [])
    assert all(c.verifier is None and c.model == own.get(c.text, c.model) for c in alone.candidates)
    assert any(c.model != c.probability for c in alone.candidates)
    judged = RerankedAnswerer(Fixed(), weights(bias=-2.0, kind=4.0), embed, read, lambda question, spans: [0.0] * len(spans))
    proposal = judged.propose("Who won the tour?", PASSAGES, [])
    assert proposal.verifying > 0 == alone.verifying
    for c in proposal.candidates:
        assert c.verifier == pytest.approx(0.5 if c.evidence else 0.0, abs=1e-4)


def test_the_readers_shorter_reading_can_win() -> None:
    class Long:
        def propose(self, question: str, passages: Sequence[RetrievedPassage], previous: Sequence[str]) -> Proposal:
            return Proposal((candidate("Matteo Brisk won it", 0.9),), 0.1)

    model = RerankedAnswerer(Long(), weights(bias=5.0, reader=1.0), embed, read)
    assert [c.text for c in model.propose("Who won the tour?", PASSAGES, []).candidates] == [
        "Matteo Brisk",
        "Matteo Brisk won it",
    ]


def test_the_file_comes_back_as_it_went(tmp_path: Path) -> None:
    assert read_weights(tmp_path) is None
    write_weights(tmp_path, weights(bias=0.5, kind=1.25))
    assert read_weights(tmp_path) == weights(bias=0.5, kind=1.25)
    assert read_weights(tmp_path, "own") is None
    write_weights(tmp_path, weights(bias=-0.5), "own")
    assert (read_weights(tmp_path, "own"), read_weights(tmp_path)) == (weights(bias=-0.5), weights(bias=0.5, kind=1.25))


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"weights": {}}', "features", "nan", "scale"])
def test_a_damaged_file_is_refused(tmp_path: Path, damage: str) -> None:
    body = json.loads(write_weights(tmp_path, weights()).read_text())
    if damage == "features":
        body["weights"].pop("kind")
    elif damage == "nan":
        body["weights"]["kind"] = float("nan")
    elif damage == "scale":
        body["scale"]["kind"] = 0.0
    whole = damage in ("features", "nan", "scale")
    (tmp_path / file_of("retrieved")).write_text(json.dumps(body) if whole else damage)
    with pytest.raises(CheckpointError, match="fit it again"):
        read_weights(tmp_path)


def test_the_fit_learns_what_the_model_gets_wrong() -> None:
    examples = [MultiExample(f"Who won the tour {i}?", (), (("Matteo Brisk",), ("Joren Vanhaak",)), "made") for i in range(12)]
    runs = LoopRuns(Fixed(), examples, [PASSAGES] * 12, embed, read, lambda _: None)
    assert runs.answers(0, None)[0] == "1999"  # the model's own first choice is wrong
    fitted, figures = fit_reranker(runs)
    assert set(runs.answers(0, fitted)) == {"Matteo Brisk", "Joren Vanhaak"}
    assert figures["plain"]["f1"] < figures["cross_validated"]["f1"] == 1.0


def test_judged_runs_are_recorded_beyond_their_end() -> None:
    examples = [
        MultiExample("Who won the tour?", (), (("Matteo Brisk",),), "made"),
        MultiExample("Who?", (), (), "made", ("x",)),
    ]
    runs = LoopRuns(Fixed(), examples, [PASSAGES] * 2, embed, read, lambda _: None)
    unwilling = weights(bias=-5.0, kind=4.0)
    assert runs.answers(0, unwilling) == []
    (run,) = recorded(runs, weights(bias=-0.5, kind=0.2))  # of the second question no answer is known
    assert run.references == ((("Matteo Brisk",),),)
    assert run.turns[0].chosen is not None
    assert run.turns[-1].chosen is None
    for turn in run.turns:
        assert sum(p for _, p in turn.candidates) + turn.eoi == pytest.approx(1.0)
        assert turn.verifier is None  # none was asked


def test_judged_runs_remember_what_the_verifier_said_of_the_best_candidate() -> None:
    """A calibration of what it says can only be fitted to judged questions if their runs have it."""

    def judge(question: str, spans: Sequence[tuple[Passage, int, int]]) -> list[float]:
        return [2.0 if passage.text[start:end] == "Matteo Brisk" else -1.0 for passage, start, end in spans]

    example = MultiExample("Who won the tour?", (), (("Matteo Brisk",),), "made")
    runs = LoopRuns(Fixed(), [example], [PASSAGES], embed, read, lambda _: None, judge)
    (run,) = recorded(runs, weights(bias=-0.5, verifier=1.0))
    assert run.turns[0].chosen == "Matteo Brisk"
    assert run.turns[0].verifier == pytest.approx(1 / (1 + np.exp(-2.0)))


def test_too_little_to_fit_is_said() -> None:
    few = [MultiExample("Who won?", (), (("Matteo Brisk",),), "made")] * 3
    with pytest.raises(InputError, match="too few"):
        fit_reranker(LoopRuns(Fixed(), few, [PASSAGES] * 3, embed, read))
    with pytest.raises(InputError, match="nothing to fit"):
        fit_weights([Labelled(np.zeros((4, len(FEATURES))), np.zeros(4, dtype=bool), True)])


def test_the_fit_is_at_a_minimum_and_its_softmax_finds_what_decides() -> None:
    """Two steps with a right candidate, which one feature tells, and two where [EOI] is right, which another tells."""
    rng = np.random.default_rng(0)
    steps = []
    for number in range(60):
        x = rng.normal(size=(4, len(FEATURES)))
        x[:, FEATURES.index("first_step")] = number % 2
        y = np.zeros(4, dtype=bool)
        if rng.random() < 0.5:
            y[int(x[:, 0].argmax())] = True
            x[:, 1] += 3
        steps.append(Labelled(x, y, not y.any()))
    fitted = fit_weights(steps)
    assert fitted.weights[FEATURES[0]] > 0 < fitted.weights[FEATURES[1]]
    right = 0
    for s in steps:
        scores = fitted.scores(s.values)
        right += bool(s.right[scores.argmax()]) if not s.end else bool(scores.max() <= 0)
    assert right >= 54
