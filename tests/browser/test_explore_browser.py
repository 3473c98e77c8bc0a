"""The app in a real Chromium: what AppTest cannot see (links, a reload)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from serving import MARKS, WAIT, serve, until, with_corpus

from core.settings import Settings
from storage.store import Store

pytestmark = MARKS
QUESTION = "Where did Anna Alder meet Boris Birch?"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    rows = [("n1", "Anna", "Anna Alder met Boris Birch."), ("n2", "Boris", "Boris Birch met Clara Cedar.")]
    return with_corpus(tmp_path_factory.mktemp("browser") / "home", "small", rows)


@pytest.fixture(scope="module")
def server(settings: Settings) -> Iterator[str]:
    """The app with the scripted system; its address."""
    with serve(settings.home, "small") as address:
        yield address


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page in a fresh profile."""
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        yield context.new_page()


def ask(page: Any, question: str = QUESTION) -> None:
    box = page.get_by_label("Question", exact=True)
    box.wait_for(timeout=WAIT)
    box.fill(question)
    box.press("Enter")
    drawn(page)


@pytest.fixture(scope="module")
def link(server: str, browser: Any) -> str:
    """The link of a prediction made in a browser."""
    page = browser.new_page()
    page.goto(server, timeout=WAIT)
    ask(page)
    page.wait_for_url("**prediction=*", timeout=WAIT)
    address: str = page.url
    page.close()
    return address


def drawn(page: Any) -> None:
    page.get_by_role("button", name="Download trace").wait_for(timeout=WAIT)


def test_a_verdict_stays_after_a_reload(link: str, settings: Settings, page: Any) -> None:
    page.goto(link, timeout=WAIT)
    drawn(page)
    page.get_by_role("radio", name="unsupported").first.click()
    prediction = parse_qs(urlsplit(link).query)["prediction"][0]
    with Store(settings.url) as store:
        until(lambda: [j.verdict for j in store.labels.judgments(prediction)] == ["unsupported"])
    page.reload()
    drawn(page)
    again = page.get_by_role("radio", name="unsupported").first
    again.wait_for(timeout=WAIT)
    assert again.get_attribute("aria-checked") == "true"


def test_the_name_of_the_first_page_leads_there(link: str, server: str, page: Any) -> None:
    """Streamlit serves the default page at the root alone, and says 'Page not found' at its name."""
    page.goto(server + "explore?" + link.split("?")[1], timeout=WAIT)
    drawn(page)
    page.wait_for_url(lambda url: "/explore" not in url)
    assert page.get_by_text("Page not found").count() == 0
