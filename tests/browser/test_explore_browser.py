"""The app in a real Chromium: what AppTest cannot see (scripts, widths, links, the order of what arrives)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import MARKS, serve, with_corpus

pytestmark = MARKS
WAIT = 60_000  # milliseconds
PAYLOADS = [
    "<script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=1>",
    "[click](javascript:window.hacked=1)",
    "![i](http://127.0.0.1:9/x.png)",
    "$x^2$",
    ":red[r]",
    "**bold**",
    ":smile:",
    "www.evil.example",
    "a -> b",
    "`code`",
    "# head",
]
QUESTION = "Where did Anna Alder meet Boris Birch?"
FIRST = "Anna Alder met " + " ".join(PAYLOADS) + " and then Boris Birch."


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The app with the scripted system over a corpus of payloads; its address."""
    home = tmp_path_factory.mktemp("browser") / "home"
    rows = [("n1", f"Anna {PAYLOADS[0]} {PAYLOADS[6]}", FIRST), ("n2", "Boris", "Boris Birch met Clara Cedar.")]
    with_corpus(home, "nasty", rows)
    with serve(home, "nasty") as address:
        yield address


@pytest.fixture
def tab(browser: Any) -> Iterator[Any]:
    """tab(address, width, dark): a page in a fresh profile.  A dialog or an error in a page fails the test."""
    contexts, trouble = [], []

    def dialog(box: Any) -> None:
        trouble.append(f"dialog: {box.message}")
        box.dismiss()

    def open_it(address: str, width: int = 1280, dark: bool = False) -> Any:
        scheme = "dark" if dark else "light"
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("dialog", dialog)
        page.goto(address, timeout=WAIT)
        return page

    yield open_it
    for context in contexts:
        for page in context.pages:
            assert page.evaluate("window.hacked") is None
        context.close()
    assert trouble == []


def ask(page: Any, question: str = QUESTION) -> None:
    box = page.get_by_label("Question", exact=True)
    box.wait_for(timeout=WAIT)
    box.fill(question)
    box.press("Enter")
    page.get_by_role("button", name="Download trace").wait_for(timeout=WAIT)


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


def headings(page: Any) -> str:
    page.get_by_role("button", name="Download trace").wait_for(timeout=WAIT)
    return str(page.get_by_test_id("stMain").locator("h3").first.inner_text())


def test_asks_and_opens_the_link_in_a_second_tab(link: str, tab: Any) -> None:
    first, second = tab(link), tab(link)
    assert headings(first) == headings(second)
    assert "answer" in headings(first)
    shown = second.get_by_test_id("stMain").inner_text()
    assert "Anna Alder" in shown
    assert "How the answers were found" in shown


def test_text_of_a_corpus_shows_as_itself(link: str, tab: Any) -> None:
    """The rendered text is the passage, character by character; nothing of it became an element."""
    page = tab(link)
    headings(page)
    main = page.get_by_test_id("stMain")
    main.get_by_text("and then Boris Birch").first.wait_for(timeout=WAIT, state="attached")
    flat = " ".join(main.evaluate("e => e.textContent").replace("\u2060", "").split())
    assert FIRST in flat
    assert main.locator("a[href*='javascript']").count() == 0
    assert main.locator("a[href*='evil']").count() == 0
    (alt,) = (image.get_attribute("alt") for image in main.locator("img").all())
    assert alt.startswith("Time by part of the run, as a stacked bar")  # the page's own, and no other
    assert main.locator(".katex").count() == 0
    page.wait_for_timeout(300)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 400])
def test_fits_the_width(link: str, tab: Any, width: int, dark: bool) -> None:
    page = tab(link, width, dark)
    headings(page)
    candidates = page.get_by_test_id("stMain").locator("table")
    candidates.first.wait_for(timeout=WAIT)
    wide = page.evaluate(
        "[document.documentElement.scrollWidth, ...[...document.querySelectorAll('[data-testid=stMain]')].map(e => e.scrollWidth)]"
    )
    assert max(wide) <= width
    for table in candidates.all():
        box = table.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width


def test_a_verdict_stays_after_a_reload(link: str, tab: Any) -> None:
    page = tab(link)
    headings(page)
    page.get_by_role("radio", name="unsupported").first.click()
    page.wait_for_timeout(1000)
    page.reload()
    headings(page)
    again = page.get_by_role("radio", name="unsupported").first
    again.wait_for(timeout=WAIT)
    assert again.get_attribute("aria-checked") == "true"


def test_a_direct_link_to_a_page_starts_the_app(server: str, tab: Any) -> None:
    page = tab(server + "corpora")
    page.get_by_text("Add a corpus").wait_for(timeout=WAIT)
    page.get_by_label("Your name").first.wait_for(timeout=WAIT)
    assert page.url.rstrip("/").endswith("/corpora")


def test_the_name_of_the_first_page_leads_there(link: str, server: str, tab: Any) -> None:
    """Streamlit serves the default page at the root alone, and says 'Page not found' at its name."""
    page = tab(server + "explore?" + link.split("?")[1])
    headings(page)
    page.wait_for_url(lambda url: "/explore" not in url)
    assert page.get_by_text("Page not found").count() == 0


def test_upload_by_hand(server: str, tab: Any, tmp_path: Path) -> None:
    path = tmp_path / "two words.tsv"
    path.write_text("x1\tSome text of a few words\tTitle\nbroken line\n", encoding="utf-8")
    page = tab(server + "corpora")
    page.get_by_label("Corpus name").fill("by-hand")
    page.locator("input[type=file]").set_input_files(str(path))
    page.get_by_text("two words.tsv").first.wait_for(timeout=WAIT)
    page.get_by_role("button", name="Upload and build").click()
    page.get_by_text("Corpus by-hand is ready").wait_for(timeout=WAIT)
    page.get_by_text("1 row was skipped").wait_for(timeout=WAIT)
