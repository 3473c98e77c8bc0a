"""The section that is shown for a how-to question."""

from __future__ import annotations

import pytest

from core import types as t
from core.evaluation.how_to import around, section
from core.evaluation.prediction_json import prediction_json
from core.text import find_spans

GUIDE = (
    "Accounts are made by a manager. To add a user, run this command:\n"
    "ambiscope people add \\\n"
    "    --name NAME\n"
    "The new user can sign in at once. Managers see everybody. Nobody else does."
)
STEPS = "To restore: 1. Stop the server. 2. Copy the file back. 3. Start the server. 4. Look at Health. 5. Tell everybody."
LISTING = "ambiscope people add \\\n    --name NAME"


def prediction(question: str, text: str, answer: str) -> t.Prediction:
    (start, end), *_ = find_spans(text, answer)
    answers = (t.Answer(answer, 0.9, (t.Evidence("p", start, end, answer),)),)
    passages = (t.RetrievedPassage(t.Passage("p", "Guide", text), 1, 1.0),)
    return t.Prediction(t.Question(question), t.SystemInfo("x"), answers, (), (), passages, 1.0, ())


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        (GUIDE, "run this command", ["To add a user, run this command:", LISTING]),
        (GUIDE, "people add", ["To add a user, run this command:", LISTING]),
        (GUIDE, "sign in", ["The new user can sign in at once.", "Managers see everybody."]),
        (GUIDE, "Nobody else", ["Managers see everybody.", "Nobody else does."]),
        (STEPS, "Copy the file", ["2. Copy the file back.", "3. Start the server."]),
        ("Press F2.", "F2", ["Press F2."]),
    ],
)
def test_whole_sentences_around_the_answer(text: str, answer: str, expected: list[str]) -> None:
    answered = prediction("How do I do it?", text, answer)
    assert section(answered, answered.answers[0]) == [(part, part == LISTING) for part in expected]


def test_a_span_over_many_sentences_is_cut_at_four() -> None:
    assert len(around(STEPS, 0, len(STEPS))) == 4


def test_answers_stay_and_other_questions_have_no_section() -> None:
    (row,) = prediction_json(prediction("How do I add a user?", GUIDE, "run this command"))["answers"]
    assert (row["text"], row["section"].endswith("NAME")) == ("run this command", True)
    (row,) = prediction_json(prediction("Who makes accounts?", GUIDE, "a manager"))["answers"]
    assert row["section"] == ""
