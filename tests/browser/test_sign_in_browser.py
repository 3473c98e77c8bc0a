"""Signing in in a browser: what lasts (a reload, a second tab, a restart of the server), and what ends it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import people
import pytest
from serving import MARKS, WAIT, free_port, quiet, serve, with_corpus

from core.settings import Settings
from storage.store import Store

pytestmark = MARKS
POSTED = "**/_ambiscope/sign-in"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return with_corpus(tmp_path / "home", "small", [("p1", "Maria", "Natalie Wood played Maria.")])


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    """A store with the manager Mia, and Ada."""
    with Store(settings.url) as opened:
        people.add(opened, people.manager(opened, "Mia"), "Ada", "annotator")
        yield opened


@pytest.fixture
def context(browser: Any) -> Iterator[Any]:
    with browser.new_context() as context:
        yield context


class Tab:
    def __init__(self, context: Any, address: str) -> None:
        self.page = context.new_page()
        self.page.set_default_timeout(WAIT)
        self.page.goto(address)
        quiet(self.page)

    def sign_in(self, name: str) -> None:
        self.page.get_by_label("Name", exact=True).fill(name)
        self.page.get_by_label("Password", exact=True).fill(people.PASSWORD)
        with self.page.expect_response(POSTED) as reply:
            self.page.get_by_role("button", name="Sign in").click()
        assert reply.value.status == 204
        self.is_in(name)

    def reload(self) -> None:
        self.page.reload()
        quiet(self.page)

    def is_in(self, name: str) -> None:
        self.page.get_by_test_id("stSidebar").get_by_text(name, exact=True).wait_for()
        quiet(self.page)

    def is_out(self) -> str:
        """Whether the sign-in form is shown."""
        self.page.get_by_role("heading", name="Sign in").wait_for()
        quiet(self.page)
        return str(self.page.get_by_test_id("stMain").inner_text())

    def again(self) -> None:
        """Has the server run the page again, without a button that a sign-in stands behind."""
        self.page.get_by_test_id("stSidebarNav").get_by_role("link", name="Corpora").click()

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).click()


def test_a_sign_in_lasts_until_it_is_ended(settings: Settings, store: Store, browser: Any, context: Any) -> None:
    port = free_port()
    with serve(settings.home, "small", port=port) as address:
        tab = Tab(context, address)
        tab.sign_in("Mia")
        (cookie,) = (c for c in context.cookies() if c["name"].startswith("ambiscope_"))
        assert (cookie["httpOnly"], cookie["sameSite"], cookie["expires"] > 0) == (True, "Strict", True)
        tab.reload()
        tab.is_in("Mia")
        Tab(context, address).is_in("Mia")
    with serve(settings.home, "small", port=port) as address, browser.new_context() as elsewhere:
        tab.reload()
        tab.is_in("Mia")
        other = Tab(elsewhere, address)
        other.sign_in("Mia")
        tab.press("Account")
        tab.press("Sign out everywhere")
        tab.is_out()
        other.again()
        assert "sign in again" in other.is_out()
        for one in (tab, other):
            one.reload()
            one.is_out()
        # a forged cookie is told of once, and taken away
        context.add_cookies([{**cookie, "value": "0" * 64}])
        with tab.page.expect_response(POSTED):
            tab.reload()
        assert "sign in again" in tab.is_out()
        tab.reload()
        assert "sign in again" not in tab.is_out()
        # two people, one browser: the first one's tab says so, and never goes on as the second one
        first, second = Tab(context, address), Tab(context, address)
        first.sign_in("Mia")
        second.sign_in("Ada")
        first.again()
        assert "sign in again" in first.is_out()
        second.reload()
        second.is_in("Ada")
