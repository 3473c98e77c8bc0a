"""A stranger's route through the app, from its printed address: ask an example, judge an answer, see a chart, annotate a question, export.

At most 15 clicks, nothing typed, and no page on the way that says something went wrong or that there is nothing to do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import MARKS, WAIT, chromium, quiet, serve

pytestmark = MARKS
MOST_CLICKS = 15
AWAY = "() => (document.querySelector('[data-testid=stSidebar]')?.getBoundingClientRect().right ?? 0) <= 1"  # the sidebar


class Stranger:
    """A browser that counts its clicks, and keeps a picture of each stop."""

    def __init__(self, page: Any, folder: Path) -> None:
        self.page, self.folder, self.clicks = page, folder, 0

    def click(self, what: Any) -> None:
        what.wait_for(timeout=WAIT)
        what.scroll_into_view_if_needed()
        what.click()
        self.clicks += 1
        self.rest()

    def button(self, name: str, *, exact: bool = False) -> Any:
        return self.main.get_by_role("button", name=name, exact=exact).first

    def visit(self, name: str) -> None:
        self.click(self.page.get_by_test_id("stSidebarNav").get_by_role("link", name=name))

    @property
    def main(self) -> Any:
        return self.page.get_by_test_id("stMain")

    def rest(self) -> None:
        quiet(self.page)

    def look(self, name: str, *, marked_wrong: bool = False) -> str:
        """What the page says; no page on the route is a dead end.  `marked_wrong`: it may say that an answer was not right."""
        self.rest()
        self.page.screenshot(path=str(self.folder / f"{name}.png"), full_page=False)
        said = str(self.main.inner_text())
        assert self.page.get_by_test_id("stException").count() == 0, said
        assert marked_wrong or self.main.get_by_test_id("stAlertContentError").count() == 0, said
        assert "unexpected error" not in said
        return said


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serve(tmp_path_factory.mktemp("stranger") / "home", "starter") as found:
        yield found


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (400, True)], ids=["wide", "narrow and dark"])
def test_a_stranger_finds_through_in_fifteen_clicks(address: str, tmp_path: Path, width: int, dark: bool) -> None:
    with chromium() as browser:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", accept_downloads=True
        )
        page = context.new_page()
        me = Stranger(page, tmp_path)

        def visit(name: str) -> None:
            """On a narrow screen the sidebar lies over the page: opened and closed again."""
            opens, closes = (
                page.get_by_test_id("stExpandSidebarButton"),
                page.get_by_test_id("stSidebarCollapseButton").locator("button"),
            )
            if width < 600 and opens.is_visible():
                opens.click()
            me.visit(name)
            if width < 600:
                if closes.is_visible():
                    closes.click()
                page.wait_for_function(AWAY, timeout=WAIT)

        page.goto(f"{address}?me=stranger{width}", timeout=WAIT)
        page.get_by_role("heading", name="Explore an ambiguous question").first.wait_for(timeout=WAIT)
        me.rest()
        assert "1 of 3:" in me.look("1-first-visit")
        assert page.title() == "Explore · Ambiscope"

        me.click(me.main.locator("[class*='st-key-explore-example-0'] button"))
        page.wait_for_url("**prediction=*", timeout=WAIT)
        assert "2 of 3:" in me.look("2-asked")
        me.click(me.main.locator("[class*='st-key-answers-'] summary").first)
        me.click(me.main.get_by_role("radio", name="correct").or_(me.button("correct", exact=True)).first)
        me.look("3-judged")

        visit("Evaluate")
        me.main.get_by_text("included with Ambiscope").wait_for(timeout=WAIT)
        assert "3 of 3:" in me.look("4-runs")
        me.main.locator(".js-plotly-plot").first.wait_for(timeout=WAIT)
        me.look("5-chart")

        visit("Annotate")
        assert "you can practise" in me.look("6-annotate")
        me.click(me.button("Start the practice project"))
        me.button("Submit").wait_for(timeout=WAIT)
        me.look("7-practice")
        me.click(me.button("Read the passage"))
        me.click(me.button("Accept"))
        me.main.get_by_role("button", name="Undo").first.wait_for(timeout=WAIT)
        me.look("8-annotated")
        me.click(me.button("Submit"))
        me.main.get_by_text("agreement with the reference").wait_for(timeout=WAIT)
        me.look("9-compared", marked_wrong=True)
        me.click(me.button("Continue"))

        visit("Quality")
        me.button("Take snapshot").wait_for(timeout=WAIT)
        me.look("10-quality")
        me.click(me.button("Take snapshot"))
        me.main.get_by_text("was taken").first.wait_for(timeout=WAIT)
        me.look("11-snapshot")
        with page.expect_download(timeout=WAIT) as downloading:
            me.click(me.button("training", exact=True))
        text = Path(downloading.value.path()).read_text(encoding="utf-8")
        assert [json.loads(line) for line in text.splitlines()]
        print(f"{me.clicks} clicks")  # besides those that open and close the sidebar of a narrow screen
        assert me.clicks <= MOST_CLICKS
        context.close()
