from __future__ import annotations

import json
from typing import Any

import pytest

from core import types as t
from core.errors import FormatError
from core.trace import EVENTS, event_from_json, fold, prediction_from_json, to_json

P = t.Passage("p1", "Title", "Some text é")
E = t.Evidence("p1", 5, 9, "text")
C = t.Candidate("text", 0.5, E)
A = t.Answer("text", 0.5, (E,), 1)
STEP = t.Step(1, ("x",), "x", (C, t.Candidate("y", 0.25)), C, 0.25, 0.1)
SAMPLES: list[t.Event] = [
    t.PassagesRetrieved((t.RetrievedPassage(P, 1, 0.5, 0.25), t.RetrievedPassage(P, 2, 0.4)), 0.01, "q"),
    t.QuestionRelaxed("q?"),
    t.StepStarted(1, ("x", "y"), "x ; y"),
    t.StepFinished(STEP, A),
    t.StepFinished(t.Step(2, (), "", (), None, 1.0, 0.0, "[EOI]"), None),
    t.AnswerRejected("text", "wrong"),
    t.QuestionClarified(t.Clarification("text", "q in 1961?", True, 3, ("text",), ""), 0.2),
    t.InterpretationProposed(t.Interpretation("p1", "q?", "text", 0.5, E)),
    t.InterpretationProposed(t.Interpretation("p1", abstained="nothing here")),
    t.InterpretationsClustered((t.InterpretationPlaced(0, 0.5, -1.5, -1, False),)),
    t.InterpretationProposed(t.Interpretation("p1", failed="no answer within 60 s", verified=False)),
    t.QuestionsImagined(("q in 1961?", "q on stage?")),
    t.PassagesPruned(("p1",), ("p2", "p3"), "the nearest"),
    t.QuestionVerified("q in 1961?", ("p1",)),
    t.ModelCalled("interpret", 1, 120, 30, 0.4, "it said nothing"),
    t.InterpretationsChosen((t.Interpretation("p1", "q?", "text", 0.5, E),), "one meaning"),
    t.QuestionQueued(2, 1, "questions"),
    t.LongAnswerWritten("Ada in 1990, Bo in 2000."),
    t.Finished(1.5, "eoi"),
]


def test_the_samples_are_of_every_event() -> None:
    assert {type(s).__name__ for s in SAMPLES} == set(EVENTS)


@pytest.mark.parametrize("event", SAMPLES, ids=lambda e: type(e).__name__)
def test_every_event_survives_json(event: t.Event) -> None:
    assert event_from_json(json.loads(json.dumps(to_json(event)))) == event


def test_waiting_is_no_part_of_a_prediction() -> None:
    events = [t.QuestionQueued(1, 1), t.QuestionQueued(0, 1), t.StepFinished(STEP, A), t.Finished(1.5, "eoi")]
    assert fold(t.Question("q"), t.SystemInfo("s"), events).events == tuple(events[2:])


def test_a_prediction_survives_json() -> None:
    question = t.Question("q", "id", ("x",), ("y",), (P,))
    prediction = fold(question, t.SystemInfo("s", {"a": [1, None]}, "c", "d", "e", "f"), SAMPLES[:5] + SAMPLES[6:])
    again = prediction_from_json(json.loads(json.dumps(to_json(prediction))))
    assert again == prediction
    assert again.passage("p1") == P
    assert again.passage("p2") is None


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"event": "Exploded"}, "unknown event 'Exploded'"),
        ({}, "unknown event None"),
        ([1], "unknown event"),
        ({"event": []}, "unknown event"),
        ({"event": "Finished", "seconds": "soon", "why": ""}, "field 'Finished.seconds': expected float"),
        ({"event": "Finished", "seconds": True, "why": ""}, "field 'Finished.seconds': expected float"),
        ({"event": "Finished", "why": ""}, "Finished lacks seconds"),
        ({"event": "StepStarted", "number": 1.5, "previous": [], "prompt": ""}, "field 'StepStarted.number': expected int"),
        ({"event": "StepStarted", "number": True, "previous": [], "prompt": ""}, "expected int"),
        ({"event": "StepStarted", "number": 1, "previous": "x", "prompt": ""}, "expected a list"),
        ({"event": "StepStarted", "number": 1, "previous": [3], "prompt": ""}, "field 'StepStarted.previous[0]': expected str"),
        ({"event": "QuestionClarified", "clarification": [], "seconds": 1}, "expected an object"),
    ],
)
def test_what_is_no_event_is_refused(row: Any, says: str) -> None:
    with pytest.raises(FormatError) as caught:
        event_from_json(row)
    assert says in str(caught.value)


def test_events_fold_to_a_prediction_without_what_was_rejected() -> None:
    question, info = t.Question("q"), t.SystemInfo("s")
    rejected = fold(question, info, SAMPLES)
    assert (rejected.answers, rejected.clarifications) == ((), ())
    prediction = fold(question, info, [s for s in SAMPLES if not isinstance(s, t.AnswerRejected)])
    assert (prediction.answers, prediction.seconds) == ((A,), 1.5)
    assert (len(prediction.passages), len(prediction.steps)) == (1, 2)  # a passage that is read twice counts once
    assert prediction.clarifications == (prediction.clarification_of("text"),)
    assert prediction.clarification_of("other") is None
