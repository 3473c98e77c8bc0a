"""Two processes of the app before one PostgreSQL, each with a home of its own and one shared folder of corpora, as docs/deploy.md says."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from postgres_databases import database
from serving import MARKS, serve, with_corpus

from core.retrieval.library import CorpusLibrary
from core.settings import Settings
from storage.store import Store

POSTGRES = os.environ.get("TEST_POSTGRES_URL", "")
pytestmark = [*MARKS, pytest.mark.skipif(not POSTGRES, reason="TEST_POSTGRES_URL names no server")]
WAIT = 90_000  # milliseconds; a busy machine
SHARED = ("corpora", "runs", "snapshots", "questions")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """What lies on storage that both replicas see."""
    return with_corpus(
        tmp_path_factory.mktemp("shared") / "files",
        "small",
        [("p1", "Old", "Natalie Wood played Maria in film 0 and in film 1.")],
    )


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with database(POSTGRES, current=False) as found:
        yield found


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
    box.wait_for(timeout=WAIT)
    box.fill(question)
    box.press("Enter")


def done(page: Any) -> str:
    """The shown run, saved: its address names it."""
    page.get_by_role("button", name="Download").wait_for(timeout=WAIT)
    page.wait_for_url("**prediction=*", timeout=WAIT)
    return str(page.url)


def test_two_replicas_are_one_app(replicas: list[str], shared: Settings, url: str, browser: Any) -> None:
    from playwright.sync_api import expect

    pages = [browser.new_page() for _ in replicas]
    for page, address in zip(pages, replicas):
        page.goto(address, timeout=WAIT)
    for number, page in enumerate(pages):
        begin(page, f"Who played Maria in film {number}?")
    links = [done(page) for page in pages]
    with Store(url) as store:
        assert {p.question for p in store.predictions.recent_predictions()} == {
            f"Who played Maria in film {n}?" for n in (0, 1)
        }

    # a link of one replica opens at the other
    elsewhere = links[0].replace(replicas[0], replicas[1])
    pages[1].goto(elsewhere, timeout=WAIT)
    pages[1].get_by_test_id("stMain").get_by_text("Natalie Wood").first.wait_for(timeout=WAIT)
    expect(pages[1].get_by_label("Question", exact=True)).to_have_value("Who played Maria in film 0?", timeout=WAIT)

    # a corpus that is built anew through one is read by both, and a new one is seen
    new = shared.home.parent / "new.tsv"
    new.write_text("id\ttext\ttitle\np9\tRachel Zegler played Maria on stage 0 and on stage 1.\tNew\n")
    library = CorpusLibrary(Settings(home=Path(shared.home), encoder="hashing"))
    library.create("small", [new], replace=True)
    library.create("fresh", [new])
    for number, (page, address) in enumerate(zip(pages, replicas)):
        page.goto(address, timeout=WAIT)
        begin(page, f"Who played Maria on stage {number}?")
        done(page)
        page.get_by_test_id("stMain").get_by_text("Rachel Zegler").first.wait_for(timeout=WAIT)
        page.goto(f"{address}corpora", timeout=WAIT)
        page.locator("td", has_text="fresh").first.wait_for(timeout=WAIT, state="attached")  # drawn on a canvas
    with Store(url) as store:
        assert len({p.question for p in store.predictions.recent_predictions()}) == 4


def test_people_who_save_through_both_lose_nothing(replicas: list[str], url: str, browser: Any) -> None:
    """One after another and at once: every question that was asked is stored, once."""
    pages = [browser.new_page() for _ in range(2) for _ in replicas]
    before = time.monotonic()
    with Store(url) as store:
        known = {p.id for p in store.predictions.recent_predictions(limit=100)}
        for number, page in enumerate(pages):
            page.goto(replicas[number % 2], timeout=WAIT)
        for number, page in enumerate(pages):
            begin(page, f"Who danced in hall {number}?")
        for page in pages:
            done(page)
        fresh = [p.question for p in store.predictions.recent_predictions(limit=100) if p.id not in known]
    assert sorted(fresh) == [f"Who danced in hall {n}?" for n in range(4)]
    assert time.monotonic() - before < 2 * WAIT / 1000
