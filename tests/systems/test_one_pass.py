from __future__ import annotations

from typing import ClassVar

import pytest
from reading_fakes import TableReader

from core import types as t
from core.errors import InputError
from core.models.span.reader import Readout, relevances
from core.settings import Settings
from core.systems.base.base import Options, Parts, answer
from core.systems.base.candidates import candidates_of
from core.systems.one_pass import DPR_SCORING, THRESHOLD, TUNED, OnePass, chosen_options
from core.trace import fold

PASSAGES = tuple(t.Passage(str(i), "T", text) for i, text in enumerate(["Red or blue.", "The red one.", "Green."]))


class FixedReader:
    """Readouts by passage text: (candidate, probability) pairs."""

    SAID: ClassVar = {
        "0": [("Red", 0.6), ("blue", 0.3), ("or", 0.09)],
        "1": [("red", 0.8), ("one", 0.1)],
        "2": [("Green", 0.5)],
    }

    def read(self, question: str, passages: list[t.Passage]) -> list[Readout]:
        return [
            Readout(
                p,
                tuple(
                    t.Candidate(c, q, t.Evidence(p.id, p.text.find(c), p.text.find(c) + len(c), c)) for c, q in self.SAID[p.id]
                ),
                0.0,
            )
            for p in passages
        ]


def run(threshold: float | None = None, question: t.Question | None = None, **options: int) -> t.Prediction:
    extra = {} if threshold is None else {"threshold": threshold}
    system = OnePass(Parts(Settings(), None), Options(extra=extra, **options), FixedReader(), "d")  # type: ignore[arg-type]
    return answer(system, question or t.Question("Which colour?", passages=PASSAGES))


@pytest.mark.parametrize(
    ("threshold", "expected"),
    [(None, ["red", "Green"]), (0.7, ["red"]), (0.9, []), (0.5, ["red", "Green"]), (0.2, ["red", "Green", "blue"])],
)
def test_the_threshold(threshold: float | None, expected: list[str]) -> None:
    prediction = run(threshold)
    assert [a.text for a in prediction.answers] == expected
    assert all(a.probability >= (threshold or 0.5) for a in prediction.answers)
    assert prediction.system.settings["threshold"] == (threshold or 0.5)


def test_dpr_scoring_lets_the_passages_compete() -> None:
    """P(passage) P(span | passage, not abstaining): what a doubtful passage says counts for little."""
    passages = [t.Passage(i, "T", "Red or blue.") for i in ("sure", "doubtful")]
    reader = TableReader({"sure": [("Red", 0.6), ("blue", 0.3)], "doubtful": [("or", 0.1)]})
    readouts = reader.read("q", passages)
    shares = relevances(readouts)
    assert sum(shares) == pytest.approx(1)
    assert shares[0] / shares[1] == pytest.approx((0.9 / 0.1) / (0.1 / 0.9))
    scored = {c.text: c.probability for c in candidates_of(readouts, "dpr")}
    assert scored["Red"] == pytest.approx(shares[0] * 0.6 / 0.9)
    assert scored["or"] == pytest.approx(shares[1])
    assert sum(scored.values()) <= 1 + 1e-9
    assert relevances([]) == []
    one = reader.read("q", passages[:1])
    assert relevances(one) == [1.0]


def test_dpr_threshold_has_the_tuned_threshold_of_its_scoring() -> None:
    def settings(**extra: object) -> object:
        return chosen_options(Options(extra=extra), "dpr-threshold")[:2]

    assert settings() == (DPR_SCORING, TUNED[DPR_SCORING])
    assert settings(scoring="passage") == ("passage", TUNED["passage"])
    assert settings(scoring="passage", threshold=0.7) == ("passage", 0.7)
    assert chosen_options(Options(), "one-pass")[:2] == ("passage", THRESHOLD)
    system = OnePass(Parts(Settings(), None), Options(clarify=False), FixedReader(), "d", "dpr-threshold")  # type: ignore[arg-type]
    prediction = answer(system, t.Question("Which colour?", passages=PASSAGES))
    assert prediction.system.name == "dpr-threshold"
    assert prediction.system.settings["scoring"] == "dpr"
    for bad in ({"scoring": "both"}, {"threshold": 2}, {"threshold": -0.1}, {"scorring": "dpr"}):
        with pytest.raises(InputError):
            settings(**bad)


def test_an_answer_of_two_passages_counts_once_with_its_best_probability() -> None:
    first = run().answers[0]
    assert (first.text, first.probability) == ("red", 0.8)
    assert first.evidence[0].passage_id == "1"


def test_pinned_banned_and_the_maximum() -> None:
    question = t.Question("Which colour?", passages=PASSAGES, pinned=("Violet",), banned=("RED",))
    prediction = run(0.1, question)
    assert [(a.text, a.pinned) for a in prediction.answers] == [
        ("Violet", True),
        ("Green", False),
        ("blue", False),
        ("one", False),
    ]
    assert [a.text for a in run(0.1, question, max_answers=2).answers] == ["Violet", "Green"]


def test_its_events_fold() -> None:
    prediction = run(0.2)
    assert fold(prediction.question, prediction.system, prediction.events) == prediction
    assert len(prediction.steps[0].candidates) == 4
    assert isinstance(prediction.events[-1], t.Finished)
