"""Around a result: two sides aligned by answer, time by part, tokens, Markdown and card, settings that differ."""

from __future__ import annotations

import dataclasses
import io
from datetime import date

import pytest
from annotate_helpers import predict
from page_helpers import QUESTION, button, texts
from PIL import Image
from streamlit.testing.v1 import AppTest

from core import types as t
from core.evaluation.cost import times_of
from pages.explore import share, sides
from pages.explore.rows import distinction, row

DAY = date(2026, 1, 31)


def answer(text: str, *read: str) -> t.Answer:
    return t.Answer(text, 0.5, tuple(t.Evidence("p", 0, len(r), r) for r in read))


def test_answers_are_the_same_by_any_spelling() -> None:
    left = [answer("The Beatles"), answer("Wings"), answer("8 March"), answer("x")]
    right = [answer("Queen"), answer("March 8", "8 March"), answer("beatles!"), answer("Beatles")]
    assert sides.in_both(left, right) == ({0, 2}, {1, 2})
    assert sides.in_both([], right[:1]) == (set(), set())


def test_time_by_part_adds_up() -> None:
    step = t.Step(1, (), "", (), None, 1.0, 0.5)
    events: tuple[t.Event, ...] = (
        t.PassagesRetrieved((), 0.125, "q"),
        t.StepFinished(step, None),
        t.QuestionClarified(t.Clarification("a", "b", True), 0.25),
        t.ModelCalled("interpret", 1, 10, 1, 3.0),
        t.ModelCalled("verify", 1, 10, 1, 1.0),
        t.Finished(2.0, "done"),
    )
    times = times_of(t.Prediction(t.Question("q"), t.SystemInfo("s"), (), (), (step,), (), 2.0, events))
    assert sum(times.values()) == pytest.approx(2.0)
    assert (times["retrieval"], times["rewriting"]) == (0.125, 0.25)
    assert times["verifying"] == pytest.approx(1.125 / 4)  # the calls ran at the same time: together they took what is left


def test_markdown_says_what_made_it_and_escapes_what_others_wrote() -> None:
    prediction = predict(QUESTION, ("**Natalie** [x](javascript:1)", "Rachel Zegler"))
    text = share.markdown(prediction, "http://127.0.0.1:8501/?prediction=abc", DAY)
    assert "**\\*\\*Natalie" in text
    assert "](javascript" not in text
    plain = text.replace("\\", "").replace("\u2060", "")
    parts = ("# " + QUESTION, "Evidence: West Side Story (2021 film)", "system scripted", "2026-01-31", "prediction=abc")
    assert [part for part in parts if part not in plain] == []
    assert "No answer was found" in share.markdown(predict(QUESTION, ()), "", DAY)


@pytest.mark.parametrize(
    "answers",
    [(), ("Natalie Wood",), tuple(f"answer {n} " + "long words " * 20 for n in range(12)), ("日本語 العربية \U0001f600",)],
)
def test_the_card_is_a_picture_of_all_answers(answers: tuple[str, ...]) -> None:
    with Image.open(io.BytesIO(share.card(predict(QUESTION, answers), "", DAY))) as picture:
        assert (picture.format, picture.width) == ("PNG", share.WIDTH)
        assert picture.height > 200 + 30 * len(answers)


def test_changed_settings_are_marked_and_reset_together(app: AppTest) -> None:
    assert "explore.reset" not in [b.key for b in app.button]
    app.number_input(key="explore.first.max_answers").set_value(3)
    app.toggle(key="explore.first.clarify").set_value(False).run()
    assert texts(app).count("Default:") == 2
    assert "Default: on" in texts(app)
    button(app, "Reset 2 changed settings").click().run()
    assert not app.exception
    assert "Default:" not in texts(app)
    assert app.number_input(key="explore.first.max_answers").value == 8
    assert app.toggle(key="explore.first.clarify").value is True


def question(answer: str, text: str) -> t.Prediction:
    """A prediction of one answer whose rewritten question is `text`."""
    return dataclasses.replace(predict(QUESTION, (answer,)), clarifications=(t.Clarification(answer, text, True),))


def test_a_question_that_did_not_change_is_not_a_rewritten_one() -> None:
    same = question("Natalie Wood", QUESTION.upper())
    assert (share.questions_of(same, same.answers[0]), distinction(same, same.answers[0])) == ([], "")
    other = question("Natalie Wood", "Who played Maria in the 1961 film West Side Story?")
    assert distinction(other, other.answers[0]) == "the 1961 film"
    assert "1961" in share.markdown(other, "", DAY)
    assert "Question:" not in share.markdown(same, "", DAY)


def test_a_kept_answer_is_not_an_added_one() -> None:
    prediction = predict(QUESTION, ("Natalie Wood", "Rita Moreno"))
    prediction = dataclasses.replace(prediction, question=t.Question(QUESTION, added=("Rita Moreno",)))
    rows = [row(prediction, dataclasses.replace(answer, pinned=True)) for answer in prediction.answers]
    assert [("kept" in text, "added" in text) for text in rows] == [(True, False), (False, True)]
