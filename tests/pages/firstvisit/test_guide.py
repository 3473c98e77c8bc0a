"""The tour of a first visit and the sheet of words: shown, followed, ended for good."""

from __future__ import annotations

import pytest
from page_helpers import Open, ask, button, texts
from streamlit.testing.v1 import AppTest

from core.settings import Settings
from pages.frame import glossary as sheet
from storage.access.preferences import FILE, Preferences


def test_the_tour_follows_what_one_does(app: AppTest) -> None:
    assert "1 of 3:" in texts(app)
    ask(app)
    assert "2 of 3:" in texts(app)
    app.switch_page("pages/corpora/page.py").run()
    assert "of 3:" not in texts(app)
    app.switch_page("pages/evaluate/page.py").run()
    assert not app.exception
    assert "3 of 3:" in texts(app)


def test_once_ended_it_never_comes_again(app: AppTest, open_app: Open, settings: Settings) -> None:
    button(app, "End the tour").click().run()
    assert "of 3:" not in texts(app)
    assert "of 3:" not in texts(open_app())
    other = open_app(me="Ada")  # somebody else has not seen it
    assert "1 of 3:" in texts(other)
    assert (settings.home / FILE).is_file()


@pytest.mark.parametrize("content", ["", "[]", '{"me": 3}', "{"])
def test_damaged_preferences_count_as_none_and_are_replaced(settings: Settings, content: str) -> None:
    settings.home.mkdir(parents=True)
    (settings.home / FILE).write_text(content, encoding="utf-8")
    preferences = Preferences(settings.home)
    assert preferences.get("me", "tour") == ""
    preferences.put("me", "tour", "ended")
    assert preferences.get("me", "tour") == "ended"


def test_what_one_person_chose_leaves_others_alone(settings: Settings) -> None:
    preferences = Preferences(settings.home)
    for person, name, value in (("Ada", "a", "1"), ("Ada", "b", "2"), ("Ben", "a", "3")):
        preferences.put(person, name, value)
    assert [preferences.get(person, name) for person in ("Ada", "Ben") for name in "ab"] == ["1", "2", "3", ""]


def test_the_sheet_tells_words_and_keys(open_app: Open) -> None:
    app = open_app("corpora")
    app.button(key=sheet.BUTTON).click().run()
    assert not app.exception
    shown = texts(app)
    words = ("answer set", "[EOI]", "disambiguated question", "evidence", "Ctrl+Enter")
    assert [word for word in words if word not in shown] == []
