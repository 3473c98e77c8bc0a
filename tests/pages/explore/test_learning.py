"""From labels and corrections on Explore to the training loop: what is stored, and what the loop is begun with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from annotation_samples import project
from page_helpers import ANSWERS, Open, ask, button, ended, texts
from streamlit.testing.v1 import AppTest
from test_explore import link

from core.errors import InputError
from core.settings import Settings
from pages.quality import training_loop
from storage.analysis.loop import Difference, LoopOptions, LoopResult
from storage.store import Store


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch, store: Store, tmp_path: Path) -> list[dict[str, Any]]:
    """In place of the loop: the training row of each that was begun."""
    loops: list[dict[str, Any]] = []

    def stand_in(_store: Store, _settings: Settings, options: LoopOptions, *, progress: Any) -> LoopResult:
        file = tmp_path / f"{len(loops)}.jsonl"
        store.exports.export("training", file, filters=options.filters)
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        loops.append({"out": options.out, "row": rows[0] if rows else None})
        if not rows:
            raise InputError("the snapshot holds no question with a correct answer")
        d = Difference("F1 answer", 0.4, 0.5, 40, 0.1, (0.02, 0.18), 0.01)
        return LoopResult(1, "weights", "a", "b", "better", (d,), 40, 2, 7)

    monkeypatch.setattr(training_loop, "run_loop", stand_in)
    return loops


def label(app: AppTest, position: int, value: str) -> None:
    app.segmented_control(key=f"label.{link(app)}.{position}.choice").set_value(value).run()


def learn(app: AppTest) -> AppTest:
    return ended(button(app, "Retrain on my labels").click().run(), "loops")


def test_labels_and_a_struck_answer_count_and_the_loop_is_one_click_away(
    app: AppTest, store: Store, settings: Settings, begun: list[dict[str, Any]]
) -> None:
    ask(app)
    label(app, 0, "correct")
    label(app, 1, "unsupported")
    label(app, 2, "wrong")
    assert "1 of 10 judged questions" in texts(app)
    learn(app)
    verdicts = [(j.position, j.verdict) for j in store.labels.judgments(link(app))]
    assert verdicts == [(0, "correct"), (1, "unsupported"), (2, "wrong")]
    (one,) = begun
    assert one["out"].parent == settings.runs_dir
    assert one["row"]["answers"] == [[ANSWERS[0]]]
    assert sorted(one["row"]["negatives"]) == sorted(ANSWERS[1:])
    assert one["row"]["passages"]
    assert "The new model is better" in texts(app)
    button(app, "Dismiss").click().run()
    assert "The new model is better" not in texts(app)


def test_what_went_wrong_stands_beside_the_result(app: AppTest, begun: list[dict[str, Any]]) -> None:
    learn(ask(app))  # nothing was judged
    assert "no question with a correct answer" in " ".join(e.value for e in app.error)
    assert "3 answers" in texts(app)


def test_who_may_not_start_the_loop_sees_no_button(app: AppTest, ann: None) -> None:
    ask(app)
    assert "3 answers" in texts(app)
    assert not [b for b in app.button if b.key == "explore.learn"]


def test_my_items_have_the_button_too(open_app: Open, store: Store, begun: list[dict[str, Any]]) -> None:
    app = open_app("annotate", project=project(store, 1).id)
    app.segmented_control(key="annotate.view").set_value("My items").run()
    assert not app.exception
    learn(app)
    assert len(begun) == 1
