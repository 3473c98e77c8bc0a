"""The tour of a first visit and the sheet of words: shown, followed, ended for good."""

from __future__ import annotations

from collections.abc import Callable

from page_helpers import ask, button, texts
from streamlit.testing.v1 import AppTest

from core.settings import Settings
from pages.frame import glossary as sheet
from storage.access.preferences import FILE, Preferences

Open = Callable[..., AppTest]


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


def test_damaged_preferences_count_as_none(open_app: Open, settings: Settings) -> None:
    settings.home.mkdir(parents=True, exist_ok=True)
    for body in ("", "[]", '{"me": 3}', "{"):
        (settings.home / FILE).write_text(body, encoding="utf-8")
        assert Preferences(settings.home).get("me", "tour") == ""
    app = open_app()
    assert not app.exception
    button(app, "End the tour").click().run()
    assert Preferences(settings.home).get("me", "tour") == "ended"


def test_what_one_person_chose_leaves_others_alone(settings: Settings) -> None:
    kept = Preferences(settings.home)
    kept.put("Ada", "a", "1")
    kept.put("Ada", "b", "2")
    kept.put("Ben", "a", "3")
    assert [kept.get(*asked) for asked in (("Ada", "a"), ("Ada", "b"), ("Ben", "a"), ("Ben", "b"))] == ["1", "2", "3", ""]


def test_the_sheet_tells_words_and_keys(open_app: Open) -> None:
    app = open_app("corpora")
    app.button(key=sheet.BUTTON).click().run()
    assert not app.exception
    shown = texts(app)
    for word in ("answer set", "[EOI]", "disambiguated question", "evidence"):
        assert word in shown
    assert "Ctrl+Enter" in shown
