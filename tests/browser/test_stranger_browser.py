"""A stranger's route through the app, from its printed address: ask an example, judge an answer, see a chart, annotate a question, export.

At most 15 clicks, nothing typed, and no page on the way that says something went wrong or that there is nothing to do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import MARKS, WAIT, quiet, serve

pytestmark = MARKS
MOST_CLICKS = 15
AWAY = "() => (document.querySelector('[data-testid=stSidebar]')?.getBoundingClientRect().right ?? 0) <= 1"  # the sidebar


class Stranger:
    """A page of which each click is counted."""

    def __init__(self, page: Any) -> None:
        self.page, self.clicks = page, 0

    def click(self, what: Any) -> None:
        what.wait_for()
        what.scroll_into_view_if_needed()
        what.click()
        self.clicks += 1
        quiet(self.page)

    def button(self, name: str, *, exact: bool = False) -> Any:
        return self.main.get_by_role("button", name=name, exact=exact).first

    def visit(self, name: str) -> None:
        self.click(self.page.get_by_test_id("stSidebarNav").get_by_role("link", name=name))

    @property
    def main(self) -> Any:
        return self.page.get_by_test_id("stMain")

    def look(self, *, marked_wrong: bool = False) -> str:
        """What the page says; no page on the route is a dead end.  `marked_wrong`: it may say that an answer was not right."""
        quiet(self.page)
        text = str(self.main.inner_text())
        assert self.page.get_by_test_id("stException").count() == 0, text
        assert marked_wrong or self.main.get_by_test_id("stAlertContentError").count() == 0, text
        assert "unexpected error" not in text
        return text


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serve(tmp_path_factory.mktemp("stranger") / "home", "starter") as address:
        yield address


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (400, "dark")], ids=["wide", "narrow and dark"])
def test_a_stranger_finds_through_in_fifteen_clicks(browser: Any, address: str, width: int, theme: str) -> None:
    with browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme) as context:
        page = context.new_page()
        page.set_default_timeout(WAIT)
        me = Stranger(page)

        def visit(name: str) -> None:
            """On a narrow screen the sidebar lies over the page: opened and closed again."""
            opens = page.get_by_test_id("stExpandSidebarButton")
            closes = page.get_by_test_id("stSidebarCollapseButton").locator("button")
            if width < 600 and opens.is_visible():
                opens.click()
            me.visit(name)
            if width < 600:
                if closes.is_visible():
                    closes.click()
                page.wait_for_function(AWAY)

        page.goto(f"{address}?me=stranger{width}")
        page.get_by_role("heading", name="Explore an ambiguous question").first.wait_for()
        assert "1 of 3:" in me.look()
        assert page.title() == "Explore · Ambiscope"

        me.click(me.main.locator("[class*='st-key-explore-example-0'] button"))
        page.wait_for_url("**prediction=*")
        assert "2 of 3:" in me.look()
        me.click(me.main.locator("[class*='st-key-answers-'] summary").first)
        me.click(me.main.get_by_role("radio", name="correct").or_(me.button("correct", exact=True)).first)
        me.look()

        visit("Evaluate")
        me.main.get_by_text("included with Ambiscope").wait_for()
        assert "3 of 3:" in me.look()
        me.main.locator(".js-plotly-plot").first.wait_for()
        me.look()

        visit("Annotate")
        assert "you can practise" in me.look()
        me.click(me.button("Start the practice project"))
        me.button("Submit").wait_for()
        me.look()
        me.click(me.button("Read the passage"))
        me.click(me.button("Accept"))
        me.main.get_by_role("button", name="Undo").first.wait_for()
        me.look()
        me.click(me.button("Submit"))
        me.main.get_by_text("agreement with the reference").wait_for()
        me.look(marked_wrong=True)
        me.click(me.button("Continue"))

        visit("Quality")
        me.button("Take snapshot").wait_for()
        me.look()
        me.click(me.button("Take snapshot"))
        me.main.get_by_text("was taken").first.wait_for()
        me.look()
        with page.expect_download() as downloading:
            me.click(me.button("training", exact=True))
        text = Path(downloading.value.path()).read_text(encoding="utf-8")
        assert [json.loads(line) for line in text.splitlines()]
        assert me.clicks <= MOST_CLICKS, "besides those that open and close the sidebar of a narrow screen"
