"""Two processes of the app before one PostgreSQL, each with a home of its own and one shared folder of corpora, as docs/deploy.md says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from postgres_databases import database
from serving import MARKS, WAIT, serve, with_corpus

from core.retrieval.library import BuildOptions, CorpusLibrary
from core.settings import Settings

POSTGRES = os.environ.get("TEST_POSTGRES_URL", "")
pytestmark = [*MARKS, pytest.mark.skipif(not POSTGRES, reason="TEST_POSTGRES_URL names no server")]
SHARED = ("corpora", "runs", "snapshots", "questions")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The files on the storage that both replicas see."""
    rows = [("p1", "Old", "Natalie Wood played Maria in film 0 and in film 1.")]
    return with_corpus(tmp_path_factory.mktemp("shared") / "files", "small", rows)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with database(POSTGRES, current=False) as url:
        yield url


@pytest.fixture(scope="module")
def replicas(shared: Settings, url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The addresses of two apps that start at the same moment on an empty database."""
    with ExitStack() as stack:
        addresses = []
        for name in ("first", "second"):
            home = tmp_path_factory.mktemp(name) / "home"
            home.mkdir()
            for folder in SHARED:
                (shared.home / folder).mkdir(exist_ok=True)
                (home / folder).symlink_to(shared.home / folder, target_is_directory=True)
            addresses.append(stack.enter_context(serve(home, "small", DATABASE_URL=url)))
        yield addresses


def begin(page: Any, question: str) -> None:
    box = page.get_by_label("Question", exact=True)
    box.fill(question)
    box.press("Enter")


def done(page: Any) -> str:
    """The shown run, saved: its address names it."""
    page.get_by_role("button", name="Download").wait_for()
    page.wait_for_url("**prediction=*")
    return str(page.url)


def opened(browser: Any, addresses: list[str]) -> list[Any]:
    """A page at each address."""
    pages = [browser.new_page() for _ in addresses]
    for page, address in zip(pages, addresses):
        page.set_default_timeout(WAIT)
        page.goto(address)
    return pages


def test_two_replicas_are_one_app(replicas: list[str], shared: Settings, url: str, browser: Any) -> None:
    from playwright.sync_api import expect

    pages = opened(browser, replicas)
    for number, page in enumerate(pages):
        begin(page, f"Who played Maria in film {number}?")
    links = [done(page) for page in pages]
    # a link of one replica opens at the other
    pages[1].goto(links[0].replace(replicas[0], replicas[1]))
    pages[1].get_by_test_id("stMain").get_by_text("Natalie Wood").filter(visible=True).first.wait_for()
    expect(pages[1].get_by_label("Question", exact=True)).to_have_value("Who played Maria in film 0?", timeout=WAIT)

    # a corpus that is built again through one is read by both, and a new one is seen
    new = shared.home.parent / "new.tsv"
    new.write_text("id\ttext\ttitle\np9\tRachel Zegler played Maria on stage 0 and on stage 1.\tNew\n")
    library = CorpusLibrary(Settings(home=Path(shared.home), encoder="hashing"))
    library.create("small", [new], options=BuildOptions(replace=True))
    library.create("fresh", [new])
    for number, (page, address) in enumerate(zip(pages, replicas)):
        page.goto(address)
        begin(page, f"Who played Maria on stage {number}?")
        done(page)
        page.get_by_test_id("stMain").get_by_text("Rachel Zegler").filter(visible=True).first.wait_for()
        page.goto(f"{address}corpora")
        page.locator("td", has_text="fresh").first.wait_for(state="attached")  # drawn on a canvas
