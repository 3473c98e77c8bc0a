"""From labels on Explore to the training loop."""

from __future__ import annotations

from typing import Any

import pytest
from annotation_samples import project
from page_helpers import Open, ask, button, ended, texts
from streamlit.testing.v1 import AppTest
from test_explore import link

from core.errors import InputError
from core.settings import Settings
from pages.quality import training_loop
from storage.analysis.loop import Difference, LoopOptions, LoopResult
from storage.exchange.filters import Filters
from storage.store import Store


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch, store: Store) -> list[LoopOptions]:
    """In place of the loop: the options of each that was begun."""
    loops: list[LoopOptions] = []

    def stand_in(_store: Store, _settings: Settings, options: LoopOptions, *, progress: Any) -> LoopResult:
        loops.append(options)
        if not store.labels.judged_questions():
            raise InputError("the snapshot holds no question with a correct answer")
        d = Difference("F1 answer", 0.4, 0.5, 40, 0.1, (0.02, 0.18), 0.01)
        return LoopResult(1, "weights", "a", "b", "better", (d,), 40, 2, 7)

    monkeypatch.setattr(training_loop, "run_loop", stand_in)
    return loops


def learn(app: AppTest) -> AppTest:
    return ended(button(app, "Retrain on my labels").click().run(), "loops")


def test_labels_count_and_the_loop_is_one_click_away(app: AppTest, settings: Settings, begun: list[LoopOptions]) -> None:
    ask(app)
    app.segmented_control(key=f"label.{link(app)}.0.choice").set_value("correct").run()
    assert "1 of 10 judged questions" in texts(app)
    learn(app)
    (options,) = begun
    assert (options.out.parent, options.filters) == (settings.runs_dir, Filters())
    assert "The new model is better" in texts(app)
    button(app, "Dismiss").click().run()
    assert "The new model is better" not in texts(app)


def test_what_went_wrong_stands_beside_the_result(app: AppTest, begun: list[LoopOptions]) -> None:
    learn(ask(app))  # nothing was judged
    assert "no question with a correct answer" in " ".join(e.value for e in app.error)
    assert "3 answers" in texts(app)


def test_who_may_not_start_the_loop_sees_no_button(app: AppTest, ann: None) -> None:
    ask(app)
    assert "3 answers" in texts(app)
    assert not [b for b in app.button if b.key == "explore.learn"]


def test_my_items_have_the_button_too(open_app: Open, store: Store, begun: list[LoopOptions]) -> None:
    app = open_app("annotate", project=project(store, 1).id)
    app.segmented_control(key="annotate.view").set_value("My items").run()
    assert not app.exception
    learn(app)
    assert len(begun) == 1
