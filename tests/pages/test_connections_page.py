"""The connections page: what is configured, whether it works, and how to call the service."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from unittest.mock import Mock

import pytest
from page_helpers import Open, button, texts

from core import types as t
from core.errors import InputError
from core.models.language import loading
from pages.session import shared
from storage.store import Store


@pytest.mark.parametrize("bundled", [False, True])
def test_without_a_language_model_it_says_what_to_set(
    open_app: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bundled: bool
) -> None:
    monkeypatch.setattr(loading, "BUNDLED", tmp_path)
    if bundled:
        (tmp_path / "language").mkdir()
        (tmp_path / "language" / "config.json").write_text('{"kind": "language"}')
    app = open_app("connections")
    assert not app.exception
    assert "AMBISCOPE_LM_URL" in texts(app)
    assert [b.key for b in app.button if b.key == "connections.test"] == ["connections.test"] * bundled


@pytest.mark.parametrize(("url", "works"), [("scripted:", True), ("http://127.0.0.1:9/v1", False)])
def test_the_language_model_is_tested(open_app: Open, monkeypatch: pytest.MonkeyPatch, url: str, works: bool) -> None:
    monkeypatch.setenv("AMBISCOPE_LM_URL", url)
    monkeypatch.setenv("AMBISCOPE_LM_MODEL", "tiny")
    monkeypatch.setenv("AMBISCOPE_LM_RETRIES", "0")
    shared.settings.clear()
    app = button(open_app("connections"), "Test it").click().run()
    assert not app.exception
    assert (bool(app.success), bool(app.error)) == (works, not works)
    assert [m.label for m in app.metric] == ["Time", "Prompt tokens", "Reply tokens"]


def test_a_test_that_cannot_begin_leaves_no_earlier_outcome(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMBISCOPE_LM_URL", "scripted:")
    shared.settings.clear()
    app = button(open_app("connections"), "Test it").click().run()
    monkeypatch.setattr(loading, "prompt_folder", Mock(side_effect=InputError("the folder of prompts is gone")))
    button(app, "Test it").click().run()
    assert (len(app.error), len(app.success)) == (1, 0)


def test_the_line_for_the_service_asks_the_latest_question(open_app: Open, store: Store) -> None:
    asked = "Who won O'Brien's \"cup\"?"
    store.predictions.save_prediction(t.Prediction(t.Question(asked), t.SystemInfo("fid"), (), (), (), (), 0.1, ()))
    words = shlex.split(open_app("connections").code[0].value)
    assert words[:2] == ["curl", "http://127.0.0.1:8700/v1/ask"]
    assert json.loads(words[-1]) == {"question": asked}
