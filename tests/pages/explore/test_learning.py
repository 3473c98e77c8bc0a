"""From labels on Explore to a retraining."""

from __future__ import annotations

from typing import Any

import pytest
from annotation_samples import project
from page_helpers import Open, ask, button, ended, texts
from streamlit.testing.v1 import AppTest
from test_explore import link

from core.errors import InputError
from core.metrics.significance.compare import compare_values
from core.settings import Settings
from pages.session import retraining
from storage.analysis.retraining import TRAINING_MINUTES, Retrained
from storage.store import Store


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch, store: Store) -> list[tuple[int, float]]:
    """In place of the training: the snapshot and the minutes of each that was begun."""
    trainings: list[tuple[int, float]] = []

    def stand_in(_store: Store, _settings: Settings, snapshot: int, minutes: float, progress: Any) -> Retrained:
        trainings.append((snapshot, minutes))
        if not store.labels.judged_questions():
            raise InputError("the snapshot holds no question with a correct answer")
        difference = compare_values([0.5, 0.6, 0.7], [0.4, 0.4, 0.4], samples=50)
        return Retrained(snapshot, 7, "weights", "a", "b", "better", difference)

    monkeypatch.setattr(retraining, "retrain", stand_in)
    return trainings


def learn(app: AppTest) -> AppTest:
    return ended(button(app, "Retrain on my labels").click().run(), "trainings")


def test_a_question_with_wrong_answers_only_does_not_count(app: AppTest, store: Store) -> None:
    ask(app)
    app.segmented_control(key=f"label.{link(app)}.0.choice").set_value("wrong").run()
    assert (store.labels.judged_questions(), store.labels.answered_questions(10)) == (1, 0)
    assert "0 of 10 questions" in texts(app)
    app.segmented_control(key=f"label.{link(app)}.1.choice").set_value("correct").run()
    assert store.labels.answered_questions(10) == 1
    assert store.labels.answered_questions(0) == 0


def test_labels_count_and_the_training_is_one_click_away(app: AppTest, store: Store, begun: list[tuple[int, float]]) -> None:
    ask(app)
    app.segmented_control(key=f"label.{link(app)}.0.choice").set_value("correct").run()
    assert "1 of 10 questions" in texts(app)
    learn(app)
    assert begun == [(1, TRAINING_MINUTES)]
    assert {v for v in store.exports.get_snapshot(1).filters.values() if v} == {"final"}
    assert "The new model is better" in texts(app)
    button(app, "Dismiss").click().run()
    assert "The new model is better" not in texts(app)


def test_what_went_wrong_stands_beside_the_result(app: AppTest, begun: list[tuple[int, float]]) -> None:
    learn(ask(app))  # nothing was judged
    assert "no question with a correct answer" in " ".join(e.value for e in app.error)
    assert "3 answers" in texts(app)


def test_who_may_not_start_it_sees_no_button(app: AppTest, ann: None) -> None:
    ask(app)
    assert "3 answers" in texts(app)
    assert not [b for b in app.button if b.key == "explore.learn"]


def test_my_items_have_the_button_too(open_app: Open, store: Store, begun: list[tuple[int, float]]) -> None:
    app = open_app("annotate", project=project(store, 1).id)
    app.segmented_control(key="annotate.view").set_value("My items").run()
    assert not app.exception
    learn(app)
    assert len(begun) == 1
